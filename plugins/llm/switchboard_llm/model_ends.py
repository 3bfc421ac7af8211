"""Days on which vendors end their models: from their pages, from LiteLLM's map, and from their lists of models."""

import tomllib
from collections.abc import Mapping, Sequence
from datetime import date
from importlib.resources import files
from typing import Final, NamedTuple

from pydantic import BaseModel

from switchboard_llm.model_map import ModelMap

UNLISTED: Final = ("ollama", "openai_compatible", "openrouter")
"""Vendors whose models are not in the map: your own servers, and OpenRouter, which passes other vendors' models on."""


class OfferedModel(NamedTuple):
    """Entry of a vendor's list of models; `ends_on` is None if the list does not say when the model ends."""

    name: str
    ends_on: date | None = None


class _Announcements(BaseModel):
    checked: date
    ends: dict[str, dict[str, date]]


MODEL_ENDS: Final[Mapping[str, Mapping[str, date]]] = _Announcements.model_validate(
    tomllib.loads((files("switchboard_llm") / "model_ends.toml").read_text())
).ends
"""Announced ends by vendor and model."""


def find_known_end(vendor: str, route: str, model: str, models: ModelMap) -> date | None:
    """Return the day on which a model ends, from the vendor's page or the map; None if neither has one.

    `route` is LiteLLM's prefix of the vendor.
    """
    announced = MODEL_ENDS.get(vendor, {}).get(model)
    if announced is not None or vendor in UNLISTED:
        return announced
    listed = models.find(route, model)
    return None if listed is None else listed.deprecation_date


def combine_ends(
    vendor: str, route: str, wanted: Mapping[str, str], offered: Sequence[OfferedModel], models: ModelMap
) -> dict[str, date]:
    """Return the ends of models; what the vendor's list says comes first. `wanted` are their names in the list."""
    told = {offer.name: offer.ends_on for offer in offered}
    ends = {model: told.get(name) or find_known_end(vendor, route, model, models) for model, name in wanted.items()}
    return {model: end for model, end in ends.items() if end is not None}
