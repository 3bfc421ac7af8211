"""Deepgram's Flux on the wire: its contract, parameters, turns, and errors."""

from collections.abc import AsyncIterator, Callable

import pytest
import pytest_asyncio
from pydantic import HttpUrl, SecretStr, ValidationError
from switchboard.plugin_sdk import ProviderError, SpeechToTextStream, Transcript, TranscriptionRequest
from switchboard.plugin_sdk.testing import SpeechToTextContract
from switchboard_speech.deepgram import DeepgramSettings, DeepgramSpeechToText

from tests.speech.deepgram import Deepgram
from tests.speech.vendor import KEY, PHRASES, SENTENCE, in_use, receive_transcript, synthesize_speech

REQUEST = TranscriptionRequest(hints=PHRASES, max_silence_seconds=2.0)
QUIET = b"\xff" * 1600


@pytest_asyncio.fixture
async def server() -> AsyncIterator[Deepgram]:
    async with Deepgram.listening() as server:
        yield server


def create_transcriber(address: str) -> DeepgramSpeechToText:
    settings = DeepgramSettings(api_key=SecretStr(KEY), base_url=HttpUrl(address), model="flux-general-en")
    return DeepgramSpeechToText(settings)


class TestFlux(SpeechToTextContract[DeepgramSpeechToText]):
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


@pytest_asyncio.fixture
async def open_provider(server: Deepgram) -> AsyncIterator[DeepgramSpeechToText]:
    async with in_use(create_transcriber(server.address)) as provider:
        yield provider


async def receive_until(stream: SpeechToTextStream, state: str) -> list[Transcript]:
    """Return the transcripts until the turn is in this state."""
    transcripts = [await receive_transcript(stream)]
    while transcripts[-1].turn is None or transcripts[-1].turn.state != state:
        transcripts.append(await receive_transcript(stream))
    return transcripts


async def test_flux_is_asked_for_phone_audio_and_eager_ends(
    open_provider: DeepgramSpeechToText, server: Deepgram
) -> None:
    for request in (
        TranscriptionRequest("en-US", None, ("one", "x" * 80), 0.3),
        TranscriptionRequest("pt-BR", "flux-general-multi"),
        TranscriptionRequest("mul", "flux-general-multi", (), 20.0),
    ):
        await (await open_provider.transcribe(request)).close()
    assert {request.path for request in server.requests} == {"/v2/listen"}
    usual = {"encoding": "mulaw", "sample_rate": "8000", "eot_threshold": "0.7"}
    assert [dict(request.query) for request in server.requests] == [
        {"model": "flux-general-en", "eager_eot_threshold": "0.5", "eot_timeout_ms": "500", "keyterm": "one", **usual},
        {"model": "flux-general-multi", "language_hint": "pt", **usual},
        {"model": "flux-general-multi", "eager_eot_threshold": "0.5", "eot_timeout_ms": "10000", **usual},
    ]


async def test_a_turn_ends_eagerly_resumes_and_ends(open_provider: DeepgramSpeechToText) -> None:
    stream = await open_provider.transcribe(REQUEST)
    await stream.send(synthesize_speech() + QUIET)
    await stream.finalize()
    eager = (await receive_until(stream, "eager_end"))[-1]
    assert eager.turn is not None
    assert eager.turn.probability == 0.6
    await stream.send(synthesize_speech("thank you"))
    assert (await receive_until(stream, "ongoing"))[-1].text == ""
    await stream.finalize()
    later = await receive_until(stream, "end")
    assert "thank you" in [transcript.text for transcript in later if transcript.is_final]
    assert SENTENCE not in [transcript.text for transcript in later]
    await stream.close()


async def test_the_silence_of_a_pause_is_sent_until_the_turn_ends(open_provider: DeepgramSpeechToText) -> None:
    stream = await open_provider.transcribe(REQUEST)
    await stream.send(synthesize_speech())
    await stream.finalize()
    transcripts = await receive_until(stream, "end")
    (finalized,) = [transcript for transcript in transcripts if transcript.finalized]
    assert finalized.text == SENTENCE
    assert transcripts[-1].text == ""
    await stream.close()


async def test_a_turn_that_flux_does_not_end_is_final_all_the_same(
    open_provider: DeepgramSpeechToText, server: Deepgram
) -> None:
    server.ends_turns = False
    stream = await open_provider.transcribe(TranscriptionRequest(hints=PHRASES))
    for text in (SENTENCE, "thank you"):
        await stream.send(synthesize_speech(text))
        await stream.finalize()
        while not (transcript := await receive_transcript(stream)).finalized:
            pass
        assert transcript.text == text
        assert transcript.turn is not None
        assert transcript.turn.state == "ongoing"
    await stream.close()


async def test_errors_of_the_stream_state_their_code(open_provider: DeepgramSpeechToText, server: Deepgram) -> None:
    stream = await open_provider.transcribe(REQUEST)
    await stream._send_message('{"type": "Finalize"}')  # type: ignore[attr-defined] # which Flux does not know
    with pytest.raises(ProviderError) as failure:
        await receive_transcript(stream)
    assert failure.value.code == "UNPARSABLE_CLIENT_MESSAGE"
    await stream.close()


async def test_a_message_that_is_not_an_object_ends_the_stream(open_provider: DeepgramSpeechToText) -> None:
    stream = await open_provider.transcribe(REQUEST)
    await stream._send_message('{"type": "Test", "echo": "[]"}')  # type: ignore[attr-defined] # for the test's server
    with pytest.raises(ProviderError, match="sent invalid data"):
        await receive_transcript(stream)
    await stream.close()


def test_the_eager_threshold_is_not_greater_than_the_other() -> None:
    with pytest.raises(ValidationError, match="eager_eot_threshold"):
        DeepgramSettings(api_key=SecretStr(KEY), eot_threshold=0.6, eager_eot_threshold=0.7)
