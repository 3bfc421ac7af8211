"""Acme: embeddings. Replace the request with your vendor's."""

import math
from collections.abc import Sequence
from typing import Literal

from switchboard.plugin_sdk import EmbeddingProvider, Embeddings, hookimpl

from switchboard_acme.client import AcmeProvider, AcmeSettings

PLUGIN_API_VERSION = 1
"""Version of the plugin API that this plugin was written for."""
DEFAULT_MODEL = "acme-embed-1"


class AcmeEmbedding(AcmeProvider, EmbeddingProvider[AcmeSettings]):
    """Acme's embeddings."""

    name = "acme"
    title = "Acme"
    Settings = AcmeSettings

    async def embed(
        self, texts: Sequence[str], *, purpose: Literal["document", "query"], model: str | None = None
    ) -> Embeddings:
        body = {"model": model or DEFAULT_MODEL, "texts": list(texts), "purpose": purpose}
        found = await self._client.request("POST", "/embeddings", json=body)
        vectors = [(vector, math.hypot(*vector) or 1.0) for vector in found["vectors"]]
        normed = tuple(tuple(value / length for value in vector) for vector, length in vectors)
        return Embeddings(found["model"], normed, input_tokens=found["tokens"])


@hookimpl
def embedding_providers() -> Sequence[type[AcmeEmbedding]]:
    return [AcmeEmbedding]
