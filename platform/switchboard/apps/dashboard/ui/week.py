"""A week of appointments and free times: seven days with blocks at their local times.

Blocks are placed by the clock on the wall, in rows of a quarter of an hour. On a day on which the clocks change, two
moments may have the same place, and their times have the zone's abbreviation.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from switchboard.apps.dashboard.ui.formats import clock
from switchboard.foundation.database import now
from switchboard.resources.appointments.models import Appointment
from switchboard.resources.appointments.schemas import SlotOut

ROWS_OF_HOUR: Final = 4
ROW_MINUTES: Final = 60 // ROWS_OF_HOUR
DAY_MINUTES: Final = 24 * 60
USUAL_HOURS: Final = (9, 17)
"""Hours that a week shows at least."""
DAY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class WeekBlock:
    """An appointment or a free time on one of its days, from `row` of the day on, with the words of its beginning and
    its end. `continues` is true on later days.
    """

    item: Appointment | SlotOut
    row: int
    rows: int
    begin: str
    end: str
    continues: bool

    @property
    def is_free(self) -> bool:
        """Return whether nobody has booked the time."""
        return isinstance(self.item, SlotOut)


@dataclass(frozen=True, slots=True)
class BlockCluster:
    """Blocks that overlap, shown side by side, from `row` of the day on."""

    row: int
    rows: int
    blocks: Sequence[WeekBlock]


@dataclass(frozen=True, slots=True)
class WeekDay:
    """A local day, with its blocks by time."""

    date: date
    is_today: bool
    clusters: Sequence[BlockCluster]


@dataclass(frozen=True, slots=True)
class Week:
    """Seven days from a Monday on, in a time zone, and the hours to show."""

    monday: date
    zone: ZoneInfo
    days: Sequence[WeekDay] = ()
    hours: range = range(*USUAL_HOURS)

    @classmethod
    def find(cls, day: date | None, zone: ZoneInfo) -> "Week":
        """Return the week of a day, without blocks; today's week without a day."""
        found = day or now().astimezone(zone).date()
        return cls(found - timedelta(days=found.weekday()), zone)

    @property
    def begins_at(self) -> datetime:
        """The moment at which the week begins, in UTC."""
        return get_day_start(self.monday, self.zone)

    @property
    def ends_at(self) -> datetime:
        """The moment at which the week is over, in UTC."""
        return get_day_start(self.later, self.zone)

    @property
    def earlier(self) -> date:
        """The Monday of the week before."""
        return self.monday - 7 * DAY

    @property
    def later(self) -> date:
        """The Monday of the week after."""
        return self.monday + 7 * DAY

    @property
    def scale(self) -> list[str]:
        """The shown hours in words."""
        return [clock(datetime.combine(self.monday, time(hour), UTC)) for hour in self.hours]

    def show(self, items: Sequence[Appointment | SlotOut]) -> "Week":
        """Return the week with the blocks of appointments and free times."""
        ordered = sorted(items, key=lambda item: (item.starts_at, item.ends_at))
        today = now().astimezone(self.zone).date()
        dates = [self.monday + number * DAY for number in range(7)]
        blocks = [[block for item in ordered if (block := _build_block(item, one, self.zone))] for one in dates]
        shown = [block for each in blocks for block in each]
        first = min([USUAL_HOURS[0], *(block.row // ROWS_OF_HOUR for block in shown)])
        last = max([USUAL_HOURS[1], *(-(-(block.row + block.rows) // ROWS_OF_HOUR) for block in shown)])
        days = [WeekDay(one, one == today, _cluster(each)) for one, each in zip(dates, blocks, strict=True)]
        return Week(self.monday, self.zone, days, range(first, last))


def get_day_start(day: date, zone: ZoneInfo) -> datetime:
    """Return the moment at which a local day begins, in UTC."""
    return datetime.combine(day, time.min, zone).astimezone(UTC)


def _build_block(item: Appointment | SlotOut, day: date, zone: ZoneInfo) -> WeekBlock | None:
    """Return the block of an appointment or a free time on a local day; None if it takes no time of the day."""
    begin, end = item.starts_at.astimezone(zone), item.ends_at.astimezone(zone)
    first = 0 if begin.date() < day else begin.hour * 60 + begin.minute
    last = DAY_MINUTES if end.date() > day else end.hour * 60 + end.minute
    if begin.date() > day or end.date() < day or (begin.date() < day and last == 0):
        return None
    if last <= first:  # The clock was set back meanwhile.
        last = min(first + int((item.ends_at - item.starts_at).total_seconds()) // 60, DAY_MINUTES)
    row = first // ROW_MINUTES
    changes = get_day_start(day + DAY, zone) - get_day_start(day, zone) != DAY
    begins, ends = (f"{clock(moment)} {moment:%Z}" if changes else clock(moment) for moment in (begin, end))
    return WeekBlock(
        item, row, max(-(-last // ROW_MINUTES) - row, 1), begin=begins, end=ends, continues=begin.date() < day
    )


def _cluster(blocks: Sequence[WeekBlock]) -> list[BlockCluster]:
    """Return the groups of a day's blocks that share rows, by the time at which they begin, as the blocks in them."""
    groups: list[list[WeekBlock]] = []
    end = 0
    for block in sorted(blocks, key=lambda block: block.row):
        if not groups or block.row >= end:
            groups.append([])
        groups[-1].append(block)
        end = max(end, block.row + block.rows)
    clusters = []
    for group in groups:
        row = group[0].row
        rows = max(block.row + block.rows for block in group) - row
        clusters.append(BlockCluster(row, rows, sorted(group, key=_get_start)))
    return sorted(clusters, key=lambda cluster: _get_start(cluster.blocks[0]))


def _get_start(block: WeekBlock) -> datetime:
    return block.item.starts_at
