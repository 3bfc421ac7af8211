"""Weekly hours in local time, for opening hours and calling hours."""

import re
from collections.abc import Collection
from datetime import date, datetime, time, timedelta
from typing import Annotated, Literal, Protocol
from zoneinfo import ZoneInfo, available_timezones

from pydantic import AfterValidator, Field

from switchboard.foundation.languages import LazyText
from switchboard.foundation.web.schemas import RequestBody

Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
DAYS: tuple[Day, ...] = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
CLOCK = r"^([01]\d|2[0-3]):[0-5]\d$"


def _clock(text: str) -> str:
    if not re.fullmatch(CLOCK, text):
        raise ValueError(LazyText("must be a time like 09:00"))
    return text


Clock = Annotated[str, AfterValidator(_clock), Field(examples=["09:00"], json_schema_extra={"pattern": CLOCK})]


def _require_timezone(name: str) -> str:
    if name not in available_timezones():
        raise ValueError(f"{name} is not an IANA time zone")
    return name


def _require_date(text: str) -> str:
    try:
        date.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text} is not a date like 2026-12-25") from None
    return text


Timezone = Annotated[str, Field(max_length=64), AfterValidator(_require_timezone)]
"""IANA name of a time zone."""
LocalDate = Annotated[str, AfterValidator(_require_date)]
"""A date without a time zone, `YYYY-MM-DD`."""


class Slot(RequestBody):
    """Opening hours on some days; if `end` is not after `start`, they end on the next day."""

    days: list[Day] = Field(min_length=1, max_length=7, description="Days on which the hours begin.")
    start: Clock = Field(description="Local time, `HH:MM`.")
    end: Clock = Field(description="Local time, `HH:MM`.")


class WeeklyHours(RequestBody):
    """Opening hours of a week in a time zone, and the days on which they do not hold."""

    timezone: Timezone = Field("UTC", description="IANA time zone of the hours, such as `Europe/Berlin`.")
    slots: list[Slot] = Field(
        default_factory=list, max_length=50, description="Opening hours; closed at all other times."
    )
    holidays: list[LocalDate] = Field(
        default_factory=list, max_length=400, description="Local dates, `YYYY-MM-DD`, on which no hours begin."
    )


class Hours(Protocol):
    """Hours from `start` to `end` on some days; if `end` is not after `start`, they end on the next day."""

    @property
    def days(self) -> Collection[Day]: ...
    @property
    def start(self) -> str: ...
    @property
    def end(self) -> str: ...


def find_start_day(hours: Hours, moment: datetime, zone: ZoneInfo) -> date | None:
    """Return the day on which the hours that contain the moment began; None outside all of them."""
    local = moment.astimezone(zone).replace(tzinfo=None)
    for day in (local.date(), local.date() - timedelta(days=1)):
        start = datetime.combine(day, time.fromisoformat(hours.start))
        end = datetime.combine(day, time.fromisoformat(hours.end))
        if DAYS[day.weekday()] in hours.days and start <= local < (end if end > start else end + timedelta(days=1)):
            return day
    return None
