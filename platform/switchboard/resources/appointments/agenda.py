"""Appointments as people look at them: those of a period, of a person, and of a call."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from sqlmodel import col, select

from switchboard.foundation.audit import AuditAction, AuditEntry
from switchboard.foundation.database import ReadSession, is_among, now
from switchboard.resources.appointments.availability import TAKING
from switchboard.resources.appointments.models import Appointment, Calendar, CalendarEntry

KEPT_STATES: Final = ("held", "booked")
"""States of entries whose time the appointment takes."""
LONGEST_BOOKING: Final = timedelta(minutes=30)
"""Time within which the booking of an appointment has certainly ended: its calendars are asked one after the other."""
CLOCK_DIFFERENCE: Final = timedelta(minutes=1)
"""Difference between the clocks of two servers that is certainly not exceeded."""


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
