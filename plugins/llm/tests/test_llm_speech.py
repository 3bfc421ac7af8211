"""Speech over OpenAI's protocol, on the wire: transcription of whole utterances, streamed speech."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import date

import pytest
import pytest_asyncio
from pydantic import SecretStr
from switchboard.plugin_sdk import ProviderError, SpeechRequest, Transcript, TranscriptionRequest
from switchboard.plugin_sdk.testing import SpeechToTextContract, TextToSpeechContract
from switchboard_llm.transcription import TRANSCRIBERS, VendorTranscriber
from switchboard_llm.vendor_api import VendorSettings
from switchboard_llm.voices import VOICES, VendorVoice, VoiceSettings

from tests.fixtures.caller_voice import speak_as_caller
from tests.speech.openai import OpenAI
from tests.speech.vendor import KEY, PHRASES, SENTENCE


@pytest_asyncio.fixture
async def server() -> AsyncIterator[OpenAI]:
    async with OpenAI.listening() as server:
        yield server


def create_transcriber(address: str, *, key: str = KEY) -> VendorTranscriber:
    kind = next(kind for kind in TRANSCRIBERS if kind.name == "openai_compatible")
    return kind(VendorSettings(api_key=SecretStr(key), base_url=f"{address}/v1", model="whisper"))


def create_voice(base_url: str | None, *, key: str = KEY, name: str = "openai_compatible") -> VendorVoice:
    kind = next(kind for kind in VOICES if kind.name == name)
    return kind(VoiceSettings(api_key=SecretStr(key), base_url=base_url))


class TestTranscriptions(SpeechToTextContract[VendorTranscriber]):
    @pytest.fixture
    def provider(self, server: OpenAI) -> VendorTranscriber:
        return create_transcriber(server.address)

    @pytest.fixture
    def create_at(self) -> Callable[[str], VendorTranscriber]:
        return create_transcriber

    @pytest.fixture
    def utterance(self) -> tuple[bytes, str]:
        return speak_as_caller(SENTENCE), SENTENCE

    @pytest.fixture
    def transcription(self) -> TranscriptionRequest:
        return TranscriptionRequest(hints=PHRASES)


class TestSpeech(TextToSpeechContract[VendorVoice]):
    @pytest.fixture
    def provider(self, server: OpenAI) -> VendorVoice:
        return create_voice(f"{server.address}/v1/")

    @pytest.fixture
    def create_at(self) -> Callable[[str], VendorVoice]:
        return lambda address: create_voice(f"{address}/v1")


async def synthesize(provider: VendorTranscriber, request: TranscriptionRequest) -> Transcript:
    try:
        stream = await provider.transcribe(request)
        await stream.send(speak_as_caller(SENTENCE))
        await stream.finalize()
        async with asyncio.timeout(30):
            return await anext(aiter(stream))
    finally:
        await provider.close()


async def test_an_utterance_is_one_request_with_language_and_phrases(server: OpenAI) -> None:
    transcriber, request = create_transcriber(server.address), TranscriptionRequest("en-GB", hints=PHRASES)
    assert await synthesize(transcriber, request) == Transcript(SENTENCE, is_final=True, finalized=True)
    assert (await synthesize(create_transcriber(server.address), replace(request, language="mul"))).text == SENTENCE
    english, several = server.forms
    assert (english["model"], english["language"], english["prompt"]) == ("whisper", "en", ", ".join(PHRASES))
    assert "language" not in several


@pytest.mark.parametrize(
    ("language", "code"), [("cmn-CN", "zh"), ("yue-HK", "zh"), ("fil-PH", "tl"), ("iw-IL", "he"), ("arb", "ar")]
)
async def test_languages_are_sent_in_iso_639_1(server: OpenAI, language: str, code: str) -> None:
    await synthesize(create_transcriber(server.address), TranscriptionRequest(language))
    assert server.forms[0]["language"] == code


async def test_a_count_of_tokens_without_details_is_accepted(server: OpenAI) -> None:
    server.usage = {"type": "tokens", "input_tokens": 348, "output_tokens": 23, "total_tokens": 371}
    assert (await synthesize(create_transcriber(server.address), TranscriptionRequest(hints=PHRASES))).text == SENTENCE


@pytest.mark.parametrize(
    ("version", "path"),
    [
        (None, "/openai/v1/audio/transcriptions"),
        ("2025-03-01-preview", "/openai/deployments/listener/audio/transcriptions"),
    ],
)
async def test_azure_is_asked_at_its_own_addresses(server: OpenAI, version: str | None, path: str) -> None:
    kind = next(kind for kind in TRANSCRIBERS if kind.name == "azure")
    settings = VendorSettings(api_key=SecretStr(KEY), base_url=server.address, model="listener", api_version=version)
    assert (await synthesize(kind(settings), TranscriptionRequest(hints=PHRASES))).text == SENTENCE
    (request,) = server.requests
    assert (request.path, dict(request.query).get("api-version")) == (path, version)


async def test_an_answer_without_a_text_is_an_error(server: OpenAI) -> None:
    server.broken = True
    with pytest.raises(ProviderError, match="not a transcription"):
        await synthesize(create_transcriber(server.address), TranscriptionRequest())


@pytest.mark.parametrize(("status", "retryable"), [(401, False), (429, True), (500, True)])
async def test_refusals_are_reported_without_the_key(server: OpenAI, status: int, retryable: bool) -> None:
    server.refusals = [status]
    with pytest.raises(ProviderError) as refused:
        await synthesize(create_transcriber(server.address), TranscriptionRequest())
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
    provider = create_transcriber(server.address)
    stream = await provider.transcribe(TranscriptionRequest())
    await stream.send(bytes(8000))
    await stream.finalize()
    assert (await anext(aiter(stream))).text == ""
    await provider.close()
    assert server.requests == []


async def test_a_server_without_a_voice_list_is_an_error(server: OpenAI) -> None:
    server.lists_voices = False
    speaking = create_voice(f"{server.address}/v1")
    await speaking.open()
    with pytest.raises(ProviderError, match="does not list"):
        await speaking.list_voices()
    await speaking.close()


async def test_the_ends_of_voices_and_transcribers_are_known_and_read_from_the_list(server: OpenAI) -> None:
    """https://developers.openai.com/api/docs/deprecations: `shutdown_date` is a day, or null."""
    server.models = [
        {"id": "tts-2", "shutdown_date": "2028-03-01"},
        {"id": "tts-1-hd", "shutdown_date": None},
        {"id": "tts-1", "shutdown_date": "2027-01-20"},
    ]
    models = ["tts-2", "tts-1-hd", "tts-1", "gpt-4o-mini-tts", "gpt-4o-mini-transcribe", "another"]
    ends = {
        "tts-2": date(2028, 3, 1),
        "tts-1-hd": date(2027, 1, 6),
        "tts-1": date(2027, 1, 20),
        "gpt-4o-mini-tts": date(2027, 1, 6),
        "gpt-4o-mini-transcribe": date(2027, 2, 26),
    }
    transcriber = next(kind for kind in TRANSCRIBERS if kind.name == "openai")
    listener = transcriber(VendorSettings(api_key=SecretStr(KEY), base_url=f"{server.address}/v1"))
    for provider in (create_voice(f"{server.address}/v1", name="openai"), listener):
        assert await provider.find_model_ends(models) == ends
    assert await create_voice(f"{server.address}/v1").find_model_ends(["whisper-1", "tts-2"]) == {
        "tts-2": date(2028, 3, 1)
    }, "a server of your own may have a model of the same name"


async def test_openai_has_fixed_voices_and_other_servers_need_an_address() -> None:
    assert "alloy" in {found.id for found in await create_voice(None, name="openai").list_voices()}
    with pytest.raises(ProviderError, match="base_url"):
        await create_voice(None).open()


async def test_check_refuses_a_bad_key(server: OpenAI) -> None:
    address, key = server.address, "wrong"
    for provider in (create_transcriber(address, key=key), create_voice(f"{address}/v1", key=key)):
        with pytest.raises(ProviderError):
            await provider.check()
