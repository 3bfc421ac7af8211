"""ElevenLabs on the wire: its contract, word times, errors, and broken responses."""

from collections.abc import AsyncIterator, Callable

import pytest
import pytest_asyncio
from pydantic import HttpUrl, SecretStr
from switchboard.plugin_sdk import ProviderError, SpeechRequest
from switchboard.plugin_sdk.testing import TextToSpeechContract
from switchboard_speech.elevenlabs import ElevenLabsSettings, ElevenLabsTextToSpeech

from tests.speech.elevenlabs import ElevenLabs
from tests.speech.vendor import KEY, SENTENCE, collect_synthesis, in_use, recognize_mulaw


@pytest_asyncio.fixture
async def server() -> AsyncIterator[ElevenLabs]:
    async with ElevenLabs.listening() as server:
        yield server


def create_voice(address: str, **settings: object) -> ElevenLabsTextToSpeech:
    given = {"api_key": SecretStr(KEY), "base_url": HttpUrl(address), **settings}
    return ElevenLabsTextToSpeech(ElevenLabsSettings.model_validate(given))


class TestElevenLabs(TextToSpeechContract[ElevenLabsTextToSpeech]):
    @pytest.fixture
    def provider(self, server: ElevenLabs) -> ElevenLabsTextToSpeech:
        return create_voice(server.address)

    @pytest.fixture
    def create_at(self) -> Callable[[str], ElevenLabsTextToSpeech]:
        return create_voice


@pytest_asyncio.fixture
async def open_provider(server: ElevenLabs) -> AsyncIterator[ElevenLabsTextToSpeech]:
    async with in_use(create_voice(server.address)) as provider:
        yield provider


@pytest.mark.parametrize("counts_from_chunks", [False, True])
async def test_audio_is_mulaw_with_word_times(
    open_provider: ElevenLabsTextToSpeech, server: ElevenLabs, counts_from_chunks: bool
) -> None:
    server.counts_from_chunks = counts_from_chunks
    _, true = await collect_synthesis(SENTENCE, 1.0)
    chunks = [chunk async for chunk in open_provider.synthesize(SpeechRequest(SENTENCE))]
    assert recognize_mulaw(b"".join(chunk.audio for chunk in chunks)) == SENTENCE
    position, words = 0, []
    for chunk in chunks:
        words += [(word.text, word.start_ms + position, word.end_ms + position) for word in chunk.words]
        position += len(chunk.audio) // 8
    assert [text for text, _, _ in words] == SENTENCE.split()
    assert [start for _, start, _ in words] == pytest.approx([word.start_ms for word in true], abs=2)
    assert all(start < end <= position + 1 for _, start, end in words)


async def test_a_request_has_the_agents_settings(server: ElevenLabs) -> None:
    provider = create_voice(server.address, stability=0.5)
    await provider.open()
    for request in (
        SpeechRequest("Hola.", "21m00Tcm4TlvDq8ikWAM", language="es-MX", speed=0.5),
        SpeechRequest("Hi.", model="eleven_multilingual_v2"),
        SpeechRequest("Ciao.", language="mul"),
    ):
        assert [chunk async for chunk in provider.synthesize(request)]
    spanish, plain, several = server.requests
    assert spanish.path == "/v1/text-to-speech/21m00Tcm4TlvDq8ikWAM/stream/with-timestamps"
    assert spanish.body == {
        "text": "Hola.",
        "model_id": "eleven_flash_v2_5",
        "language_code": "es",
        "voice_settings": {"speed": 0.7, "stability": 0.5},
    }
    assert plain.body == {"text": "Hi.", "model_id": "eleven_multilingual_v2", "voice_settings": {"stability": 0.5}}
    assert "language_code" not in several.body
    await provider.close()


@pytest.mark.parametrize(("model", "sends"), [("eleven_flash_v2_5", True), ("eleven_v3", False)])
async def test_the_previous_sentences_decide_the_intonation(server: ElevenLabs, model: str, sends: bool) -> None:
    async with in_use(create_voice(server.address, model=model)) as provider:
        request = SpeechRequest("Anything else?", previous_text="We are open until six.", reply_id="r1")
        assert [chunk async for chunk in provider.synthesize(request)]
    assert server.requests[0].body.get("previous_text") == ("We are open until six." if sends else None)


@pytest.mark.parametrize("no_retention", [False, True])
async def test_requests_are_not_logged_where_nothing_may_be_retained(server: ElevenLabs, no_retention: bool) -> None:
    provider = create_voice(server.address, no_retention=no_retention)
    await provider.open()
    assert [chunk async for chunk in provider.synthesize(SpeechRequest("Hi."))]
    assert (("enable_logging", "false") in server.requests[0].query) is no_retention
    await provider.close()


@pytest.mark.parametrize(
    ("language", "code"),
    [("cmn-CN", "zh"), ("yue-HK", "zh"), ("fil-PH", "fil"), ("tl", "fil"), ("iw-IL", "he"), ("arb", "ar")],
)
async def test_languages_have_elevenlabs_names(server: ElevenLabs, language: str, code: str) -> None:
    provider = create_voice(server.address)
    await provider.open()
    assert [chunk async for chunk in provider.synthesize(SpeechRequest("Hi.", language=language))]
    assert server.requests[0].body["language_code"] == code
    await provider.close()


@pytest.mark.parametrize(
    ("status", "code", "retryable"),
    [
        (401, "invalid_api_key", False),
        (422, "422", False),
        (429, "too_many_concurrent_requests", True),
        (500, "internal_error", True),
    ],
)
async def test_refusals_precede_any_audio_and_have_the_vendors_words(
    open_provider: ElevenLabsTextToSpeech, server: ElevenLabs, status: int, code: str, retryable: bool
) -> None:
    server.refusals = [status]
    with pytest.raises(ProviderError) as refused:
        await anext(aiter(open_provider.synthesize(SpeechRequest("Hello."))))
    assert (refused.value.code, refused.value.retryable) == (code, retryable)
    assert KEY not in refused.value.message


async def test_an_interrupted_response_is_an_error(open_provider: ElevenLabsTextToSpeech, server: ElevenLabs) -> None:
    server.breaks = True
    chunks = aiter(open_provider.synthesize(SpeechRequest(SENTENCE)))
    assert len((await anext(chunks)).audio) == 2000
    with pytest.raises(ProviderError, match="connection failed"):
        await anext(chunks)


async def test_voices_have_names(open_provider: ElevenLabsTextToSpeech) -> None:
    voices = await open_provider.list_voices()
    assert [voice.name for voice in voices] == ["George", "Sarah", "Daniel"], "of each page"
    first = voices[0]
    assert (first.id, first.name, first.language, first.gender) == ("JBFqnCBsd6RMkjVDRZzb", "George", "en", "male")


async def test_an_unlisted_voice_can_be_used(open_provider: ElevenLabsTextToSpeech, server: ElevenLabs) -> None:
    assert await open_provider.has_voice("21m00Tcm4TlvDq8ikWAM")
    assert not await open_provider.has_voice("nobodys/voice")
    server.refusals = [500]
    with pytest.raises(ProviderError):
        await open_provider.has_voice("21m00Tcm4TlvDq8ikWAM")
