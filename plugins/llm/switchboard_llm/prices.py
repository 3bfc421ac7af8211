"""Prices of a model at a moment: some vendors charge less at certain hours. The data are LiteLLM's map."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time
from zoneinfo import ZoneInfo

import msgspec


class ListedPrices(msgspec.Struct):
    """Prices in US dollars per token; None: the map does not say."""

    input_cost_per_token: float | None = None
    output_cost_per_token: float | None = None
    cache_read_input_token_cost: float | None = None


class OffPeakWindow(msgspec.Struct):
    """Hours in UTC (`16:30-00:30`, the end excluded) on some days of the week, 1 is Monday."""

    hours_utc: str | Sequence[str]
    weekdays: Sequence[int] = tuple(range(1, 8))


class OffPeakPrices(ListedPrices):
    """Prices within any of the windows. The days are those of `weekday_timezone`."""

    hours_utc: str | Sequence[str] = ()
    windows: Sequence[OffPeakWindow] = ()
    weekday_timezone: str = "UTC"

    def apply_at(self, moment: datetime) -> bool:
        """Return whether these prices apply at a moment, which has a time zone."""
        hour = moment.astimezone(UTC).time()
        weekday = moment.astimezone(ZoneInfo(self.weekday_timezone)).isoweekday()
        windows = (OffPeakWindow(self.hours_utc), *self.windows)
        return any(weekday in window.weekdays and _is_within(hour, window.hours_utc) for window in windows)


@dataclass(frozen=True, slots=True)
class TokenPrices:
    """Prices of a token of the prompt, of its cached part, and of the answer, in US dollars."""

    prompt: float
    cached: float
    completion: float


def find_prices(standard: ListedPrices, off_peak: OffPeakPrices | None, moment: datetime) -> TokenPrices | None:
    """Return the prices at a moment; None if the map has none. An off-peak price replaces the standard one."""
    lower = off_peak if off_peak is not None and off_peak.apply_at(moment) else ListedPrices()
    prompt = _choose(lower.input_cost_per_token, standard.input_cost_per_token)
    completion = _choose(lower.output_cost_per_token, standard.output_cost_per_token)
    if prompt is None or completion is None:
        return None
    cached = _choose(lower.cache_read_input_token_cost, standard.cache_read_input_token_cost)
    return TokenPrices(prompt, prompt if cached is None else cached, completion)


def _choose(first: float | None, second: float | None) -> float | None:
    return second if first is None else first


def _is_within(hour: time, windows: str | Sequence[str]) -> bool:
    for window in (windows,) if isinstance(windows, str) else windows:
        start, end = (time.fromisoformat(part.strip()) for part in window.split("-"))
        if (start <= hour < end) if start < end else (hour >= start or hour < end):
            return True
    return False
