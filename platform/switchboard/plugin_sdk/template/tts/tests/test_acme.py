"""The contract of a voice, and tests of this plugin's own."""

from collections.abc import Callable

import pytest
from acme_vendor import create_settings
from switchboard.plugin_sdk import SpeechRequest
from switchboard.plugin_sdk.testing import TextToSpeechContract
from switchboard_acme import AcmeVoice
from switchboard_acme.client import AcmeSettings


class TestAcmeVoice(TextToSpeechContract[AcmeVoice]):
    @pytest.fixture
    def provider(self, settings: AcmeSettings) -> AcmeVoice:
        return AcmeVoice(settings)

    @pytest.fixture
    def create_at(self) -> Callable[[str], AcmeVoice]:
        return lambda address: AcmeVoice(create_settings(address))

    async def test_each_word_is_a_beep(self, open_provider: AcmeVoice) -> None:
        chunks = [chunk async for chunk in open_provider.synthesize(SpeechRequest("one two three"))]
        assert sum(len(chunk.audio) for chunk in chunks) == 3 * 4800
