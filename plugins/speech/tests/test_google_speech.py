"""Google's voices on the wire: their contract, tokens, WAVE files, and errors."""

import json
from collections.abc import AsyncIterator, Callable

import pytest
import pytest_asyncio
from pydantic import HttpUrl, SecretStr, ValidationError
from switchboard.plugin_sdk import ProviderError, SpeechRequest
from switchboard.plugin_sdk.testing import TextToSpeechContract
from switchboard_speech.google_speech import GoogleTextToSpeech, GoogleVoiceSettings

from tests.fixtures.cloud_servers import ACCOUNT
from tests.speech.google import ACCOUNT_FILE, GoogleSpeech
from tests.speech.vendor import SENTENCE, in_use, recognize_mulaw


@pytest_asyncio.fixture
async def server() -> AsyncIterator[GoogleSpeech]:
    async with GoogleSpeech.listening() as server:
        yield server


def create_voice(address: str, account: SecretStr = ACCOUNT_FILE) -> GoogleTextToSpeech:
    return GoogleTextToSpeech(GoogleVoiceSettings(service_account=account, base_url=HttpUrl(address)))


class TestGoogleVoice(TextToSpeechContract[GoogleTextToSpeech]):
    @pytest.fixture
    def provider(self, server: GoogleSpeech) -> GoogleTextToSpeech:
        return create_voice(server.address)

    @pytest.fixture
    def create_at(self) -> Callable[[str], GoogleTextToSpeech]:
        return create_voice


@pytest_asyncio.fixture
async def open_provider(server: GoogleSpeech) -> AsyncIterator[GoogleTextToSpeech]:
    async with in_use(create_voice(server.address)) as provider:
        yield provider


async def synthesize(provider: GoogleTextToSpeech, request: SpeechRequest) -> bytes:
    return b"".join([chunk.audio async for chunk in provider.synthesize(request)])


async def test_audio_is_mulaw_without_a_header(open_provider: GoogleTextToSpeech) -> None:
    audio = await synthesize(open_provider, SpeechRequest(SENTENCE))
    assert b"RIFF" not in audio
    assert recognize_mulaw(audio) == SENTENCE


async def test_audio_that_is_no_wave_file_is_an_error(open_provider: GoogleTextToSpeech, server: GoogleSpeech) -> None:
    server.is_wave = False
    with pytest.raises(ProviderError, match="not a WAVE file"):
        await synthesize(open_provider, SpeechRequest(SENTENCE))


async def test_a_request_has_the_agents_settings(open_provider: GoogleTextToSpeech, server: GoogleSpeech) -> None:
    await synthesize(open_provider, SpeechRequest("Hallo.", "de-DE-Chirp3-HD-Kore", speed=3.0))
    assert server.requests[0].body == {
        "input": {"text": "Hallo."},
        "voice": {"name": "de-DE-Chirp3-HD-Kore", "languageCode": "de-DE"},
        "audioConfig": {"audioEncoding": "MULAW", "sampleRateHertz": 8000, "speakingRate": 2.0},
    }


@pytest.mark.parametrize(
    ("status", "code", "retryable"),
    [
        (400, "INVALID_ARGUMENT", False),
        (403, "PERMISSION_DENIED", False),
        (429, "RESOURCE_EXHAUSTED", True),
        (503, "UNAVAILABLE", True),
    ],
)
async def test_refusals_have_the_vendors_words_without_the_key(
    open_provider: GoogleTextToSpeech, server: GoogleSpeech, status: int, code: str, retryable: bool
) -> None:
    server.refusals = [status]
    with pytest.raises(ProviderError, match=r"refused with \*\*\*") as refused:
        await synthesize(open_provider, SpeechRequest("Hello."))
    assert (refused.value.code, refused.value.retryable) == (code, retryable)


async def test_an_account_that_google_does_not_know_is_reported(server: GoogleSpeech) -> None:
    stranger = SecretStr(json.dumps({**ACCOUNT, "client_email": "stranger@elsewhere.example"}))
    async with in_use(create_voice(server.address, stranger)) as provider:
        with pytest.raises(ProviderError) as refused:
            await provider.check()
    assert (refused.value.code, refused.value.retryable) == ("UNAUTHENTICATED", False)


async def test_a_key_that_cannot_sign_is_reported(server: GoogleSpeech) -> None:
    broken = SecretStr(json.dumps({**ACCOUNT, "private_key": "no key"}))
    async with in_use(create_voice(server.address, broken)) as provider:
        with pytest.raises(ProviderError, match="key of the service account is invalid") as refused:
            await provider.check()
    assert not refused.value.retryable
    assert server.requests == []


@pytest.mark.parametrize("file", ["", "{}", json.dumps({**ACCOUNT, "type": "external_account"})])
def test_other_credentials_are_refused(file: str) -> None:
    with pytest.raises(ValidationError, match="not the JSON file of a service account"):
        GoogleVoiceSettings(service_account=SecretStr(file))


async def test_voices_have_languages(open_provider: GoogleTextToSpeech) -> None:
    male, female, unknown = await open_provider.list_voices()
    assert (male.id, male.language, male.gender) == ("en-US-Chirp3-HD-Charon", "en-US", "male")
    assert (female.gender, unknown.gender) == ("female", None)
    assert not await open_provider.has_voice("nobody")
