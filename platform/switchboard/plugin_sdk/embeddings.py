"""Capability `embedding`: texts as vectors."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from switchboard.plugin_sdk.provider import Provider, SettingsT_co


@dataclass(frozen=True, slots=True)
class Embeddings:
    """One vector a text, in the texts' order, all of one length and unit norm. `model` names what made them: vectors of two models do not mix."""

    model: str
    vectors: tuple[tuple[float, ...], ...]
    input_tokens: int = 0
    cost: float | None = None


class EmbeddingProvider(Provider[SettingsT_co]):
    """Turns texts into vectors whose cosine is the texts' nearness in meaning."""

    @abstractmethod
    async def embed(
        self, texts: Sequence[str], *, purpose: Literal["document", "query"], model: str | None = None
    ) -> Embeddings:
        """Embed texts (none is empty; at most 256). Raises `ProviderError`."""
