"""Failover: the next provider is tried where one fails before it has produced anything, and the record says which served."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest
from switchboard.plugins import (
    PHONE_MULAW,
    PHONE_PCM,
    AudioFormat,
    ChatRequest,
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
from switchboard.providers import failover
from switchboard.providers.failover import FailoverLLM, FailoverSpeechToText, FailoverTextToSpeech

from tests.fixtures.conversation import SETTINGS, Model, Transcriber

FAILURE = ProviderError("down")


class Tone(TextToSpeechProvider[ProviderSettings]):
    """A voice of one byte, in a format."""

    title = "tone"

    def __init__(self, name: str, audio_format: AudioFormat, *, fails_after: int | None = None) -> None:
        super().__init__(SETTINGS)
        self.name, self.audio_format, self._fails_after = name, audio_format, fails_after  # type: ignore[misc] # one class, several voices
        self.asked: list[SpeechRequest] = []

    async def check(self) -> None:
        """Always well."""

    async def synthesize(self, request: SpeechRequest) -> AsyncIterator[SpeechChunk]:
        self.asked.append(request)
        for index in range(3):
            if index == self._fails_after:
                raise FAILURE
            yield SpeechChunk(bytes(160 if self.audio_format == PHONE_MULAW else 320))

    async def voices(self) -> Sequence[Voice]:
        return []


async def texts(model: FailoverLLM) -> list[str]:
    return [event.text async for event in model.chat(ChatRequest((), model="chosen")) if isinstance(event, TextDelta)]


async def test_the_next_model_answers_with_its_own_default() -> None:
    served: dict[str, str] = {}
    first, second = Model(FAILURE), Model("Hello.")
    assert await texts(FailoverLLM([first, second], served)) == ["Hello."]
    assert served == {"llm": "model"}
    assert (first.asked[0].model, second.asked[0].model) == ("chosen", None)


async def test_a_model_that_says_nothing_in_time_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    class Hanging(Model):
        async def chat(self, request: ChatRequest):  # type: ignore[no-untyped-def] # never yields
            await asyncio.Event().wait()
            yield

    monkeypatch.setattr(failover, "FIRST_SECONDS", 0.05)
    assert await texts(FailoverLLM([Hanging(), Model("Hello.")], {})) == ["Hello."]


async def test_when_all_fail_the_last_error_is_told() -> None:
    with pytest.raises(ProviderError, match="down"):
        await texts(FailoverLLM([Model(FAILURE), Model(FAILURE)], {}))


async def test_once_audio_was_heard_there_is_no_second_voice() -> None:
    second = Tone("second", PHONE_PCM)
    voice = FailoverTextToSpeech([Tone("first", PHONE_PCM, fails_after=1), second], {})
    chunks = voice.synthesize(SpeechRequest("x"))
    await anext(chunks)
    with pytest.raises(ProviderError):
        await anext(chunks)
    assert second.asked == []


async def test_another_voice_speaks_in_the_first_ones_format() -> None:
    second = Tone("second", PHONE_MULAW)
    served: dict[str, str] = {}
    voice = FailoverTextToSpeech([Tone("first", PHONE_PCM, fails_after=0), second], served)
    audio = b"".join([chunk.audio async for chunk in voice.synthesize(SpeechRequest("x", voice_id="theirs"))])
    assert len(audio) == 3 * 320
    assert served == {"text_to_speech": "second"}
    assert second.asked[0].voice_id is None


async def test_another_transcriber_is_opened() -> None:
    class Closed(Transcriber):
        async def transcribe(self, request: TranscriptionRequest) -> SpeechToTextStream:
            raise FAILURE

    served: dict[str, str] = {}
    stream = await FailoverSpeechToText([Closed(), Transcriber("hello")], served).transcribe(TranscriptionRequest())
    await stream.finalize()
    assert [transcript.text async for transcript in _first(stream)] == ["hello"]
    assert served == {"speech_to_text": "transcriber"}
    await stream.close()


@pytest.mark.parametrize("steps", range(4))
async def test_whoever_stops_waiting_just_as_a_transcriber_opens_is_not_held(steps: int) -> None:
    opened = asyncio.Event()

    class Slow(Transcriber):
        async def transcribe(self, request: TranscriptionRequest) -> SpeechToTextStream:
            await opened.wait()
            return await super().transcribe(request)

    async def hold_a_call() -> None:
        await FailoverSpeechToText([Slow()], {}).transcribe(TranscriptionRequest())
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
