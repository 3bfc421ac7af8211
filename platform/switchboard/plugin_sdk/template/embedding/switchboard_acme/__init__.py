"""Acme: embeddings. Replace the request with your vendor's."""

import math
from collections.abc import Sequence
from typing import Literal

from switchboard.plugin_sdk import EmbeddingProvider, Embeddings, hookimpl

from switchboard_acme.client import AcmeClient, AcmeSettings

PLUGIN_API_VERSION = 1
"""Version of the plugin API that this plugin was written for."""
DEFAULT_MODEL = "acme-embed-1"


class AcmeEmbedding(EmbeddingProvider[AcmeSettings]):
    """Acme's embeddings."""

    name = "acme"
    title = "Acme"
    Settings = AcmeSettings

    def __init__(self, settings: AcmeSettings) -> None:
        super().__init__(settings)
        self._client = AcmeClient(settings)

    async def open(self) -> None:
        await self._client.open()

    async def close(self) -> None:
        await self._client.close()

    async def check(self) -> None:
        """Ask Acme whether the key is accepted, which costs nothing."""
        await self._client.request("GET", "/account")

    async def embed(
        self, texts: Sequence[str], *, purpose: Literal["document", "query"], model: str | None = None
    ) -> Embeddings:
        body = {"model": model or DEFAULT_MODEL, "texts": list(texts), "purpose": purpose}
        found = await self._client.request("POST", "/embeddings", json=body)
        vectors = tuple(_normalize(vector) for vector in found["vectors"])
        return Embeddings(found["model"], vectors, input_tokens=found["tokens"])


def _normalize(vector: Sequence[float]) -> tuple[float, ...]:
    length = math.hypot(*vector) or 1.0
    return tuple(value / length for value in vector)


@hookimpl
def embedding_providers() -> Sequence[type[AcmeEmbedding]]:
    """Provide the embeddings."""
    return [AcmeEmbedding]
