"""Appointment types."""

from collections.abc import Sequence
from functools import partial
from uuid import UUID

from switchboard.foundation.audit import AuditAction, record_audit
from switchboard.foundation.database import ReadSession, WriteSession, now
from switchboard.foundation.web.errors import InvalidState, ValidationFailed
from switchboard.foundation.web.paging import lock_row
from switchboard.foundation.web.principal import Principal
from switchboard.foundation.web.schemas import parse_id
from switchboard.resources.appointments import calendars, queries
from switchboard.resources.appointments.events import find_next_reminder
from switchboard.resources.appointments.models import AppointmentType, Calendar
from switchboard.resources.appointments.schemas import AppointmentTypeCreate, AppointmentTypeOut, AppointmentTypeUpdate
from switchboard.resources.appointments.type_settings import AppointmentTypeSettings
from switchboard.resources.appointments.watches import CalendarWatches


async def list_types_by_calendar(session: ReadSession) -> dict[str, list[AppointmentType]]:
    """Return the appointment types that name each calendar, in the order of their names, by the calendar's id."""
    found: dict[str, list[AppointmentType]] = {}
    kinds = await queries.list_appointment_types(session)
    for kind in sorted(kinds, key=lambda kind: (kind.name.casefold(), kind.id)):
        for calendar_id in kind.settings.calendar_ids:
            found.setdefault(calendar_id, []).append(kind)
    return found


async def create_type(session: WriteSession, principal: Principal, data: AppointmentTypeCreate) -> AppointmentType:
    """Create an appointment type. Raises `Forbidden`, and `ValidationFailed` for an unknown calendar."""
    await calendars.require_owner(session, principal)
    settings = AppointmentTypeSettings.model_validate(data.model_dump(exclude={"name"}))
    _require_check_fields(settings)
    kind = AppointmentType(
        organization_id=session.organization_id,
        name=data.name,
        settings=await _resolve_calendars(session, settings),
    )
    session.add(kind)
    record_audit(session, AuditAction.APPOINTMENT_TYPE_CREATED, kind.id, fields=data.model_fields_set)
    return kind


async def update_type(
    session: WriteSession, principal: Principal, type_id: UUID, data: AppointmentTypeUpdate
) -> AppointmentType:
    """Change the given fields that differ. Raises `NotFound`, `Forbidden`, and `ValidationFailed` for an unknown
    calendar.
    """
    await calendars.require_owner(session, principal)
    kind = await lock_row(session, AppointmentType, type_id)
    data = data.keep_changes(AppointmentTypeOut.from_row(kind))
    given = data.model_fields_set
    if not given:
        return kind
    if "name" in given:
        kind.name = data.name
    changes = data.model_dump(include=given - {"name"})
    if changes:
        settings = AppointmentTypeSettings.model_validate({**kind.settings.model_dump(), **changes})
        _require_check_fields(settings)
        kind.settings = await _resolve_calendars(session, settings)
    if "reminder_minutes" in given:
        for appointment in await queries.lock_coming_appointments_of_type(session, kind.id):
            appointment.reminder_at = find_next_reminder(kind.settings, appointment.starts_at)
    kind.updated_at = now()
    record_audit(session, AuditAction.APPOINTMENT_TYPE_UPDATED, kind.id, fields=given)
    return kind


async def delete_type(session: WriteSession, principal: Principal, type_id: UUID) -> None:
    """Delete an appointment type with its past appointments.

    Raises `NotFound`, `Forbidden`, and `InvalidState` while it has coming appointments.
    """
    await calendars.require_owner(session, principal)
    kind = await lock_row(session, AppointmentType, type_id)
    if await queries.has_coming_entries(session, type_id=type_id):
        raise InvalidState("The appointment type has coming appointments; cancel them first.")
    await session.delete(kind)
    record_audit(session, AuditAction.APPOINTMENT_TYPE_DELETED, type_id)


async def delete_calendar(
    session: WriteSession, principal: Principal, calendar_id: UUID, watches: CalendarWatches
) -> None:
    """Remove a calendar, end its watch, and revoke the tokens of its account.

    The tokens are only deleted while the organization has another calendar of the provider: Google revokes all tokens
    of a user and an application at once. Raises `NotFound`, `Forbidden`, and `InvalidState` while an appointment type
    names the calendar, or it has coming appointments.
    """
    await calendars.require_owner(session, principal)
    calendar = await lock_row(session, Calendar, calendar_id)
    for kind in await queries.list_appointment_types(session):
        if str(calendar_id) in kind.settings.calendar_ids:
            raise InvalidState(f"The appointment type {kind.name} names the calendar; change it first.")
    if await queries.has_coming_entries(session, calendar_id=calendar_id):
        raise InvalidState("The calendar has coming appointments; cancel them first.")
    is_last = not await queries.has_other_calendar(session, calendar)
    session.after_commit(partial(watches.leave, calendar, revokes=is_last))
    await session.delete(calendar)
    record_audit(session, AuditAction.CALENDAR_DELETED, calendar_id)


async def resolve_types(session: ReadSession, type_ids: Sequence[str], *, field: str) -> list[AppointmentType]:
    """Return the appointment types in a request, each once. Raises `ValidationFailed` as `require_type` does."""
    found = [await require_type(session, given, field=f"{field}.{place}") for place, given in enumerate(type_ids)]
    return list({kind.id: kind for kind in found}.values())


async def require_type(session: ReadSession, type_id: str, *, field: str) -> AppointmentType:
    """Return the appointment type in a request. Raises `ValidationFailed`, with the same message for an unknown type
    and one of another organization.
    """
    kind = await session.find(AppointmentType, parse_id(type_id))
    if kind is None:
        raise ValidationFailed.field(field, "is not an appointment type of the organization")
    return kind


def _require_check_fields(settings: AppointmentTypeSettings) -> None:
    """Raise `ValidationFailed` for a check by an answer that an appointment may not have."""
    required = {field.name for field in settings.fields if field.required}
    for place, name in enumerate(settings.check_fields):
        if name not in required:
            raise ValidationFailed.field(f"check_fields.{place}", "is not the name of a required question of fields")


async def _resolve_calendars(session: ReadSession, settings: AppointmentTypeSettings) -> AppointmentTypeSettings:
    """Return the settings with each calendar once, and its id in the usual form."""
    found = await calendars.require_calendars(session, settings.calendar_ids, field="calendar_ids")
    return settings.model_copy(update={"calendar_ids": list(dict.fromkeys(str(calendar.id) for calendar in found))})
