"""Appointments that retention deletes. Their events stay in the calendars."""

from typing import Final

from sqlmodel import col, select

from switchboard.resources.appointments.models import Appointment, CalendarEntry
from switchboard.resources.identity.retention import SETTLED_BEFORE, ExpiringRows

_unsettled = select(CalendarEntry.id).where(
    col(CalendarEntry.organization_id) == col(Appointment.organization_id),
    col(CalendarEntry.appointment_id) == col(Appointment.id),
    col(CalendarEntry.state) != "booked",
)
ENDED_APPOINTMENTS: Final = ExpiringRows(
    Appointment, (~_unsettled.exists(), col(Appointment.ends_at) < SETTLED_BEFORE), moment="ends_at"
)
"""Appointments that are over, by their end, also canceled ones; not while an event has to leave its calendar."""
