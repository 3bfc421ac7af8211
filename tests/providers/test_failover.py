"""Failover: the next provider is asked if one fails or is slow before its first output, and the record names the one
that served.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

import pytest
from switchboard.engine.providers.failover import FailoverLLM, FailoverSpeechToText, FailoverTextToSpeech
from switchboard.engine.providers.health import ServiceRecord
from switchboard.plugin_sdk import (
    PHONE_MULAW,
    PHONE_PCM,
    AudioFormat,
    ChatEvent,
    ChatRequest,
    ModelUsage,
    ProviderError,
    ProviderSettings,
    SpeechChunk,
    SpeechRequest,
    SpeechToTextStream,
    TextDelta,
    TextToSpeechProvider,
    Transcript,
    TranscriptionRequest,
    Voice,
)

from tests.fixtures.conversation import SETTINGS, Model, Transcriber, list_candidates

FAILURE = ProviderError("down")


class Tone(TextToSpeechProvider[ProviderSettings]):
    """A voice that repeats one byte, in a given format."""

    title = "tone"

    def __init__(self, name: str, audio_format: AudioFormat, *, fails_after: int | None = None) -> None:
        super().__init__(SETTINGS)
        self.name, self.audio_format, self._fails_after = name, audio_format, fails_after  # type: ignore[misc]
        self.requests: list[SpeechRequest] = []

    async def check(self) -> None:
        """Do nothing."""

    async def synthesize(self, request: SpeechRequest) -> AsyncIterator[SpeechChunk]:
        self.requests.append(request)
        for index in range(3):
            if index == self._fails_after:
                raise FAILURE
            yield SpeechChunk(bytes(160 if self.audio_format == PHONE_MULAW else 320))

    async def list_voices(self) -> Sequence[Voice]:
        return []


class Stalling(Model):
    """Yields these items, then nothing until it is resumed; records whether its consumer is gone."""

    def __init__(self, *answers: str) -> None:
        super().__init__(*answers)
        self.started, self.resume, self.finished = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def chat(self, request: ChatRequest) -> AsyncIterator[ChatEvent]:
        self.requests.append(request)
        self.started.set()
        try:
            for answer in self.answers:
                assert isinstance(answer, str)
                yield TextDelta(answer)
            await self.resume.wait()
            yield TextDelta("Late.")
        finally:
            self.finished.set()


def create_models(
    *providers: Model, hedge_after_seconds: float = 5.0, record: ServiceRecord | None = None
) -> FailoverLLM:
    return FailoverLLM(list_candidates(*providers), record or ServiceRecord(), hedge_after_seconds=hedge_after_seconds)


def create_voices(
    *providers: Tone, hedge_after_seconds: float = 5.0, record: ServiceRecord | None = None
) -> FailoverTextToSpeech:
    return FailoverTextToSpeech(
        list_candidates(*providers), record or ServiceRecord(), hedge_after_seconds=hedge_after_seconds
    )


async def collect_texts(model: FailoverLLM) -> list[str]:
    return [event.text async for event in model.chat(ChatRequest((), model="chosen")) if isinstance(event, TextDelta)]


async def collect_audio(voice: FailoverTextToSpeech, text: str = "x") -> bytes:
    return b"".join([chunk.audio async for chunk in voice.synthesize(SpeechRequest(text, voice_id="theirs"))])


async def test_the_next_model_answers_with_its_own_default() -> None:
    record = ServiceRecord()
    first, second = Model(FAILURE), Model("Hello.")
    assert await collect_texts(create_models(first, second, record=record)) == ["Hello."]
    assert record.served == {"llm": "model"}
    assert (first.requests[0].model, second.requests[0].model) == ("chosen", None)


async def test_a_slow_model_is_overtaken_stopped_and_billed() -> None:
    class Quick(Model):
        async def chat(self, request: ChatRequest) -> AsyncIterator[ChatEvent]:
            yield TextDelta("Hello.")
            await slow.finished.wait()
            yield ModelUsage("quick", 70, 5)

    slow = Stalling()
    async with asyncio.timeout(5):
        events = [event async for event in create_models(slow, Quick(), hedge_after_seconds=0.01).chat(ChatRequest(()))]
    assert events == [
        TextDelta("Hello."),
        ModelUsage("quick", 70, 5),
        ModelUsage("model", 70, 0, detail={"overtaken_by": "model"}),
    ]


async def test_the_preferred_model_may_still_win_and_is_asked_first_again() -> None:
    slow, second = Stalling(), Stalling()
    model = create_models(slow, second, hedge_after_seconds=0.01)
    answering = asyncio.create_task(collect_texts(model))
    async with asyncio.timeout(5):
        await second.started.wait()
        slow.resume.set()
        assert await answering == ["Late."]
        await second.finished.wait()
        assert await collect_texts(model) == ["Late."]
    assert (len(slow.requests), len(second.requests)) == (2, 1)


async def test_each_failure_starts_the_next_model_while_a_slow_one_continues() -> None:
    slow, third = Stalling(), Model("Third.")
    async with asyncio.timeout(5):
        assert await collect_texts(create_models(slow, Model(FAILURE), third, hedge_after_seconds=0.01)) == ["Third."]
    assert slow.finished.is_set()


async def test_a_model_that_writes_a_tool_call_is_not_considered_silent() -> None:
    busy, second = Stalling(""), Model("Hello.")
    busy.resume.set()
    assert await collect_texts(create_models(busy, second, hedge_after_seconds=0.01)) == ["", "Late."]
    assert second.requests == []


async def test_silence_is_an_error_at_the_start_and_in_the_middle() -> None:
    with pytest.raises(ProviderError, match="did not answer in time"):
        await collect_texts(create_models(Stalling(), Stalling(), hedge_after_seconds=0.01))
    with pytest.raises(ProviderError, match="stopped in the middle"):
        await collect_texts(create_models(Stalling("Hello."), Model("Never asked.")))


async def test_the_last_error_is_raised_when_all_models_fail() -> None:
    with pytest.raises(ProviderError, match="down"):
        await collect_texts(create_models(Model(FAILURE), Model(FAILURE)))


async def test_a_consumer_that_stops_stops_every_model() -> None:
    slow, second = Stalling(), Stalling()
    answering = asyncio.create_task(collect_texts(create_models(slow, second, hedge_after_seconds=0.01)))
    async with asyncio.timeout(5):
        await second.started.wait()
        answering.cancel()
        await asyncio.wait((answering,))
    assert slow.finished.is_set()
    assert second.finished.is_set()


async def test_bugs_in_a_provider_propagate_and_its_own_timeouts_are_failures() -> None:
    class Faulty(Model):
        def __init__(self, fault: Exception) -> None:
            super().__init__()
            self._fault = fault

        async def chat(self, request: ChatRequest) -> AsyncIterator[ChatEvent]:
            raise self._fault
            yield

    with pytest.raises(LookupError, match="a fault"):
        await collect_texts(create_models(Faulty(LookupError("a fault")), Model("Hello.")))
    assert await collect_texts(create_models(Faulty(TimeoutError()), Model("Hello."))) == ["Hello."]


async def test_a_second_voice_is_not_tried_after_the_first_audio() -> None:
    second = Tone("second", PHONE_PCM)
    chunks = create_voices(Tone("first", PHONE_PCM, fails_after=1), second).synthesize(SpeechRequest("x"))
    await anext(chunks)
    with pytest.raises(ProviderError):
        await anext(chunks)
    assert second.requests == []


async def test_the_second_voice_keeps_the_first_ones_format() -> None:
    first, second, record = Tone("first", PHONE_PCM, fails_after=0), Tone("second", PHONE_MULAW), ServiceRecord()
    voice = create_voices(first, second, record=record)
    assert len(await collect_audio(voice)) == 3 * 320
    assert record.served == {"text_to_speech": "second"}
    assert second.requests[0].voice_id is None
    assert len(await collect_audio(voice)) == 3 * 320
    assert (len(first.requests), len(second.requests), second.requests[1].voice_id) == (1, 2, None)


async def test_a_slow_voice_is_overtaken_and_its_characters_are_billed() -> None:
    class Slow(Tone):
        async def synthesize(self, request: SpeechRequest) -> AsyncIterator[SpeechChunk]:
            await asyncio.Event().wait()
            yield SpeechChunk(b"")

    record = ServiceRecord()
    async with asyncio.timeout(5):
        assert await collect_audio(
            create_voices(Slow("slow", PHONE_PCM), Tone("second", PHONE_PCM), hedge_after_seconds=0.01, record=record),
            "Hello.",
        )
    assert (record.served, record.overtaken_characters) == ({"text_to_speech": "second"}, 6)


async def test_a_silent_voice_is_a_failure() -> None:
    class Mute(Tone):
        async def synthesize(self, request: SpeechRequest) -> AsyncIterator[SpeechChunk]:
            return
            yield

    assert await collect_audio(create_voices(Mute("mute", PHONE_PCM), Tone("second", PHONE_PCM)))
    with pytest.raises(ProviderError, match="returned nothing"):
        await collect_audio(create_voices(Mute("mute", PHONE_PCM)))


class Closed(Transcriber):
    """A provider that cannot be opened."""

    async def transcribe(self, request: TranscriptionRequest) -> SpeechToTextStream:
        raise FAILURE


class Opening(Transcriber):
    """A provider whose opening never finishes."""

    async def transcribe(self, request: TranscriptionRequest) -> SpeechToTextStream:
        await asyncio.Event().wait()
        raise FAILURE


@pytest.mark.parametrize("first", [Closed(), Opening()])
async def test_the_next_transcriber_is_opened(first: Transcriber) -> None:
    record = ServiceRecord()
    async with asyncio.timeout(5):
        candidates = list_candidates(first, Transcriber("hello"))
        failover_of_two = FailoverSpeechToText(candidates, record, hedge_after_seconds=0.01)
        stream = await failover_of_two.transcribe(TranscriptionRequest())
    await stream.finalize()
    assert [transcript.text async for transcript in _first(stream)] == ["hello"]
    assert record.served == {"speech_to_text": "transcriber"}
    await stream.close()


@pytest.mark.parametrize("steps", range(4))
async def test_cancellation_while_a_transcriber_opens_takes_effect_at_once(steps: int) -> None:
    opened = asyncio.Event()

    class Slow(Transcriber):
        async def transcribe(self, request: TranscriptionRequest) -> SpeechToTextStream:
            await opened.wait()
            return await super().transcribe(request)

    async def hold_a_call() -> None:
        transcriber = FailoverSpeechToText(list_candidates(Slow()), ServiceRecord(), hedge_after_seconds=5.0)
        await transcriber.transcribe(TranscriptionRequest())
        await asyncio.Event().wait()

    call = asyncio.create_task(hold_a_call())
    await asyncio.sleep(0)
    opened.set()
    for _ in range(steps):
        await asyncio.sleep(0)
    call.cancel()
    await asyncio.wait({call}, timeout=1)
    assert call.cancelled()


async def _first(stream: SpeechToTextStream) -> AsyncIterator[Transcript]:
    async for transcript in stream:
        yield transcript
        return


class Losing(Transcriber):
    """Opens streams that are lost before they return anything."""

    def __init__(self) -> None:
        super().__init__()
        self.opened = 0

    async def transcribe(self, request: TranscriptionRequest) -> SpeechToTextStream:
        self.opened += 1
        return _Lost()


class _Lost(SpeechToTextStream):
    async def send(self, audio: bytes) -> None:
        raise FAILURE

    async def finalize(self) -> None:
        raise FAILURE

    async def __aiter__(self) -> AsyncIterator[Transcript]:
        raise FAILURE
        yield

    async def close(self) -> None:
        """Do nothing."""


async def test_a_transcriber_whose_streams_are_lost_again_and_again_is_replaced() -> None:
    losing, record = Losing(), ServiceRecord()
    transcriber = FailoverSpeechToText(list_candidates(losing, Transcriber("hello")), record, hedge_after_seconds=5.0)
    for _ in range(3):
        stream = await transcriber.transcribe(TranscriptionRequest())
        with pytest.raises(ProviderError):
            await stream.send(b"")
        with pytest.raises(ProviderError):
            _ = [transcript async for transcript in stream]
    stream = await transcriber.transcribe(TranscriptionRequest())
    await stream.finalize()
    assert [transcript.text async for transcript in _first(stream)] == ["hello"]
    assert losing.opened == 3
    assert [(failure.provider, failure.error, failure.count) for failure in record.failures.values()] == [
        ("transcriber", "down", 3)
    ]
    await stream.close()


async def test_a_model_that_asks_to_wait_is_asked_last_at_once() -> None:
    limited = Model(ProviderError("slow down", code="429", retry_after_seconds=30), "Ready.")
    candidates = list_candidates(limited, Model("Yes.", "Yes."))
    composed = FailoverLLM(candidates, ServiceRecord(), hedge_after_seconds=10)
    for _ in range(2):
        assert await collect_texts(composed) == ["Yes."]
    assert [candidate.health.degraded for candidate in candidates] == [True, False]
    assert len(limited.requests) == 1


async def test_a_degraded_model_is_asked_last() -> None:
    failing, working = Model(*[FAILURE] * 4), Model("One.", "Two.", "Three.", "Four.", FAILURE)
    model = create_models(failing, working)
    for _ in range(4):
        await collect_texts(model)
    assert (len(failing.requests), len(working.requests)) == (3, 4)
    with pytest.raises(ProviderError):
        await collect_texts(model)
    assert len(failing.requests) == 4, "it is asked when the others fail"


async def test_only_the_agents_own_provider_gets_the_agents_model() -> None:
    (candidate,) = list_candidates(Model("Hello."))
    model = FailoverLLM([replace(candidate, chosen=False)], ServiceRecord(), hedge_after_seconds=5.0)
    assert await collect_texts(model) == ["Hello."]
    assert candidate.provider.requests[0].model is None
