"""Speech over OpenAI's protocol, on the wire: transcription of whole utterances, streamed speech."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from pydantic import SecretStr
from switchboard.plugin_sdk import ProviderError, SpeechRequest, Transcript, TranscriptionRequest
from switchboard.plugin_sdk.testing import SpeechToTextContract, TextToSpeechContract
from switchboard_llm.transcription import TRANSCRIBERS, VendorTranscriber
from switchboard_llm.vendor_api import VendorSettings
from switchboard_llm.voices import VOICES, VendorVoice, VoiceSettings
from switchboard_offline.espeak import speak_text

from tests.speech.openai import OpenAI
from tests.speech.vendor import KEY, PHRASES, SENTENCE

# LiteLLM and its dependencies emit deprecation warnings that we cannot fix.
pytestmark = [
    pytest.mark.usefixtures("litellm_clients"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning"),
]


@pytest_asyncio.fixture
async def server() -> AsyncIterator[OpenAI]:
    async with OpenAI.listening() as server:
        yield server


def create_transcriber(server: OpenAI, *, key: str = KEY) -> VendorTranscriber:
    kind = next(kind for kind in TRANSCRIBERS if kind.name == "openai_compatible")
    return kind(VendorSettings(api_key=SecretStr(key), base_url=f"{server.address}/v1", model="whisper"))


def create_voice(base_url: str | None, *, key: str = KEY, name: str = "openai_compatible") -> VendorVoice:
    kind = next(kind for kind in VOICES if kind.name == name)
    return kind(VoiceSettings(api_key=SecretStr(key), base_url=base_url))


class TestTranscriptions(SpeechToTextContract[VendorTranscriber]):
    @pytest.fixture
    def provider(self, server: OpenAI) -> VendorTranscriber:
        return create_transcriber(server)

    @pytest.fixture
    def utterance(self) -> tuple[bytes, str]:
        return speak_text(SENTENCE), SENTENCE

    @pytest.fixture
    def transcription(self) -> TranscriptionRequest:
        return TranscriptionRequest(hints=PHRASES)


class TestSpeech(TextToSpeechContract[VendorVoice]):
    @pytest.fixture
    def provider(self, server: OpenAI) -> VendorVoice:
        return create_voice(f"{server.address}/v1/")


async def synthesize(provider: VendorTranscriber, request: TranscriptionRequest) -> Transcript:
    stream = await provider.transcribe(request)
    await stream.send(speak_text(SENTENCE))
    await stream.finalize()
    async with asyncio.timeout(30):
        return await anext(aiter(stream))


async def test_an_utterance_is_one_request_with_language_and_phrases(server: OpenAI) -> None:
    assert await synthesize(create_transcriber(server), TranscriptionRequest("en-GB", hints=PHRASES)) == Transcript(
        SENTENCE, is_final=True, finalized=True
    )
    assert (await synthesize(create_transcriber(server), TranscriptionRequest("mul", hints=PHRASES))).text == SENTENCE
    english, several = server.forms
    assert (english["model"], english["language"], english["prompt"]) == ("whisper", "en", ", ".join(PHRASES))
    assert "language" not in several


@pytest.mark.parametrize(("status", "retryable"), [(401, False), (429, True), (500, True)])
async def test_refusals_are_reported_without_the_key(server: OpenAI, status: int, retryable: bool) -> None:
    server.refusals = [status]
    with pytest.raises(ProviderError) as refused:
        await synthesize(create_transcriber(server), TranscriptionRequest())
    assert (refused.value.code, refused.value.retryable) == (str(status), retryable)
    assert KEY not in refused.value.message
    server.refusals = [status]
    speaking = create_voice(f"{server.address}/v1")
    await speaking.open()
    with pytest.raises(ProviderError, match=r"\*\*\*") as refused:
        await anext(aiter(speaking.synthesize(SpeechRequest("Hello."))))
    assert refused.value.retryable is retryable
    await speaking.close()


async def test_silence_sends_no_request(server: OpenAI) -> None:
    stream = await create_transcriber(server).transcribe(TranscriptionRequest())
    await stream.send(bytes(8000))
    await stream.finalize()
    assert (await anext(aiter(stream))).text == ""
    assert server.requests == []


async def test_a_server_without_a_voice_list_is_an_error(server: OpenAI) -> None:
    server.lists_voices = False
    speaking = create_voice(f"{server.address}/v1")
    await speaking.open()
    with pytest.raises(ProviderError, match="does not list"):
        await speaking.list_voices()
    await speaking.close()


async def test_openai_has_fixed_voices_and_other_servers_need_an_address() -> None:
    assert "alloy" in {found.id for found in await create_voice(None, name="openai").list_voices()}
    with pytest.raises(ProviderError, match="base_url"):
        await create_voice(None).open()


async def test_check_refuses_a_bad_key(server: OpenAI) -> None:
    for provider in (create_transcriber(server, key="wrong"), create_voice(f"{server.address}/v1", key="wrong")):
        with pytest.raises(ProviderError):
            await provider.check()
