"""Booking by hand: choose a free time, say who comes, and book; and move an appointment to another free time."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Final
from uuid import UUID
from zoneinfo import ZoneInfo

from pydantic import Field, JsonValue

from switchboard.apps.dashboard.blueprint import Next, action, go_to, page
from switchboard.apps.dashboard.forms.form import Form, parse_form
from switchboard.apps.dashboard.pages.appointments import CalendarDay, build_origin, label_questions, read_answers
from switchboard.apps.dashboard.ui.free_times import FreeTimesByDay, find_free_times_by_day
from switchboard.apps.dashboard.ui.rendering import render
from switchboard.apps.dashboard.viewer import Viewer
from switchboard.foundation.database import Database
from switchboard.foundation.languages import gettext as _
from switchboard.foundation.web.errors import ProviderFailed, SlotTaken, ValidationFailed
from switchboard.foundation.web.paging import get_row
from switchboard.foundation.web.schemas import Query, parse_id
from switchboard.resources.appointments import booking
from switchboard.resources.appointments.availability import Availability, OfferedTime, SlotTokens
from switchboard.resources.appointments.models import Appointment, AppointmentType
from switchboard.resources.appointments.queries import list_appointment_types
from switchboard.resources.appointments.schemas import AppointmentCreate, AppointmentUpdate
from switchboard.resources.contacts.models import Contact
from switchboard.resources.contacts.schemas import ContactQuery
from switchboard.resources.contacts.search import search_contacts

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


@page("/dashboard/appointments/new", role="agent", query=BookingQuery)
async def new_appointment_page(viewer: Viewer, query: BookingQuery, form: Form, pages: BookingPages) -> str:
    """Show free times, and for a chosen one the form of an appointment."""
    token = str(form.value("slot_token", query.slot_token))
    offered = pages.read_time(viewer, token)
    if offered is None and not form.was_sent:
        return await pages.show_times(viewer, query)
    return await pages.show_form(viewer, query, form, offered)


@action("/dashboard/appointments/new", role="agent", invalid=new_appointment_page)
async def book_appointment(viewer: Viewer, fields: dict[str, JsonValue], book: booking.AppointmentBook) -> Next:
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


@page("/dashboard/appointments/<appointment_id>/move", role="agent", query=MoveQuery)
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


@action("/dashboard/appointments/<appointment_id>/move", role="agent", form=AppointmentUpdate, invalid=move_page)
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
