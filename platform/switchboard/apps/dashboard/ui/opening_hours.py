"""Opening hours for people."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, Final
from zoneinfo import ZoneInfo, available_timezones

from switchboard.apps.dashboard.ui.formats import clock, weekday
from switchboard.foundation.languages import gettext
from switchboard.resources.identity.weekly_hours import DAYS, Day, WeeklyHours
from switchboard.resources.phone_numbers.schedule import Schedule, find_next_change, is_open

HOURS: Final = ("schedule", "sms_schedule")
"""The fields of a phone number that are opening hours."""


@dataclass(frozen=True, slots=True)
class Opening:
    """The state of a schedule: open or closed, and until when, in the schedule's time zone."""

    is_open: bool
    words: str

    @classmethod
    def from_schedule(cls, schedule: dict[str, Any] | None, moment: datetime) -> "Opening":
        """Evaluate a stored schedule at a moment."""
        rule = Schedule.model_validate(schedule) if schedule else None
        if rule is None or not rule.enabled:
            return cls(True, gettext("always open"))
        opened, change = is_open(rule, moment), find_next_change(rule, moment)
        if change is None:
            text = gettext("open for more than a week") if opened else gettext("closed for more than a week")
            return cls(opened, text)
        zone = ZoneInfo(rule.timezone)
        local, today = change.astimezone(zone), moment.astimezone(zone).date()
        until = clock(local) if local.date() == today else f"{weekday(local)}, {clock(local)}"
        text = gettext("open until %(time)s") if opened else gettext("closed until %(time)s")
        return cls(opened, text % {"time": until})


def list_weekly_hours(hours: WeeklyHours) -> list[tuple[str, str]]:
    """Return days and times of each slot of a week, such as `Mon–Fri` and `09:00–17:00`."""
    return [(_name_days(slot.days), f"{slot.start}–{slot.end}") for slot in hours.slots]


def _name_days(days: Collection[Day]) -> str:
    """Return the names of days in the order of the week; three or more in a row as a range."""
    places = [place for place, day in enumerate(DAYS) if day in days]
    runs: list[list[int]] = []
    for place in places:
        if runs and runs[-1][-1] == place - 1:
            runs[-1].append(place)
        else:
            runs.append([place])
    names = [gettext(day.capitalize()) for day in DAYS]
    return ", ".join(
        f"{names[run[0]]}–{names[run[-1]]}" if len(run) > 2 else ", ".join(names[place] for place in run)
        for run in runs
    )


@cache
def list_timezones() -> tuple[tuple[str, str], ...]:
    """Return the IANA time zones with their labels, those named after a place first."""
    zones = sorted(available_timezones(), key=lambda name: ("/" not in name, name))
    return tuple((zone, zone.replace("_", " ")) for zone in zones)
