"""LiteLLM's map of models: prices, abilities, and announced ends. It is read without importing LiteLLM."""

from collections.abc import Iterator, Sequence
from datetime import date
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import msgspec

from switchboard_llm.prices import ListedPrices, OffPeakPrices

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
