"""The contract of embeddings, and tests of this plugin's own."""

from collections.abc import Callable

import pytest
from acme_vendor import create_settings
from switchboard.plugin_sdk.testing import EmbeddingContract
from switchboard_acme import AcmeEmbedding
from switchboard_acme.client import AcmeSettings


class TestAcmeEmbedding(EmbeddingContract[AcmeEmbedding]):
    @pytest.fixture
    def provider(self, settings: AcmeSettings) -> AcmeEmbedding:
        return AcmeEmbedding(settings)

    @pytest.fixture
    def create_at(self) -> Callable[[str], AcmeEmbedding]:
        return lambda address: AcmeEmbedding(create_settings(address))

    async def test_its_tokens_are_counted(self, open_provider: AcmeEmbedding) -> None:
        assert (await open_provider.embed(["one two"], purpose="query", model="m")).input_tokens == 2
