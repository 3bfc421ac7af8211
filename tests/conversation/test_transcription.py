"""The stream of a call's speech to its provider, by the moments at which it reports an utterance."""

import asyncio
from collections.abc import AsyncIterator, Callable

import numpy as np
import pytest
from switchboard.engine.conversation.speech.speech_input import SpeechEvents, SpeechInput
from switchboard.engine.conversation.speech.transcription import FINAL_SECONDS, TranscriptionStream
from switchboard.engine.conversation.speech.vad import WINDOW, VoiceDetector
from switchboard.plugin_sdk import ProviderError, SpeechToTextStream, Transcript, TranscriptionRequest, TurnReport
from switchboard.plugin_sdk.audio import decode_audio, encode_audio

from tests.fixtures.caller_voice import speak_as_caller
from tests.fixtures.conversation import Model, Transcriber, create_call
from tests.fixtures.recorded_audio import find_best_match

AUDIO = b"\x00" * 160


def create_stream(provider: Transcriber, on_transcript: Callable[[str, bool], None]) -> TranscriptionStream:
    """A stream to a provider, which reports to a function."""
    call = create_call(Model(), provider)
    return TranscriptionStream(call.agent, call.turn_detection, "mulaw", on_transcript)


async def test_a_pause_does_not_shorten_the_wait_for_the_final_transcript() -> None:
    reported: list[tuple[str, bool]] = []
    stream = create_stream(_OneStream(), lambda text, finished: reported.append((text, finished)))
    running = asyncio.create_task(stream.run())
    stream.add_audio(AUDIO)
    stream.finalize()
    await asyncio.sleep(FINAL_SECONDS - 1)
    stream.add_audio(AUDIO)
    stream.finalize()
    await asyncio.sleep(FINAL_SECONDS - 0.5)
    assert reported == []
    await asyncio.sleep(1)
    running.cancel()
    await asyncio.wait({running})
    assert reported == [("", True)]


class _Halves(SpeechToTextStream):
    """Finalizes within the utterance, as vendors do after a pause; the first stream is lost then."""

    def __init__(self, *, is_lost: bool) -> None:
        self._is_lost = is_lost
        self._finalized = asyncio.Event()

    async def send(self, audio: bytes) -> None:
        """Hear nothing."""

    async def finalize(self) -> None:
        self._finalized.set()

    async def __aiter__(self) -> AsyncIterator[Transcript]:
        yield Transcript("My number is five five five", is_final=True)
        if self._is_lost:
            raise ProviderError("lost")
        await self._finalized.wait()
        yield Transcript("one two three four", is_final=True, finalized=True)

    async def close(self) -> None:
        """Do nothing."""


class _Losing(Transcriber):
    def __init__(self) -> None:
        super().__init__()
        self.opened = 0

    async def transcribe(self, request: TranscriptionRequest) -> SpeechToTextStream:
        self.opened += 1
        return _Halves(is_lost=self.opened == 1)


async def test_words_before_a_stream_was_lost_are_heard_once() -> None:
    reported = asyncio.Queue[str]()
    stream = create_stream(
        _Losing(),
        lambda text, finished: reported.put_nowait(text) if finished else None,
    )
    stream.add_audio(AUDIO)
    stream.finalize()
    running = asyncio.create_task(stream.run())
    assert await reported.get() == "My number is five five five one two three four"
    running.cancel()
    await asyncio.wait({running})


class _Counting(SpeechToTextStream):
    """Counts the requests for the final transcript, and yields what the test puts into its queue. `heard` is PCM."""

    def __init__(self) -> None:
        self.finalized = 0
        self.heard = bytearray()
        self.transcripts: asyncio.Queue[Transcript] = asyncio.Queue()

    async def send(self, audio: bytes) -> None:
        self.heard += audio

    async def finalize(self) -> None:
        self.finalized += 1

    async def __aiter__(self) -> AsyncIterator[Transcript]:
        while True:
            yield await self.transcripts.get()

    async def close(self) -> None:
        """Do nothing."""


class _OneStream(Transcriber):
    def __init__(self, *, opens_after: float = 0) -> None:
        super().__init__()
        self.stream = _Counting()
        self._opens_after = opens_after

    async def transcribe(self, request: TranscriptionRequest) -> SpeechToTextStream:
        await asyncio.sleep(self._opens_after)
        return self.stream


async def test_a_speaker_who_goes_on_is_not_finalized_with_each_piece_of_audio() -> None:
    provider = _OneStream()
    stream = create_stream(provider, lambda _text, _finished: None)
    running = asyncio.create_task(stream.run())
    stream.add_audio(AUDIO)
    stream.finalize()
    for _ in range(5):
        await asyncio.sleep(0.02)
        stream.add_audio(AUDIO)
    await asyncio.sleep(0.02)
    assert provider.stream.finalized == 1
    stream.finalize()
    await asyncio.sleep(0.02)
    assert provider.stream.finalized == 2
    running.cancel()
    await asyncio.wait({running})


class _Silent(SpeechEvents):
    def handle_speech_started(self) -> None:
        """Do nothing."""

    handle_speech_stopped = handle_speech_started

    def handle_transcript(self, text: str, finished: bool) -> None:
        """Do nothing."""


@pytest.mark.parametrize("offset", [0, 64, 128, 248])
async def test_a_short_first_word_is_transcribed_wherever_the_windows_of_the_detector_begin(offset: int) -> None:
    """The first word, of 0.2 seconds, and the pause after it are too short to count as speech at some of them."""
    provider, detector = _OneStream(), VoiceDetector()
    call = create_call(Model(), provider)
    speech_input = SpeechInput(call, "mulaw", asyncio.get_running_loop().time, _Silent(), lambda: None)
    running = asyncio.create_task(speech_input.transcription.run())
    said = speak_as_caller("can I speak to a human")
    audio = encode_audio(np.frombuffer(bytes(2 * (16_000 + offset)) + said + bytes(8_000), "<i2"), "mulaw")
    for at in range(0, len(audio) - WINDOW, WINDOW):
        window = audio[at : at + WINDOW]
        (change,) = detector.detect([speech_input.activity], decode_audio(window, "mulaw")[np.newaxis])
        speech_input.handle_window(window, change)
    await asyncio.sleep(0.02)
    running.cancel()
    await asyncio.wait({running})
    heard = np.frombuffer(provider.stream.heard, "<i2").astype(float)
    assert find_best_match(said[: 2 * 2_000], heard) > 0.9


async def _report_utterance(*transcripts: Transcript, after_seconds: float) -> list[tuple[str, bool]]:
    """Return what is reported of a finalized utterance whose transcripts come after so many seconds."""
    provider, reported = _OneStream(), list[tuple[str, bool]]()
    stream = create_stream(provider, lambda text, finished: reported.append((text, finished)))
    running = asyncio.create_task(stream.run())
    stream.add_audio(AUDIO)
    stream.finalize()
    await asyncio.sleep(after_seconds)
    for transcript in transcripts:
        provider.stream.transcripts.put_nowait(transcript)
    await asyncio.sleep(0.02)
    running.cancel()
    await asyncio.wait({running})
    return reported


async def test_words_that_a_judged_turn_gains_in_the_pause_are_reported() -> None:
    first = Transcript("A table for", is_final=True, finalized=True)
    last = Transcript("two.", is_final=True, turn=TurnReport("end", 0.9))
    assert await _report_utterance(first, last, after_seconds=0) == [("A table for", True), ("two.", True)]


async def test_words_that_come_after_the_time_limit_are_reported() -> None:
    interim = Transcript("A table", is_final=False)
    final = Transcript("A table for two.", is_final=True, finalized=True)
    reported = await _report_utterance(interim, final, after_seconds=FINAL_SECONDS + 0.5)
    assert reported == [("", True), ("A table", False), ("A table for two.", True)]


async def test_an_utterance_waits_for_a_stream_that_opens_late() -> None:
    """A recognizer that starts on a busy machine, or a vendor that is reached again, hears what was said before."""
    provider, reported = _OneStream(opens_after=2 * FINAL_SECONDS), list[tuple[str, bool]]()
    stream = create_stream(provider, lambda text, finished: reported.append((text, finished)))
    running = asyncio.create_task(stream.run())
    stream.add_audio(AUDIO)
    stream.finalize()
    await asyncio.sleep(2 * FINAL_SECONDS + 1)
    assert (reported, len(provider.stream.heard) > 0) == ([], True)
    provider.stream.transcripts.put_nowait(Transcript("A table for two.", is_final=True, finalized=True))
    await asyncio.sleep(FINAL_SECONDS + 1)
    running.cancel()
    await asyncio.wait({running})
    assert reported == [("A table for two.", True)]
