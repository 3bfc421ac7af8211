"""Default models, and a comparison of them with LiteLLM's map and the ends that vendors have announced."""

import tomllib
from collections.abc import Iterable, Iterator
from datetime import date, timedelta
from importlib.resources import files
from typing import Final, Literal, TypeAlias

from pydantic import BaseModel

from switchboard_llm.model_ends import UNLISTED, find_known_end
from switchboard_llm.model_map import ModelMap

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

    def list_pairs(self) -> Iterator[tuple[str, str]]:
        """Yield each vendor with each of its models."""
        for models in (self.chat, self.embedding, self.transcription, self.speech):
            yield from models.items()


DEFAULT_MODELS: Final = DefaultModels.model_validate(
    tomllib.loads((files("switchboard_llm") / "default_models.toml").read_text())
)


def find_faults(vendors: Iterable[tuple[str, str]], models: ModelMap, on: date) -> list[str]:
    """Return a line for each default model that the map does not know, and for each that ends within 90 days of a
    day by the map or by the vendor's page.

    `vendors` are their names with LiteLLM's prefixes.
    """
    routes, faults = dict(vendors), []
    for vendor, model in DEFAULT_MODELS.list_pairs():
        if vendor in UNLISTED:
            continue
        if models.find(routes[vendor], model) is None:
            faults.append(f"{vendor}: {model} is not in LiteLLM's map")
        end = find_known_end(vendor, routes[vendor], model, models)
        if end is not None and end <= on + NOTICE:
            faults.append(f"{vendor}: {model} ends on {end}")
    return faults
