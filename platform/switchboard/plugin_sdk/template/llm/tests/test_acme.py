"""The contract of a language model, and tests of this plugin's own."""

from collections.abc import Callable

import pytest
from acme_vendor import create_settings
from switchboard.plugin_sdk import ChatRequest, Message, ProviderError, ToolSpec
from switchboard.plugin_sdk.testing import LLMContract
from switchboard_acme import AcmeModel
from switchboard_acme.client import AcmeSettings


class TestAcmeModel(LLMContract[AcmeModel]):
    @pytest.fixture
    def provider(self, settings: AcmeSettings) -> AcmeModel:
        return AcmeModel(settings)

    @pytest.fixture
    def create_at(self) -> Callable[[str], AcmeModel]:
        return lambda address: AcmeModel(create_settings(address))

    @pytest.fixture
    def tool_request(self, weather: ToolSpec) -> ChatRequest:
        return ChatRequest((Message("user", "What is the weather in Paris?"),), tools=(weather,))

    async def test_an_unknown_model_is_refused(self, open_provider: AcmeModel) -> None:
        with pytest.raises(ProviderError, match="there is no model strange"):
            await anext(aiter(open_provider.chat(ChatRequest((Message("user", "Hello"),), model="strange"))))
