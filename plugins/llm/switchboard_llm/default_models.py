"""Default models, and the days on which vendors end their models: from their pages, from LiteLLM's map, and from their
lists of models.
"""

import tomllib
from collections.abc import Mapping
from datetime import date, timedelta
from importlib.resources import files
from typing import Final, Literal, TypeAlias, get_args

from pydantic import BaseModel

from switchboard_llm.model_map import ModelMap
from switchboard_llm.vendors import VENDORS, Vendor

UNLISTED: Final = ("ollama", "openai_compatible", "openrouter")
"""Vendors whose models are not in the map: your own servers, and OpenRouter, which passes other vendors' models on."""


class _Announcements(BaseModel):
    checked: date
    ends: dict[str, dict[str, date]]


MODEL_ENDS: Final[Mapping[str, Mapping[str, date]]] = _Announcements.model_validate(
    tomllib.loads((files("switchboard_llm") / "model_ends.toml").read_text())
).ends
"""Announced ends by vendor and model."""


def find_known_end(vendor: Vendor, model: str, models: ModelMap) -> date | None:
    """Return the day on which a model ends, from the vendor's page or the map; None if neither has one."""
    announced = MODEL_ENDS.get(vendor.name, {}).get(model)
    if announced is not None or vendor.name in UNLISTED:
        return announced
    listed = models.find(vendor.route, model)
    return None if listed is None else listed.deprecation_date


NOTICE: Final = timedelta(days=90)

Purpose: TypeAlias = Literal["chat", "embedding", "transcription", "speech"]


class DefaultModels(BaseModel):
    """Models by purpose and vendor. `checked` is the day on which the vendors offered them."""

    checked: date
    chat: dict[str, str]
    embedding: dict[str, str]
    transcription: dict[str, str]
    speech: dict[str, str]

    def list_models(self, purpose: Purpose) -> Mapping[str, str]:
        """Return the models for a purpose, by the vendors that have one."""
        models: Mapping[str, str] = getattr(self, purpose)
        return models


DEFAULT_MODELS: Final = DefaultModels.model_validate(
    tomllib.loads((files("switchboard_llm") / "default_models.toml").read_text())
)


def find_faults(models: ModelMap, on: date) -> list[str]:
    """Return a line for each default model that the map does not know, and for each that ends within 90 days of a
    day by the map or by the vendor's page.
    """
    faults, vendors = [], [vendor for vendor in VENDORS if vendor.name not in UNLISTED]
    for chosen in map(DEFAULT_MODELS.list_models, get_args(Purpose)):
        for vendor in vendors:
            if (model := chosen.get(vendor.name)) is None:
                continue
            if models.find(vendor.route, model) is None:
                faults.append(f"{vendor.name}: {model} is not in LiteLLM's map")
            end = find_known_end(vendor, model, models)
            if end is not None and end <= on + NOTICE:
                faults.append(f"{vendor.name}: {model} ends on {end}")
    return faults
