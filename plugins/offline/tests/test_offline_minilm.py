"""The contract of an embedding model, and semantic similarity."""

import pytest
from switchboard.plugin_sdk import ProviderSettings
from switchboard.plugin_sdk.testing import EmbeddingContract
from switchboard_offline.minilm import MiniLMEmbedding


class TestMiniLM(EmbeddingContract[MiniLMEmbedding]):
    @pytest.fixture
    def provider(self) -> MiniLMEmbedding:
        return MiniLMEmbedding(ProviderSettings())


async def test_a_paraphrase_without_common_words_is_nearer_than_another_text() -> None:
    texts = ["A feline rested upon the rug", "Stock prices fell sharply", "The kitten sat down"]
    first, other, near = (await MiniLMEmbedding(ProviderSettings()).embed(texts, purpose="document")).vectors
    assert (
        sum(a * b for a, b in zip(first, near, strict=True))
        > 0.3
        > sum(a * b for a, b in zip(first, other, strict=True))
    )
