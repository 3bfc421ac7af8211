"""API schemas of calendars, appointment types, and appointments: additions to the specification."""

from typing import Annotated, Literal, Self
from uuid import UUID

from pydantic import ConfigDict, Field, JsonValue, model_validator

from switchboard.foundation.web.schemas import (
    Answer,
    CreatedAt,
    GivenMoment,
    Moment,
    Name,
    PageQuery,
    PartialBody,
    PhoneNumberFilter,
    PhoneNumberText,
    Query,
    ReferenceId,
    RequestBody,
    UpdatedAt,
    show_as_answer,
    show_example,
)
from switchboard.resources.appointments.models import Appointment, AppointmentType
from switchboard.resources.appointments.type_settings import AppointmentTypeSettings, BookingHours, CalendarIds
from switchboard.resources.identity.weekly_hours import Timezone

AccountSettings = Annotated[dict[str, JsonValue], Field(max_length=50)]


class CalendarCreate(RequestBody):
    """A calendar to connect."""

    model_config = show_example(provider="local", name="Front desk")

    provider: Annotated[str, Field(min_length=1, max_length=100)] = Field(
        description="`local`, the built-in calendar, or a provider of a plugin, such as `caldav`."
    )
    name: Name
    settings: AccountSettings = Field(
        default_factory=dict, description="What the provider needs to reach the account. Secrets are never returned."
    )


class CalendarUpdate(PartialBody):
    """A partial update of a calendar."""

    model_config = show_example(name="Front desk")

    name: Name = Field("-")
    settings: AccountSettings = Field(
        default_factory=dict, description="Changed settings; null removes one, and those that are not named stay."
    )


class CalendarOut(Answer):
    """A connected calendar."""

    id: UUID = Field(description="Id of the calendar.")
    provider: str
    name: str
    settings: dict[str, JsonValue] = Field(description="Settings without secrets.")
    status: Literal["connected", "disconnected"] = Field(
        description="`disconnected`: the provider refuses the account, and nothing is booked in the calendar."
    )
    error_message: str | None = Field(description="Reason why the calendar is disconnected; null while it is not.")
    time_zone: str | None = Field(description="IANA time zone of the calendar; null if the provider does not say.")
    created_at: CreatedAt
    updated_at: UpdatedAt


class AppointmentTypeCreate(AppointmentTypeSettings):
    """A new appointment type."""

    model_config = show_example(
        name="Consultation",
        calendar_ids=["019a9f6e-7b0c-7c2e-9f39-5a8f6f0f7c11"],
        duration_minutes=30,
        hours={
            "timezone": "Europe/Berlin",
            "slots": [{"days": ["mon", "tue"], "start": "09:00", "end": "17:00"}],
        },
    )

    name: Name
    calendar_ids: CalendarIds = Field(min_length=1)
    hours: BookingHours = Field(
        description="Hours in which appointments are offered, in the form of a phone number's `schedule`."
    )


class AppointmentTypeUpdate(AppointmentTypeSettings, PartialBody):
    """A partial update of an appointment type. Appointments that are booked stay as they are."""

    model_config = show_example(lead_minutes=120)

    name: Name = ""
    calendar_ids: CalendarIds = Field(default_factory=list, min_length=1)


class AppointmentTypeState(Answer):
    """Fields of an appointment type's answer besides its settings."""

    id: UUID = Field(description="Id of the appointment type.")
    name: str
    created_at: CreatedAt
    updated_at: UpdatedAt


class AppointmentTypeOut(AppointmentTypeSettings, AppointmentTypeState):
    """An appointment type."""

    model_config = ConfigDict(extra="ignore", strict=False, json_schema_extra=show_as_answer)

    @classmethod
    def from_row(cls, kind: AppointmentType) -> "AppointmentTypeOut":
        return cls.model_validate({**dict(kind), **dict(kind.settings)})


SlotToken = Annotated[str, Field(min_length=1, max_length=1000)]


class AvailabilityQuery(Query):
    """The period in which free times are looked for."""

    from_: GivenMoment | None = Field(None, alias="from", description="Earliest beginning; omitted: now.")
    to: GivenMoment | None = Field(
        None,
        description="Times begin before it; omitted: seven days after `from`. At most 62 days after `from` count.",
    )
    time_zone: Timezone | None = Field(
        None, description="IANA time zone of `local_starts_at`; omitted: that of the appointment type."
    )
    limit: int = Field(20, ge=1, le=100, description="Maximum number of free times.")

    @model_validator(mode="after")
    def _order_period(self) -> Self:
        if self.from_ is not None and self.to is not None and self.to <= self.from_:
            raise ValueError("to must be after from")
        return self


class SlotOut(Answer):
    """A free time for an appointment."""

    starts_at: Moment = Field(description="Beginning of the appointment.")
    ends_at: Moment = Field(description="End of the appointment.")
    local_starts_at: str = Field(
        description="The beginning in the requested time zone, ISO 8601.",
        examples=["2026-11-20T10:30:00+01:00"],
        json_schema_extra={"format": "date-time"},
    )
    slot_token: str = Field(description="Books this time; valid for 30 minutes, and no promise that it stays free.")


class AvailabilityOut(Answer):
    """Free times, earliest first."""

    items: list[SlotOut] = Field(description="Free times, earliest first.")


FieldAnswers = Annotated[dict[str, Annotated[str, Field(max_length=2000)]], Field(max_length=20)]


class AppointmentCreate(RequestBody):
    """An appointment to book."""

    model_config = show_example(
        slot_token="v1.0a1b2c3d.…",  # noqa: S106 - an example
        phone_number="+15550100001",
        name="Ada",
    )

    slot_token: SlotToken = Field(description="Token of a free time.")
    contact_id: ReferenceId | None = Field(
        None, description="Id of the contact who comes; omitted or null: `phone_number` and `name` say who."
    )
    phone_number: PhoneNumberText | None = Field(None, description="E.164 number of the person who comes.")
    name: Annotated[str, Field(max_length=255)] | None = Field(None, description="Name of the person who comes.")
    fields: FieldAnswers = Field(
        default_factory=dict, description="Answers to the questions of the appointment type, by their names."
    )

    @model_validator(mode="after")
    def _need_person(self) -> Self:
        if (self.contact_id is None) == (self.phone_number is None):
            raise ValueError("give either contact_id, or phone_number and name")
        if self.phone_number is not None and not self.name:
            raise ValueError("phone_number needs a name")
        return self


class AppointmentUpdate(PartialBody):
    """A change of an appointment."""

    model_config = show_example(slot_token="v1.0a1b2c3d.…")  # noqa: S106 - an example

    slot_token: SlotToken = Field("-", description="Token of another free time, to which the appointment is moved.")
    name: Name = Field("-", description="Name of the person who comes.")
    fields: FieldAnswers = Field(default_factory=dict, description="All answers, in place of the earlier ones.")
    is_confirmed: bool = Field(False, description="Whether the person has confirmed to come.")


class AppointmentQuery(PageQuery):
    """Filters of the appointments."""

    appointment_type_id: str | None = Field(None, max_length=64, description="Id of an appointment type.")
    phone_number: PhoneNumberFilter | None = Field(None, description="Exact phone number.")
    status: Literal["pending", "booked", "canceled", "failed"] | None = Field(
        None, description="Exact status; omitted: `booked` and `canceled`."
    )
    starts_after: GivenMoment | None = Field(None, description="Appointments that begin at this time or later.")
    starts_before: GivenMoment | None = Field(None, description="Appointments that begin before this time.")


class AppointmentOut(Answer):
    """An appointment."""

    id: UUID = Field(description="Id of the appointment.")
    appointment_type_id: UUID = Field(description="Id of the appointment type.")
    status: Literal["pending", "booked", "canceled", "failed"] = Field(
        description="`pending` while the calendar is asked; `failed` if it did not confirm the appointment."
    )
    starts_at: Moment = Field(description="Beginning of the appointment.")
    ends_at: Moment = Field(description="End of the appointment.")
    time_zone: str = Field(description="IANA time zone of the appointment.")
    phone_number: str
    name: str
    fields: dict[str, str] = Field(description="Answers to the questions of the appointment type.")
    call_id: UUID | None = Field(
        description="Id of the call in which it was booked, which may be deleted by now; null: not in a call."
    )
    is_confirmed: bool = Field(description="Whether the person has confirmed to come; a move takes it back.")
    confirmed_at: Moment | None = Field(description="Time of the confirmation; null without one.")
    canceled_at: Moment | None = Field(description="Time of the cancellation; null without one.")
    created_at: CreatedAt
    updated_at: UpdatedAt

    @classmethod
    def from_row(cls, appointment: Appointment) -> "AppointmentOut":
        return cls.model_validate({**dict(appointment), "is_confirmed": appointment.confirmed_at is not None})
