"""Deepgram on the wire: its contracts, requests, errors, and silences."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest
import pytest_asyncio
from pydantic import HttpUrl, SecretStr, ValidationError
from switchboard.plugin_sdk import ProviderError, SpeechRequest, Transcript, TranscriptionRequest
from switchboard.plugin_sdk.testing import SpeechToTextContract, TextToSpeechContract
from switchboard_speech.deepgram import (
    DeepgramSettings,
    DeepgramSpeechToText,
    DeepgramTextToSpeech,
    DeepgramVoiceSettings,
)

from tests.speech.deepgram import Deepgram
from tests.speech.vendor import KEY, PHRASES, SENTENCE, in_use, receive_transcript, synthesize_speech

REQUEST = TranscriptionRequest(hints=PHRASES)


@pytest_asyncio.fixture
async def server() -> AsyncIterator[Deepgram]:
    async with Deepgram.listening() as server:
        yield server


def create_transcriber(address: str, key: str = KEY) -> DeepgramSpeechToText:
    return DeepgramSpeechToText(DeepgramSettings(api_key=SecretStr(key), base_url=HttpUrl(address)))


def create_voice(address: str, key: str = KEY) -> DeepgramTextToSpeech:
    return DeepgramTextToSpeech(DeepgramVoiceSettings(api_key=SecretStr(key), base_url=HttpUrl(address)))


class TestDeepgramTranscription(SpeechToTextContract[DeepgramSpeechToText]):
    @pytest.fixture
    def provider(self, server: Deepgram) -> DeepgramSpeechToText:
        return create_transcriber(server.address)

    @pytest.fixture
    def create_at(self) -> Callable[[str], DeepgramSpeechToText]:
        return create_transcriber

    @pytest.fixture
    def utterance(self) -> tuple[bytes, str]:
        return synthesize_speech(), SENTENCE

    @pytest.fixture
    def transcription(self) -> TranscriptionRequest:
        return REQUEST


class TestDeepgramSpeech(TextToSpeechContract[DeepgramTextToSpeech]):
    @pytest.fixture
    def provider(self, server: Deepgram) -> DeepgramTextToSpeech:
        return create_voice(server.address)

    @pytest.fixture
    def create_at(self) -> Callable[[str], DeepgramTextToSpeech]:
        return create_voice


@pytest_asyncio.fixture
async def open_provider(server: Deepgram) -> AsyncIterator[DeepgramSpeechToText]:
    async with in_use(create_transcriber(server.address)) as provider:
        yield provider


async def test_a_stream_is_requested_for_phone_audio_with_the_agents_phrases(
    open_provider: DeepgramSpeechToText, server: Deepgram
) -> None:
    await (
        await open_provider.transcribe(TranscriptionRequest("en-GB", "nova-3-medical", ("one", "x" * 80, "two")))
    ).close()
    await (await open_provider.transcribe(TranscriptionRequest(model="nova-2-phonecall", hints=("one",)))).close()
    new, old = [request.query for request in server.requests]
    assert {
        ("model", "nova-3-medical"),
        ("language", "en-GB"),
        ("encoding", "mulaw"),
        ("sample_rate", "8000"),
        ("interim_results", "true"),
    } <= set(new)
    assert [item for item in new if item[0] == "keyterm"] == [("keyterm", "one"), ("keyterm", "two")]
    assert ("keywords", "one") in old


@pytest.mark.parametrize("no_retention", [False, True])
async def test_requests_are_opted_out_where_nothing_may_be_retained(server: Deepgram, no_retention: bool) -> None:
    given = {"api_key": SecretStr(KEY), "base_url": HttpUrl(server.address), "no_retention": no_retention}
    async with in_use(DeepgramSpeechToText(DeepgramSettings.model_validate(given))) as transcriber:
        await (await transcriber.transcribe(TranscriptionRequest())).close()
    async with in_use(DeepgramTextToSpeech(DeepgramVoiceSettings.model_validate(given))) as voice:
        assert [chunk async for chunk in voice.synthesize(SpeechRequest("Hi."))]
    opted_out = [("mip_opt_out", "true") in request.query for request in server.requests]
    assert opted_out == [no_retention, no_retention]


@pytest.mark.parametrize(("model", "kinds"), [("nova-3", ["pci", "numbers"]), ("flux-general-en", ["numbers"])])
async def test_deepgram_is_asked_to_redact(server: Deepgram, model: str, kinds: list[str]) -> None:
    given = {"api_key": SecretStr(KEY), "base_url": HttpUrl(server.address), "model": model, "redact": kinds}
    async with in_use(DeepgramSpeechToText(DeepgramSettings.model_validate(given))) as transcriber:
        await (await transcriber.transcribe(TranscriptionRequest())).close()
    assert [value for name, value in server.requests[0].query if name == "redact"] == kinds


def test_flux_is_not_asked_to_redact_entities() -> None:
    with pytest.raises(ValidationError, match="pci: Flux redacts aggressive_numbers, numbers only"):
        DeepgramSettings.model_validate({"api_key": KEY, "model": "flux-general-en", "redact": ["pci", "numbers"]})


@pytest.mark.parametrize(
    ("language", "code"),
    [("de-DE", "de"), ("de-CH", "de-CH"), ("nb-NO", "no"), ("es-419", "es-419"), ("it", "it"), ("mul", "multi"),
     ("cmn-CN", "zh-CN"), ("cmn-TW", "zh-TW"), ("zh-HK", "zh-HK"), ("yue-HK", "zh-HK"), ("yue", "zh-HK"),
     ("fil-PH", "tl"), ("iw-IL", "he"), ("arb", "ar")],
)  # fmt: skip
async def test_languages_have_deepgrams_names(
    open_provider: DeepgramSpeechToText, server: Deepgram, language: str, code: str
) -> None:
    await (await open_provider.transcribe(TranscriptionRequest(language))).close()
    assert dict(server.requests[0].query)["language"] == code


async def test_interim_transcripts_arrive_during_speech_and_final_ones_have_times(
    open_provider: DeepgramSpeechToText,
) -> None:
    stream = await open_provider.transcribe(REQUEST)
    await stream.send(synthesize_speech())
    first = await receive_transcript(stream)
    assert (first.text, first.is_final, first.finalized) == ("can", False, False)
    await stream.finalize()
    last = await receive_transcript(stream)
    assert (last.text, last.is_final, last.finalized, last.confidence) == (SENTENCE, True, True, 0.9)
    assert [(word.text, word.start_ms) for word in last.words][:2] == [("can", 0), ("i", 100)]
    await stream.close()


async def test_an_unconfirmed_end_is_confirmed_locally(open_provider: DeepgramSpeechToText, server: Deepgram) -> None:
    stream = await open_provider.transcribe(REQUEST)
    await stream.finalize()
    assert await receive_transcript(stream) == Transcript("", is_final=True, finalized=True)
    assert server.controls == []
    await stream.send(bytes(800))
    await stream.finalize()
    assert (await receive_transcript(stream)).finalized
    assert server.controls == ["Finalize"]
    await stream.close()


async def test_a_silent_stream_is_kept_alive(open_provider: DeepgramSpeechToText, server: Deepgram) -> None:
    stream = await open_provider.transcribe(REQUEST)
    async with asyncio.timeout(10):
        await server.control_came.wait()
    assert server.controls[0] == "KeepAlive"
    await stream.close()


async def test_a_closed_stream_reports_deepgrams_reason(open_provider: DeepgramSpeechToText, server: Deepgram) -> None:
    server.closing = "NET-0001"
    stream = await open_provider.transcribe(REQUEST)
    await stream.send(synthesize_speech())
    await stream.finalize()
    assert not (await receive_transcript(stream)).is_final
    with pytest.raises(ProviderError, match="NET-0001") as failure:
        await receive_transcript(stream)
    assert (failure.value.code, failure.value.retryable) == ("1011", True)
    with pytest.raises(ProviderError, match="NET-0001"):
        await stream.send(b"\xff")
    await stream.close()


async def test_a_broken_stream_is_an_error_and_can_be_replaced(
    open_provider: DeepgramSpeechToText, server: Deepgram
) -> None:
    stream = await open_provider.transcribe(REQUEST)
    await server.drop()
    with pytest.raises(ProviderError, match="lost"):
        await receive_transcript(stream)
    await stream.close()
    again = await open_provider.transcribe(REQUEST)
    await again.send(synthesize_speech())
    await again.close()


@pytest.mark.parametrize(("status", "retryable"), [(400, False), (401, False), (429, True), (500, True)])
async def test_refusals_state_a_reason_and_whether_to_retry(
    open_provider: DeepgramSpeechToText, server: Deepgram, status: int, retryable: bool
) -> None:
    server.refusals = [status, status]
    with pytest.raises(ProviderError) as refused:
        await open_provider.transcribe(REQUEST)
    assert (refused.value.code, refused.value.retryable) == (str(status), retryable)
    assert KEY not in refused.value.message
    with pytest.raises(ProviderError, match=r"\*\*\*") as refused:
        await open_provider.check()
    assert refused.value.retryable is retryable


async def test_check_and_streams_report_a_wrong_key(server: Deepgram) -> None:
    provider, voice = create_transcriber(server.address, "wrong"), create_voice(server.address, "wrong")
    await provider.open()
    await voice.open()
    with pytest.raises(ProviderError) as error:
        await provider.check()
    assert (error.value.code, error.value.retryable) == ("INVALID_AUTH", False)
    with pytest.raises(ProviderError, match="INVALID_AUTH"):
        await provider.transcribe(REQUEST)
    with pytest.raises(ProviderError, match="INVALID_AUTH"):
        await anext(aiter(voice.synthesize(SpeechRequest("Hello."))))
    await provider.close()
    await voice.close()


async def test_an_unreachable_vendor_is_a_retryable_error() -> None:
    provider = DeepgramSpeechToText(DeepgramSettings(api_key=SecretStr(KEY), base_url=HttpUrl("http://127.0.0.1:9")))
    await provider.open()
    with pytest.raises(
        ProviderError, match=r"connection failed .nothing listens at 127\.0\.0\.1:9; check the address"
    ) as failure:
        await provider.transcribe(REQUEST)
    assert failure.value.retryable
    await provider.close()


async def test_a_voice_is_requested_as_mulaw_at_its_speed(server: Deepgram) -> None:
    voice = create_voice(server.address)
    await voice.open()
    async for _ in voice.synthesize(SpeechRequest("Hello.", "aura-2-apollo-en", speed=3.0)):
        pass
    query = dict(server.requests[-1].query)
    assert query == {
        "model": "aura-2-apollo-en",
        "encoding": "mulaw",
        "sample_rate": "8000",
        "container": "none",
        "speed": "1.5",
    }
    assert [(found.id, found.gender) for found in await voice.list_voices()] == [
        ("aura-2-thalia-en", "feminine"),
        ("aura-2-apollo-en", "masculine"),
    ]
    await voice.close()
