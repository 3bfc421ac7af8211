"""Busy times of calendar objects: occurrences of events, also of recurring ones, between two moments."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Final

from switchboard.plugin_sdk import BusyTime

from switchboard_calendar.event_text import (
    RECURRENCE,
    UnreadableEvent,
    get_event_key,
    is_canceled,
    load_zones,
    read_calendar,
    read_period,
    run_reading,
)
from switchboard_calendar.work_limit import WORK_SECONDS, WorkLimit

if TYPE_CHECKING:
    import icalendar

MARGIN: Final = timedelta(days=2)
"""Added to both ends of a window when occurrences are searched: days and floating times of all zones are within it."""
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
        found.extend(_list_of_one(text, window, limit))
        if limit.is_reached:
            raise UnreadableEvent("its events are too many")
        if len(found) > MAX_OCCURRENCES:
            raise UnreadableEvent(f"there are more than {MAX_OCCURRENCES} events")
    return found


def _list_of_one(text: str, window: Window, limit: WorkLimit) -> list[BusyTime]:
    calendar = read_calendar(text)
    # Zones of a calendar's own have rules, too.
    has_rules = _is_recurring(calendar) or bool(calendar.walk("VTIMEZONE"))
    return run_reading(lambda: _list_periods(calendar, window), limit if has_rules else None)


def _list_periods(calendar: "icalendar.Calendar", window: Window) -> list[BusyTime]:
    found: list[BusyTime] = []
    for event in _iterate_occurrences(calendar, window):
        if is_canceled(event) or str(event.get("TRANSP", "")).strip().upper() == "TRANSPARENT":
            continue
        if _is_declined(event, window.addresses):
            continue
        starts_at, ends_at = read_period(event, window.zone)
        if starts_at < window.ends_at and ends_at > window.starts_at and starts_at < ends_at:
            found.append(BusyTime(starts_at, ends_at, get_event_key(event)))
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
