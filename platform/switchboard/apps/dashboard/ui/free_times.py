"""Free times of an appointment type as pages offer them: by local day, and within a few seconds."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import groupby
from typing import Final
from zoneinfo import ZoneInfo

from switchboard.apps.dashboard.ui.week import get_day_start
from switchboard.foundation.database import now
from switchboard.foundation.languages import gettext as _
from switchboard.foundation.web.errors import ProviderFailed
from switchboard.resources.appointments.availability import Availability
from switchboard.resources.appointments.models import AppointmentType
from switchboard.resources.appointments.schemas import SlotOut

ASK_SECONDS: Final = 5.0
"""Seconds that the calendars have for a page."""
PERIOD: Final = timedelta(days=31)
MOST: Final = 60
"""Free times that are offered at once."""


@dataclass(frozen=True, slots=True)
class FreeTimes:
    """Free times, earliest first; `fault` says why there are none, if the calendars could not be asked."""

    items: Sequence[SlotOut] = ()
    fault: str = ""


@dataclass(frozen=True, slots=True)
class FreeTimesByDay:
    """Free times from a local day on, by day, and the day from which later ones are looked for."""

    days: Sequence[tuple[date, Sequence[tuple[SlotOut, datetime]]]] = ()
    later: date | None = None
    fault: str = ""


async def find_free_times(
    availability: Availability, kind: AppointmentType, *, after: datetime, until: datetime, limit: int = MOST
) -> FreeTimes:
    """Find free times of a type. A calendar that cannot be read, or is slow, leaves a fault."""
    after = max(after, now())
    if until <= after:
        return FreeTimes()
    try:
        async with asyncio.timeout(ASK_SECONDS):
            found = await availability.find_slots(kind, after=after, until=until, limit=limit)
    except ProviderFailed as error:
        return FreeTimes(fault=error.detail)
    except TimeoutError:
        return FreeTimes(fault=_("The calendars have not answered in time. Try again in a moment."))
    return FreeTimes(availability.offer(kind, found))


async def find_free_times_by_day(availability: Availability, kind: AppointmentType, day: date | None) -> FreeTimesByDay:
    """Find the free times of a type from a local day on, today without one: whole days, as far as they fit."""
    zone = ZoneInfo(kind.settings.hours.timezone)
    first = max(day or date.min, now().astimezone(zone).date())
    found = await find_free_times(
        availability, kind, after=get_day_start(first, zone), until=get_day_start(first + PERIOD, zone)
    )
    local = [(slot, slot.starts_at.astimezone(zone)) for slot in found.items]
    days = [(one, list(slots)) for one, slots in groupby(local, key=lambda pair: pair[1].date())]
    later = first + PERIOD
    if len(local) == MOST:
        later = days[-1][0]
        if len(days) > 1:
            days.pop()
        else:
            later += timedelta(days=1)
    return FreeTimesByDay(days, later, found.fault)
