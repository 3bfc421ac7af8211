"""The contract of a transcriber, and tests of this plugin's own."""

from collections.abc import Callable

import pytest
from acme_vendor import Acme, create_settings
from switchboard.plugin_sdk import ProviderError, TranscriptionRequest
from switchboard.plugin_sdk.testing import SpeechToTextContract
from switchboard_acme import AcmeTranscriber
from switchboard_acme.client import AcmeSettings


class TestAcmeTranscriber(SpeechToTextContract[AcmeTranscriber]):
    @pytest.fixture
    def provider(self, settings: AcmeSettings) -> AcmeTranscriber:
        return AcmeTranscriber(settings)

    @pytest.fixture
    def create_at(self) -> Callable[[str], AcmeTranscriber]:
        return lambda address: AcmeTranscriber(create_settings(address))

    @pytest.fixture
    def utterance(self) -> tuple[bytes, str]:
        return b"\x10\x20" * 4000, "hello"

    async def test_a_refused_transcription_is_a_failure(self, open_provider: AcmeTranscriber, acme: Acme) -> None:
        acme.fault = 503
        with pytest.raises(ProviderError, match="503"):
            await open_provider.transcribe(TranscriptionRequest())
