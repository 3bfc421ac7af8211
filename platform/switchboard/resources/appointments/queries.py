"""Statements about calendars, appointment types, appointments, and their entries in calendars."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from sqlmodel import col, delete, or_, select, update
from sqlmodel.sql.expression import SelectOfScalar

from switchboard.foundation.audit import AuditAction, AuditEntry
from switchboard.foundation.database import ReadSession, WriteSession, is_among, now
from switchboard.foundation.web.schemas import NO_ID, parse_id
from switchboard.foundation.work import DueRows
from switchboard.resources.appointments.models import LOCAL, Appointment, AppointmentType, Calendar, CalendarEntry
from switchboard.resources.appointments.schemas import AppointmentQuery
from switchboard.resources.identity.queries import SETTLED_BEFORE, ExpiringRows

TAKING: Final = ("pending", "booked")
"""Statuses of appointments that take their time."""
KEPT_STATES: Final = ("held", "booked")
"""States of entries whose time the appointment takes."""
LONGEST_BOOKING: Final = timedelta(minutes=30)
"""Time within which the booking of an appointment has certainly ended: its calendars are asked one after the other."""
CLOCK_DIFFERENCE: Final = timedelta(minutes=1)
"""Difference between the clocks of two servers that is certainly not exceeded."""


async def list_appointment_types(session: ReadSession) -> list[AppointmentType]:
    return list(await session.exec(session.select(AppointmentType)))


async def list_appointment_types_by_id(session: ReadSession, type_ids: Sequence[UUID]) -> Sequence[AppointmentType]:
    """List the appointment types with these ids, by name; unknown ids are left out."""
    rows = session.select(AppointmentType).where(is_among(col(AppointmentType.id), type_ids))
    return (await session.exec(rows.order_by(col(AppointmentType.name)))).all()


async def list_calendars(session: ReadSession) -> list[Calendar]:
    return list(await session.exec(session.select(Calendar)))


async def list_calendars_by_id(session: ReadSession, calendar_ids: Collection[UUID]) -> list[Calendar]:
    """List the calendars with these ids, in their order; unknown ids are left out."""
    rows = session.select(Calendar).where(is_among(col(Calendar.id), calendar_ids))
    found = {calendar.id: calendar for calendar in (await session.exec(rows)).all()}
    return [found[calendar_id] for calendar_id in calendar_ids if calendar_id in found]


async def has_other_calendar(session: ReadSession, calendar: Calendar) -> bool:
    """Return whether the organization has another calendar of a calendar's provider."""
    others = session.select(Calendar).where(
        col(Calendar.provider) == calendar.provider, col(Calendar.id) != calendar.id
    )
    return (await session.exec(others.limit(1))).first() is not None


async def mark_calendar_due(session: WriteSession, calendar_id: UUID) -> None:
    """Have a calendar that is asked for changes at a later time asked at once."""
    is_due_later = col(Calendar.changes_due_at) > now()
    of_calendar = (session.owns(Calendar), col(Calendar.id) == calendar_id, is_due_later)
    await session.exec(update(Calendar).where(*of_calendar).values(changes_due_at=now()))


def select_appointments(session: ReadSession, query: AppointmentQuery) -> SelectOfScalar[Appointment]:
    """Select the organization's appointments that match the filters; those that were never booked only by status."""
    rows = session.select(Appointment)
    if query.appointment_type_id is not None:
        rows = rows.where(col(Appointment.appointment_type_id) == (parse_id(query.appointment_type_id) or NO_ID))
    if query.phone_number is not None:
        rows = rows.where(col(Appointment.phone_number) == query.phone_number)
    wanted = ("booked", "canceled") if query.status is None else (query.status,)
    rows = rows.where(is_among(col(Appointment.status), wanted))
    if query.starts_after is not None:
        rows = rows.where(col(Appointment.starts_at) >= query.starts_after)
    if query.starts_before is not None:
        rows = rows.where(col(Appointment.starts_at) < query.starts_before)
    return rows


@dataclass(frozen=True, slots=True)
class AgendaFilter:
    """Appointments to list: of one type, in one calendar, and also canceled ones, whose time is free again."""

    type_id: UUID | None = None
    calendar_id: UUID | None = None
    with_canceled: bool = False


async def list_appointments_between(
    session: ReadSession, after: datetime, until: datetime, wanted: AgendaFilter, *, limit: int
) -> Sequence[Appointment]:
    """List the first `limit` appointments that take any of the time between two moments, earliest first.

    A canceled appointment is in no calendar any more.
    """
    statuses = (*TAKING, "canceled") if wanted.with_canceled else TAKING
    rows = session.select(Appointment).where(
        is_among(col(Appointment.status), statuses),
        col(Appointment.ends_at) > after,
        col(Appointment.starts_at) < until,
    )
    if wanted.type_id is not None:
        rows = rows.where(col(Appointment.appointment_type_id) == wanted.type_id)
    if wanted.calendar_id is not None:
        entries = select(CalendarEntry.id).where(
            session.owns(CalendarEntry),
            col(CalendarEntry.appointment_id) == col(Appointment.id),
            col(CalendarEntry.calendar_id) == wanted.calendar_id,
            is_among(col(CalendarEntry.state), KEPT_STATES),
        )
        rows = rows.where(entries.exists())
    return (await session.exec(rows.order_by(col(Appointment.starts_at), col(Appointment.id)).limit(limit))).all()


async def list_next_appointments(session: ReadSession, phone_number: str, *, limit: int) -> Sequence[Appointment]:
    """List the next `limit` appointments of a phone number that are not over, earliest first."""
    rows = session.select(Appointment).where(
        col(Appointment.phone_number) == phone_number,
        is_among(col(Appointment.status), TAKING),
        col(Appointment.ends_at) > now(),
    )
    return (await session.exec(rows.order_by(col(Appointment.starts_at)).limit(limit))).all()


async def list_appointments_of_call(session: ReadSession, call_id: UUID) -> Sequence[Appointment]:
    """List the appointments that were booked in a call, in the order of their booking."""
    rows = session.select(Appointment).where(
        col(Appointment.call_id) == call_id, is_among(col(Appointment.status), (*TAKING, "canceled"))
    )
    return (await session.exec(rows.order_by(col(Appointment.created_at), col(Appointment.id)))).all()


async def list_calendars_of_appointment(session: ReadSession, appointment_id: UUID) -> Sequence[Calendar]:
    """List the calendars that an appointment is in; none for one that is canceled."""
    entries = select(CalendarEntry.calendar_id).where(
        session.owns(CalendarEntry),
        col(CalendarEntry.appointment_id) == appointment_id,
        is_among(col(CalendarEntry.state), KEPT_STATES),
    )
    rows = session.select(Calendar).where(col(Calendar.id).in_(entries))
    return (await session.exec(rows.order_by(col(Calendar.name), col(Calendar.id)))).all()


async def find_booking_actor(session: ReadSession, appointment: Appointment) -> str | None:
    """Return the audit log's actor who has booked an appointment; None if an agent or an automation has, or if the
    entry is deleted by now.
    """
    rows = session.select(AuditEntry).where(
        col(AuditEntry.created_at) >= appointment.created_at - CLOCK_DIFFERENCE,
        col(AuditEntry.created_at) <= appointment.created_at + LONGEST_BOOKING,
        col(AuditEntry.action) == AuditAction.APPOINTMENT_BOOKED.value,
        col(AuditEntry.subject).startswith(str(appointment.id)),
    )
    entry = (await session.exec(rows.limit(1))).first()
    return entry.actor if entry is not None else None


def _select_coming(session: ReadSession, phone_number: str, type_ids: Sequence[UUID]) -> SelectOfScalar[Appointment]:
    rows = session.select(Appointment).where(
        col(Appointment.phone_number) == phone_number,
        col(Appointment.status) == "booked",
        col(Appointment.ends_at) > now(),
        is_among(col(Appointment.appointment_type_id), type_ids),
    )
    return rows.order_by(col(Appointment.starts_at)).limit(20)


async def list_coming_appointments(
    session: ReadSession, phone_number: str, type_ids: Sequence[UUID]
) -> Sequence[Appointment]:
    """List the coming appointments of a number that are of certain types, the next one first."""
    return (await session.exec(_select_coming(session, phone_number, type_ids))).all()


async def lock_coming_appointments(
    session: WriteSession, phone_number: str, type_ids: Sequence[UUID]
) -> Sequence[Appointment]:
    """Lock and return the coming appointments of a number that are of certain types, the next one first."""
    return (await session.exec(_select_coming(session, phone_number, type_ids).with_for_update())).all()


async def lock_coming_appointments_of_type(session: WriteSession, type_id: UUID) -> Sequence[Appointment]:
    """Lock and return the appointments of a type that have not begun."""
    rows = session.select(Appointment).where(
        col(Appointment.appointment_type_id) == type_id,
        col(Appointment.status) == "booked",
        col(Appointment.starts_at) > now(),
    )
    return (await session.exec(rows.with_for_update())).all()


async def list_taken_starts(
    session: ReadSession, type_id: UUID, after: datetime, until: datetime, *, without: UUID | None
) -> Sequence[datetime]:
    """List the beginnings of a type's appointments between two moments, except for those of one appointment."""
    rows = select(Appointment.starts_at).where(
        session.owns(Appointment),
        col(Appointment.appointment_type_id) == type_id,
        is_among(col(Appointment.status), TAKING),
        col(Appointment.starts_at) > after,
        col(Appointment.starts_at) < until,
    )
    if without is not None:
        rows = rows.where(col(Appointment.id) != without)
    return (await session.exec(rows)).all()


async def list_taking_entries(
    session: ReadSession, calendar_ids: Collection[UUID], after: datetime, until: datetime, *, without: UUID | None
) -> Sequence[CalendarEntry]:
    """List the entries that take time in calendars between two moments, except for those of one appointment."""
    rows = session.select(CalendarEntry).where(
        is_among(col(CalendarEntry.calendar_id), calendar_ids),
        col(CalendarEntry.state) != "releasing",
        col(CalendarEntry.ends_at) > after,
        col(CalendarEntry.starts_at) < until,
    )
    if without is not None:
        rows = rows.where(col(CalendarEntry.appointment_id) != without)
    return (await session.exec(rows)).all()


async def list_releasing_entries(session: ReadSession, entry_ids: Collection[UUID]) -> set[UUID]:
    """Return the ids of those of the entries whose events must not stay in their calendars."""
    rows = select(CalendarEntry.id).where(session.owns(CalendarEntry), is_among(col(CalendarEntry.id), entry_ids))
    return set((await session.exec(rows.where(col(CalendarEntry.state) == "releasing"))).all())


async def has_coming_entries(
    session: ReadSession, *, type_id: UUID | None = None, calendar_id: UUID | None = None
) -> bool:
    """Return whether an appointment of a type, or in a calendar, has an entry that is not over."""
    rows = select(CalendarEntry.id).where(session.owns(CalendarEntry), col(CalendarEntry.ends_at) > now())
    if type_id is not None:
        of_type = col(Appointment.id) == col(CalendarEntry.appointment_id)
        rows = rows.join(Appointment, of_type).where(col(Appointment.appointment_type_id) == type_id)
    if calendar_id is not None:
        rows = rows.where(col(CalendarEntry.calendar_id) == calendar_id)
    return (await session.exec(rows.limit(1))).first() is not None


async def lock_calendar_entries(session: WriteSession, appointment_id: UUID) -> list[CalendarEntry]:
    """Lock and return the entries of an appointment in calendars."""
    rows = session.select(CalendarEntry).where(col(CalendarEntry.appointment_id) == appointment_id)
    return list((await session.exec(rows.order_by(col(CalendarEntry.id)).with_for_update())).all())


async def delete_settled_appointments(session: WriteSession, phone_number: str) -> int:
    """Delete a person's appointments that are over or canceled, and return how many. Events stay in the calendars."""
    unsettled = select(CalendarEntry.id).where(
        session.owns(CalendarEntry),
        col(CalendarEntry.appointment_id) == col(Appointment.id),
        or_(col(CalendarEntry.state) != "booked", col(CalendarEntry.ends_at) > now()),
    )
    theirs = (session.owns(Appointment), col(Appointment.phone_number) == phone_number)
    return (await session.exec(delete(Appointment).where(*theirs, ~unsettled.exists()))).rowcount


async def watch_calendars(session: WriteSession, calendar_ids: Collection[UUID]) -> None:
    """Have calendars with coming appointments asked for what people change in them."""
    unwatched = (
        session.owns(Calendar),
        is_among(col(Calendar.id), calendar_ids),
        col(Calendar.provider) != LOCAL,
        col(Calendar.changes_due_at).is_(None),
    )
    await session.exec(update(Calendar).where(*unwatched).values(changes_due_at=now()))


async def list_coming_entries(session: ReadSession, calendar_id: UUID, most: int | None = None) -> list[CalendarEntry]:
    """List the booked entries of a calendar that are not over, or the next ones, earliest first."""
    rows = session.select(CalendarEntry).where(
        col(CalendarEntry.calendar_id) == calendar_id,
        col(CalendarEntry.state) == "booked",
        col(CalendarEntry.ends_at) > now(),
    )
    ordered = rows.order_by(col(CalendarEntry.starts_at), col(CalendarEntry.id)).limit(most)
    return list((await session.exec(ordered)).all())


async def lock_free_calendar(session: WriteSession, calendar_id: UUID) -> Calendar | None:
    """Return a calendar as it is now, locked; None while another transaction has the lock."""
    rows = session.select(Calendar).where(col(Calendar.id) == calendar_id)
    locked = rows.with_for_update(skip_locked=True, key_share=True).execution_options(populate_existing=True)
    return (await session.exec(locked)).one_or_none()


ENTRIES_TO_SETTLE: Final = DueRows(CalendarEntry, "settle_at", (col(CalendarEntry.state) != "booked",))
CALENDARS_TO_ASK: Final = DueRows(Calendar, "changes_due_at")
"""Calendars to be asked for changes."""
DUE_REMINDERS: Final = DueRows(Appointment, "reminder_at")
"""Appointments with a reminder to be published."""


_UNSETTLED = select(CalendarEntry.id).where(
    col(CalendarEntry.organization_id) == col(Appointment.organization_id),
    col(CalendarEntry.appointment_id) == col(Appointment.id),
    col(CalendarEntry.state) != "booked",
)
ENDED_APPOINTMENTS: Final = ExpiringRows(
    Appointment, (~_UNSETTLED.exists(), col(Appointment.ends_at) < SETTLED_BEFORE), moment="ends_at"
)
"""Appointments that are over, by their end, also canceled ones; not while an event has to leave its calendar."""
