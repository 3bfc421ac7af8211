"""Presets: the rules of jurisdictions, with their sources, as the file `presets.toml` has them."""

import tomllib
from collections.abc import Mapping, Sequence
from datetime import date
from functools import cache
from importlib.resources import files

from pydantic import BaseModel, ConfigDict, Field

from switchboard.engine.disclosure.disclosure import ConsentMode


class Source(BaseModel):
    """A law or ruling: its official address, the address at which its text was read, and the date of reading.

    `confirmed_at` is a second page, of another author, that agrees with the first. None if the official text was read.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    law: str = Field(min_length=1)
    url: str = Field(pattern=r"^https://")
    read_at: str = Field(pattern=r"^https?://")
    read_on: date
    confirmed_at: str | None = Field(None, pattern=r"^https?://")
    applies_from: date | None = None


class Preset(BaseModel):
    """The rule of a jurisdiction for calls with its numbers.

    `all_parties` says whether recording needs the consent of everybody on the line; `consent` is how the preset gets
    it. `note` says what the rule simplifies.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    jurisdiction: str = Field(min_length=1)
    places: tuple[str, ...] = Field(min_length=1)
    ai_notice: bool
    all_parties: bool
    consent: ConsentMode
    note: str = ""
    sources: tuple[Source, ...] = Field(min_length=1)

    @property
    def read_on(self) -> date:
        """The oldest date on which a source was read."""
        return min(source.read_on for source in self.sources)


@cache
def load_presets() -> Mapping[str, Preset]:
    """Return the presets by name."""
    content = tomllib.loads(files(__package__).joinpath("presets.toml").read_text("utf-8"))
    return {name: Preset.model_validate(table) for name, table in content.items()}


def list_unknown_presets(chosen: Sequence[str]) -> list[str]:
    """List the chosen names without a preset. Stored settings may have some that a later version knows."""
    return [name for name in chosen if name not in load_presets()]


def find_presets(chosen: Sequence[str], place: str) -> dict[str, Preset]:
    """Return the presets that apply to a place, of those chosen and those beneath them: `us` includes `us-ca`.

    For a number that tells its country and not its region, the presets of all regions apply.
    """
    return {
        name: preset
        for name, preset in load_presets().items()
        if any(name == choice or name.startswith(f"{choice}-") for choice in chosen)
        and any(place == ours or place.startswith(f"{ours}-") or ours.startswith(f"{place}-") for ours in preset.places)
    }
