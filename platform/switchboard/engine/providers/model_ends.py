"""Ends of models, which vendors announce months before: the models that a provider uses, and the warnings of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Final

from pydantic import JsonValue

from switchboard.plugin_sdk import Provider, ProviderSettings

WARNED_BEFORE: Final = timedelta(days=180)
"""Notice that OpenAI gives, the longest of the vendors that end models often
(https://developers.openai.com/api/docs/deprecations).
"""


@dataclass(frozen=True, slots=True)
class ModelEnd:
    """A model, and the day on which its vendor ends it, which may have passed."""

    model: str
    day: date

    def describe(self) -> str:
        """Return the warning for an operator."""
        return f"the vendor ends {self.model} on {self.day}: choose another model or provider"


def list_used_models(
    kind: type[Provider[ProviderSettings]], settings: Mapping[str, JsonValue], chosen: Sequence[str | None]
) -> list[str]:
    """List the models that a provider is asked for: those that its users choose, and its own for all others."""
    own = settings.get(kind.model_setting) or kind.default_model
    return sorted({model for model in (own, *chosen) if isinstance(model, str) and model})


def list_known_ends(kind: type[Provider[ProviderSettings]], models: Sequence[str]) -> list[ModelEnd]:
    """List the ends that are due and known without asking the vendor."""
    return select_due_ends({model: kind.model_ends[model] for model in models if model in kind.model_ends})


def select_due_ends(ends: Mapping[str, date]) -> list[ModelEnd]:
    """Select the ends to warn of, the first one first."""
    latest = datetime.now(UTC).date() + WARNED_BEFORE
    due = [ModelEnd(model, day) for model, day in ends.items() if day <= latest]
    return sorted(due, key=lambda end: (end.day, end.model))
