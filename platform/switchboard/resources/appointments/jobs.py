"""Reconcilers of appointments."""

from uuid import UUID

from switchboard.foundation.database import Database, now
from switchboard.foundation.events.catalog import AppointmentReminder
from switchboard.foundation.events.outbox import publish
from switchboard.foundation.jobs import work_on_each
from switchboard.foundation.web.paging import get_row
from switchboard.resources.appointments.booking import AppointmentBook
from switchboard.resources.appointments.changes import CalendarWatcher
from switchboard.resources.appointments.events import build_appointment_event, find_due_reminder, find_next_reminder
from switchboard.resources.appointments.models import Appointment, AppointmentType, CalendarEntry
from switchboard.resources.appointments.queries import list_due_calendars, list_due_entries, list_due_reminders
from switchboard.resources.identity.calling_hours import CallingClock
from switchboard.resources.identity.models import Organization
from switchboard.resources.identity.service import get_policy, is_suspended


async def settle_appointments(database: Database, book: AppointmentBook) -> int:
    """Undo bookings that a dead process has left, and delete events from calendars that were away."""

    async def settle(organization_id: UUID, entry_id: UUID) -> None:
        async with database.read(organization_id) as session:
            entry = await session.find(CalendarEntry, entry_id)
        if entry is not None:
            await book.settle(organization_id, entry.appointment_id)

    async with database.system() as session:
        found = await list_due_entries(session)
    return await work_on_each(found, lambda entry: settle(*entry))


async def find_calendar_changes(database: Database, watcher: CalendarWatcher) -> int:
    """Look for what people have changed in calendars with coming appointments."""
    async with database.system() as session:
        found = await list_due_calendars(session)
    return await work_on_each(found, lambda calendar: watcher.look(*calendar))


async def remind_of_appointments(database: Database) -> int:
    """Publish the reminders that are due."""
    async with database.system() as session:
        found = await list_due_reminders(session)
    return await work_on_each(found, lambda appointment: _remind(database, *appointment))


async def _remind(database: Database, organization_id: UUID, appointment_id: UUID) -> None:
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
