"""Free slots by brute force: every five minutes are looked at, without arithmetic on hours or periods."""

from bisect import bisect_left
from collections.abc import Sequence
from datetime import UTC, datetime, time, timedelta
from functools import lru_cache
from itertools import accumulate, pairwise
from zoneinfo import ZoneInfo

from switchboard.plugin_sdk.calendars import BusyTime
from switchboard.resources.appointments.slots import BookingRules, FreeSlot, Occupancy
from switchboard.resources.identity.weekly_hours import DAYS

STEP = timedelta(minutes=5)
# A grid may have begun on the Monday of the week before.
LOOK_BACK = timedelta(days=16)
LOOK_AHEAD = timedelta(days=4)
MIDNIGHT = time(0)


class SlotOracle:
    """The time line of some rules, in steps of five minutes, of which all times must be multiples."""

    def __init__(self, rules: BookingRules, occupancy: Occupancy, after: datetime, until: datetime) -> None:
        self.rules, self.occupancy, self.after, self.until = rules, occupancy, after, until
        self.begin = after.astimezone(UTC).replace(hour=0, minute=0) - LOOK_BACK
        steps = self.count(until.astimezone(UTC).replace(hour=0, minute=0) - self.begin + LOOK_AHEAD)
        self.local, self.reached = read_clock(rules.zone, self.begin, steps)
        self.days = [
            self.local[0].date() + timedelta(days=number)
            for number in range((self.local[-1].date() - self.local[0].date()).days + 1)
        ]
        self.is_open = self.mark_open()
        self.is_busy = {key: self.mark_busy(periods) for key, periods in occupancy.busy.items()}
        mondays = (datetime.combine(day, MIDNIGHT) for day in self.days if day.weekday() == 0)
        self.weeks = list(pairwise(self.locate(monday) for monday in mondays))

    @staticmethod
    def count(duration: timedelta) -> int:
        return duration // STEP

    def locate(self, local: datetime) -> int:
        """Return the number of the first step at which a clock that nobody turns back shows a local time."""
        return bisect_left(self.reached, local)

    def mark_open(self) -> bytearray:
        steps = bytearray(len(self.local))
        for day in self.days:
            if day in self.rules.closed_days:
                continue
            pairs = [(hours.start, hours.end) for hours in self.rules.hours if DAYS[day.weekday()] in hours.days]
            for start, end in self.rules.special_hours.get(day, pairs):
                ends_on = day if end > start else day + timedelta(days=1)
                opens = self.locate(datetime.combine(day, time.fromisoformat(start)))
                closes = self.locate(datetime.combine(ends_on, time.fromisoformat(end)))
                steps[opens:closes] = b"\1" * (closes - opens)
        return steps

    def mark_busy(self, periods: Sequence[BusyTime]) -> bytearray:
        steps = bytearray(len(self.local))
        for period in periods:
            first, last = (
                min(max(self.count(moment - self.begin), 0), len(steps))
                for moment in (period.starts_at, period.ends_at)
            )
            steps[first:last] = b"\1" * (last - first)
        return steps

    def check(self, step: int, now: datetime) -> FreeSlot | None:
        """Return the slot that starts at a step; None if it is not free."""
        rules, moment = self.rules, self.begin + step * STEP
        length = self.count(rules.duration)
        if not self.after <= moment < self.until or not now + rules.lead <= moment < now + rules.horizon:
            return None
        if 0 in self.is_open[step : step + length]:
            return None
        opened = self.is_open.rfind(0, 0, step) + 1
        for monday, next_monday in reversed(self.weeks):
            if opened <= monday and next_monday <= step:
                anchor = next_monday
                break
        else:
            anchor = opened
        if (step - anchor) % self.count(rules.grid):
            return None
        day = self.local[step].date()
        if rules.daily_limit is not None and self.occupancy.appointments_by_day.get(day, 0) >= rules.daily_limit:
            return None
        first, last = step - self.count(rules.buffer_before), step + length + self.count(rules.buffer_after)
        free = tuple(key for key, steps in self.is_busy.items() if 1 not in steps[first:last])
        if not free or (rules.needs_all and len(free) < len(self.is_busy)):
            return None
        return FreeSlot(moment, moment + rules.duration, free)

    def list_slots(self, now: datetime, limit: int) -> list[FreeSlot]:
        steps = range(self.count(self.after - self.begin), max(self.count(self.until - self.begin), 0))
        slots = (self.check(step, now) for step in steps)
        return [slot for slot in slots if slot is not None][:limit]


@lru_cache(maxsize=32)
def read_clock(zone: ZoneInfo, begin: datetime, steps: int) -> tuple[list[datetime], list[datetime]]:
    """Return the local time of each step, and the latest one so far, which no change of the clock turns back."""
    local = [(begin + number * STEP).astimezone(zone).replace(tzinfo=None) for number in range(steps)]
    return local, list(accumulate(local, max))
