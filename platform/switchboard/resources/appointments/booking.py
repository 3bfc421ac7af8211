"""Booking, moving, and canceling of appointments.

A time is taken in three steps: the entries in the calendars are written as `held` under the locks of the calendars, the
calendars are asked, and the appointment is confirmed. Requests for the same time wait for the lock and see the held
entry, in whatever process they are. What is not confirmed is undone: the time is free again, and the event is deleted
until its calendar says that it is gone. So nobody is promised an appointment that the calendar does not have, and
the calendar keeps no event of an appointment that nobody has (`jobs.py` finishes what a dead process has left).
"""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

import structlog

from switchboard.foundation.audit import AuditAction, record_audit
from switchboard.foundation.database import Database, ReadSession, WriteSession, lock_name, new_id, now
from switchboard.foundation.events.catalog import AppointmentBooked, AppointmentCanceled, AppointmentMoved, ChangedIn
from switchboard.foundation.events.outbox import publish
from switchboard.foundation.web.errors import ApiError, InvalidState, ProviderFailed, SlotTaken, ValidationFailed
from switchboard.foundation.web.paging import get_row, lock_row
from switchboard.foundation.web.schemas import parse_id
from switchboard.plugin_sdk import BusyTime, CalendarEvent, EventDraft, ProviderError, TimeTaken
from switchboard.resources.appointments import appointment_types
from switchboard.resources.appointments.availability import (
    TOKEN_LIFETIME,
    Availability,
    OfferedTime,
    SlotTokens,
    build_rules,
    read_occupancy,
)
from switchboard.resources.appointments.calendars import CalendarConnections, describe_failure
from switchboard.resources.appointments.events import build_appointment_event, find_next_reminder
from switchboard.resources.appointments.models import Appointment, AppointmentType, Calendar, CalendarEntry
from switchboard.resources.appointments.queries import lock_calendar_entries, watch_calendars
from switchboard.resources.appointments.schemas import AppointmentCreate, AppointmentOut, AppointmentUpdate
from switchboard.resources.appointments.slots import Occupancy, find_free_calendars
from switchboard.resources.contacts.models import Contact

logger = structlog.get_logger()
ASK_SECONDS: Final = 30.0
"""Seconds that the calendars have for one booking."""
HOLD: Final = timedelta(seconds=90)
"""Time after which a held entry belongs to a process that has died: longer than a booking may take."""
RETRY: Final = timedelta(seconds=30)
LATE_WRITE: Final = timedelta(minutes=10)
"""Age of an entry after which no request to write its event can be under way."""
ALTERNATIVES: Final = 3
ALTERNATIVES_PERIOD: Final = timedelta(days=14)


class _CalendarBusy(Exception):
    """A calendar is not free at a time that it was held for."""

    def __init__(self, calendar_id: UUID) -> None:
        super().__init__(calendar_id)
        self.calendar_id = calendar_id


async def record_move(
    session: WriteSession,
    appointment: Appointment,
    kind: AppointmentType,
    starts_at: datetime,
    ends_at: datetime,
    *,
    changed_in: ChangedIn,
) -> None:
    """Record the new time of a locked appointment, whose entries have it, and publish the event."""
    earlier, appointment.starts_at, appointment.ends_at = appointment.starts_at, starts_at, ends_at
    appointment.confirmed_at, appointment.updated_at = None, now()
    appointment.reminder_at = find_next_reminder(kind.settings, starts_at)
    data = build_appointment_event(
        AppointmentMoved, appointment, kind, previous_starts_at=earlier, changed_in=changed_in
    )
    await publish(session, data, depth=appointment.cause_depth)
    record_audit(session, AuditAction.APPOINTMENT_MOVED, appointment.id, fields=("starts_at", "ends_at"))


async def record_cancellation(session: WriteSession, appointment: Appointment, *, changed_in: ChangedIn) -> None:
    """Record that a locked appointment is canceled, release its entries, and publish the event."""
    kind = await get_row(session, AppointmentType, appointment.appointment_type_id)
    appointment.status, appointment.canceled_at, appointment.reminder_at = "canceled", now(), None
    appointment.updated_at = now()
    for entry in await lock_calendar_entries(session, appointment.id):
        if entry.state == "booked":
            release(entry)
    data = build_appointment_event(AppointmentCanceled, appointment, kind, changed_in=changed_in)
    await publish(session, data, depth=appointment.cause_depth)
    record_audit(session, AuditAction.APPOINTMENT_CANCELED, appointment.id)


def get_event_version(event: CalendarEvent) -> str:
    """Return the version of an event; its times, if its calendar has no versions."""
    return event.version or f"{event.starts_at.isoformat()}/{event.ends_at.isoformat()}"


def release(entry: CalendarEntry) -> None:
    """Mark an entry whose event must not stay in its calendar."""
    entry.state, entry.settle_at = "releasing", now() + RETRY


@dataclass(frozen=True, slots=True)
class Origin:
    """Origin of a change: its `actor` in the audit log, the call in which it was made, and the length of the automation
    chain that has led to it.
    """

    actor: str | None = None
    call_id: UUID | None = None
    depth: int = 0


@dataclass(frozen=True, slots=True)
class _Taken:
    """An entry that is held, and its event; None in a calendar of the built-in provider."""

    entry: CalendarEntry
    event: CalendarEvent | None


@dataclass(frozen=True, slots=True)
class AppointmentBook:
    database: Database
    connections: CalendarConnections
    availability: Availability
    tokens: SlotTokens

    async def book(
        self,
        organization_id: UUID,
        data: AppointmentCreate,
        *,
        origin: Origin = Origin(),
        appointment_id: UUID | None = None,
    ) -> Appointment:
        """Book an appointment at a time that was offered.

        With an `appointment_id`, a repeated call returns the appointment that has been booked. Raises
        `ValidationFailed` for a token, a contact, or answers that cannot be used, `SlotTaken`, `InvalidState` while an
        earlier call with the `appointment_id` may be under way, and `ProviderFailed` if a calendar did not confirm it:
        then nothing is booked.
        """
        offered = self.tokens.read(organization_id, data.slot_token)
        async with self.database.read(organization_id) as session:
            known = await session.find(Appointment, appointment_id)
            if known is not None and known.status != "failed":
                if known.status == "pending":
                    raise InvalidState("The appointment is being booked.")
                return known
            kind = await appointment_types.require_type(session, str(offered.appointment_type_id), field="slot_token")
            phone_number, name = await _find_person(session, data)
        _require_answers(kind, data.fields)
        appointment = Appointment(
            id=appointment_id or new_id(),
            organization_id=organization_id,
            appointment_type_id=kind.id,
            starts_at=offered.starts_at,
            ends_at=offered.starts_at,
            time_zone=kind.settings.hours.timezone,
            phone_number=phone_number,
            name=name,
            fields=data.fields,
            call_id=origin.call_id,
            cause_depth=origin.depth,
        )
        taken = await self._take_time(kind, appointment, offered)
        async with (
            self._undo_on_refusal(appointment, taken),
            self.database.write(organization_id, actor=origin.actor) as session,
        ):
            booked = await lock_row(session, Appointment, appointment.id)
            await _confirm(session, booked, taken)
            booked.status = "booked"
            booked.reminder_at = find_next_reminder(kind.settings, booked.starts_at)
            await publish(session, build_appointment_event(AppointmentBooked, booked, kind), depth=origin.depth)
            record_audit(session, AuditAction.APPOINTMENT_BOOKED, booked.id, fields=data.model_fields_set)
        return booked

    async def update(
        self,
        organization_id: UUID,
        appointment_id: UUID,
        data: AppointmentUpdate,
        *,
        origin: Origin = Origin(),
    ) -> Appointment:
        """Move an appointment to another time that was offered, and change its other given fields that differ.

        Raises `NotFound`, `InvalidState` for an appointment that is not booked, and as `book` does. If the time cannot
        be taken, the appointment stays where it is.
        """
        async with self.database.read(organization_id) as session:
            appointment = await get_row(session, Appointment, appointment_id)
            kind = await get_row(session, AppointmentType, appointment.appointment_type_id)
        _require_booked(appointment)
        given = data.keep_changes(AppointmentOut.from_row(appointment)).model_fields_set - {"slot_token"}
        if "fields" in given:
            _require_answers(kind, data.fields)
        taken: list[_Taken] = []
        if "slot_token" in data.model_fields_set:
            offered = self.tokens.read(organization_id, data.slot_token)
            if offered.appointment_type_id != kind.id:
                raise ValidationFailed.field("slot_token", "is the time of another appointment type")
            if offered.starts_at != appointment.starts_at:
                taken = await self._take_time(kind, appointment, offered)
        async with (
            self._undo_on_refusal(appointment, taken),
            self.database.write(organization_id, actor=origin.actor) as session,
        ):
            changed = await lock_row(session, Appointment, appointment_id)
            if taken:
                _require_booked(changed)
                await _confirm(session, changed, taken)
                changed.time_zone, changed.cause_depth = kind.settings.hours.timezone, origin.depth
                await record_move(
                    session, changed, kind, taken[0].entry.starts_at, taken[0].entry.ends_at, changed_in="switchboard"
                )
            if taken or "is_confirmed" in given:
                changed.confirmed_at = now() if data.is_confirmed else None
            for field in given - {"is_confirmed"}:
                setattr(changed, field, getattr(data, field))
            if given:
                record_audit(session, AuditAction.APPOINTMENT_UPDATED, changed.id, fields=given)
                changed.updated_at = now()
        if taken:
            await self.settle(organization_id, appointment_id)
        return changed

    async def cancel(self, organization_id: UUID, appointment_id: UUID, *, origin: Origin = Origin()) -> None:
        """Cancel an appointment; its time is free at once. An appointment that is canceled already stays as it is.

        A calendar that cannot be reached loses the event as soon as it is back. Raises `NotFound`, and `InvalidState`
        while the appointment is being booked.
        """
        async with self.database.write(organization_id, actor=origin.actor) as session:
            appointment = await lock_row(session, Appointment, appointment_id)
            if appointment.status in ("canceled", "failed"):
                return
            _require_booked(appointment)
            appointment.cause_depth = origin.depth
            await record_cancellation(session, appointment, changed_in="switchboard")
        await self.settle(organization_id, appointment_id)

    async def settle(self, organization_id: UUID, appointment_id: UUID) -> None:
        """Undo what was not confirmed in time, and delete the events that must not stay in their calendars, as far as
        those can be reached.
        """
        async with self.database.write(organization_id) as session:
            appointment = await lock_row(session, Appointment, appointment_id)
            entries = await lock_calendar_entries(session, appointment_id)
            for entry in entries:
                if entry.state == "held" and entry.settle_at is not None and entry.settle_at <= now():
                    release(entry)
            if appointment.status == "pending" and all(entry.state == "releasing" for entry in entries):
                appointment.status, appointment.updated_at = "failed", now()
            releasing = [entry for entry in entries if entry.state == "releasing"]
            kept = {entry.id: entry for entry in entries if entry.state == "booked"}
            calendars = {entry.calendar_id: await get_row(session, Calendar, entry.calendar_id) for entry in releasing}
        for entry in releasing:
            earlier = kept.get(entry.moved_entry_id) if entry.moved_entry_id else None
            is_settled = await self._undo_event(calendars[entry.calendar_id], entry, earlier)
            async with self.database.write(organization_id) as session:
                row = await session.lock(CalendarEntry, entry.id)
                if row is not None and is_settled:
                    await session.delete(row)
                elif row is not None:
                    row.settle_at = now() + RETRY

    async def _undo_event(self, calendar: Calendar, entry: CalendarEntry, earlier: CalendarEntry | None) -> bool:
        """Delete the event of an entry, or move it back to the time of an earlier entry; return whether that is done
        for good.
        """
        try:
            async with asyncio.timeout(ASK_SECONDS), self.connections.open(calendar) as provider:
                if provider is None:
                    return True
                # An event that was gone when it was to be moved was written once more.
                written = await provider.find_event(calendar.remote_id, entry.id)
                if written is not None:
                    await provider.cancel_event(calendar.remote_id, written)
                is_undone = written is not None
                if entry.moved_entry_id is not None:
                    event = await provider.find_event(calendar.remote_id, entry.moved_entry_id)
                    if event is not None and event.starts_at == entry.starts_at:
                        is_undone = True
                        if earlier is not None:
                            await provider.move_event(calendar.remote_id, event, earlier.starts_at, earlier.ends_at)
        except (ProviderError, TimeoutError) as error:
            logger.warning("an event could not be settled yet", entry_id=str(entry.id), reason=describe_failure(error))
            return False
        # A request whose answer has never come may still be under way to the calendar.
        return is_undone or bool(entry.event_id) or entry.created_at < now() - LATE_WRITE

    async def _take_time(self, kind: AppointmentType, appointment: Appointment, offered: OfferedTime) -> list[_Taken]:
        """Hold a time, and write it into the calendars. Raises `SlotTaken` and `ProviderFailed`, and holds nothing."""
        refused: set[UUID] = set()
        while True:
            held, earlier = await self._hold(appointment, offered, without=refused)
            if not held:
                raise await self._refuse(kind, offered)
            try:
                async with asyncio.timeout(ASK_SECONDS):
                    return [await self._write_event(kind, appointment, entry, earlier) for entry in held]
            except _CalendarBusy as busy:
                refused.add(busy.calendar_id)
                await self._undo(appointment, held)
                if kind.settings.calendar_mode == "all":
                    raise await self._refuse(kind, offered) from None
            except (ProviderError, ProviderFailed, TimeoutError) as error:
                await self._undo(appointment, held)
                if isinstance(error, ProviderFailed):
                    raise ProviderFailed(f"{error.detail} Nothing was changed.") from error
                reason = f"The calendar did not take the appointment: {describe_failure(error)}."
                raise ProviderFailed(f"{reason} Nothing was changed.") from error

    async def _hold(
        self, appointment: Appointment, offered: OfferedTime, *, without: Collection[UUID]
    ) -> tuple[list[CalendarEntry], list[CalendarEntry]]:
        """Hold the time in calendars that are free by the platform's own appointments, except for those `without`.

        Returns the held entries, none if the time is taken, and the entries that a moved appointment has.
        """
        moment = offered.starts_at
        async with self.database.write(appointment.organization_id) as session:
            # Always in this order: the type, for its daily limit, and then its calendars.
            await lock_name(session, f"appointment type {appointment.appointment_type_id}")
            kind = await get_row(session, AppointmentType, appointment.appointment_type_id)
            calendar_ids = [UUID(calendar_id) for calendar_id in kind.settings.calendar_ids]
            for calendar_id in sorted(calendar_ids):
                await lock_name(session, f"calendar {calendar_id}")
            rules = build_rules(kind.settings)
            end = moment + rules.duration
            known = await read_occupancy(session, kind, calendar_ids, after=moment, until=end, without=appointment.id)
            blocked = [BusyTime(moment, end)]
            busy = {key: blocked if key in without else periods for key, periods in known.busy.items()}
            free = find_free_calendars(
                rules,
                Occupancy(busy, known.appointments_by_day),
                starts_at=moment,
                now=offered.expires_at - TOKEN_LIFETIME,
            )
            if not free or moment <= now():
                return [], []
            if appointment.status == "pending":
                appointment.ends_at = end
                await session.merge(appointment)
            earlier = [
                entry for entry in await lock_calendar_entries(session, appointment.id) if entry.state == "booked"
            ]
            places = {entry.calendar_id: entry.id for entry in earlier}
            chosen = free if rules.needs_all else sorted(free, key=lambda key: key not in places)[:1]
            held = [
                CalendarEntry(
                    organization_id=appointment.organization_id,
                    appointment_id=appointment.id,
                    calendar_id=calendar_id,
                    starts_at=moment,
                    ends_at=end,
                    minutes_before=kind.settings.buffer_before_minutes,
                    minutes_after=kind.settings.buffer_after_minutes,
                    moved_entry_id=places.get(calendar_id),
                    settle_at=now() + HOLD,
                )
                for calendar_id in chosen
            ]
            session.add_all(held)
        return held, earlier

    async def _write_event(
        self,
        kind: AppointmentType,
        appointment: Appointment,
        entry: CalendarEntry,
        earlier: Sequence[CalendarEntry],
    ) -> _Taken:
        """Write a held entry into its calendar, unless the calendar is busy at the time. Raises `_CalendarBusy`,
        `ProviderFailed`, and `ProviderError`.
        """
        async with self.database.read(entry.organization_id) as session:
            calendar = await get_row(session, Calendar, entry.calendar_id)
        begin = entry.starts_at - timedelta(minutes=entry.minutes_before)
        end = entry.ends_at + timedelta(minutes=entry.minutes_after)
        ours = [entry.id, *(each.id for each in earlier)]
        busy = await self.availability.read_busy(calendar, kind, begin, end, without=ours)
        if any(period.starts_at < end and period.ends_at > begin for period in busy):
            raise _CalendarBusy(calendar.id)
        async with self.connections.open(calendar) as provider:
            if provider is None:
                return _Taken(entry, None)
            try:
                if entry.moved_entry_id is not None:
                    event = await provider.find_event(calendar.remote_id, entry.moved_entry_id)
                    if event is not None:
                        moved = await provider.move_event(calendar.remote_id, event, entry.starts_at, entry.ends_at)
                        return _Taken(entry, moved)
                draft = _draft_event(kind, appointment, entry)
                return _Taken(entry, await provider.create_event(calendar.remote_id, draft))
            except TimeTaken:
                raise _CalendarBusy(calendar.id) from None

    @asynccontextmanager
    async def _undo_on_refusal(self, appointment: Appointment, taken: Sequence[_Taken]) -> AsyncIterator[None]:
        """Undo what was taken if the block refuses it."""
        try:
            yield
        except ApiError:
            await self._undo(appointment, [each.entry for each in taken])
            raise

    async def _undo(self, appointment: Appointment, held: Sequence[CalendarEntry]) -> None:
        """Release held entries, so that their time is free, and settle them as far as the calendars can be reached."""
        async with self.database.write(appointment.organization_id) as session:
            await lock_row(session, Appointment, appointment.id)
            ours = {entry.id for entry in held}
            for entry in await lock_calendar_entries(session, appointment.id):
                if entry.id in ours and entry.state == "held":
                    release(entry)
        await self.settle(appointment.organization_id, appointment.id)

    async def _refuse(self, kind: AppointmentType, offered: OfferedTime) -> SlotTaken:
        """Return the refusal of a time that is taken, with the next free times; without them if none can be read."""
        after = max(offered.starts_at, now())
        try:
            found = await self.availability.find_slots(
                kind, after=after, until=after + ALTERNATIVES_PERIOD, limit=ALTERNATIVES
            )
        except ProviderFailed:
            found = []
        return SlotTaken([slot.model_dump(mode="json") for slot in self.availability.offer(kind, found)])


async def _confirm(session: WriteSession, appointment: Appointment, taken: Sequence[_Taken]) -> None:
    """Turn the held entries of a locked appointment into booked ones, and release those that they replace.

    Raises `ProviderFailed` if they are not held any more, because the calendars took too long.
    """
    await watch_calendars(session, {each.entry.calendar_id for each in taken})
    rows = {entry.id: entry for entry in await lock_calendar_entries(session, appointment.id)}
    if any(each.entry.id not in rows or rows[each.entry.id].state != "held" for each in taken):
        raise ProviderFailed("The calendar took too long. Nothing was changed.")
    earlier = {key: entry for key, entry in rows.items() if entry.state == "booked"}
    for each in taken:
        row = rows[each.entry.id]
        moved = earlier.get(row.moved_entry_id) if row.moved_entry_id else None
        if moved is not None and (each.event is None or each.event.key == moved.id):
            del earlier[moved.id]
            moved.starts_at, moved.ends_at = row.starts_at, row.ends_at
            moved.minutes_before, moved.minutes_after = row.minutes_before, row.minutes_after
            moved.event_version = get_event_version(each.event) if each.event else ""
            await session.delete(row)
            continue
        row.state, row.settle_at, row.moved_entry_id = "booked", None, None
        if each.event is not None:
            row.event_id, row.event_version = each.event.id, get_event_version(each.event)
    for entry in earlier.values():
        release(entry)


async def _find_person(session: ReadSession, data: AppointmentCreate) -> tuple[str, str]:
    """Return the number and the name of the person who comes. Raises `ValidationFailed` for an unknown contact."""
    if data.contact_id is None:
        return data.phone_number or "", data.name or ""
    contact = await session.find(Contact, parse_id(data.contact_id))
    if contact is None:
        raise ValidationFailed.field("contact_id", "is not a contact of the organization")
    return contact.phone_number, data.name or contact.name or contact.phone_number


def _require_answers(kind: AppointmentType, answers: Mapping[str, str]) -> None:
    """Raise `ValidationFailed` for an answer to no question, and for a required one that is missing."""
    questions = {field.name: field for field in kind.settings.fields}
    for name in answers:
        if name not in questions:
            raise ValidationFailed.field(f"fields.{name}", "is not a question of the appointment type")
    for name, question in questions.items():
        if question.required and not answers.get(name, "").strip():
            raise ValidationFailed.field(f"fields.{name}", "is required")


def _require_booked(appointment: Appointment) -> None:
    if appointment.status != "booked":
        raise InvalidState(f"The appointment is {appointment.status}. Only a booked appointment can be changed.")


def _draft_event(kind: AppointmentType, appointment: Appointment, entry: CalendarEntry) -> EventDraft:
    questions = {field.name: field.description or field.name for field in kind.settings.fields}
    answers = [f"{questions.get(name, name)}: {answer}" for name, answer in appointment.fields.items()]
    return EventDraft(
        key=entry.id,
        starts_at=entry.starts_at,
        ends_at=entry.ends_at,
        time_zone=appointment.time_zone,
        title=f"{kind.name}: {appointment.name}",
        description="\n".join([appointment.phone_number, *answers]),
        attendee_name=appointment.name,
        attendee_phone=appointment.phone_number,
    )
