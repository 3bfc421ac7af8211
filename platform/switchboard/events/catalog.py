"""Every event by name: its data and, as the class's docstring, when it fires. Documentation, OpenAPI and triggers are made from it."""

from typing import ClassVar, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, JsonValue, create_model

from switchboard.web.schemas import Dollars, Moment


class EventData(BaseModel):
    """The `data` of an event."""

    model_config = ConfigDict(extra="forbid")
    name: ClassVar[str]


class CallEvent(EventData):
    """What the six call events carry. `metadata` is the call's own, an addition to the specification."""

    call_id: UUID
    agent_id: UUID | None
    direction: str
    status: str
    from_number: str
    to_number: str
    duration_seconds: int
    cost_total: Dollars
    error_message: str | None
    started_at: Moment | None
    ended_at: Moment | None
    created_at: Moment
    metadata: dict[str, JsonValue]


class CallStarted(CallEvent):
    """A call connected and started."""

    name = "call.started"


class CallRinging(CallEvent):
    """An outbound call is ringing the destination."""

    name = "call.ringing"


class CallCompleted(CallEvent):
    """A call ended normally."""

    name = "call.completed"


class CallFailed(CallEvent):
    """A call failed to connect or errored."""

    name = "call.failed"


class CallTranscriptReady(CallEvent):
    """The transcript of a completed call is available."""

    name = "call.transcript.ready"


class SmsEvent(EventData):
    """What the two text events carry. `contact_name` is empty where the other side is no contact."""

    message_id: UUID
    conversation_id: UUID
    direction: str
    from_number: str
    to_number: str
    body: str
    status: str
    contact_name: str
    created_at: Moment


class SmsReceived(SmsEvent):
    """An inbound SMS was received."""

    name = "sms.received"


class SmsSent(SmsEvent):
    """An outbound SMS was sent: the carrier has taken it."""

    name = "sms.sent"


CATALOG: dict[str, type[EventData]] = {
    kind.name: kind for kind in (CallStarted, CallRinging, CallCompleted, CallFailed, CallTranscriptReady, SmsReceived, SmsSent)
}


def delivery_model(kind: type[EventData]) -> type[BaseModel]:
    """The body of a delivery of an event: `event`, `data`, `timestamp`."""
    name = "".join(part.title() for part in kind.name.split(".")) + "Delivery"
    return create_model(name, event=(Literal[kind.name], ...), data=(kind, ...), timestamp=(Moment, ...))  # type: ignore[arg-type]
