"""Geometry of charts, which the templates draw as SVG: they need no script, and they print."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import accumulate

from switchboard.apps.dashboard.ui.formats import short_day

WIDTH, HEIGHT, HEADROOM = 720.0, 150.0, 0.92
WIDEST_BAR = 28.0


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a bar; `kind` is its class in the style sheet."""

    kind: str
    y: float
    height: float


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar of blocks, from the bottom up; `x` is its left side within a slot that begins at `slot`."""

    slot: float
    x: float
    title: str
    blocks: tuple[Block, ...]
    href: str


@dataclass(frozen=True, slots=True)
class BarChart:
    """A bar chart over days, with labels at the grid lines and below the first and last bar."""

    title: str
    bars: tuple[Bar, ...]
    slot_width: float
    bar_width: float
    lines: tuple[tuple[float, str], ...]
    first: str
    last: str


@dataclass(frozen=True, slots=True)
class Series:
    """One value per day, drawn in the class `kind`."""

    name: str
    kind: str
    values: Sequence[float]


def build_bar_chart(
    title: str,
    days: Sequence[date],
    series: Sequence[Series],
    words: Callable[[float], str],
    address: Callable[[date], str],
) -> BarChart:
    """Build a chart with one bar per day and stacked series. `words` formats a value, `address` a day's link."""
    most = max((sum(one.values[n] for one in series) for n in range(len(days))), default=0.0)
    scale = HEIGHT * HEADROOM / most if most else 0.0
    slot = WIDTH / max(len(days), 1)
    width = min(slot * 0.72, WIDEST_BAR)
    made = []
    for n, day in enumerate(days):
        said = ", ".join(f"{one.name} {words(one.values[n])}" for one in series)
        tops = accumulate(one.values[n] * scale for one in series)
        blocks = tuple(
            Block(one.kind, round(HEIGHT - top, 2), round(one.values[n] * scale, 2))
            for one, top in zip(series, tops, strict=True)
            if one.values[n]
        )
        left = round(n * slot + (slot - width) / 2, 2)
        made.append(Bar(round(n * slot, 2), left, f"{short_day(day)}: {said}", blocks, address(day)))
    lines = tuple((HEIGHT - most * part * scale, words(most * part)) for part in (0.5, 1.0)) if most else ()
    return BarChart(title, tuple(made), slot, width, lines, short_day(days[0]), short_day(days[-1]))


@dataclass(frozen=True, slots=True)
class Share:
    """A row of a chart of shares: `width` is a percentage of the largest value, `href` the page behind it or empty."""

    name: str
    figure: str
    width: float
    kind: str
    href: str


def build_shares(
    rows: Sequence[tuple[str, float, str]], words: Callable[[float], str], addresses: Sequence[str] = ()
) -> list[Share]:
    """Build the rows of a chart of shares from (name, value, class) and their pages; the largest value has the longest
    bar.
    """
    most = max((figure for _, figure, _ in rows), default=0) or 1
    return [
        Share(name, words(figure), round(figure / most * 100, 1), kind, address)
        for (name, figure, kind), address in zip(rows, addresses or [""] * len(rows), strict=True)
    ]
