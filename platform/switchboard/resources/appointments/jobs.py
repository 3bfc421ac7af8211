"""Work on appointments and calendars."""

from typing import Final
from uuid import UUID

from switchboard.foundation.database import Database, now
from switchboard.foundation.events.catalog import AppointmentReminder
from switchboard.foundation.events.outbox import publish
from switchboard.foundation.web.paging import get_row
from switchboard.foundation.work import Work
from switchboard.resources.appointments.booking import AppointmentBook
from switchboard.resources.appointments.changes import CalendarWatcher
from switchboard.resources.appointments.events import build_appointment_event, find_due_reminder, find_next_reminder
from switchboard.resources.appointments.models import Appointment, AppointmentType, CalendarEntry
from switchboard.resources.appointments.queries import CALENDARS_TO_ASK, DUE_REMINDERS, ENTRIES_TO_SETTLE
from switchboard.resources.identity.calling_hours import CallingClock
from switchboard.resources.identity.models import Organization
from switchboard.resources.identity.service import get_policy, is_suspended


async def settle_appointment(
    database: Database, book: AppointmentBook, *, organization_id: UUID, entry_id: UUID
) -> None:
    """Undo a booking that a dead process has left, or delete an event from a calendar that was away."""
    async with database.read(organization_id) as session:
        entry = await session.find(CalendarEntry, entry_id)
    if entry is not None:
        await book.settle(organization_id, entry.appointment_id)


async def find_calendar_changes(watcher: CalendarWatcher, *, organization_id: UUID, calendar_id: UUID) -> None:
    """Look for what people have changed in a calendar with coming appointments."""
    await watcher.look(organization_id, calendar_id)


async def remind_of_appointment(database: Database, *, organization_id: UUID, appointment_id: UUID) -> None:
    """Publish the reminder of an appointment, or put it off until the person may be called.

    One that may not be called before the appointment begins is left out.
    """
    async with database.write(organization_id) as session:
        appointment = await session.lock(Appointment, appointment_id)
        if appointment is None or appointment.reminder_at is None or appointment.reminder_at > now():
            return
        kind = await get_row(session, AppointmentType, appointment.appointment_type_id)
        minutes = find_due_reminder(kind.settings, appointment.starts_at)
        if minutes is not None and appointment.starts_at > now() and not await is_suspended(session):
            organization = await session.get_one(Organization, organization_id)
            hours = (await get_policy(session, organization_id)).calling_hours
            clock = CallingClock(hours, home=organization.timezone, moment=now())
            opens = clock.opens(appointment.phone_number)
            if now() < opens < appointment.starts_at:
                appointment.reminder_at = opens
                return
            if opens <= now():
                data = build_appointment_event(AppointmentReminder, appointment, kind, minutes_before=minutes)
                await publish(session, data, depth=appointment.cause_depth)
        appointment.reminder_at = find_next_reminder(kind.settings, appointment.starts_at)


WORK: Final = (
    Work(settle_appointment, ENTRIES_TO_SETTLE, seconds=10, at_once=8),
    Work(find_calendar_changes, CALENDARS_TO_ASK, seconds=10, at_once=8),
    Work(remind_of_appointment, DUE_REMINDERS, seconds=10, at_once=8),
)
