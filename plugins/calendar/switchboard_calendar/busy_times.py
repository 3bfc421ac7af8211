"""Busy times of calendar objects: occurrences of events, also of recurring ones, between two moments."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from functools import partial
from typing import TYPE_CHECKING, Final

from switchboard.plugin_sdk import BusyTime

from switchboard_calendar.event_text import (
    RECURRENCE,
    UnreadableEvent,
    get_key,
    is_canceled,
    load_zones,
    read_calendar,
    read_period,
)
from switchboard_calendar.work_limit import TooMuchWork, WorkLimit

if TYPE_CHECKING:
    import icalendar

MARGIN: Final = timedelta(days=2)
"""Added to both ends of a window when occurrences are searched: days and floating times of all zones are within it."""
WORK_SECONDS: Final = 5.0
"""Most processor time for one answer. A thousand events take 0.5 s, and a thousand weekly ones in a month
1.9 s (measured 2026-11-29 on one core of the tests' machine)."""
MAX_OCCURRENCES: Final = 20_000
_MAILTO: Final = "mailto:"


@dataclass(frozen=True, slots=True)
class Window:
    """The question: two moments in UTC, the zone of days and floating times, and the addresses of the user."""

    starts_at: datetime
    ends_at: datetime
    zone: tzinfo
    addresses: frozenset[str] = frozenset()


def load_libraries() -> None:
    """Import what reading calendars needs, which takes half a second, before the first calendar is read."""
    import icalendar  # noqa: F401
    import recurring_ical_events  # noqa: F401

    load_zones()


def list_busy_times(texts: Sequence[str], window: Window, *, seconds: float = WORK_SECONDS) -> list[BusyTime]:
    """List the busy times of calendar objects, with at most so many seconds of processor time.

    Raises `UnreadableEvent` if any of them cannot be understood.
    """
    limit = WorkLimit(seconds)
    found: list[BusyTime] = []
    for text in texts:
        try:
            found.extend(_list_of_one(text, window, limit))
            limit.check()
        except TooMuchWork:
            raise UnreadableEvent("its events and their repetitions are too many") from None
        if len(found) > MAX_OCCURRENCES:
            raise UnreadableEvent(f"there are more than {MAX_OCCURRENCES} events")
    return found


def _list_of_one(text: str, window: Window, limit: WorkLimit) -> list[BusyTime]:
    calendar = read_calendar(text)
    work = partial(_list_periods, calendar, window)
    # Zones of a calendar's own have rules, too.
    has_rules = _is_recurring(calendar) or bool(calendar.walk("VTIMEZONE"))
    try:
        return limit.run(work) if has_rules else work()
    except (UnreadableEvent, TooMuchWork):
        raise
    except Exception as error:  # noqa: BLE001 - rules from outside make libraries raise anything
        raise UnreadableEvent(f"an event cannot be understood ({type(error).__name__})") from None


def _list_periods(calendar: "icalendar.Calendar", window: Window) -> list[BusyTime]:
    found: list[BusyTime] = []
    for event in _iterate_occurrences(calendar, window):
        if is_canceled(event) or str(event.get("TRANSP", "")).strip().upper() == "TRANSPARENT":
            continue
        if _is_declined(event, window.addresses):
            continue
        starts_at, ends_at = read_period(event, window.zone)
        if starts_at < window.ends_at and ends_at > window.starts_at and starts_at < ends_at:
            found.append(BusyTime(starts_at, ends_at, get_key(event)))
    return found


def _is_recurring(calendar: "icalendar.Calendar") -> bool:
    return any(name in event for event in calendar.walk("VEVENT") for name in RECURRENCE)


def _iterate_occurrences(calendar: "icalendar.Calendar", window: Window) -> "Iterable[icalendar.Component]":
    if not _is_recurring(calendar):
        return calendar.walk("VEVENT")
    import recurring_ical_events

    query = recurring_ical_events.of(calendar)
    found: list[icalendar.Component] = query.between(window.starts_at - MARGIN, window.ends_at + MARGIN)
    return found


def _is_declined(event: "icalendar.Component", addresses: frozenset[str]) -> bool:
    """Return whether the user has declined the invitation."""
    attendees = event.get("ATTENDEE", [])
    for attendee in attendees if isinstance(attendees, list) else [attendees]:
        address = str(attendee).strip().lower().removeprefix(_MAILTO)
        status = str(getattr(attendee, "params", {}).get("PARTSTAT", "")).upper()
        if status == "DECLINED" and address in addresses:
            return True
    return False
