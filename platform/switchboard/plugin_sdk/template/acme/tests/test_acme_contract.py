"""The contract of a voice, and a test of this plugin's own."""

import pytest
from switchboard.plugin_sdk import SpeechRequest
from switchboard.plugin_sdk.testing import TextToSpeechContract
from switchboard_acme import AcmeSettings, AcmeVoice


class TestAcmeVoice(TextToSpeechContract[AcmeVoice]):
    @pytest.fixture
    def provider(self) -> AcmeVoice:
        return AcmeVoice(AcmeSettings())

    async def test_each_word_is_a_beep(self, open_provider: AcmeVoice) -> None:
        chunks = [chunk async for chunk in open_provider.synthesize(SpeechRequest("one two three"))]
        assert [word.text for chunk in chunks for word in chunk.words] == ["one", "two", "three"]
