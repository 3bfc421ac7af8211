"""ElevenLabs' Scribe on the wire: its contract, commits, and errors before and after the handshake."""

from collections.abc import AsyncIterator, Callable

import pytest
import pytest_asyncio
from pydantic import HttpUrl, SecretStr
from switchboard.plugin_sdk import ProviderError, TranscriptionRequest
from switchboard.plugin_sdk.testing import SpeechToTextContract
from switchboard_speech.elevenlabs import ElevenLabsSpeechToText, ScribeSettings

from tests.fixtures.eventually import eventually
from tests.speech.elevenlabs import ElevenLabs
from tests.speech.vendor import KEY, SENTENCE, in_use, receive_transcript, synthesize_speech

REQUEST = TranscriptionRequest()


@pytest_asyncio.fixture
async def server() -> AsyncIterator[ElevenLabs]:
    async with ElevenLabs.listening() as server:
        yield server


def create_transcriber(address: str, key: str = KEY, **settings: object) -> ElevenLabsSpeechToText:
    given = {"api_key": SecretStr(key), "base_url": HttpUrl(address), **settings}
    return ElevenLabsSpeechToText(ScribeSettings.model_validate(given))


class TestScribe(SpeechToTextContract[ElevenLabsSpeechToText]):
    @pytest.fixture
    def provider(self, server: ElevenLabs) -> ElevenLabsSpeechToText:
        return create_transcriber(server.address)

    @pytest.fixture
    def create_at(self) -> Callable[[str], ElevenLabsSpeechToText]:
        return create_transcriber

    @pytest.fixture
    def utterance(self) -> tuple[bytes, str]:
        return synthesize_speech(), SENTENCE


@pytest_asyncio.fixture
async def open_provider(server: ElevenLabs) -> AsyncIterator[ElevenLabsSpeechToText]:
    async with in_use(create_transcriber(server.address)) as provider:
        yield provider


async def test_words_are_interim_and_then_final_with_times(
    open_provider: ElevenLabsSpeechToText, server: ElevenLabs
) -> None:
    stream = await open_provider.transcribe(REQUEST)
    audio = synthesize_speech()
    for start in range(0, len(audio), 160):
        await stream.send(audio[start : start + 160])
    interim = await receive_transcript(stream)
    assert (interim.text, interim.is_final) == ("can", False)
    await stream.finalize()
    last = await receive_transcript(stream)
    assert (last.text, last.is_final, last.finalized) == (SENTENCE, True, True)
    assert [(word.text, word.start_ms, word.end_ms) for word in last.words][:2] == [("can", 0, 100), ("i", 100, 200)]
    assert last.confidence == pytest.approx(0.905, abs=0.001)
    assert set(server.sizes[:-2]) == {800}
    await stream.close()


async def test_a_short_utterance_is_long_enough_to_be_committed(
    open_provider: ElevenLabsSpeechToText, server: ElevenLabs
) -> None:
    stream = await open_provider.transcribe(REQUEST)
    await stream.send(b"\xff" * 400)
    await stream.finalize()
    assert (await receive_transcript(stream)).finalized
    assert sum(server.sizes) >= 2400
    await stream.close()


async def test_nothing_is_committed_without_new_audio(
    open_provider: ElevenLabsSpeechToText, server: ElevenLabs
) -> None:
    stream = await open_provider.transcribe(REQUEST)
    await stream.finalize()
    assert (await receive_transcript(stream)).finalized
    await stream.close()
    assert server.sizes == []


async def test_a_commit_without_an_answer_does_not_hold_the_turn(
    open_provider: ElevenLabsSpeechToText, server: ElevenLabs
) -> None:
    server.answers = False
    stream = await open_provider.transcribe(REQUEST)
    await stream.send(b"\xff" * 4000)
    await stream.finalize()
    last = await receive_transcript(stream)
    assert (last.text, last.finalized) == ("", True)
    await stream.close()


async def test_a_silent_stream_is_kept_alive(open_provider: ElevenLabsSpeechToText, server: ElevenLabs) -> None:
    stream = await open_provider.transcribe(REQUEST)
    await eventually(server.list_sizes, lambda sizes: sizes[:2] == [0, 0])
    await stream.close()


@pytest.mark.parametrize(
    ("language", "code"), [("es-MX", "es"), ("fil-PH", "fil"), ("yue-HK", "yue"), ("iw-IL", "he"), ("mul", None)]
)
async def test_languages_have_elevenlabs_names(
    open_provider: ElevenLabsSpeechToText, server: ElevenLabs, language: str, code: str | None
) -> None:
    await (await open_provider.transcribe(TranscriptionRequest(language))).close()
    assert dict(server.requests[0].query).get("language_code") == code


async def test_phrases_become_keyterms_that_elevenlabs_accepts(
    open_provider: ElevenLabsSpeechToText, server: ElevenLabs
) -> None:
    hints = ("Acme", "Siobhan O'Malley", "one two three four five six", "x" * 21, *(f"term {at}" for at in range(60)))
    await (await open_provider.transcribe(TranscriptionRequest(hints=hints))).close()
    terms = [value for name, value in server.requests[0].query if name == "keyterms"]
    assert terms[:3] == ["Acme", "Siobhan O'Malley", "term 0"]
    assert len(terms) == 50


@pytest.mark.parametrize("no_retention", [False, True])
async def test_sessions_are_not_logged_where_nothing_may_be_retained(server: ElevenLabs, no_retention: bool) -> None:
    async with in_use(create_transcriber(server.address, no_retention=no_retention)) as provider:
        await (await provider.transcribe(REQUEST)).close()
    assert (("enable_logging", "false") in server.requests[0].query) is no_retention


@pytest.mark.parametrize(
    ("kind", "retryable"),
    [
        ("auth_error", False),
        ("quota_exceeded", False),
        ("invalid_request", False),
        ("rate_limited", True),
        ("resource_exhausted", True),
    ],
)
async def test_a_session_that_does_not_start_states_the_reason(
    open_provider: ElevenLabsSpeechToText, server: ElevenLabs, kind: str, retryable: bool
) -> None:
    server.faults = [(kind, f"not with {KEY}")]
    with pytest.raises(ProviderError, match=r"not with \*\*\*") as refused:
        await open_provider.transcribe(REQUEST)
    assert (refused.value.code, refused.value.retryable) == (kind, retryable)


async def test_a_wrong_key_is_reported(server: ElevenLabs) -> None:
    async with in_use(create_transcriber(server.address, "wrong")) as provider:
        with pytest.raises(ProviderError) as refused:
            await provider.check()
    assert (refused.value.code, refused.value.retryable) == ("401", False)


async def test_a_check_needs_no_audio(open_provider: ElevenLabsSpeechToText, server: ElevenLabs) -> None:
    await open_provider.check()
    assert server.sizes == []


async def test_a_dropped_session_is_an_error(open_provider: ElevenLabsSpeechToText, server: ElevenLabs) -> None:
    stream = await open_provider.transcribe(REQUEST)
    await server.drop()
    with pytest.raises(ProviderError, match="lost"):
        await receive_transcript(stream)
    await stream.close()
