"""Appointments: a week with bookings and free times, one appointment with its changes, and booking by hand."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Annotated, Final
from uuid import UUID
from zoneinfo import ZoneInfo

from pydantic import Field, JsonValue
from quart import url_for

from switchboard.apps.dashboard.blueprint import Next, action, go_to, page
from switchboard.apps.dashboard.forms.form import Form, parse_form
from switchboard.apps.dashboard.ui.actors import get_actor_names
from switchboard.apps.dashboard.ui.free_times import FreeTimesByDay, find_free_times, find_free_times_by_day
from switchboard.apps.dashboard.ui.rendering import may_post, render, render_part
from switchboard.apps.dashboard.ui.week import Week
from switchboard.apps.dashboard.viewer import Viewer
from switchboard.foundation.database import Database, ReadSession, now
from switchboard.foundation.languages import gettext as _
from switchboard.foundation.web.errors import ProviderFailed, SlotTaken, ValidationFailed
from switchboard.foundation.web.paging import get_row
from switchboard.foundation.web.schemas import Query, parse_id
from switchboard.plugin_sdk import JsonObject
from switchboard.resources.appointments import booking
from switchboard.resources.appointments.availability import Availability, OfferedTime, SlotTokens
from switchboard.resources.appointments.models import Appointment, AppointmentType, Calendar
from switchboard.resources.appointments.queries import (
    AgendaFilter,
    find_booking_actor,
    list_appointment_types,
    list_appointments_between,
    list_calendars,
    list_calendars_of_appointment,
)
from switchboard.resources.appointments.schemas import AppointmentCreate, AppointmentUpdate, SlotOut
from switchboard.resources.calls.models import Call
from switchboard.resources.contacts.models import Contact
from switchboard.resources.contacts.queries import find_contact_by_number
from switchboard.resources.contacts.schemas import ContactQuery
from switchboard.resources.contacts.search import search_contacts

MOST_APPOINTMENTS: Final = 500
MOST_FREE: Final = 300
"""Free times of a week."""
CalendarDay = Annotated[date, Field(ge=date(2000, 1, 1), le=date(2100, 12, 31))]


class WeekQuery(Query):
    """A week, by one of its days, and the appointments to show: all, or those of a type or in a calendar."""

    week: CalendarDay | None = None
    type: UUID | None = None
    calendar: UUID | None = None
    canceled: bool = False
    free: bool = False


@dataclass(frozen=True, slots=True)
class WeekLoader:
    """Loads a week of appointments, and the free times of its type."""

    database: Database
    availability: Availability

    async def load(self, viewer: Viewer, query: WeekQuery, *, with_free: bool) -> dict[str, object]:
        """Return the values of the week's templates. Raises `NotFound` for an unknown type or calendar.

        Without a chosen type, the organization's only one is.
        """
        async with self.database.read(viewer.organization_id) as session:
            types = await list_appointment_types(session)
            known = await list_calendars(session)
            kind = types[0] if len(types) == 1 else None
            if query.type is not None:
                kind = await get_row(session, AppointmentType, query.type)
            if query.calendar is not None:
                await get_row(session, Calendar, query.calendar)
            week = Week.find(query.week, ZoneInfo(kind.settings.hours.timezone if kind else viewer.timezone))
            found = await list_appointments_between(
                session,
                week.begins_at,
                week.ends_at,
                AgendaFilter(query.type, query.calendar, query.canceled),
                limit=MOST_APPOINTMENTS,
            )
        may_book = may_post(url_for("dashboard.book_appointment"))
        items: list[Appointment | SlotOut] = [*found]
        fault, is_cut = "", len(found) == MOST_APPOINTMENTS
        if with_free and may_book and kind is not None:
            free = await find_free_times(
                self.availability, kind, after=week.begins_at, until=week.ends_at, limit=MOST_FREE
            )
            items += free.items
            fault, is_cut = free.fault, is_cut or len(free.items) == MOST_FREE
        return {
            "week": week.show(items),
            "kind": kind,
            "types": {each.id: each.name for each in types},
            "calendars": known,
            "query": query,
            "offers_free": may_book and kind is not None and week.ends_at > now(),
            "with_free": with_free,
            "fault": fault,
            "is_cut": is_cut,
            "disconnected": _list_disconnected(known, kind),
            "address": query.model_dump(mode="json", exclude_defaults=True, exclude={"free"}),
        }


def _list_disconnected(known: Sequence[Calendar], kind: AppointmentType | None) -> list[Calendar]:
    """Return the disconnected calendars, of a type if there is one."""
    return [
        calendar
        for calendar in known
        if calendar.status == "disconnected" and (kind is None or str(calendar.id) in kind.settings.calendar_ids)
    ]


@page("/dashboard/appointments")
async def appointments_page(viewer: Viewer, query: WeekQuery, loader: WeekLoader) -> str:
    """Show a week of appointments. Its free times are loaded by `static/js/week.js`, or with `free` by this page."""
    return await render("dashboard/appointments/week.html", **await loader.load(viewer, query, with_free=query.free))


@page("/dashboard/appointments/week", role="agent")
async def appointments_week(viewer: Viewer, query: WeekQuery, loader: WeekLoader) -> str:
    """Render the days of a week alone, with free times, for which the calendars are asked."""
    return await render_part("dashboard/appointments/days.html", **await loader.load(viewer, query, with_free=True))


# The page of one appointment.


@page("/dashboard/appointments/<appointment_id>")
async def appointment_page(session: ReadSession, appointment_id: UUID, form: Form) -> str:
    """Show an appointment, who has booked it, and the call in which it was booked."""
    appointment = await get_row(session, Appointment, appointment_id)
    kind = await get_row(session, AppointmentType, appointment.appointment_type_id)
    actor = await find_booking_actor(session, appointment)
    kept: JsonObject = {"name": appointment.name, "fields": appointment.fields}
    return await render(
        "dashboard/appointments/appointment.html",
        form=form.starting_with(kept).with_labels(label_questions(kind)),
        appointment=appointment,
        local_day=appointment.starts_at.astimezone(ZoneInfo(appointment.time_zone)).date(),
        kind=kind,
        answers=_list_answers(kind, appointment),
        calendars=await list_calendars_of_appointment(session, appointment_id),
        contact=await find_contact_by_number(session, appointment.phone_number),
        call=await session.find(Call, appointment.call_id),
        booked_by=(await get_actor_names(session)).get(actor, actor) if actor else None,
    )


def label_questions(kind: AppointmentType) -> dict[str, str]:
    """Return the labels of the fields of an appointment's form, with the questions of its type."""
    labels = {"phone_number": _("Phone number"), "name": _("Name"), "slot_token": _("Time")}
    return labels | {f"fields.{field.name}": field.description or field.name for field in kind.settings.fields}


def read_answers(fields: Mapping[str, JsonValue]) -> JsonObject:
    """Return the answers of a form, without empty ones."""
    given = fields.get("fields")
    return {name: answer for name, answer in given.items() if answer} if isinstance(given, dict) else {}


def _list_answers(kind: AppointmentType, appointment: Appointment) -> list[tuple[str, str]]:
    questions = {field.name: field.description or field.name for field in kind.settings.fields}
    return [(questions.get(name, name), answer) for name, answer in appointment.fields.items()]


@action("/dashboard/appointments/<appointment_id>", role="agent", invalid=appointment_page)
async def save_appointment(
    viewer: Viewer, appointment_id: UUID, fields: JsonObject, book: booking.AppointmentBook
) -> Next:
    """Change the name and the answers of an appointment."""
    if not str(fields.get("name", "")).strip():
        raise ValidationFailed.field("name", _("is required"))
    changes = parse_form(AppointmentUpdate, {"name": fields["name"], "fields": read_answers(fields)})
    await book.update(viewer.organization_id, appointment_id, changes, origin=build_origin(viewer))
    return go_to("appointment_page", _("Saved."), appointment_id=appointment_id)


@action("/dashboard/appointments/<appointment_id>/confirm", role="agent")
async def confirm_appointment(
    viewer: Viewer, appointment_id: UUID, data: AppointmentUpdate, book: booking.AppointmentBook
) -> Next:
    """Record that the person comes, or take that back."""
    confirmed = AppointmentUpdate(is_confirmed=data.is_confirmed)
    await book.update(viewer.organization_id, appointment_id, confirmed, origin=build_origin(viewer))
    notice = (
        _("The appointment is confirmed.") if data.is_confirmed else _("The appointment is not confirmed any more.")
    )
    return go_to("appointment_page", notice, appointment_id=appointment_id)


@action("/dashboard/appointments/<appointment_id>/cancel", role="agent")
async def cancel_appointment(viewer: Viewer, appointment_id: UUID, book: booking.AppointmentBook) -> Next:
    """Cancel an appointment; its time is free at once."""
    await book.cancel(viewer.organization_id, appointment_id, origin=build_origin(viewer))
    return go_to("appointment_page", _("The appointment is canceled."), "warning", appointment_id=appointment_id)


def build_origin(viewer: Viewer) -> booking.Origin:
    """Return the origin of what a viewer changes."""
    return booking.Origin(actor=viewer.principal.actor)


# Booking by hand: choose a free time, say who comes, and book; and move an appointment to another free time.


MOST_CONTACTS: Final = 5


class BookingQuery(Query):
    """Chosen so far: the type, the day from which times are offered, the time, and the contact; `search` finds one."""

    type: UUID | None = None
    day: CalendarDay | None = None
    slot_token: str = Field("", max_length=1000)
    contact: UUID | None = None
    search: str = Field("", max_length=255)


class MoveQuery(Query):
    """The day from which times are offered."""

    day: CalendarDay | None = None


@dataclass(frozen=True, slots=True)
class BookingPages:
    """Loads the pages of booking by hand."""

    database: Database
    availability: Availability
    tokens: SlotTokens

    def read_time(self, viewer: Viewer, token: str) -> OfferedTime | None:
        """Return the time of a token; None for one that has expired, or is not one of the organization's."""
        try:
            return self.tokens.read(viewer.organization_id, token) if token else None
        except ValidationFailed:
            return None

    async def show_times(self, viewer: Viewer, query: BookingQuery) -> str:
        """Show the free times of a type, which link to the form. Raises `NotFound` for an unknown type or contact."""
        async with self.database.read(viewer.organization_id) as session:
            types = await list_appointment_types(session)
            kind = types[0] if types else None
            if query.type is not None:
                kind = await get_row(session, AppointmentType, query.type)
            contact = await get_row(session, Contact, query.contact) if query.contact else None
        times = await find_free_times_by_day(self.availability, kind, query.day) if kind else FreeTimesByDay()
        return await render(
            "dashboard/appointments/times.html", query=query, types=types, kind=kind, times=times, contact=contact
        )

    async def show_form(self, viewer: Viewer, query: BookingQuery, form: Form, offered: OfferedTime | None) -> str:
        """Show the form of an appointment, with the next free times if its time is not free any more."""
        type_id = offered.appointment_type_id if offered else parse_id(str(form.value("type", "")))
        chosen = parse_id(str(form.value("contact_id", "") or query.contact or ""))
        async with self.database.read(viewer.organization_id) as session:
            kind = await get_row(session, AppointmentType, type_id)
            contact = await session.find(Contact, chosen)
            matches: Sequence[Contact] = []
            if query.search:
                matches, _total = await search_contacts(session, ContactQuery(search=query.search, limit=MOST_CONTACTS))
        times = None
        if offered is None or form.error("slot_token"):
            day = offered.starts_at.astimezone(ZoneInfo(kind.settings.hours.timezone)).date() if offered else None
            times = await find_free_times_by_day(self.availability, kind, day)
        return await render(
            "dashboard/appointments/book.html",
            form=form.with_labels(label_questions(kind)),
            query=query,
            kind=kind,
            offered=offered,
            length=timedelta(minutes=kind.settings.duration_minutes),
            token=form.value("slot_token", query.slot_token),
            times=times,
            contact=contact,
            matches=matches,
        )


@page("/dashboard/appointments/new", role="agent")
async def new_appointment_page(viewer: Viewer, query: BookingQuery, form: Form, pages: BookingPages) -> str:
    """Show free times, and for a chosen one the form of an appointment."""
    token = str(form.value("slot_token", query.slot_token))
    offered = pages.read_time(viewer, token)
    if offered is None and not form.was_sent:
        return await pages.show_times(viewer, query)
    return await pages.show_form(viewer, query, form, offered)


@action("/dashboard/appointments/new", role="agent", invalid=new_appointment_page)
async def book_appointment(viewer: Viewer, fields: JsonObject, book: booking.AppointmentBook) -> Next:
    """Book an appointment at a time that was offered."""
    person = {name: fields.get(name) for name in ("contact_id", "phone_number", "name") if fields.get(name)}
    if "contact_id" not in person and (missing := {"phone_number", "name"} - set(person)):
        raise ValidationFailed(errors=[{"field": name, "message": _("is required")} for name in sorted(missing)])
    given = {**person, "slot_token": fields.get("slot_token", ""), "fields": read_answers(fields)}
    data = parse_form(AppointmentCreate, given)
    with explain_refusals():
        made = await book.book(viewer.organization_id, data, origin=build_origin(viewer))
    return go_to("appointment_page", _("The appointment is booked."), appointment_id=made.id)


@contextmanager
def explain_refusals() -> Iterator[None]:
    """Let the form say in the language of the page why a time was not taken."""
    try:
        yield
    except SlotTaken as error:
        raise ValidationFailed.field("slot_token", _("is not free any more; choose another time")) from error
    except ValidationFailed as error:
        if any(fault["field"] == "slot_token" for fault in error.errors):
            raise ValidationFailed.field("slot_token", _("was offered too long ago; choose it again")) from error
        raise
    except ProviderFailed as error:
        reason = error.detail.removesuffix(" Nothing was changed.")
        message = _("The calendar has not confirmed the time, so nothing was changed. %(reason)s", reason=reason)
        raise ProviderFailed(message) from error


@page("/dashboard/appointments/<appointment_id>/move", role="agent")
async def move_page(
    viewer: Viewer,
    appointment_id: UUID,
    query: MoveQuery,
    *,
    form: Form,
    database: Database,
    availability: Availability,
) -> str:
    """Show the free times to which an appointment can be moved."""
    async with database.read(viewer.organization_id) as session:
        appointment = await get_row(session, Appointment, appointment_id)
        kind = await get_row(session, AppointmentType, appointment.appointment_type_id)
    return await render(
        "dashboard/appointments/move.html",
        form=form.with_labels(label_questions(kind)),
        query=query,
        appointment=appointment,
        kind=kind,
        times=await find_free_times_by_day(availability, kind, query.day),
    )


@action("/dashboard/appointments/<appointment_id>/move", role="agent", invalid=move_page)
async def move_appointment(
    viewer: Viewer, appointment_id: UUID, data: AppointmentUpdate, book: booking.AppointmentBook
) -> Next:
    """Move an appointment to another time that was offered. Until its calendars confirm that, it stays."""
    if "slot_token" not in data.model_fields_set:
        raise ValidationFailed.field("slot_token", _("is required"))
    moved = AppointmentUpdate(slot_token=data.slot_token)
    with explain_refusals():
        await book.update(viewer.organization_id, appointment_id, moved, origin=build_origin(viewer))
    return go_to("appointment_page", _("The appointment is moved."), appointment_id=appointment_id)
