"""AssemblyAI on the wire: its contract, message lengths, turns, and errors after the handshake."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace

import pytest
import pytest_asyncio
from pydantic import HttpUrl, SecretStr, ValidationError
from switchboard.plugin_sdk import ProviderError, SpeechToTextStream, Transcript, TranscriptionRequest
from switchboard.plugin_sdk.testing import SpeechToTextContract
from switchboard_speech.assemblyai import AssemblyAISettings, AssemblyAISpeechToText

from tests.speech.assemblyai import AssemblyAI
from tests.speech.vendor import KEY, PHRASES, SENTENCE, in_use, receive_transcript, synthesize_speech

REQUEST = TranscriptionRequest(hints=PHRASES)
JUDGED = TranscriptionRequest(hints=PHRASES, max_silence_seconds=2.0)


@pytest_asyncio.fixture
async def server() -> AsyncIterator[AssemblyAI]:
    async with AssemblyAI.listening() as server:
        yield server


def create_transcriber(address: str, key: str = KEY) -> AssemblyAISpeechToText:
    url = HttpUrl(address)
    return AssemblyAISpeechToText(AssemblyAISettings(api_key=SecretStr(key), base_url=url, api_url=url))


class TestAssemblyAI(SpeechToTextContract[AssemblyAISpeechToText]):
    @pytest.fixture
    def provider(self, server: AssemblyAI) -> AssemblyAISpeechToText:
        return create_transcriber(server.address)

    @pytest.fixture
    def create_at(self) -> Callable[[str], AssemblyAISpeechToText]:
        return create_transcriber

    @pytest.fixture
    def utterance(self) -> tuple[bytes, str]:
        return synthesize_speech(), SENTENCE

    @pytest.fixture
    def transcription(self) -> TranscriptionRequest:
        return REQUEST


@pytest_asyncio.fixture
async def open_provider(server: AssemblyAI) -> AsyncIterator[AssemblyAISpeechToText]:
    async with in_use(create_transcriber(server.address)) as provider:
        yield provider


async def test_audio_is_sent_in_messages_of_the_accepted_length(
    open_provider: AssemblyAISpeechToText, server: AssemblyAI
) -> None:
    stream = await open_provider.transcribe(REQUEST)
    audio = synthesize_speech()
    await stream.send(audio)
    await stream.send(b"\xff" * 100)
    assert not (await receive_transcript(stream)).is_final
    await stream.finalize()
    unformatted, last = await receive_transcript(stream), await receive_transcript(stream)
    assert (unformatted.text, unformatted.is_final) == (SENTENCE, False)
    assert (last.text, last.finalized) == (f"{SENTENCE.capitalize()}.", True)
    assert [(word.text, word.start_ms) for word in last.words][:2] == [("can", 0), ("i", 100)]
    assert sum(server.frames) >= len(audio) + 100
    assert server.frames[0] == 8000
    await stream.close()


async def test_a_turn_is_not_lost_or_repeated_if_its_formatted_form_comes_late(
    open_provider: AssemblyAISpeechToText, server: AssemblyAI
) -> None:
    server.release.clear()
    stream = await open_provider.transcribe(REQUEST)
    heard = []
    for _ in range(2):
        await stream.send(synthesize_speech())
        await stream.finalize()
        while not (transcript := await receive_transcript(stream)).finalized:
            pass
        heard.append(transcript.text)
        server.release.set()
    assert heard == [SENTENCE, f"{SENTENCE.capitalize()}."]
    await stream.close()


@pytest.mark.parametrize(
    ("model", "is_asked"), [("universal-streaming-multilingual", True), ("universal-3-5-pro", False)]
)
async def test_only_universal_streaming_is_asked_for_punctuation(
    open_provider: AssemblyAISpeechToText, server: AssemblyAI, model: str, is_asked: bool
) -> None:
    await (await open_provider.transcribe(TranscriptionRequest(model=model))).close()
    assert ("format_turns", "true") in server.requests[0].query or not is_asked
    assert "format_turns" not in dict(server.requests[0].query) or is_asked


async def test_the_model_follows_the_language(open_provider: AssemblyAISpeechToText, server: AssemblyAI) -> None:
    for request in (
        TranscriptionRequest(),
        TranscriptionRequest("es-MX"),
        TranscriptionRequest(model="universal-3-5-pro"),
    ):
        await (await open_provider.transcribe(request)).close()
    assert [dict(received.query)["speech_model"] for received in server.requests] == [
        "universal-streaming-english", "universal-streaming-multilingual", "universal-3-5-pro",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("model", "language", "codes"),
    [
        ("universal-3-5-pro", "es-MX", '["es"]'),
        ("u3-rt-pro", "nb-NO", '["no"]'),
        ("u3-rt-pro", "mul", '["en", "de"]'),
        ("universal-3-5-pro", "pl-PL", None),
        ("universal-streaming-multilingual", "es-MX", None),
    ],
)
async def test_universal_3_is_steered_to_the_languages(
    server: AssemblyAI, model: str, language: str, codes: str | None
) -> None:
    url = HttpUrl(server.address)
    settings = AssemblyAISettings(api_key=SecretStr(KEY), base_url=url, api_url=url, language_codes=["en", "de"])
    async with in_use(AssemblyAISpeechToText(settings)) as provider:
        await (await provider.transcribe(TranscriptionRequest(language, model=model))).close()
    assert dict(server.requests[0].query).get("language_codes") == codes


@pytest.mark.parametrize("model", ["universal-streaming-english", "universal-3-5-pro"])
async def test_assemblyai_is_asked_to_redact_and_nothing_else_brings_words(server: AssemblyAI, model: str) -> None:
    url = HttpUrl(server.address)
    settings = AssemblyAISettings(
        api_key=SecretStr(KEY), base_url=url, api_url=url, redact_pii=True, redact_pii_policies=["person_name"]
    )
    async with in_use(AssemblyAISpeechToText(settings)) as provider:
        stream = await provider.transcribe(TranscriptionRequest(model=model))
        await stream.send(synthesize_speech())
        await stream.finalize()
        async with asyncio.timeout(20):
            said = await anext(transcript async for transcript in stream if transcript.text)
        await stream.close()
    assert said.is_final
    assert said.words == ()
    query = dict(server.requests[0].query)
    assert {name: value for name, value in query.items() if "redact" in name or "partial" in name} == {
        "redact_pii": "true",
        "redact_pii_sub": "entity_name",
        "redact_pii_policies": '["person_name"]',
        "include_partial_turns": "false",
    }


def test_redaction_excludes_turn_detection() -> None:
    with pytest.raises(ValidationError, match="redact_pii needs whole turns"):
        AssemblyAISettings(api_key=SecretStr(KEY), redact_pii=True, turn_detection=True)


def test_unknown_languages_are_refused() -> None:
    with pytest.raises(ValidationError, match="xx: Universal-3 knows ar"):
        AssemblyAISettings(api_key=SecretStr(KEY), language_codes=["en", "xx"])


async def test_models_do_not_end_turns_by_themselves(open_provider: AssemblyAISpeechToText, server: AssemblyAI) -> None:
    for model in ("universal-streaming-english", "universal-3-5-pro", "u3-rt-pro"):
        await (await open_provider.transcribe(TranscriptionRequest(model=model))).close()
    turns = [{name: value for name, value in request.query if "turn" in name} for request in server.requests]
    by_pauses = {"min_turn_silence": "3600", "max_turn_silence": "3600"}
    assert turns == [{"format_turns": "true", "end_of_turn_confidence_threshold": "1.0"}, by_pauses, by_pauses]


@pytest_asyncio.fixture
async def judging_provider(server: AssemblyAI) -> AsyncIterator[AssemblyAISpeechToText]:
    url = HttpUrl(server.address)
    settings = AssemblyAISettings(api_key=SecretStr(KEY), base_url=url, api_url=url, turn_detection=True)
    async with in_use(AssemblyAISpeechToText(settings)) as provider:
        yield provider


async def receive_states(stream: SpeechToTextStream, last: str) -> list[tuple[str, str, bool]]:
    """Return text, state of the turn, and finality of the transcripts until this state."""
    received: list[tuple[str, str, bool]] = []
    while not received or received[-1][1] != last:
        transcript = await receive_transcript(stream)
        assert transcript.turn is not None
        received.append((transcript.text, transcript.turn.state, transcript.finalized))
    return received


async def test_assemblyai_judges_turns_where_settings_and_agent_want_it(
    open_provider: AssemblyAISpeechToText, judging_provider: AssemblyAISpeechToText, server: AssemblyAI
) -> None:
    for provider in (open_provider, judging_provider):
        for seconds in (None, 1.5):
            await (await provider.transcribe(TranscriptionRequest(max_silence_seconds=seconds))).close()
    turns = [{name: value for name, value in request.query if "turn" in name} for request in server.requests]
    disabled = {"format_turns": "true", "end_of_turn_confidence_threshold": "1.0"}
    assert turns == [disabled, disabled, disabled, {"max_turn_silence": "1500"}]


async def test_a_pause_is_an_eager_end_and_then_the_end(judging_provider: AssemblyAISpeechToText) -> None:
    stream = await judging_provider.transcribe(JUDGED)
    for text in (SENTENCE, "thank you"):
        await stream.send(synthesize_speech(text))
        await stream.finalize()
        assert await receive_states(stream, "end") == [(text, "eager_end", True), ("", "end", False)]
    await stream.close()


async def test_a_turn_that_assemblyai_does_not_end_is_forced_to_have_words(
    judging_provider: AssemblyAISpeechToText, server: AssemblyAI
) -> None:
    server.ends_turns = False
    stream = await judging_provider.transcribe(replace(JUDGED, max_silence_seconds=0.16))
    await stream.send(synthesize_speech())
    await stream.finalize()
    text, _, finalized = (await receive_states(stream, "ongoing"))[-1]
    assert (text, finalized) == (SENTENCE, True)
    await stream.close()


async def test_an_unconfirmed_end_is_confirmed_locally(
    open_provider: AssemblyAISpeechToText, server: AssemblyAI
) -> None:
    server.answers = False
    stream = await open_provider.transcribe(REQUEST)
    await stream.send(bytes(800))
    await stream.finalize()
    assert await receive_transcript(stream) == Transcript("", is_final=True, finalized=True)
    await stream.close()


@pytest.mark.parametrize(
    ("code", "words", "retryable"),
    [
        (1008, "Unauthorized Connection: Too many concurrent sessions", True),
        (3006, "Input validation error", False),
        (3005, "Server error", True),
        (3009, "Too many concurrent sessions", True),
    ],
)
async def test_a_session_that_fails_to_begin_states_a_reason(
    open_provider: AssemblyAISpeechToText, server: AssemblyAI, code: int, words: str, retryable: bool
) -> None:
    server.faults = [(code, words)]
    with pytest.raises(ProviderError, match=words) as refused:
        await open_provider.transcribe(REQUEST)
    assert (refused.value.code, refused.value.retryable) == (str(code), retryable)


async def test_a_wrong_key_is_reported(server: AssemblyAI) -> None:
    provider = create_transcriber(server.address, "wrong")
    await provider.open()
    with pytest.raises(ProviderError) as error:
        await provider.check()
    assert (error.value.code, error.value.retryable) == ("401", False)
    with pytest.raises(ProviderError, match="Unauthorized") as refused:
        await provider.transcribe(REQUEST)
    assert (refused.value.code, refused.value.retryable) == ("1008", False)
    await provider.close()


async def test_a_dropped_session_is_an_error(open_provider: AssemblyAISpeechToText, server: AssemblyAI) -> None:
    stream = await open_provider.transcribe(REQUEST)
    await server.drop()
    with pytest.raises(ProviderError, match="lost"):
        await receive_transcript(stream)
    await stream.close()
