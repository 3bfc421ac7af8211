"""Weekly hours in local time, for opening hours and calling hours."""

import re
from collections.abc import Collection
from datetime import date, datetime, time, timedelta
from typing import Annotated, Literal, Protocol
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, Field

Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
DAYS: tuple[Day, ...] = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
CLOCK = r"^([01]\d|2[0-3]):[0-5]\d$"


def _clock(text: str) -> str:
    if not re.fullmatch(CLOCK, text):
        raise ValueError("must be a time like 09:00")
    return text


Clock = Annotated[str, AfterValidator(_clock), Field(examples=["09:00"], json_schema_extra={"pattern": CLOCK})]


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
