"""The event catalog: the data of each event, and when it fires (the class's docstring). Documentation, OpenAPI, and
triggers are generated from it.
"""

from abc import ABC, abstractmethod
from functools import cache
from typing import ClassVar, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, JsonValue, create_model

from switchboard.foundation.web.schemas import Dollars, Moment

Direction = Literal["inbound", "outbound"]
"""Direction of a call or a text message."""
CallStatus = Literal["queued", "ringing", "in-progress", "completed", "busy", "no-answer", "failed", "canceled"]
MessageStatus = Literal["queued", "sending", "sent", "delivered", "undelivered", "failed", "received"]


class EventData(BaseModel, ABC):
    """The `data` of an event."""

    model_config = ConfigDict(extra="forbid")
    event: ClassVar[str]

    @abstractmethod
    def get_subject(self) -> UUID:
        """Return the id of the call, text message, or simulation that the event is about."""

    def concerned_agent(self) -> UUID | None:
        """Return the agent whose own webhook receives the event."""
        return None


class CallEvent(EventData):
    """Data of the six call events. `metadata` is the call's own, an addition to the specification."""

    call_id: UUID
    agent_id: UUID | None
    direction: Direction
    status: CallStatus
    from_number: str
    to_number: str
    duration_seconds: int
    cost_total: Dollars
    error_message: str | None
    started_at: Moment | None
    ended_at: Moment | None
    created_at: Moment
    metadata: dict[str, JsonValue]

    def get_subject(self) -> UUID:
        return self.call_id

    def concerned_agent(self) -> UUID | None:
        return self.agent_id


class CallStarted(CallEvent):
    """A call connected and started."""

    event = "call.started"


class CallRinging(CallEvent):
    """An outbound call is ringing the destination."""

    event = "call.ringing"


class CallCompleted(CallEvent):
    """A call ended normally."""

    event = "call.completed"


class CallFailed(CallEvent):
    """A call failed to connect or errored."""

    event = "call.failed"


class CallTakeover(CallEvent):
    """A human agent took over a live call."""

    event = "call.takeover"


class CallTranscriptReady(CallEvent):
    """The transcript of a completed call is available."""

    event = "call.transcript.ready"


class TextEvent(EventData):
    """Data of both text message events. `contact_name` is null if the other party is not a contact."""

    message_id: UUID
    conversation_id: UUID
    direction: Direction
    from_number: str
    to_number: str
    body: str
    status: MessageStatus
    contact_name: str | None
    created_at: Moment

    def get_subject(self) -> UUID:
        return self.message_id


class SmsReceived(TextEvent):
    """An inbound SMS was received."""

    event = "sms.received"


class SmsSent(TextEvent):
    """An outbound SMS was sent: the carrier has accepted it."""

    event = "sms.sent"


class SimulationCriterion(BaseModel):
    """Result of one assertion of a simulation."""

    name: str
    passed: bool
    explanation: str


class SimulationCompleted(EventData):
    """An agent test simulation finished."""

    event = "simulation.completed"

    simulation_id: UUID
    agent_id: UUID | None
    name: str
    status: Literal["passed", "failed", "error"]
    score: float | None
    criteria: list[SimulationCriterion]
    turns: int
    duration_seconds: int
    error_message: str | None
    started_at: Moment
    completed_at: Moment

    def get_subject(self) -> UUID:
        return self.simulation_id

    def concerned_agent(self) -> UUID | None:
        return self.agent_id


KINDS: tuple[type[EventData], ...] = (
    CallStarted,
    CallRinging,
    CallCompleted,
    CallFailed,
    CallTakeover,
    CallTranscriptReady,
    SmsReceived,
    SmsSent,
    SimulationCompleted,
)
CATALOG: dict[str, type[EventData]] = {kind.event: kind for kind in KINDS}


@cache
def build_delivery_model(kind: type[EventData]) -> type[BaseModel]:
    """Build the model of a delivery's body: `event`, `data`, `timestamp`."""
    name = "".join(part.title() for part in kind.event.split(".")) + "Delivery"
    event = (Literal[kind.event], ...)
    return create_model(name, event=event, data=(kind, ...), timestamp=(Moment, ...))  # type: ignore[arg-type]
