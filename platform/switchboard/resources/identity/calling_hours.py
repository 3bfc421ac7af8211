"""Calling hours, evaluated in the time zone of the called number."""

from datetime import UTC, datetime, time, timedelta
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import phonenumbers
from phonenumbers import timezone as numbering

from switchboard.resources.identity.policy import CallingHours
from switchboard.resources.identity.weekly_hours import find_start_day

WEEK: Final = 8
"""Days to look ahead: calling hours repeat within them."""


class CallingClock:
    """An organization's calling hours at one moment; None means any hour. `home` is the time zone of numbers without
    one, such as toll-free numbers.
    """

    def __init__(self, hours: CallingHours | None, *, home: str, moment: datetime) -> None:
        self._hours = hours
        self._home = ZoneInfo(home)
        self._moment = moment
        self._known: dict[tuple[str, ...], datetime] = {}

    def opens(self, phone_number: str) -> datetime:
        """Return the earliest time at which the number may be called: now, or a later time.

        A number that may be in several time zones is called within the hours of all of them, or of the home zone if
        they never overlap.
        """
        if self._hours is None:
            return self._moment
        zones = tuple(numbering.time_zones_for_number(phonenumbers.parse(phone_number)))
        if zones not in self._known:
            self._known[zones] = self._opens(self._hours, _zones(zones) or [self._home])
        return self._known[zones]

    def _opens(self, hours: CallingHours, zones: list[ZoneInfo]) -> datetime:
        candidates = sorted({self._moment, *(start for zone in zones for start in self._starts(hours, zone))})
        for moment in candidates:
            if all(find_start_day(hours, moment, zone) for zone in zones):
                return moment
        return self._moment + timedelta(days=1) if zones == [self._home] else self._opens(hours, [self._home])

    def _starts(self, hours: CallingHours, zone: ZoneInfo) -> list[datetime]:
        today = self._moment.astimezone(zone).date()
        starts = (
            datetime.combine(today + timedelta(days=days), time.fromisoformat(hours.start), zone)
            for days in range(WEEK)
        )
        return [start.astimezone(UTC) for start in starts if start > self._moment]


def _zones(names: tuple[str, ...]) -> list[ZoneInfo]:
    try:
        return [ZoneInfo(name) for name in names]
    except ZoneInfoNotFoundError:  # "Etc/Unknown" among them
        return []
