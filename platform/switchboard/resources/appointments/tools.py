"""Tools by which an agent finds, books, moves, confirms, and cancels appointments in a conversation.

A time is booked by a token that `find_slots` has returned in the same conversation, so that no time can be booked that
nobody offered. The platform counts the days and writes the words of each time: the model repeats them. The other party
changes only the appointments of the number that they call or write from, or one whose check they pass.
"""

import asyncio
import secrets
import unicodedata
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from typing import Annotated, Any, Final, TypeVar
from uuid import UUID
from zoneinfo import ZoneInfo

from pydantic import Field, JsonValue

from switchboard.foundation.database import WriteSession, now
from switchboard.foundation.web.errors import ApiError, NotFound, SlotTaken
from switchboard.foundation.web.schemas import is_phone_number
from switchboard.plugin_sdk import AgentTool, JsonObject, ToolContext, ToolError, ToolParameters
from switchboard.resources.appointments.booking import AppointmentBook, Origin
from switchboard.resources.appointments.models import Appointment, AppointmentType
from switchboard.resources.appointments.queries import (
    list_appointment_types_by_id,
    list_coming_appointments,
    lock_coming_appointments,
)
from switchboard.resources.appointments.schemas import AppointmentCreate, AppointmentUpdate
from switchboard.resources.appointments.slots import FreeSlot
from switchboard.resources.appointments.spoken_days import resolve_day
from switchboard.resources.appointments.spoken_times import describe_moment

OFFERED: Final = 6
"""Free times in one result: more are neither said nor remembered."""
SEARCHED: Final = 100
LOOK_AHEAD: Final = timedelta(days=30)
SECONDS: Final = 40.0
"""Time limit of a tool, longer than the calendars have."""
CLOCK: Final = r"^([01]\d|2[0-3]):[0-5]\d$"
Token = Annotated[str, Field(min_length=1, max_length=100, description="`slot_token` of a time from `find_slots`")]
Reference = Annotated[str, Field(max_length=100)]
NO_MORE_CHECKS: Final = "no appointment of this number has these answers, and no more are checked in this conversation"
MOST_FAILED: Final = 5
"""Failed checks after which an appointment is changed from its own number only."""
ResultT = TypeVar("ResultT")
ParametersT = TypeVar("ParametersT", bound=ToolParameters)


@dataclass(frozen=True, slots=True)
class OfferedSlot:
    """A free time that was offered in a conversation, and the token of the platform by which it is booked."""

    kind: AppointmentType
    starts_at: datetime
    slot_token: str


@dataclass(slots=True)
class AppointmentConversation:
    """Appointments of one conversation: the types that its agent books, and the times that were offered.

    `language` is that of the words in which times are described, and `depth` the length of the automation chain that
    led to the conversation. With `rehearses`, as in a simulation, times are found
    and nothing is written. A change that has begun is finished although its tool is canceled, as by an interruption; a
    repeated request returns its result. `checks_left` are those of people who call from another number.
    """

    book: AppointmentBook
    kinds: Sequence[AppointmentType]
    language: str
    depth: int = 0
    rehearses: bool = False
    checks_left: int = 3
    offered: dict[str, OfferedSlot] = field(default_factory=dict)
    changes: dict[str, asyncio.Task[object]] = field(default_factory=dict)

    @property
    def organization_id(self) -> UUID:
        """The organization of the agent."""
        return self.kinds[0].organization_id

    def find_kind(self, name: str | None) -> AppointmentType:
        """Return the appointment type of a name, or the only one. Raises `ToolError`."""
        if name is None and len(self.kinds) == 1:
            return self.kinds[0]
        found = next((kind for kind in self.kinds if name and kind.name.casefold() == name.strip().casefold()), None)
        if found is None:
            raise ToolError(f"appointment_type must be one of: {', '.join(kind.name for kind in self.kinds)}")
        return found

    def describe(self, kind: AppointmentType, moment: datetime) -> str:
        """Return a moment in the words that the agent says."""
        return describe_moment(moment, ZoneInfo(kind.settings.hours.timezone), self.language, now=now())

    def offer(self, kind: AppointmentType, slots: Sequence[FreeSlot]) -> list[JsonValue]:
        """Return free times as the model gets them."""
        tokens = self.book.tokens
        return [
            self.remember(
                OfferedSlot(kind, slot.starts_at, tokens.issue(self.organization_id, kind.id, slot.starts_at))
            )
            for slot in slots
        ]

    def remember(self, slot: OfferedSlot) -> JsonObject:
        """Return an offered time with a token that a model can repeat."""
        token = f"slot-{secrets.token_hex(3)}"
        self.offered[token] = slot
        return {"slot_token": token, "when": self.describe(slot.kind, slot.starts_at)}

    def find_offered(self, token: str) -> OfferedSlot:
        """Return the time of a token of this conversation. Raises `ToolError`."""
        if token not in self.offered:
            raise ToolError("this slot_token was not offered in this conversation: call find_slots first")
        return self.offered[token]

    async def find_appointment(self, context: ToolContext, wanted: "ExistingAppointment") -> Appointment:
        """Return the appointment of the other party that a request is about: one of the number that they call from, or
        one whose check they pass.

        Raises `ToolError`, with the appointments if there are several and none is named.
        """
        found = await self._list_appointments(context, wanted)
        if len(found) == 1 and wanted.appointment is None:
            return found[0]
        named = [appointment for appointment in found if str(appointment.id)[-6:] == wanted.appointment]
        if len(named) == 1:
            return named[0]
        listed = "; ".join(
            f"{str(appointment.id)[-6:]}: {self.describe_appointment(appointment)}" for appointment in found
        )
        raise ToolError(f"name one appointment by its reference: {listed}")

    async def _list_appointments(self, context: ToolContext, wanted: "ExistingAppointment") -> list[Appointment]:
        """List the coming appointments that the other party may change. Raises `ToolError` without any."""
        own = context.person_number
        is_own = wanted.phone_number in (None, own) and is_phone_number(own)
        async with self.book.database.write(self.organization_id) as session:
            if is_own:
                found = await list_coming_appointments(session, own, [kind.id for kind in self.kinds])
            elif wanted.phone_number is not None and self.checks_left:
                found = await _check_caller(session, wanted.phone_number, self.kinds, wanted.answers)
            else:
                found = []
        if found:
            return list(found)
        if is_own or wanted.phone_number is None:
            reason = (
                "there is no coming appointment of the number of this person"
                if is_own
                else "the number of this person is not known, so their appointments cannot be changed"
            )
            raise ToolError(reason + self._describe_check())
        self.checks_left = max(self.checks_left - 1, 0)
        raise ToolError("no appointment of this number has these answers" if self.checks_left else NO_MORE_CHECKS)

    def _describe_check(self) -> str:
        """Return what to ask a person who calls from another number; empty if no type has a check."""
        asked = {
            f"{field.name} ({field.description or field.name})"
            for kind in self.kinds
            for field in kind.settings.fields
            if field.name in kind.settings.check_fields
        }
        if not asked:
            return ""
        return (
            "; if they have booked with another number, ask for that phone_number, in E.164, and for answers to "
            f"{', '.join(sorted(asked))}"
        )

    def describe_appointment(self, appointment: Appointment) -> str:
        kind = next(kind for kind in self.kinds if kind.id == appointment.appointment_type_id)
        return f"{kind.name}, {self.describe(kind, appointment.starts_at)}"

    def get_origin(self, context: ToolContext) -> Origin:
        return Origin(call_id=context.call_id, depth=self.depth)

    async def update(self, context: ToolContext, key: str, appointment: Appointment, data: AppointmentUpdate) -> None:
        """Change an appointment, as `change` does."""
        origin = self.get_origin(context)
        await self.change(key, lambda: self.book.update(self.organization_id, appointment.id, data, origin=origin))

    async def change(self, key: str, act: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Carry out a change once, whoever waits for it, unless the conversation rehearses. Raises `SlotTaken`, and
        `ToolError` for any other refusal.
        """
        if self.rehearses:
            return
        task = self.changes.get(key)
        if task is None or (task.done() and task.exception() is not None):
            task = self.changes[key] = asyncio.create_task(act())
        await _ask(asyncio.shield(task))


class AppointmentTool(AgentTool[ParametersT]):
    """A tool of an agent that books appointments."""

    time_limit_seconds = SECONDS

    def __init__(self, conversation: AppointmentConversation) -> None:
        self.conversation = conversation

    def rehearse(self) -> "AppointmentTool[ParametersT]":
        """Return the tool of a conversation in which nothing is written."""
        self.conversation.rehearses = True
        return self

    async def refuse_taken(self, kind: AppointmentType, taken: SlotTaken) -> JsonObject:
        """Return the result of a change whose time is taken: the next free times."""
        found = taken.extensions["alternatives"]
        slots: list[JsonValue] = [
            self.conversation.remember(
                OfferedSlot(kind, datetime.fromisoformat(str(slot["starts_at"])), str(slot["slot_token"]))
            )
            for slot in (found if isinstance(found, list) else ())
            if isinstance(slot, dict)
        ]
        return {"done": False, "reason": "the time was taken meanwhile; offer another one", "slots": slots}


class SlotsWanted(ToolParameters):
    """Parameters of `find_slots`."""

    appointment_type: str | None = Field(None, max_length=255, description="name of the kind of appointment")
    day: str | None = Field(
        None,
        max_length=100,
        description="the day in the person's own words (tomorrow, next Tuesday, the 29th), without a time, or as "
        "YYYY-MM-DD; left out: the next free times",
    )
    not_before: str | None = Field(None, pattern=CLOCK, description="earliest local time, HH:MM")
    not_after: str | None = Field(None, pattern=CLOCK, description="latest local time, HH:MM")


class FindSlots(AppointmentTool[SlotsWanted]):
    """Finds free times."""

    name = "find_slots"
    Parameters = SlotsWanted

    def __init__(self, conversation: AppointmentConversation) -> None:
        super().__init__(conversation)
        kinds = "; ".join(_describe_kind(kind) for kind in conversation.kinds)
        self.description = (  # type: ignore[misc]
            "Find free times for an appointment. Offer only times that it returns, in its own words, and at most three "
            f"at once. Never work out a day yourself. Kinds of appointments: {kinds}."
        )

    async def run(self, context: ToolContext, parameters: SlotsWanted) -> JsonObject:
        kind = self.conversation.find_kind(parameters.appointment_type)
        zone = ZoneInfo(kind.settings.hours.timezone)
        day = _read_day(parameters.day, now().astimezone(zone).date())
        begin = now() if day is None else datetime.combine(day, time.min, zone)
        found = await self._find(kind, parameters, begin, begin + (LOOK_AHEAD if day is None else timedelta(days=1)))
        if found or day is None:
            return {"slots": self.conversation.offer(kind, found)}
        later = await self._find(kind, parameters, begin, begin + LOOK_AHEAD)
        return {
            "note": "nothing is free then; these are the next free times",
            "slots": self.conversation.offer(kind, later),
        }

    async def _find(self, kind: AppointmentType, wanted: SlotsWanted, begin: datetime, end: datetime) -> list[FreeSlot]:
        zone = ZoneInfo(kind.settings.hours.timezone)
        found = await _ask(
            self.conversation.book.availability.find_slots(kind, after=max(begin, now()), until=end, limit=SEARCHED)
        )
        earliest, latest = wanted.not_before or "00:00", wanted.not_after or "23:59"
        fitting = [slot for slot in found if earliest <= f"{slot.starts_at.astimezone(zone):%H:%M}" <= latest]
        return fitting[:OFFERED]


class Booking(ToolParameters):
    """Parameters of `book_appointment`."""

    slot_token: Token
    name: str = Field(min_length=1, max_length=255, description="name of the person who comes")
    phone_number: str | None = Field(
        None, max_length=20, description="their phone number in E.164, +15550100001; left out: the one they call from"
    )
    answers: dict[str, str] = Field(
        default_factory=dict, max_length=20, description="answers to the questions of the kind of appointment, by name"
    )


class BookAppointment(AppointmentTool[Booking]):
    """Books an appointment."""

    name = "book_appointment"
    description = (
        "Book a time that find_slots has returned and the person has agreed to. The appointment is booked only if the "
        "result says so: say then when it is, in the words of the result."
    )
    Parameters = Booking

    async def run(self, context: ToolContext, parameters: Booking) -> JsonObject:
        slot = self.conversation.find_offered(parameters.slot_token)
        number = parameters.phone_number or context.person_number
        if not is_phone_number(number):
            raise ToolError("ask for the phone number of the person, with its country code: phone_number, +15550100001")
        person: JsonObject = {"phone_number": number, "name": parameters.name, "fields": {**parameters.answers}}
        data = AppointmentCreate.model_validate({"slot_token": slot.slot_token, **person})
        try:
            await self.conversation.change(
                f"book {parameters.slot_token}",
                lambda: self.conversation.book.book(
                    self.conversation.organization_id, data, origin=self.conversation.get_origin(context)
                ),
            )
        except SlotTaken as taken:
            return await self.refuse_taken(slot.kind, taken)
        return {"booked": True, "when": self.conversation.describe(slot.kind, slot.starts_at)}


class ExistingAppointment(ToolParameters):
    """The appointment that is changed."""

    appointment: Reference | None = Field(None, description="reference of the appointment, if the person has several")
    phone_number: str | None = Field(
        None, max_length=20, description="only if they have booked with another number: that number in E.164"
    )
    answers: dict[str, str] = Field(
        default_factory=dict, max_length=20, description="only with phone_number: answers that were asked for, by name"
    )


class Move(ExistingAppointment):
    """Parameters of `move_appointment`."""

    slot_token: Token


class MoveAppointment(AppointmentTool[Move]):
    """Moves an appointment of the other party."""

    name = "move_appointment"
    description = (
        "Move the person's appointment to a time that find_slots has returned. It is moved only if the result says so."
    )
    Parameters = Move

    async def run(self, context: ToolContext, parameters: Move) -> JsonObject:
        slot = self.conversation.find_offered(parameters.slot_token)
        appointment = await self.conversation.find_appointment(context, parameters)
        if appointment.appointment_type_id != slot.kind.id:
            raise ToolError("the time is of another kind of appointment: call find_slots for this kind")
        data = AppointmentUpdate.model_validate({"slot_token": slot.slot_token})
        try:
            key = f"move {appointment.id} {parameters.slot_token}"
            await self.conversation.update(context, key, appointment, data)
        except SlotTaken as taken:
            return await self.refuse_taken(slot.kind, taken)
        return {"moved": True, "when": self.conversation.describe(slot.kind, slot.starts_at)}


class ConfirmAppointment(AppointmentTool[ExistingAppointment]):
    """Records that the other party comes to an appointment."""

    name = "confirm_appointment"
    description = "Record that the person has said that they come to their appointment, after a reminder of it."
    Parameters = ExistingAppointment

    async def run(self, context: ToolContext, parameters: ExistingAppointment) -> JsonObject:
        appointment = await self.conversation.find_appointment(context, parameters)
        data = AppointmentUpdate(is_confirmed=True)
        await self.conversation.update(context, f"confirm {appointment.id}", appointment, data)
        return {"confirmed": True, "appointment": self.conversation.describe_appointment(appointment)}


class CancelAppointment(AppointmentTool[ExistingAppointment]):
    """Cancels an appointment of the other party."""

    name = "cancel_appointment"
    description = "Cancel the person's appointment, after they have confirmed which one."
    Parameters = ExistingAppointment

    async def run(self, context: ToolContext, parameters: ExistingAppointment) -> JsonObject:
        appointment = await self.conversation.find_appointment(context, parameters)
        await self.conversation.change(
            f"cancel {appointment.id}",
            lambda: self.conversation.book.cancel(
                self.conversation.organization_id, appointment.id, origin=self.conversation.get_origin(context)
            ),
        )
        return {"canceled": True, "appointment": self.conversation.describe_appointment(appointment)}


APPOINTMENT_TOOLS: Final[Sequence[type[AppointmentTool[Any]]]] = (
    FindSlots,
    BookAppointment,
    MoveAppointment,
    ConfirmAppointment,
    CancelAppointment,
)


async def build_appointment_tools(
    book: AppointmentBook,
    organization_id: UUID,
    type_ids: Sequence[str],
    *,
    language: str,
    depth: int = 0,
) -> list[AppointmentTool[Any]]:
    """Build the tools of an agent that books appointments of these types; deleted types are left out."""
    if not type_ids:
        return []
    async with book.database.read(organization_id) as session:
        kinds = await list_appointment_types_by_id(session, [UUID(key) for key in type_ids])
    if not kinds:
        return []
    conversation = AppointmentConversation(book, kinds, language, depth)
    return [tool(conversation) for tool in APPOINTMENT_TOOLS]


async def _ask(change: Awaitable[ResultT]) -> ResultT:
    """Return a result. Raises `SlotTaken`, and `ToolError` for any other refusal."""
    try:
        return await change
    except SlotTaken:
        raise
    except NotFound:
        raise ToolError("it does not exist any more") from None
    except ApiError as error:
        raise ToolError(error.detail) from error


def _read_day(text: str | None, today: date) -> date | None:
    if text is None or not text.strip():
        return None
    day = resolve_day(text, today)
    if day is None:
        raise ToolError(f"the day {text!r} is not understood: ask for the date")
    if day < today:
        raise ToolError("the day is over: ask for another one")
    return day


def _describe_kind(kind: AppointmentType) -> str:
    questions: Mapping[str, str] = {
        question.name: f"{question.description or question.name}{' (required)' if question.required else ''}"
        for question in kind.settings.fields
    }
    asked = "".join(f"; ask {name}: {text}" for name, text in questions.items())
    return f"{kind.name} ({kind.settings.duration_minutes} minutes{asked})"


async def _check_caller(
    session: WriteSession, phone_number: str, kinds: Sequence[AppointmentType], answers: Mapping[str, str]
) -> list[Appointment]:
    """Return the coming appointments of a number whose `check_fields` have these answers.

    Letters and digits count, in any case. Each other appointment counts the failure, until its check is closed.
    """
    checks = {kind.id: kind.settings.check_fields for kind in kinds if kind.settings.check_fields}
    passed = []
    for appointment in await lock_coming_appointments(session, phone_number, list(checks)):
        if appointment.failed_checks >= MOST_FAILED:
            continue
        names = checks[appointment.appointment_type_id]
        asked = [(_simplify(appointment.fields.get(name, "")), _simplify(answers.get(name, ""))) for name in names]
        if all(known and known == said for known, said in asked):
            passed.append(appointment)
        else:
            appointment.failed_checks += 1
    return passed


def _simplify(text: str) -> str:
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", str(text)).casefold()))
