"""Capability `embedding`: vectors of texts."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from switchboard.plugin_sdk.provider import Provider, SettingsT_co


@dataclass(frozen=True, slots=True)
class Embeddings:
    """One vector per text, in the order of the texts, of equal length and unit norm.

    `model` names the model: vectors of two models cannot be compared. `cost` is in US dollars, None if unknown.
    """

    model: str
    vectors: tuple[tuple[float, ...], ...]
    input_tokens: int = 0
    cost: float | None = None


class EmbeddingProvider(Provider[SettingsT_co]):
    """Turns texts into vectors whose cosine measures similarity of meaning."""

    @abstractmethod
    async def embed(
        self, texts: Sequence[str], *, purpose: Literal["document", "query"], model: str | None = None
    ) -> Embeddings:
        """Embed 1 to 256 non-empty texts. Raises `ProviderError`."""
