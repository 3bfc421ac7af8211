"""The contract of capability `embedding`."""

import math
from typing import TypeVar

from switchboard.plugin_sdk.embeddings import EmbeddingProvider
from switchboard.plugin_sdk.provider import ProviderSettings
from switchboard.plugin_sdk.testing.contract import ProviderContract

AnyEmbedding = TypeVar("AnyEmbedding", bound=EmbeddingProvider[ProviderSettings])


class EmbeddingContract(ProviderContract[AnyEmbedding]):
    """Rules of every embedding model. Override `provider`."""

    async def use(self, provider: AnyEmbedding) -> None:
        """Embed a text."""
        await provider.embed(["one"], purpose="query")

    async def test_each_text_has_its_vector_in_order(self, open_provider: AnyEmbedding) -> None:
        """If this fails, sort the vendor's vectors by the texts' indexes."""
        texts = ["one", "two", "three"]
        together = await open_provider.embed(texts, purpose="document")
        assert len(together.vectors) == 3
        assert len({len(vector) for vector in together.vectors}) == 1
        alone = (await open_provider.embed(["two"], purpose="document")).vectors[0]
        assert sum(a * b for a, b in zip(alone, together.vectors[1], strict=True)) > 0.99

    async def test_vectors_have_unit_norm(self, open_provider: AnyEmbedding) -> None:
        """Scores are cosines. If this fails, divide each vector by its length."""
        for vector in (await open_provider.embed(["a sentence", "another"], purpose="query")).vectors:
            assert math.isclose(math.hypot(*vector), 1.0, abs_tol=1e-3)

    async def test_it_names_its_model(self, open_provider: AnyEmbedding) -> None:
        """Vectors of two models cannot be compared. If this fails, return the model's own name."""
        assert (await open_provider.embed(["text"], purpose="document")).model
