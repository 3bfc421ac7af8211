"""Embeddings over LiteLLM."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from switchboard.plugin_sdk import EmbeddingProvider, Embeddings

from switchboard_llm.litellm_client import build_arguments, calculate_cost, load_litellm, translate_error
from switchboard_llm.vendor_api import VendorProvider, VendorSettings, create_vendor_classes


class VendorEmbedding(VendorProvider[VendorSettings], EmbeddingProvider[VendorSettings]):
    """Embeddings of a vendor over LiteLLM."""

    Settings = VendorSettings
    model_setting = "embedding_model"

    async def open(self) -> None:
        await super().open()
        await load_litellm()

    async def embed(
        self, texts: Sequence[str], *, purpose: Literal["document", "query"], model: str | None = None
    ) -> Embeddings:
        litellm = await load_litellm()
        vendor = replace(self.vendor, route=self.vendor.embedding_route or self.vendor.route)
        name = model or self.settings.embedding_model or self.default_model
        try:
            response = await litellm.aembedding(
                **build_arguments(vendor, self.settings, name), input=list(texts), encoding_format="float"
            )
        except litellm.exceptions.openai.OpenAIError as error:
            raise translate_error(self.vendor, self.settings, error) from error
        rows = sorted(response.data, key=lambda row: row["index"])
        cost = calculate_cost(litellm, vendor, name, response.usage)
        vectors = [row["embedding"] for row in rows]
        lengths = [math.sqrt(sum(part * part for part in vector)) or 1.0 for vector in vectors]
        normed = [tuple(part / length for part in vector) for vector, length in zip(vectors, lengths, strict=True)]
        return Embeddings(name, tuple(normed), response.usage.prompt_tokens or 0, cost)


EMBEDDINGS = create_vendor_classes(VendorEmbedding, "Embedding", "embedding")
