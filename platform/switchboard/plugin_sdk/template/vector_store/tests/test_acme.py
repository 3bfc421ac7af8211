"""The contract of a vector store, and tests of this plugin's own."""

from collections.abc import Callable
from uuid import uuid4

import pytest
from acme_vendor import Acme, create_settings
from switchboard.plugin_sdk import ProviderError
from switchboard.plugin_sdk.testing import VectorStoreContract
from switchboard_acme import AcmeStore
from switchboard_acme.client import AcmeSettings


class TestAcmeStore(VectorStoreContract[AcmeStore]):
    @pytest.fixture
    def provider(self, settings: AcmeSettings) -> AcmeStore:
        return AcmeStore(settings)

    @pytest.fixture
    def create_at(self) -> Callable[[str], AcmeStore]:
        return lambda address: AcmeStore(create_settings(address))

    async def test_a_store_out_of_order_is_a_failure(self, open_provider: AcmeStore, acme: Acme) -> None:
        acme.fault = 503
        with pytest.raises(ProviderError, match="out of order"):
            await open_provider.delete_document(uuid4(), uuid4())
