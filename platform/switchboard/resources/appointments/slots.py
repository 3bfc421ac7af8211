"""Free slots of an appointment type: opening hours, minus what the calendars and the booking rules exclude.

Opening hours are local times, and each local time is one moment. A time that exists twice, as an hour of autumn does,
is the first of its two moments (`fold=0` of PEP 495). A time that is skipped, as an hour of spring is, is the moment at
which the clock jumps, which lies between the two readings that PEP 495 gives the time. So a later local time is never
an earlier moment: hours never end before they begin, hours that touch still touch, and hours that lie within the
skipped time are empty. From the beginning of the hours on, starts, durations, and buffers are elapsed time.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Final
from uuid import UUID
from zoneinfo import ZoneInfo

from switchboard.plugin_sdk.calendars import BusyTime
from switchboard.resources.identity.weekly_hours import DAYS, Hours

DAY: Final = timedelta(days=1)
WEEK: Final = timedelta(weeks=1)
RESOLUTION: Final = datetime.resolution


@dataclass(frozen=True, slots=True)
class BookingRules:
    """Rules by which the slots of an appointment type are offered.

    `needs_all` decides whether a slot needs all calendars, or any of them. `grid` is the distance between starts,
    counted from the beginning of the opening hours. `buffer_before` and `buffer_after` must be free around the
    appointment, and may lie outside the opening hours. No hours begin on `closed_days`, even if the day has
    `special_hours`; those are pairs of start and end, `HH:MM`, that replace the weekly hours of their day. A slot
    starts no earlier than `lead` from now and earlier than `horizon` from now. At most `daily_limit` appointments start
    on a local day; None is no limit.
    """

    duration: timedelta
    grid: timedelta
    buffer_before: timedelta
    buffer_after: timedelta
    zone: ZoneInfo
    hours: Sequence[Hours]
    closed_days: frozenset[date]
    special_hours: Mapping[date, Sequence[tuple[str, str]]]
    lead: timedelta
    horizon: timedelta
    daily_limit: int | None
    needs_all: bool

    def __post_init__(self) -> None:
        if self.duration <= timedelta() or self.grid <= timedelta():
            raise ValueError("duration and grid must be positive")
        if self.buffer_before < timedelta() or self.buffer_after < timedelta():
            raise ValueError("buffers must not be negative")
        if self.daily_limit is not None and self.daily_limit < 1:
            raise ValueError("a daily limit must be positive")


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Bookings that exist: the busy times of each calendar of the type, in any order, and the number of appointments
    that start on each local day. The keys of `busy` are the calendars; without any, nothing is free. A busy time that
    does not end after its start blocks nothing.
    """

    busy: Mapping[UUID, Sequence[BusyTime]]
    appointments_by_day: Mapping[date, int]


@dataclass(frozen=True, slots=True)
class FreeSlot:
    """An appointment's time, in UTC, without buffers. `calendar_ids` are the calendars that are free, in their order:
    all of them if the type needs all, otherwise those of which any can take the appointment.
    """

    starts_at: datetime
    ends_at: datetime
    calendar_ids: tuple[UUID, ...]


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Starts `grid` apart from `anchor` on and before `anchors_end`, of slots that end by `closes_at`."""

    anchor: datetime
    anchors_end: datetime
    closes_at: datetime


def find_free_slots(
    rules: BookingRules, occupancy: Occupancy, *, after: datetime, until: datetime, now: datetime, limit: int
) -> list[FreeSlot]:
    """Return the first `limit` free slots that start at `after` or later and before `until`, in order.

    A slot lies within opening hours from its start to its end; hours that overlap or touch are one. With its buffers it
    overlaps no busy period of a calendar; periods that touch do not overlap.

    The grid counts from the beginning of such hours. Hours that have lasted the whole local week before a Monday, such
    as those of an always open business, begin their grid again at its midnight, so that their starts never depend on
    the moment of the request.

    A search steps over each busy period, each opening, and each full day once, so it takes time in proportion to their
    number and to that of the slots, and not to that of the starts on the grid.
    """
    first = max(after.astimezone(UTC), now.astimezone(UTC) + rules.lead)
    end = min(until.astimezone(UTC), now.astimezone(UTC) + rules.horizon)
    slots: list[FreeSlot] = []
    if limit > 0 and first < end and occupancy.busy:
        search = _Search(rules, occupancy)
        for stretch in _iterate_stretches(rules, first, end):
            for slot in search.iterate_slots(stretch, first, end):
                slots.append(slot)
                if len(slots) == limit:
                    return slots
    return slots


def find_free_calendars(
    rules: BookingRules, occupancy: Occupancy, *, starts_at: datetime, now: datetime
) -> tuple[UUID, ...]:
    """Return the calendars that are free for an appointment at `starts_at`, by the rules of `find_free_slots`; none if
    that function would not offer this start.

    For a start that was offered earlier, `now` is the moment of the offer: by the time it is accepted, the lead time
    may be shorter.
    """
    slots = find_free_slots(rules, occupancy, after=starts_at, until=starts_at + RESOLUTION, now=now, limit=1)
    return slots[0].calendar_ids if slots else ()


class _Search:
    """Free slots by the busy periods and the daily limit."""

    def __init__(self, rules: BookingRules, occupancy: Occupancy) -> None:
        self._rules = rules
        self._calendars = [_BusyCalendar(rules, key, periods) for key, periods in occupancy.busy.items()]
        self._full_days = frozenset(
            day
            for day, number in occupancy.appointments_by_day.items()
            if rules.daily_limit is not None and number >= rules.daily_limit
        )

    def iterate_slots(self, stretch: _Stretch, first: datetime, end: datetime) -> Iterator[FreeSlot]:
        """Yield the free slots of a stretch that start from `first` on and before `end`."""
        rules = self._rules
        end = min(end, stretch.anchors_end, stretch.closes_at - rules.duration + RESOLUTION)
        start = _find_next_start(stretch, first, rules.grid)
        while start < end:
            calendar_ids, earliest = self._check(start)
            if calendar_ids:
                yield FreeSlot(start, start + rules.duration, calendar_ids)
            start = _find_next_start(stretch, max(earliest, start + RESOLUTION), rules.grid)

    def _check(self, start: datetime) -> tuple[tuple[UUID, ...], datetime]:
        """Return the calendars of a slot that starts at a moment. If there are none, also the earliest moment at which
        a slot may be free.
        """
        if self._full_days and (day := start.astimezone(self._rules.zone).date()) in self._full_days:
            return (), _find_moment(day + DAY, time.min, self._rules.zone)
        moments = [calendar.find_free_start(start) for calendar in self._calendars]
        earliest = max(moments) if self._rules.needs_all else min(moments)
        if earliest > start:
            return (), earliest
        return tuple(
            calendar.key for calendar, moment in zip(self._calendars, moments, strict=True) if moment == start
        ), start


class _BusyCalendar:
    """The times of a calendar at which no appointment can start, sorted and disjoint."""

    def __init__(self, rules: BookingRules, key: UUID, periods: Sequence[BusyTime]) -> None:
        self.key = key
        # A slot and its buffers overlap a period if the slot starts between these moments, both excluded.
        before, after = rules.duration + rules.buffer_after, rules.buffer_before
        blocked = sorted(
            (period.starts_at.astimezone(UTC) - before, period.ends_at.astimezone(UTC) + after)
            for period in periods
            if period.starts_at < period.ends_at
        )
        self._starts: list[datetime] = []
        self._ends: list[datetime] = []
        for start, end in blocked:
            # Those that only touch stay apart: a slot that fits exactly between two periods starts at that moment.
            if self._ends and start < self._ends[-1]:
                self._ends[-1] = max(self._ends[-1], end)
            else:
                self._starts.append(start)
                self._ends.append(end)

    def find_free_start(self, moment: datetime) -> datetime:
        """Return the first start at `moment` or later that the calendar has free."""
        position = bisect_right(self._ends, moment)
        if position < len(self._ends) and self._starts[position] < moment:
            return self._ends[position]
        return moment


def _find_next_start(stretch: _Stretch, moment: datetime, grid: timedelta) -> datetime:
    """Return the first start of the stretch's grid at `moment` or later."""
    if moment <= stretch.anchor:
        return stretch.anchor
    return stretch.anchor - (stretch.anchor - moment) // grid * grid


def _iterate_stretches(rules: BookingRules, first: datetime, end: datetime) -> Iterator[_Stretch]:
    """Yield the stretches, in order, that have all starts of slots from `first` on and before `end`."""
    today = first.astimezone(rules.zone).date()
    # The grid of a moment depends on the whole week before its Monday, and hours may begin on the day before that.
    monday = today - timedelta(days=today.weekday()) - WEEK
    last = (end + rules.duration).astimezone(rules.zone).date()
    for opens_at, closes_at in _iterate_openings(rules, monday - DAY, last):
        if closes_at - rules.duration >= first:
            yield from _split_opening(opens_at, closes_at, rules.zone)


def _split_opening(opens_at: datetime, closes_at: datetime, zone: ZoneInfo) -> Iterator[_Stretch]:
    """Split an opening at the Mondays at which its grid begins again."""
    anchor = opens_at
    if closes_at - opens_at > WEEK - DAY:  # A local week may be shorter than seven days.
        day = opens_at.astimezone(zone).date()
        monday = day - timedelta(days=day.weekday())
        while (moment := _find_moment(monday, time.min, zone)) < closes_at:
            if opens_at <= _find_moment(monday - WEEK, time.min, zone):
                yield _Stretch(anchor, moment, closes_at)
                anchor = moment
            monday += WEEK
    yield _Stretch(anchor, closes_at, closes_at)


def _iterate_openings(rules: BookingRules, first: date, last: date) -> Iterator[tuple[datetime, datetime]]:
    """Yield the beginning and end of the opening hours that begin on these days, in order, overlapping and touching
    ones merged.
    """
    weekly = [
        [(time.fromisoformat(hours.start), time.fromisoformat(hours.end)) for hours in rules.hours if day in hours.days]
        for day in DAYS
    ]
    opens_at = closes_at = None
    for number in range((last - first).days + 1):
        for start, end in _list_day_hours(rules, weekly, first + timedelta(days=number)):
            if closes_at is not None and start <= closes_at:
                closes_at = max(closes_at, end)
                continue
            if opens_at is not None and closes_at is not None:
                yield opens_at, closes_at
            opens_at, closes_at = start, end
    if opens_at is not None and closes_at is not None:
        yield opens_at, closes_at


def _list_day_hours(
    rules: BookingRules, weekly: Sequence[Sequence[tuple[time, time]]], day: date
) -> list[tuple[datetime, datetime]]:
    """Return the beginnings and ends of the hours that begin on a local day, in order, in UTC."""
    if day in rules.closed_days:
        return []
    hours = weekly[day.weekday()]
    if (special := rules.special_hours.get(day)) is not None:
        hours = [(time.fromisoformat(start), time.fromisoformat(end)) for start, end in special]
    # Hours within a skipped time have no duration, and no slot.
    return sorted(
        (_find_moment(day, start, rules.zone), _find_moment(day if end > start else day + DAY, end, rules.zone))
        for start, end in hours
    )


def _find_moment(day: date, clock: time, zone: ZoneInfo) -> datetime:
    """Return the moment of a local time, in UTC: the first of two, or the jump of the clock that skips the time."""
    local = datetime.combine(day, clock, zone)
    later = local.astimezone(UTC)
    earlier = local.replace(fold=1).astimezone(UTC)
    if later <= earlier:  # The time exists once or twice: `fold=0` is the first.
        return later
    # The time is skipped. The jump is after `earlier` and not after `later`; transitions have whole seconds.
    offset = earlier.astimezone(zone).utcoffset()
    seconds = range(int((later - earlier).total_seconds()) + 1)
    before_jump = bisect_right(
        seconds, 0, key=lambda passed: (earlier + timedelta(seconds=passed)).astimezone(zone).utcoffset() != offset
    )
    return earlier + timedelta(seconds=before_jump)
