"""Cartesia's Ink on the wire: its contract, chunks, models, keyterms, and errors."""

from collections.abc import AsyncIterator, Callable
from typing import Literal

import pytest
import pytest_asyncio
from pydantic import HttpUrl, SecretStr
from switchboard.plugin_sdk import ProviderError, TranscriptionRequest
from switchboard.plugin_sdk.testing import SpeechToTextContract
from switchboard_speech.cartesia import CartesiaSpeechToText, InkSettings

from tests.fixtures.eventually import eventually
from tests.speech.cartesia import Cartesia
from tests.speech.vendor import KEY, SENTENCE, in_use, receive_transcript, synthesize_speech

REQUEST = TranscriptionRequest()


@pytest_asyncio.fixture
async def server() -> AsyncIterator[Cartesia]:
    async with Cartesia.listening() as server:
        yield server


def create_transcriber(address: str, key: str = KEY) -> CartesiaSpeechToText:
    return CartesiaSpeechToText(InkSettings(api_key=SecretStr(key), base_url=HttpUrl(address)))


class TestInk(SpeechToTextContract[CartesiaSpeechToText]):
    @pytest.fixture
    def provider(self, server: Cartesia) -> CartesiaSpeechToText:
        return create_transcriber(server.address)

    @pytest.fixture
    def create_at(self) -> Callable[[str], CartesiaSpeechToText]:
        return create_transcriber

    @pytest.fixture
    def utterance(self) -> tuple[bytes, str]:
        return synthesize_speech(), SENTENCE


@pytest_asyncio.fixture
async def open_provider(server: Cartesia) -> AsyncIterator[CartesiaSpeechToText]:
    async with in_use(create_transcriber(server.address)) as provider:
        yield provider


@pytest.mark.parametrize(("form", "has_times"), [("columns", True), ("null", False), ("unknown", False)])
async def test_word_times_of_another_form_do_not_end_the_stream(
    open_provider: CartesiaSpeechToText,
    server: Cartesia,
    form: Literal["columns", "null", "unknown"],
    has_times: bool,
) -> None:
    """Cartesia's SDK and its page of word times describe two forms."""
    server.word_form = form
    stream = await open_provider.transcribe(REQUEST)
    await stream.send(synthesize_speech())
    await stream.finalize()
    while not (last := await receive_transcript(stream)).finalized:
        pass
    words = [(word.text, word.start_ms) for word in last.words][:2]
    assert (last.text, words) == (SENTENCE, [("can", 0), ("i", 100)] if has_times else [])
    await stream.close()


async def test_chunks_are_joined_as_they_are(open_provider: CartesiaSpeechToText) -> None:
    stream = await open_provider.transcribe(REQUEST)
    await stream.send(synthesize_speech())
    await stream.finalize()
    heard = [await receive_transcript(stream)]
    while not heard[-1].finalized:
        heard.append(await receive_transcript(stream))
    assert [(transcript.text, transcript.is_final) for transcript in heard] == [
        ("ca", False), (SENTENCE[:5], False), (SENTENCE, False), (SENTENCE, True),
    ]  # fmt: skip
    assert [(word.text, word.start_ms) for word in heard[-1].words][:2] == [("can", 0), ("i", 100)]
    await stream.close()


async def test_a_flush_without_an_answer_does_not_hold_the_turn(
    open_provider: CartesiaSpeechToText, server: Cartesia
) -> None:
    server.answers = False
    stream = await open_provider.transcribe(REQUEST)
    await stream.finalize()
    last = await receive_transcript(stream)
    assert (last.text, last.finalized) == ("", True)
    await stream.close()


async def test_a_silent_stream_is_kept_alive(open_provider: CartesiaSpeechToText, server: Cartesia) -> None:
    stream = await open_provider.transcribe(REQUEST)

    async def count_audio_bytes() -> int:
        return server.audio_bytes

    await eventually(count_audio_bytes)
    await stream.close()


@pytest.mark.parametrize(
    ("language", "model", "sent"),
    [
        ("en-US", "ink-2", None),
        ("ja", "ink-2", None),
        ("mul", "ink-2", None),
        ("de-DE", "ink-whisper", "de"),
        ("yue-HK", "ink-whisper", "yue"),
        ("nb-NO", "ink-whisper", "no"),
    ],
)
async def test_the_model_follows_the_language(
    open_provider: CartesiaSpeechToText, server: Cartesia, language: str, model: str, sent: str | None
) -> None:
    await (await open_provider.transcribe(TranscriptionRequest(language))).close()
    query = dict(server.requests[0].query)
    assert (query["model"], query.get("language")) == (model, sent)


async def test_an_agents_own_model_is_used(open_provider: CartesiaSpeechToText, server: Cartesia) -> None:
    await (await open_provider.transcribe(TranscriptionRequest("en", model="ink-whisper-2025-06-04"))).close()
    query = dict(server.requests[0].query)
    assert (query["model"], query["language"]) == ("ink-whisper-2025-06-04", "en")


async def test_phrases_become_keyterms_within_cartesias_limits(
    open_provider: CartesiaSpeechToText, server: Cartesia
) -> None:
    hints = ("talk to a human", *("x" * 50 for _ in range(30)))
    await (await open_provider.transcribe(TranscriptionRequest(hints=hints))).close()
    assert "keyterm=talk%20to%20a%20human&" in server.raw_query
    assert server.raw_query.count("keyterm=") == 24, "1,200 characters together"
    await (await open_provider.transcribe(TranscriptionRequest("de", hints=hints))).close()
    assert "keyterm" not in server.raw_query, "Ink Whisper has none"


@pytest.mark.parametrize(
    ("status", "code", "retryable"),
    [(402, "credit_limit_reached", False), (429, "too_many_requests", True), (500, "internal_error", True)],
)
async def test_an_error_ends_the_stream_with_its_reason(
    open_provider: CartesiaSpeechToText, server: Cartesia, status: int, code: str, retryable: bool
) -> None:
    server.faults = [status]
    stream = await open_provider.transcribe(REQUEST)
    with pytest.raises(ProviderError, match=r"\*\*\*") as refused:
        await receive_transcript(stream)
    assert (refused.value.code, refused.value.retryable) == (code, retryable)
    await stream.close()


async def test_a_wrong_key_is_reported(server: Cartesia) -> None:
    async with in_use(create_transcriber(server.address, "wrong")) as provider:
        with pytest.raises(ProviderError, match="401") as refused:
            await provider.check()
    assert not refused.value.retryable


async def test_a_dropped_stream_is_an_error(open_provider: CartesiaSpeechToText, server: Cartesia) -> None:
    stream = await open_provider.transcribe(REQUEST)
    await server.drop()
    with pytest.raises(ProviderError, match="lost"):
        await receive_transcript(stream)
    await stream.close()
