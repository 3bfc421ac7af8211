"""One voice of a call: its audio as it comes, whether it speaks, and the transcription of what it says."""

import asyncio
from collections import deque
from collections.abc import Callable

from switchboard.engine.conversation.call import Clock, LiveCall
from switchboard.engine.conversation.speech.transcription import TranscriptionStream
from switchboard.engine.conversation.speech.vad import STOP_SECONDS, WINDOW, SpeechChange, VoiceActivity
from switchboard.plugin_sdk import Encoding

PRE_ROLL_WINDOWS = 20
MUTE_SECONDS = 1.0
"""Whoever speaks and then sends nothing for so long has stopped: many phones and browsers send nothing while muted."""


class SpeechInput:
    """Hears one voice. The engine takes windows from `inbox` and says by `judged` what they are; times are the engine's clock's.

    `on_window` is called when there is a window to be taken.
    """

    def __init__(self, call: LiveCall, encoding: Encoding, clock: Clock) -> None:
        agent = call.agent
        self.encoding: Encoding = encoding
        self.inbox = bytearray()
        self.activity = VoiceActivity(
            confidence=agent.vad_confidence, start_seconds=agent.vad_start_secs, min_volume=agent.vad_min_volume
        )
        self.listener = TranscriptionStream(call, encoding)
        self.speech_began = self.last_voice = self.last_audio = clock()
        self.on_window: Callable[[], None] = lambda: None
        self.on_started: Callable[[], None] = lambda: None
        self.on_stopped: Callable[[], None] = lambda: None
        self._start_seconds = agent.vad_start_secs
        self._clock = clock
        self._pre_roll: deque[bytes] = deque(maxlen=PRE_ROLL_WINDOWS)

    def hear(self, audio: bytes) -> None:
        """The next audio of the voice."""
        self.last_audio = self._clock()
        self.inbox += audio
        if len(self.inbox) >= WINDOW:
            self.on_window()

    def judged(self, window: bytes, change: SpeechChange) -> None:
        """Voice activity of the next 32 milliseconds."""
        self._pre_roll.append(window)
        if change is SpeechChange.STARTED:
            self.speech_began = self._clock() - self._start_seconds
            self.listener.hear(b"".join(self._pre_roll))
            self.on_started()
        elif self.activity.speaking or change is SpeechChange.STOPPED:
            self.listener.hear(window)
        if change is SpeechChange.STOPPED:
            self._stopped()

    def tick(self, now: float) -> None:
        """Notice that nothing comes any more."""
        if self.activity.speaking and now - self.last_audio > MUTE_SECONDS:
            self.activity.speaking = False
            self._stopped()

    async def last_words(self, seconds: float) -> bool:
        """Nothing more will be heard: wait until all of it is transcribed; whether it was in time."""
        if self.activity.speaking:
            self.activity.speaking = False
            self.listener.finalize()
        try:
            async with asyncio.timeout(seconds):
                await self.listener.idle.wait()
        except TimeoutError:
            return False
        return True

    def _stopped(self) -> None:
        self.last_voice = self._clock() - STOP_SECONDS
        self.listener.finalize()
        self.on_stopped()
