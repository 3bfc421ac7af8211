"""Default models, and the days on which vendors end their models: from their pages, from LiteLLM's map, and from their
lists of models.
"""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from importlib.resources import files
from typing import Final, Literal, NamedTuple, TypeAlias

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


NOTICE: Final = timedelta(days=90)

Purpose: TypeAlias = Literal["chat", "embedding", "transcription", "speech"]


class DefaultModels(BaseModel):
    """Models by purpose and vendor. `checked` is the day on which the vendors offered them."""

    checked: date
    chat: dict[str, str]
    embedding: dict[str, str]
    transcription: dict[str, str]
    speech: dict[str, str]

    def find(self, purpose: Purpose, vendor: str) -> str | None:
        """Return the vendor's default model, None if it has none for the purpose."""
        models: dict[str, str] = getattr(self, purpose)
        return models.get(vendor)


DEFAULT_MODELS: Final = DefaultModels.model_validate(
    tomllib.loads((files("switchboard_llm") / "default_models.toml").read_text())
)


def find_faults(vendors: Iterable[tuple[str, str]], models: ModelMap, on: date) -> list[str]:
    """Return a line for each default model that the map does not know, and for each that ends within 90 days of a
    day by the map or by the vendor's page.

    `vendors` are their names with LiteLLM's prefixes.
    """
    routes, faults, defaults = dict(vendors), [], DEFAULT_MODELS
    by_purpose = (defaults.chat, defaults.embedding, defaults.transcription, defaults.speech)
    for vendor, model in (pair for chosen in by_purpose for pair in chosen.items()):
        if vendor in UNLISTED:
            continue
        if models.find(routes[vendor], model) is None:
            faults.append(f"{vendor}: {model} is not in LiteLLM's map")
        end = find_known_end(vendor, routes[vendor], model, models)
        if end is not None and end <= on + NOTICE:
            faults.append(f"{vendor}: {model} ends on {end}")
    return faults
