"""Events of appointments, and the times of their reminders."""

from datetime import datetime, timedelta
from typing import TypeVar
from zoneinfo import ZoneInfo

from switchboard.foundation.database import now
from switchboard.foundation.events.catalog import AppointmentEvent
from switchboard.resources.appointments.models import Appointment, AppointmentType
from switchboard.resources.appointments.spoken_times import PHRASES, describe_moment
from switchboard.resources.appointments.type_settings import AppointmentTypeSettings

EventT = TypeVar("EventT", bound=AppointmentEvent)


def build_appointment_event(
    event: type[EventT], appointment: Appointment, kind: AppointmentType, **details: object
) -> EventT:
    """Build the data of an event of an appointment; `details` are the fields that only this event has."""
    zone = ZoneInfo(appointment.time_zone)
    words = {language: describe_moment(appointment.starts_at, zone, language, now=now()) for language in PHRASES}
    fields = {
        **dict(appointment),
        **details,
        "appointment_id": appointment.id,
        "appointment_type": kind.name,
        "local_starts_at": appointment.starts_at.astimezone(zone).isoformat(),
        "words": words,
    }
    return event.model_validate(fields, extra="ignore")


def find_next_reminder(settings: AppointmentTypeSettings, starts_at: datetime) -> datetime | None:
    """Return when the next reminder of an appointment is due; None without one."""
    times = (starts_at - timedelta(minutes=minutes) for minutes in settings.reminder_minutes)
    return min((time for time in times if time > now()), default=None)


def find_due_reminder(settings: AppointmentTypeSettings, starts_at: datetime) -> int | None:
    """Return the latest reminder of an appointment whose time has come, in minutes before it; None without one."""
    due = (minutes for minutes in settings.reminder_minutes if starts_at - timedelta(minutes=minutes) <= now())
    return min(due, default=None)
