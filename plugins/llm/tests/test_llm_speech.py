"""Speech over OpenAI's protocol, on the wire: transcription of whole utterances, streamed speech."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from pydantic import SecretStr
from switchboard.plugin_sdk import ProviderError, SpeechRequest, Transcript, TranscriptionRequest
from switchboard.plugin_sdk.testing import SpeechToTextContract, TextToSpeechContract
from switchboard_llm.client import LiteLLMSettings
from switchboard_llm.transcription import TRANSCRIBERS, VendorTranscriber
from switchboard_llm.voices import VOICES, VendorVoice, VoiceSettings
from switchboard_offline.espeak import speak_text

from tests.speech.openai import OpenAI
from tests.speech.vendor import KEY, PHRASES, SENTENCE

# LiteLLM and the libraries under it warn of their own future; none of it is ours to mend.
pytestmark = [
    pytest.mark.usefixtures("litellm_clients"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning"),
]


@pytest_asyncio.fixture
async def server() -> AsyncIterator[OpenAI]:
    async with OpenAI.listening() as server:
        yield server


def transcriber(server: OpenAI, *, key: str = KEY) -> VendorTranscriber:
    kind = next(kind for kind in TRANSCRIBERS if kind.name == "openai_compatible")
    return kind(LiteLLMSettings(api_key=SecretStr(key), base_url=f"{server.address}/v1", model="whisper"))


def voice(base_url: str | None, *, key: str = KEY, name: str = "openai_compatible") -> VendorVoice:
    kind = next(kind for kind in VOICES if kind.name == name)
    return kind(VoiceSettings(api_key=SecretStr(key), base_url=base_url))


class TestTranscriptions(SpeechToTextContract[VendorTranscriber]):
    @pytest.fixture
    def provider(self, server: OpenAI) -> VendorTranscriber:
        return transcriber(server)

    @pytest.fixture
    def utterance(self) -> tuple[bytes, str]:
        return speak_text(SENTENCE), SENTENCE

    @pytest.fixture
    def transcription(self) -> TranscriptionRequest:
        return TranscriptionRequest(hints=PHRASES)


class TestSpeech(TextToSpeechContract[VendorVoice]):
    @pytest.fixture
    def provider(self, server: OpenAI) -> VendorVoice:
        return voice(f"{server.address}/v1/")


async def synthesize(provider: VendorTranscriber, request: TranscriptionRequest) -> Transcript:
    stream = await provider.transcribe(request)
    await stream.send(speak_text(SENTENCE))
    await stream.finalize()
    async with asyncio.timeout(30):
        return await anext(aiter(stream))


async def test_an_utterance_is_one_request_with_language_and_phrases(server: OpenAI) -> None:
    assert await synthesize(transcriber(server), TranscriptionRequest("en-GB", hints=PHRASES)) == Transcript(
        SENTENCE, is_final=True, finalized=True
    )
    assert (await synthesize(transcriber(server), TranscriptionRequest("mul", hints=PHRASES))).text == SENTENCE
    english, several = server.forms
    assert (english["model"], english["language"], english["prompt"]) == ("whisper", "en", ", ".join(PHRASES))
    assert "language" not in several


@pytest.mark.parametrize(("status", "retryable"), [(401, False), (429, True), (500, True)])
async def test_refusals_are_told_and_never_show_the_key(server: OpenAI, status: int, retryable: bool) -> None:
    server.refusals = [status]
    with pytest.raises(ProviderError) as refused:
        await synthesize(transcriber(server), TranscriptionRequest())
    assert (refused.value.code, refused.value.retryable) == (str(status), retryable)
    assert KEY not in refused.value.message
    server.refusals = [status]
    speaking = voice(f"{server.address}/v1")
    await speaking.open()
    with pytest.raises(ProviderError, match=r"\*\*\*") as refused:
        await anext(aiter(speaking.synthesize(SpeechRequest("Hello."))))
    assert refused.value.retryable is retryable
    await speaking.close()


async def test_silence_is_not_asked_about(server: OpenAI) -> None:
    stream = await transcriber(server).transcribe(TranscriptionRequest())
    await stream.send(bytes(8000))
    await stream.finalize()
    assert (await anext(aiter(stream))).text == ""
    assert server.asked == []


async def test_a_server_that_lists_no_voices_says_so(server: OpenAI) -> None:
    server.lists_voices = False
    speaking = voice(f"{server.address}/v1")
    await speaking.open()
    with pytest.raises(ProviderError, match="does not list"):
        await speaking.list_voices()
    await speaking.close()


async def test_openai_has_its_voices_and_an_unknown_server_needs_an_address() -> None:
    assert "alloy" in {found.id for found in await voice(None, name="openai").list_voices()}
    with pytest.raises(ProviderError, match="base_url"):
        await voice(None).open()


async def test_check_refuses_a_bad_key(server: OpenAI) -> None:
    for provider in (transcriber(server, key="wrong"), voice(f"{server.address}/v1", key="wrong")):
        with pytest.raises(ProviderError):
            await provider.check()
