"""Embeddings of the vendors that have them."""

import math
from collections.abc import Sequence
from typing import Literal

from switchboard.plugins import EmbeddingProvider, Embeddings

from switchboard_llm.client import VendorSettings, arguments, known_cost, library, provider_error, require_key
from switchboard_llm.models import list_models
from switchboard_llm.vendors import VENDORS, Vendor


class VendorEmbedding(EmbeddingProvider[VendorSettings]):
    """A vendor's embeddings over LiteLLM."""

    Settings = VendorSettings
    vendor: Vendor

    async def open(self) -> None:
        require_key(self.vendor, self.settings)
        await library()

    async def check(self) -> None:
        require_key(self.vendor, self.settings)
        if self.settings.base_url is not None:
            await list_models(self.vendor, self.settings)

    async def embed(self, texts: Sequence[str], *, purpose: Literal["document", "query"], model: str | None = None) -> Embeddings:
        litellm = await library()
        name = model or self.settings.embedding_model or self.vendor.embedding_model or ""
        given = {key: value for key, value in arguments(self.vendor, self.settings, name).items() if key != "_skip_mcp_handler"}
        try:
            response = await litellm.aembedding(**given, input=list(texts), encoding_format="float")
        except litellm.exceptions.openai.OpenAIError as error:
            raise provider_error(self.vendor, self.settings, error) from error
        rows = sorted(response.data, key=lambda row: row["index"])
        tokens = response.usage.prompt_tokens or 0
        cost = known_cost(litellm, self.vendor, name, input_tokens=tokens)
        return Embeddings(name, tuple(_unit(row["embedding"]) for row in rows), tokens, cost)


def _unit(vector: Sequence[float]) -> tuple[float, ...]:
    length = math.sqrt(sum(part * part for part in vector)) or 1.0
    return tuple(part / length for part in vector)


def embedding_class(vendor: Vendor) -> type[VendorEmbedding]:
    """The provider class of a vendor."""
    return type(
        f"{vendor.name.title().replace('_', '')}Embedding", (VendorEmbedding,), {"name": vendor.name, "title": vendor.title, "vendor": vendor}
    )


EMBEDDINGS = [embedding_class(vendor) for vendor in VENDORS if vendor.embedding_model is not None]
