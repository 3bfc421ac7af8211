"""Endpoints of calendars, appointment types, and appointments."""

from uuid import UUID

from switchboard.foundation.database import ReadSession, WriteSession
from switchboard.foundation.web.endpoint import ApiBlueprint, endpoint
from switchboard.foundation.web.errors import InvalidState, ProviderFailed, SlotTaken
from switchboard.foundation.web.paging import get_row, paginate
from switchboard.foundation.web.principal import Principal
from switchboard.foundation.web.schemas import Page, PageQuery
from switchboard.resources.appointments import appointment_types, booking, calendars
from switchboard.resources.appointments.availability import Availability
from switchboard.resources.appointments.models import Appointment, AppointmentType, Calendar
from switchboard.resources.appointments.queries import select_appointments
from switchboard.resources.appointments.schemas import (
    AppointmentCreate,
    AppointmentOut,
    AppointmentQuery,
    AppointmentTypeCreate,
    AppointmentTypeOut,
    AppointmentTypeUpdate,
    AppointmentUpdate,
    AvailabilityOut,
    AvailabilityQuery,
    CalendarCreate,
    CalendarOut,
    CalendarUpdate,
)
from switchboard.resources.appointments.watches import CalendarWatches

blueprint = ApiBlueprint(
    "appointments",
    __name__,
    tags={
        "calendars": "Calendars that appointments are booked in.",
        "appointment-types": "Kinds of appointments, and their free times.",
        "appointments": "Appointments that are booked, moved, and canceled.",
    },
)


@blueprint.get("/v1/calendars")
@endpoint(scope="calendar:read")
async def list_calendars(session: ReadSession, query: PageQuery) -> Page[CalendarOut]:
    """List connected calendars.

    An addition to the specification.
    """
    return await paginate(session, session.select(Calendar), CalendarOut.model_validate, query)


@blueprint.post("/v1/calendars")
@endpoint(scope="calendar:write", status=201, errors=[ProviderFailed])
async def connect_calendar(
    principal: Principal, data: CalendarCreate, connections: calendars.CalendarConnections
) -> CalendarOut:
    """Connect a calendar.

    The provider is asked first: an account that it refuses is a 422, and a provider that cannot be reached a 502. An
    account that is connected by OAuth needs its user in the dashboard, and is a 422 here. A user needs the role owner.
    An addition to the specification.
    """
    return CalendarOut.model_validate(await connections.connect(principal, data))


@blueprint.get("/v1/calendars/<calendar_id>")
@endpoint(scope="calendar:read")
async def get_calendar(session: ReadSession, calendar_id: UUID) -> CalendarOut:
    """Get a calendar.

    An addition to the specification.
    """
    return CalendarOut.model_validate(await get_row(session, Calendar, calendar_id))


@blueprint.patch("/v1/calendars/<calendar_id>")
@endpoint(scope="calendar:write", errors=[ProviderFailed])
async def update_calendar(
    principal: Principal, calendar_id: UUID, data: CalendarUpdate, connections: calendars.CalendarConnections
) -> CalendarOut:
    """Update a calendar.

    Only the given fields change. Changed settings are tried first, as when a calendar is connected. A user needs the
    role owner. An addition to the specification.
    """
    return CalendarOut.model_validate(await connections.update(principal, calendar_id, data))


@blueprint.delete("/v1/calendars/<calendar_id>")
@endpoint(scope="calendar:write", status=204, errors=[InvalidState])
async def delete_calendar(
    session: WriteSession, principal: Principal, calendar_id: UUID, watches: CalendarWatches
) -> None:
    """Disconnect a calendar.

    Its events stay in the calendar, its settings are deleted, and tokens of its account are revoked. A calendar that an
    appointment type names, or that has coming appointments, is a 409. A user needs the role owner. An addition to the
    specification.
    """
    await appointment_types.delete_calendar(session, principal, calendar_id, watches)


@blueprint.get("/v1/appointment-types")
@endpoint(scope="calendar:read")
async def list_appointment_types(session: ReadSession, query: PageQuery) -> Page[AppointmentTypeOut]:
    """List appointment types.

    An addition to the specification.
    """
    return await paginate(session, session.select(AppointmentType), AppointmentTypeOut.from_row, query)


@blueprint.post("/v1/appointment-types")
@endpoint(scope="calendar:write", status=201)
async def create_appointment_type(
    session: WriteSession, principal: Principal, data: AppointmentTypeCreate
) -> AppointmentTypeOut:
    """Create an appointment type.

    A user needs the role owner. An addition to the specification.
    """
    return AppointmentTypeOut.from_row(await appointment_types.create_type(session, principal, data))


@blueprint.get("/v1/appointment-types/<type_id>")
@endpoint(scope="calendar:read")
async def get_appointment_type(session: ReadSession, type_id: UUID) -> AppointmentTypeOut:
    """Get an appointment type.

    An addition to the specification.
    """
    return AppointmentTypeOut.from_row(await get_row(session, AppointmentType, type_id))


@blueprint.patch("/v1/appointment-types/<type_id>")
@endpoint(scope="calendar:write")
async def update_appointment_type(
    session: WriteSession, principal: Principal, type_id: UUID, data: AppointmentTypeUpdate
) -> AppointmentTypeOut:
    """Update an appointment type.

    Only the given fields change. Appointments that are booked stay as they are. A user needs the role owner. An
    addition to the specification.
    """
    return AppointmentTypeOut.from_row(await appointment_types.update_type(session, principal, type_id, data))


@blueprint.delete("/v1/appointment-types/<type_id>")
@endpoint(scope="calendar:write", status=204, errors=[InvalidState])
async def delete_appointment_type(session: WriteSession, principal: Principal, type_id: UUID) -> None:
    """Delete an appointment type.

    Its past appointments are deleted with it. A type with coming appointments is a 409. A user needs the role owner. An
    addition to the specification.
    """
    await appointment_types.delete_type(session, principal, type_id)


@blueprint.get("/v1/appointment-types/<type_id>/availability")
@endpoint(scope="calendar:read", errors=[ProviderFailed])
async def list_free_times(
    principal: Principal, type_id: UUID, query: AvailabilityQuery, availability: Availability
) -> AvailabilityOut:
    """List free times of an appointment type.

    The calendars are asked each time. A calendar that cannot be read is not free: if that leaves none, the answer is a
    502. An addition to the specification.
    """
    return await availability.list_slots(principal.organization_id, type_id, query)


@blueprint.get("/v1/appointments")
@endpoint(scope="calendar:read")
async def list_appointments(session: ReadSession, query: AppointmentQuery) -> Page[AppointmentOut]:
    """List appointments.

    In the order in which they were booked, newest first. An addition to the specification.
    """
    return await paginate(session, select_appointments(session, query), AppointmentOut.from_row, query)


@blueprint.post("/v1/appointments")
@endpoint(
    scope="calendar:write",
    status=201,
    errors=[SlotTaken, ProviderFailed],
)
async def book_appointment(
    principal: Principal, data: AppointmentCreate, book: booking.AppointmentBook
) -> AppointmentOut:
    """Book an appointment.

    At a time that was offered, by its token. A time that is not free any more is a 409 with the code `slot_taken` and
    the next free times in `alternatives`. A calendar that does not confirm the appointment is a 502, and nothing is
    booked. An addition to the specification.
    """
    return AppointmentOut.from_row(
        await book.book(principal.organization_id, data, origin=booking.Origin(actor=principal.actor))
    )


@blueprint.get("/v1/appointments/<appointment_id>")
@endpoint(scope="calendar:read")
async def get_appointment(session: ReadSession, appointment_id: UUID) -> AppointmentOut:
    """Get an appointment.

    An addition to the specification.
    """
    return AppointmentOut.from_row(await get_row(session, Appointment, appointment_id))


@blueprint.patch("/v1/appointments/<appointment_id>")
@endpoint(
    scope="calendar:write",
    errors=[SlotTaken, InvalidState, ProviderFailed],
)
async def update_appointment(
    principal: Principal, appointment_id: UUID, data: AppointmentUpdate, book: booking.AppointmentBook
) -> AppointmentOut:
    """Move or change an appointment.

    `slot_token` moves it to another free time of its type. Until the calendar has confirmed that, it stays where it is.
    An addition to the specification.
    """
    return AppointmentOut.from_row(
        await book.update(principal.organization_id, appointment_id, data, origin=booking.Origin(actor=principal.actor))
    )


@blueprint.delete("/v1/appointments/<appointment_id>")
@endpoint(scope="calendar:write", status=204, errors=[InvalidState])
async def cancel_appointment(principal: Principal, appointment_id: UUID, book: booking.AppointmentBook) -> None:
    """Cancel an appointment.

    Its time is free at once, and it stays in the list as `canceled`. A calendar that cannot be reached loses the event
    as soon as it can. An addition to the specification.
    """
    await book.cancel(principal.organization_id, appointment_id, origin=booking.Origin(actor=principal.actor))
