"""LiteLLM's map of models: prices, abilities, and announced ends. It is read without importing LiteLLM.

Some vendors charge less at certain hours.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, time
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final
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

    def has_hour(self, hour: time) -> bool:
        for window in (self.hours_utc,) if isinstance(self.hours_utc, str) else self.hours_utc:
            start, end = (time.fromisoformat(part.strip()) for part in window.split("-"))
            if (start <= hour < end) if start < end else (hour >= start or hour < end):
                return True
        return False


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
        return any(weekday in window.weekdays and window.has_hour(hour) for window in windows)


FILE: Final = "model_prices_and_context_window_backup.json"


class ListedModel(ListedPrices):
    """Entry of the map, as far as it is used."""

    litellm_provider: str | None = None
    mode: str | None = None
    off_peak_pricing: OffPeakPrices | None = None
    deprecation_date: date | None = None
    supports_reasoning: bool | None = None
    reasoning_effort_levels: Sequence[str] = ()
    supports_none_reasoning_effort: bool | None = None
    supports_minimal_reasoning_effort: bool | None = None

    def compute_cost(self, prompt: int, cached: int, completion: int, moment: datetime) -> float | None:
        """Return the cost in US dollars of the tokens of a prompt, of its cached part, and of the answer at a moment;
        None if the map has no prices. An off-peak price replaces the standard one.
        """
        off_peak = self.off_peak_pricing
        lower = off_peak if off_peak is not None and off_peak.apply_at(moment) else ListedPrices()
        prompt_price = _choose(lower.input_cost_per_token, self.input_cost_per_token)
        completion_price = _choose(lower.output_cost_per_token, self.output_cost_per_token)
        if prompt_price is None or completion_price is None:
            return None
        cached_price = _choose(lower.cache_read_input_token_cost, self.cache_read_input_token_cost)
        cached_price = prompt_price if cached_price is None else cached_price
        return (prompt - cached) * prompt_price + cached * cached_price + completion * completion_price


def _choose(first: float | None, second: float | None) -> float | None:
    return second if first is None else first


class ModelMap:
    """Entries by name. Each is decoded when it is asked for, as the map has thousands."""

    def __init__(self, entries: dict[str, msgspec.Raw]) -> None:
        self._entries = entries

    def find(self, route: str, model: str) -> ListedModel | None:
        """Find a model of the vendor with LiteLLM's prefix `route`; None if the map lacks it."""
        entry = self._entries.get(f"{route}/{model}", self._entries.get(model))
        return None if entry is None else msgspec.json.decode(entry, type=ListedModel)

    def list_chat_models(self, route: str, providers: Sequence[str] = ()) -> Iterator[str]:
        """Yield the vendor's chat models, without those that a customer has tuned.

        `providers` are the map's names of the vendor; none: its prefix.
        """
        for name, entry in self._entries.items():
            model = name.removeprefix(f"{route}/")
            if name == "sample_spec" or model.startswith("ft:"):
                continue
            listed = msgspec.json.decode(entry, type=ListedModel)
            if listed.litellm_provider in (providers or (route,)) and listed.mode == "chat":
                yield model


@cache
def load_model_map() -> ModelMap:
    """Read the map, which takes some milliseconds the first time."""
    spec = find_spec("litellm")
    assert spec is not None and spec.origin is not None  # noqa: S101, PT018  a dependency of this distribution
    text = (Path(spec.origin).parent / FILE).read_bytes()
    return ModelMap(msgspec.json.decode(text, type=dict[str, msgspec.Raw]))
