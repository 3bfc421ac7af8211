"""The event catalog: the data of each event, and when it fires (the class's docstring). Documentation, OpenAPI, and
triggers are generated from it.
"""

import re
from abc import ABC, abstractmethod
from functools import cache
from typing import Annotated, ClassVar, Literal
from uuid import UUID

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, create_model

from switchboard.foundation.web.schemas import Dollars, Moment

Direction = Literal["inbound", "outbound"]
"""Direction of a call or a text message."""
CallStatus = Literal["queued", "ringing", "in-progress", "completed", "busy", "no-answer", "failed", "canceled"]
MessageStatus = Literal["queued", "sending", "sent", "delivered", "undelivered", "failed", "received"]

ChangedIn = Annotated[
    Literal["switchboard", "calendar"],
    Field(description="`calendar`: somebody has changed the event in the calendar itself."),
]


CATALOG: "dict[str, type[EventData]]" = {}
"""The events by name, in the order of their classes."""


class EventData(BaseModel, ABC):
    """The `data` of an event. A class with the name of an event is in the catalog."""

    model_config = ConfigDict(extra="forbid")
    event: ClassVar[str]

    @classmethod
    def __pydantic_init_subclass__(cls, **_options: object) -> None:
        if "event" in vars(cls):
            CATALOG[cls.event] = cls

    @abstractmethod
    def get_subject(self) -> UUID:
        """Return the id of what the event is about: a call, a text message, an appointment, or a calendar, say."""

    def concerned_agent(self) -> UUID | None:
        """Return the agent whose own webhook receives the event."""
        return None


class CallVariable(BaseModel):
    """Variable that an agent learned in a call."""

    value: str = Field(description="Value, redacted.")
    origin: Literal["words", "keypad", "tool"] = Field(
        description="`words`: what was said, as the model understood it; `keypad`; `tool`: the result of a tool."
    )
    agent_id: UUID = Field(description="Id of the agent that learned it.")
    timestamp_ms: int = Field(description="Milliseconds from the start of the call's audio.")


class CallIntervention(BaseModel):
    """Something that an agent was kept from saying, or words of the other side that met a guardrail."""

    rule: Literal["claim", "phrase", "topic", "override", "off_subject", "content"] = Field(
        description="Kind of rule: `claim`, `phrase`, and `topic` are for the agent's words, others for the caller's."
    )
    name: str = Field(description="Name of the claim, the topic, or the guardrail, or the phrase.")
    action: Literal["held_back", "ignore", "answer", "person", "end"] = Field(
        description="`held_back`: the agent did not say it; otherwise the guardrail's action."
    )
    agent_id: UUID = Field(description="Id of the agent.")
    timestamp_ms: int = Field(description="Milliseconds from the start of the call's audio.")


class CallEvent(EventData):
    """Data of the call events. `metadata` is the call's own, an addition to the specification."""

    call_id: UUID = Field(description="Id of the call.")
    agent_id: UUID | None = Field(description="Id of the agent of the call; null if the agent was deleted.")
    direction: Direction = Field(description="Direction of the call, as the organization sees it.")
    status: CallStatus = Field(description="Status of the call when the event happened.")
    from_number: str = Field(description="Phone number of the caller, E.164.")
    to_number: str = Field(description="Phone number that was called, E.164.")
    duration_seconds: int = Field(description="Seconds from the answer to the end of the call; 0 before its end.")
    cost_total: Dollars = Field(description="Cost of the call in US dollars; 0 before its end.")
    error_message: str | None = Field(description="Reason why the call failed; null if it did not.")
    started_at: Moment | None = Field(description="When the call was answered; null if it was not.")
    ended_at: Moment | None = Field(description="When the call ended; null while it goes on.")
    created_at: Moment = Field(description="When the call was created.")
    metadata: dict[str, JsonValue] = Field(description="Metadata with which the call was created.")
    variables: dict[str, CallVariable] = Field(
        default_factory=dict, description="Variables that agents have learned, by name; an addition."
    )
    interventions: list[CallIntervention] = Field(
        default_factory=list,
        description="Sentences that agents were kept from saying, and words that met a guardrail; an addition.",
    )

    def get_subject(self) -> UUID:
        return self.call_id

    def concerned_agent(self) -> UUID | None:
        return self.agent_id


class CallStarted(CallEvent):
    """A call connected and started."""

    event = "call.started"


class CallRinging(CallEvent):
    """An outbound call is ringing the destination. Not sent if the carrier reports it after the answer."""

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

    taken_over_by: str = Field(description="Name of the user who took the call over; an addition.")


class CallHandedOff(CallEvent):
    """An agent handed a live call over to another one, or back; an addition to the specification."""

    event = "call.handed_off"

    from_agent_id: UUID = Field(description="Id of the agent that had the call.")
    to_agent_id: UUID = Field(description="Id of the agent that has the call now.")
    to_agent_version: int = Field(description="Version of that agent.")
    mode: Literal["replace", "call_and_return", "return"] = Field(
        description="Mode of the hand-off; `return`: a specialist came back."
    )
    forced: bool = Field(description="True if a condition handed the call over, and not the model.")
    timestamp_ms: int = Field(description="Milliseconds from the start of the call's audio.")


class CallTranscriptReady(CallEvent):
    """The transcript of a completed call is available."""

    event = "call.transcript.ready"


class TextEvent(EventData):
    """Data of both text message events. `contact_name` is null if the other party is not a contact."""

    message_id: UUID = Field(description="Id of the text message.")
    conversation_id: UUID = Field(description="Id of the conversation that the message belongs to.")
    direction: Direction = Field(description="Direction of the message, as the organization sees it.")
    from_number: str = Field(description="Phone number of the sender, E.164.")
    to_number: str = Field(description="Phone number of the recipient, E.164.")
    body: str = Field(description="Text of the message.")
    media_urls: list[str] = Field(description="Addresses of the files that the message has.")
    status: MessageStatus = Field(description="Status of the message when the event happened.")
    contact_name: str | None = Field(description="Name of the contact with the other party's phone number.")
    created_at: Moment = Field(description="When the message was created.")

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

    name: str = Field(description="Name of the assertion.")
    passed: bool = Field(description="Whether the assertion holds.")
    explanation: str = Field(description="Reason for the result, in words.")


class SimulationCompleted(EventData):
    """An agent test simulation finished."""

    event = "simulation.completed"

    simulation_id: UUID = Field(description="Id of the simulation.")
    agent_id: UUID | None = Field(description="Id of the agent that was tested; null if the agent was deleted.")
    name: str = Field(description="Name of the simulation.")
    status: Literal["passed", "failed", "error"] = Field(
        description="`error`: the simulation could not be carried out, which says nothing about the agent."
    )
    score: float | None = Field(description="Share of criteria that passed, 0 to 1; null without a result.")
    criteria: list[SimulationCriterion] = Field(description="Result of each assertion.")
    turns: int = Field(description="Number of the caller's turns.")
    duration_seconds: int = Field(description="Duration of the simulation, in seconds.")
    error_message: str | None = Field(description="Reason for status `error`; null otherwise.")
    started_at: Moment = Field(description="When the simulation started.")
    completed_at: Moment = Field(description="When the simulation ended.")

    def get_subject(self) -> UUID:
        return self.simulation_id

    def concerned_agent(self) -> UUID | None:
        return self.agent_id


class AppointmentEvent(EventData):
    """Data of the four appointment events, which are additions to the specification."""

    appointment_id: UUID = Field(description="Id of the appointment.")
    appointment_type_id: UUID = Field(description="Id of the appointment type.")
    appointment_type: str = Field(description="Name of the appointment type.")
    status: Literal["booked", "canceled"] = Field(description="Status of the appointment when the event happened.")
    starts_at: Moment = Field(description="Beginning of the appointment.")
    ends_at: Moment = Field(description="End of the appointment.")
    time_zone: str = Field(description="IANA time zone of the appointment.")
    local_starts_at: str = Field(
        description="The beginning in that zone, ISO 8601.", json_schema_extra={"format": "date-time"}
    )
    words: dict[str, str] = Field(
        description="The beginning in words to read or to say, by language: `en`, `de`, `es`, `fr`."
    )
    phone_number: str = Field(description="Phone number of the person who comes, E.164.")
    name: str = Field(description="Name of the person who comes.")
    fields: dict[str, str] = Field(description="Answers to the questions of the appointment type.")
    confirmed_at: Moment | None = Field(description="When the person confirmed to come; null if they did not.")
    created_at: Moment = Field(description="When the appointment was booked.")

    def get_subject(self) -> UUID:
        return self.appointment_id


class AppointmentBooked(AppointmentEvent):
    """An appointment was booked, and its calendar has it."""

    event = "appointment.booked"


class AppointmentMoved(AppointmentEvent):
    """An appointment was moved to another time."""

    event = "appointment.moved"

    previous_starts_at: Moment = Field(description="Beginning of the appointment before it was moved.")
    changed_in: ChangedIn


class AppointmentCanceled(AppointmentEvent):
    """An appointment was canceled."""

    event = "appointment.canceled"

    changed_in: ChangedIn


class AppointmentReminder(AppointmentEvent):
    """An appointment is coming: a reminder of its type is due."""

    event = "appointment.reminder"

    minutes_before: int = Field(
        description="Minutes before the appointment at which the reminder is due. It is published then, or later, when "
        "the organization's calling hours begin at the person's phone number."
    )


class CalendarDisconnected(EventData):
    """A calendar refuses its account, and takes no appointments until it is connected again."""

    event = "calendar.disconnected"

    calendar_id: UUID = Field(description="Id of the calendar.")
    name: str = Field(description="Name of the calendar.")
    provider: str = Field(description="Provider of the calendar.")
    error_message: str = Field(description="Reason why the calendar refuses the account.")
    disconnected_at: Moment = Field(description="When the account was refused.")

    def get_subject(self) -> UUID:
        return self.calendar_id


@cache
def build_delivery_model(kind: type[EventData]) -> type[BaseModel]:
    """Build the model of a delivery's body: `event`, `data`, `timestamp`."""
    name = "".join(part.title() for part in re.split(r"[._]", kind.event)) + "Delivery"
    return create_model(
        name,
        __doc__=f"Delivery of `{kind.event}`.",
        event=(Literal[kind.event], Field(description="Name of the event.")),  # type: ignore[arg-type]
        data=(kind, Field(description="Subject of the event, as it was when the event happened.")),
        timestamp=(Moment, Field(description="When the event happened. Retries and replays keep it.")),
    )


# Field type of an event name in requests.


def _validate_name(name: str) -> str:
    if name not in CATALOG:
        raise ValueError(f"{name} is not an event; the events are {', '.join(CATALOG)}")
    return name


EventName = Annotated[
    str, Field(max_length=64, json_schema_extra={"enum": list(CATALOG)}), AfterValidator(_validate_name)
]
