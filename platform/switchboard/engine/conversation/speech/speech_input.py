"""Input pipeline for one speaker: buffering, voice activity detection in batches, transcription."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Protocol, TypedDict

import numpy as np
import structlog

from switchboard.engine.conversation.agent_settings import AgentSettings
from switchboard.engine.conversation.call import Clock, LiveCall
from switchboard.engine.conversation.speech.transcription import TranscriptionStream, TranscriptionStreams
from switchboard.engine.conversation.speech.vad import (
    STOP_SECONDS,
    WINDOW,
    WINDOW_SECONDS,
    SpeechChange,
    VoiceActivity,
    VoiceDetector,
    measure_steps,
)
from switchboard.plugin_sdk import Encoding, transcode_audio
from switchboard.plugin_sdk.audio import decode_audio

BYTES_PER_SECOND = 8000
PRE_ROLL_SECONDS = 0.64
"""Time before speech counts as such in which it usually began."""
RECENT_WINDOWS = 8 * BYTES_PER_SECOND // WINDOW
MUTE_SECONDS = 1.0
"""A speaker whose audio stops for this long has stopped speaking: many phones and browsers send nothing while muted."""


class SpeechEvents(Protocol):
    """Events of one speaker. `text` is the utterance so far; it is complete once `finished` is set."""

    def handle_speech_started(self) -> None: ...
    def handle_speech_stopped(self) -> None: ...
    def handle_transcript(self, text: str, finished: bool) -> None: ...


class SpeechInput:
    """Audio of one speaker. Times are in seconds of the engine's clock.

    `on_window` is called when `inbox` has a window for the voice detector, which takes it and calls `handle_window`.
    `on_transcript` gets the words of each utterance as they are transcribed, before they are handled.
    `unfinished_since` is the beginning of the utterance that is not transcribed yet, None if there is none.
    """

    def __init__(
        self, call: LiveCall, encoding: Encoding, clock: Clock, events: SpeechEvents, on_window: Callable[[], None]
    ) -> None:
        self.encoding: Encoding = encoding
        self.inbox = bytearray()
        self.activity = VoiceActivity(**_get_thresholds(call.agent.settings))
        self.streams = TranscriptionStreams(call, encoding, self._handle_transcript)
        self.unfinished_since: float | None = None
        self.speech_started_at = self.last_voice_at = self.last_audio_at = clock()
        self._clock = clock
        self._events = events
        self._on_window = on_window
        self._recent: deque[bytes] = deque(maxlen=RECENT_WINDOWS)
        self._detected_at = self.last_audio_at
        self.on_transcript: Callable[[str], None] | None = None

    @property
    def transcription(self) -> TranscriptionStream:
        """The stream that transcribes the speaker now."""
        return self.streams.current

    def change_stream(self, stream: TranscriptionStream) -> None:
        """Let another stream transcribe: from now on, or after the utterance that is under way."""
        self.streams.prepare_change(stream)
        self._change_if_idle()

    def add_audio(self, audio: bytes) -> None:
        """Add the speaker's next audio."""
        self.last_audio_at = self._clock()
        self.inbox += audio
        if len(self.inbox) >= WINDOW:
            self._on_window()

    def handle_window(self, window: bytes, change: SpeechChange) -> None:
        """Handle the voice activity of the next window of 32 milliseconds."""
        self._recent.append(window)
        self._detected_at = self._clock()
        if change is SpeechChange.STARTED:
            self._change_if_idle()
            pre_roll = list(islice(self._recent, max(0, len(self._recent) - self.activity.pre_roll_windows), None))
            self.speech_started_at = self._clock() - self.transcription.agent.settings.vad_start_secs
            if self.unfinished_since is None:
                # Of a burst of late audio, the windows that wait were spoken after this one.
                behind = len(self.inbox) + sum(map(len, pre_roll))
                self.unfinished_since = self.last_audio_at - behind / BYTES_PER_SECOND
            self.transcription.add_audio(b"".join(pre_roll))
            self._events.handle_speech_started()
        elif self.activity.speaking or change is SpeechChange.STOPPED:
            self.transcription.add_audio(window)
        if change is SpeechChange.STOPPED:
            self._stop_speech()

    def tick(self, now: float) -> None:
        """Stop the speech if no audio arrives any more."""
        if self.activity.speaking and now - self.last_audio_at > MUTE_SECONDS:
            self.activity.speaking = False
            self._stop_speech()

    def is_voice_starting(self) -> bool:
        """Return whether there is a voice that has not lasted long enough yet to count as speech.

        A sound in audio that does not fill a window yet may be a voice.
        """
        if self.activity.is_starting:
            return True
        (steps,) = measure_steps(decode_audio(bytes(self.inbox), self.encoding)[np.newaxis])
        return self.activity.level.is_audible(steps)

    def get_quiet_since(self) -> float | None:
        """Return when the last sound ended that is as loud as the voice may be, None if noise hides the ends of it."""
        quiet_seconds = self.activity.level.quiet_seconds
        return None if quiet_seconds is None else self._detected_at - quiet_seconds

    def get_recent_audio(self, since: float, until: float) -> bytes:
        """Return the audio between two moments as 16-bit PCM.

        It includes what precedes the first voice, and at most the last 8 seconds.
        """
        first, last = (
            max(0, len(self._recent) - max(0, round((self._detected_at - moment) / WINDOW_SECONDS)))
            for moment in (since - PRE_ROLL_SECONDS, until)
        )
        return transcode_audio(b"".join(islice(self._recent, first, last)), self.encoding, "pcm16")

    async def wait_for_last_words(self, seconds: float) -> bool:
        """Finalize speech that goes on, and return whether everything was transcribed within some seconds."""
        if self.activity.speaking:
            self.activity.speaking = False
            self.transcription.finalize()
        try:
            async with asyncio.timeout(seconds):
                await self.transcription.idle.wait()
        except TimeoutError:
            return False
        return True

    def _handle_transcript(self, text: str, finished: bool) -> None:
        if self.on_transcript is not None:
            self.on_transcript(text)
        self._events.handle_transcript(text, finished)
        if finished:
            self.unfinished_since = self.speech_started_at - PRE_ROLL_SECONDS if self.activity.speaking else None
            if not self.activity.speaking:
                self._change_if_idle()

    def _change_if_idle(self) -> None:
        if self.streams.change_if_idle():
            self.activity.configure(**_get_thresholds(self.transcription.agent.settings))

    def _stop_speech(self) -> None:
        self.last_voice_at = self._clock() - STOP_SECONDS
        self.transcription.finalize()
        self._events.handle_speech_stopped()


class _Thresholds(TypedDict):
    confidence: float
    start_seconds: float
    min_volume: float


def _get_thresholds(agent: AgentSettings) -> _Thresholds:
    return {
        "confidence": agent.vad_confidence,
        "start_seconds": agent.vad_start_secs,
        "min_volume": agent.vad_min_volume,
    }


# Voice activity detection in batches over all calls of a process.

logger = structlog.get_logger()
MAX_WAIT_SECONDS = 0.01
WAIT_SECONDS_PER_INPUT = 0.00005
"""Time for which audio waits to be detected together with other calls' audio, for each live call and up to
`MAX_WAIT_SECONDS`: few calls are detected sooner, and many calls share the cost of a model run."""


class BatchedDetection:
    """Runs the detector over all inputs that have a window ready."""

    def __init__(self, detector: VoiceDetector) -> None:
        self._detector = detector
        self._inputs: list[SpeechInput] = []
        self._timer: asyncio.TimerHandle | None = None

    @contextmanager
    def attach(self, speech_input: SpeechInput) -> Iterator[None]:
        """Detect voice activity of an input within the block."""
        self._inputs.append(speech_input)
        try:
            yield
        finally:
            self._inputs.remove(speech_input)

    def schedule(self) -> None:
        """Run the detector soon, because an input has a window ready."""
        if self._timer is None:
            wait = min(MAX_WAIT_SECONDS, len(self._inputs) * WAIT_SECONDS_PER_INPUT)
            self._timer = asyncio.get_running_loop().call_later(wait, self._run)

    def close(self) -> None:
        """Cancel a scheduled run."""
        if self._timer is not None:
            self._timer.cancel()

    def _run(self) -> None:
        self._timer = None
        try:
            while ready := [each for each in self._inputs if len(each.inbox) >= WINDOW]:
                windows = [bytes(each.inbox[:WINDOW]) for each in ready]
                decoded = [decode_audio(window, each.encoding) for window, each in zip(windows, ready, strict=True)]
                changes = self._detector.detect([each.activity for each in ready], np.stack(decoded))
                for each, window, change in zip(ready, windows, changes, strict=True):
                    del each.inbox[:WINDOW]
                    each.handle_window(window, change)
        except Exception:
            logger.exception("voice activity detection failed")
