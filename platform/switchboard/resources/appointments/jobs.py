"""Reconciler of appointments."""

from uuid import UUID

from sqlmodel import col

from switchboard.foundation.database import Database
from switchboard.foundation.jobs import list_due, work_on_each
from switchboard.resources.appointments.booking import AppointmentBook
from switchboard.resources.appointments.models import CalendarEntry


async def settle_appointments(database: Database, book: AppointmentBook) -> int:
    """Undo bookings that a dead process has left, and delete events from calendars that were away."""

    async def settle(organization_id: UUID, entry_id: UUID) -> None:
        async with database.tenant(organization_id) as session:
            entry = await session.find(CalendarEntry, entry_id)
        if entry is not None:
            await book.settle(organization_id, entry.appointment_id)

    async with database.system() as session:
        found = await list_due(
            session, CalendarEntry, col(CalendarEntry.settle_at), col(CalendarEntry.state) != "booked"
        )
    await work_on_each(found, lambda entry: settle(*entry))
    return len(found)
