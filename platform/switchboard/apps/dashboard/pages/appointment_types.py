"""Appointment types: list, create, change, and delete."""

from uuid import UUID

from switchboard.apps.dashboard.blueprint import Next, action, go_to, page
from switchboard.apps.dashboard.forms.appointment_type import read_type_form, show_labels, type_to_form
from switchboard.apps.dashboard.forms.form import Form, list_bounds
from switchboard.apps.dashboard.forms.rows import list_slots
from switchboard.apps.dashboard.ui.opening_hours import list_timezones, list_weekly_hours
from switchboard.apps.dashboard.ui.rendering import load_list, render
from switchboard.apps.dashboard.viewer import Viewer
from switchboard.foundation.database import ReadSession, WriteSession
from switchboard.foundation.languages import gettext as _
from switchboard.foundation.web.paging import get_row
from switchboard.foundation.web.schemas import PageQuery
from switchboard.plugin_sdk import JsonObject
from switchboard.resources.agents.queries import list_names_by_appointment_type
from switchboard.resources.appointments import appointment_types
from switchboard.resources.appointments.models import AppointmentType
from switchboard.resources.appointments.queries import list_calendars
from switchboard.resources.appointments.schemas import AppointmentTypeCreate, AppointmentTypeUpdate
from switchboard.resources.appointments.type_settings import WORKDAYS, AppointmentTypeSettings


@page("/dashboard/appointment-types")
async def appointment_types_page(session: ReadSession, viewer: Viewer, query: PageQuery) -> str:
    found = await load_list(session, session.select(AppointmentType), query)
    rows = await list_calendars(session)
    return await render(
        "dashboard/appointment_types/list.html",
        types=found,
        calendars={str(calendar.id): calendar for calendar in rows},
        hours={kind.id: list_weekly_hours(kind.settings.hours) for kind in found.items},
        agents=await list_names_by_appointment_type(session),
        may_change=viewer.has_role("owner"),
    )


@page("/dashboard/appointment-types/new", role="owner")
async def new_appointment_type_page(session: ReadSession, viewer: Viewer, form: Form) -> str:
    """Show the form of a new appointment type. The only calendar of an organization is chosen."""
    rows = await list_calendars(session)
    beginning = AppointmentTypeSettings(
        calendar_ids=[str(rows[0].id)] if len(rows) == 1 else [],
        hours=WORKDAYS.model_copy(update={"timezone": viewer.timezone}),
    )
    return await _show_form(session, form.starting_with(type_to_form("", beginning)), None)


async def _show_form(session: ReadSession, form: Form, kind: AppointmentType | None) -> str:
    rows = await list_calendars(session)
    agents = await list_names_by_appointment_type(session) if kind else {}
    return await render(
        "dashboard/appointment_types/edit.html",
        form=show_labels(form),
        kind=kind,
        calendars=sorted(rows, key=lambda calendar: (calendar.name.casefold(), calendar.id)),
        slots=list_slots(form.value("hours")),
        zones=list_timezones(),
        bounds=list_bounds(AppointmentTypeSettings),
        agents=agents.get(str(kind.id), {}) if kind else {},
    )


@action("/dashboard/appointment-types/new", role="owner", invalid=new_appointment_type_page)
async def add_appointment_type(session: WriteSession, viewer: Viewer, fields: JsonObject) -> Next:
    with read_type_form(AppointmentTypeCreate, fields) as data:
        kind = await appointment_types.create_type(session, viewer.principal, data)
    return go_to("appointment_types_page", _("%(name)s was created.", name=kind.name))


@page("/dashboard/appointment-types/<type_id>")
async def appointment_type_page(session: ReadSession, type_id: UUID, form: Form) -> str:
    """Show an appointment type with everything that can be changed."""
    kind = await get_row(session, AppointmentType, type_id)
    return await _show_form(session, form.starting_with(type_to_form(kind.name, kind.settings)), kind)


@action("/dashboard/appointment-types/<type_id>", role="owner", invalid=appointment_type_page)
async def save_appointment_type(session: WriteSession, viewer: Viewer, type_id: UUID, fields: JsonObject) -> Next:
    """Change an appointment type. Appointments that are booked stay as they are."""
    with read_type_form(AppointmentTypeUpdate, fields) as data:
        kind = await appointment_types.update_type(session, viewer.principal, type_id, data)
    return go_to("appointment_types_page", _("%(name)s was saved.", name=kind.name))


@action("/dashboard/appointment-types/<type_id>/delete", role="owner")
async def delete_appointment_type(session: WriteSession, viewer: Viewer, type_id: UUID) -> Next:
    """Delete an appointment type without coming appointments."""
    await appointment_types.delete_type(session, viewer.principal, type_id)
    return go_to("appointment_types_page", _("Appointment type deleted."), "warning")
