"""Settings of an appointment type: one declaration for the API and the stored document."""

import re
from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from switchboard.foundation.languages import LazyText
from switchboard.foundation.web.schemas import ReferenceId, RequestBody
from switchboard.resources.identity.weekly_hours import Clock, LocalDate, Slot, WeeklyHours

Minutes = Annotated[int, Field(ge=0, le=24 * 60)]
CalendarIds = Annotated[
    list[ReferenceId],
    Field(max_length=20, description="Ids of the calendars that the appointments are booked in."),
]


class SpecialHours(RequestBody):
    """Hours of one day; if `end` is not after `start`, they end on the next day."""

    start: Clock = Field(description="Local time, `HH:MM`.")
    end: Clock = Field(description="Local time, `HH:MM`.")


class SpecialDay(RequestBody):
    """A day whose hours are not those of its weekday."""

    date: LocalDate = Field(description="Local date, `YYYY-MM-DD`.")
    hours: list[SpecialHours] = Field(max_length=20, description="Hours that begin on the day; empty: closed.")


class BookingHours(WeeklyHours):
    """Hours in which appointments are offered."""

    special_days: list[SpecialDay] = Field(
        default_factory=list, max_length=400, description="Days with other hours. A day of `holidays` stays closed."
    )

    @model_validator(mode="after")
    def _need_hours(self) -> Self:
        if not self.slots and not self.special_days:
            raise ValueError(LazyText("hours need at least one slot"))
        return self


WORKDAYS: Final = BookingHours(slots=[Slot(days=["mon", "tue", "wed", "thu", "fri"], start="09:00", end="17:00")])


FIELD_NAME: Final = r"^[a-z][a-z0-9_]{0,39}$"


def _require_field_name(name: str) -> str:
    if not re.fullmatch(FIELD_NAME, name):
        raise ValueError(
            LazyText("must be a name like last_visit: a small letter, then small letters, digits, and underscores")
        )
    return name


class AppointmentField(RequestBody):
    """A question that is asked when an appointment is booked."""

    name: Annotated[str, AfterValidator(_require_field_name), Field(json_schema_extra={"pattern": FIELD_NAME})] = Field(
        description="Key of the answer in `fields` of an appointment."
    )
    description: str = Field("", max_length=500, description="The question, for people and for agents.")
    required: bool = Field(False, description="Whether an appointment needs the answer.")


class AppointmentTypeSettings(RequestBody):
    """Rules by which appointments of a type are offered and booked."""

    model_config = ConfigDict(frozen=True)

    calendar_ids: CalendarIds = Field(default_factory=list)
    calendar_mode: Literal["any", "all"] = Field(
        "any", description="`any`: in one calendar that is free. `all`: in all calendars, which must all be free."
    )
    duration_minutes: int = Field(30, ge=5, le=24 * 60, description="Length of an appointment.")
    grid_minutes: int | None = Field(
        None,
        ge=5,
        le=24 * 60,
        description="Distance of offered times, from the beginning of the hours; null: `duration_minutes`.",
    )
    buffer_before_minutes: Minutes = Field(0, description="Minutes that must be free before an appointment.")
    buffer_after_minutes: Minutes = Field(0, description="Minutes that must be free after an appointment.")
    hours: BookingHours = Field(
        default=WORKDAYS,
        description="Hours in which appointments are offered, in the form of a phone number's `schedule`.",
    )
    lead_minutes: int = Field(
        60, ge=0, le=60 * 24 * 365, description="Shortest time from the booking to the appointment."
    )
    horizon_days: int = Field(60, ge=1, le=730, description="Days ahead for which appointments are offered.")
    daily_limit: int | None = Field(
        None, ge=1, le=1000, description="Most appointments of the type on one local day; null: no limit."
    )
    reminder_minutes: list[Annotated[int, Field(ge=5, le=60 * 24 * 60)]] = Field(
        default_factory=list,
        max_length=5,
        description="Minutes before an appointment at which `appointment.reminder` is published.",
    )
    fields: list[AppointmentField] = Field(
        default_factory=list, max_length=20, description="Questions that are asked when an appointment is booked."
    )

    check_fields: list[Annotated[str, Field(max_length=40)]] = Field(
        default_factory=list,
        max_length=5,
        description="Names of questions whose answers a person has to give who moves or cancels an appointment from "
        "another number; empty: an agent changes it for its own number only.",
    )

    @model_validator(mode="after")
    def _name_fields_once(self) -> Self:
        names = [field.name for field in self.fields]
        if len(set(names)) < len(names):
            raise ValueError(LazyText("fields must have different names"))
        return self
