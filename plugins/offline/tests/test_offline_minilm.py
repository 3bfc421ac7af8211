"""The contract of an embedding model, and semantic similarity."""

import asyncio

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


async def test_an_organizations_document_keeps_nobody_waiting() -> None:
    here, there = MiniLMEmbedding(ProviderSettings()), MiniLMEmbedding(ProviderSettings())
    await there.embed(["Load the model"], purpose="query")
    passages = ["We bake bread, rolls, and cakes every morning of the week. " * 15] * 64
    documents = [asyncio.create_task(here.embed(passages, purpose="document")) for _ in range(3)]
    for _ in range(2):
        await there.embed(["What are your opening hours?"], purpose="query")
    await there.embed(["A short document"], purpose="document")
    assert not any(document.done() for document in documents)
    for document in documents:
        document.cancel()
