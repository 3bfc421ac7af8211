"""The time for which a person has the call: their voice goes to the caller in the agent's place, and their words into the transcript."""

from dataclasses import dataclass
from uuid import UUID

import numpy as np
import structlog

from switchboard.engine.conversation.call import Clock, LiveCall, Supervisor, TranscriptEntry
from switchboard.engine.conversation.media.playout import BYTES_PER_SECOND, Playout
from switchboard.engine.conversation.response_generator import ResponseGenerator
from switchboard.engine.conversation.speech.speech_input import SpeechInput
from switchboard.engine.conversation.transcript import CallTranscript
from switchboard.plugin_sdk import Encoding, ProviderError
from switchboard.plugin_sdk.audio import SILENCE_CODE, encode_audio

logger = structlog.get_logger()
JITTER_BUFFER_BYTES = round(0.06 * BYTES_PER_SECOND)
"""Silence before a voice that begins: what comes a little late then leaves no gap."""
MAX_QUEUED_BYTES = round(0.25 * BYTES_PER_SECOND)
LAST_WORDS_SECONDS = 1.5


@dataclass(frozen=True, slots=True)
class SessionContext:
    """The parts of a call's session that people at its desk work with."""

    call: LiveCall
    encoding: Encoding
    clock: Clock
    playout: Playout
    thinker: ResponseGenerator
    transcript: CallTranscript

    def ms(self, moment: float) -> int:
        """A moment as the transcript counts it."""
        return self.playout.position(moment) * 1000 // BYTES_PER_SECOND

    def note(self, text: str) -> None:
        """Something happened: an entry of the role `system`."""
        now = self.ms(self.clock())
        self.transcript.add(TranscriptEntry("system", text, now, now))


class Takeover:
    """`monitor_id` is where the person sits; `lost_at` is set while it is gone, and `ending` once the call is being handed back."""

    def __init__(self, parts: SessionContext, person: Supervisor, monitor_id: UUID) -> None:
        self.person = person
        self.monitor_id = monitor_id
        self.lost_at: float | None = None
        self.ending = False
        self.ear = SpeechInput(parts.call, parts.encoding, parts.clock)
        self.ear.listener.on_transcript = self._transcribed
        self._parts = parts
        self._cushion = bytes((SILENCE_CODE[parts.encoding],)) * JITTER_BUFFER_BYTES

    def speak(self, audio: bytes) -> None:
        """What the person says this moment, 16-bit PCM at 8 kHz. What comes in a burst after a stall is dropped: it would stay late for good."""
        playout, now = self._parts.playout, self._parts.clock()
        voice = encode_audio(np.frombuffer(audio, dtype="<i2").astype(np.int16), self._parts.encoding)
        self.ear.hear(voice)
        if not playout.is_playing(now):
            playout.add(self._cushion)
        if playout.ahead(now) < MAX_QUEUED_BYTES:
            playout.add(voice)

    async def listen(self) -> None:
        """Transcribe the person, until cancelled. That this fails is no reason to end a call that two people hold."""
        try:
            await self.ear.listener.run()
        except ProviderError as error:
            logger.warning(
                "a person's words are not transcribed", call_id=str(self._parts.call.call_id), reason=error.message
            )

    async def finish(self) -> None:
        """The person speaks no more; what they have said is still transcribed."""
        self.ending = True
        if not await self.ear.last_words(LAST_WORDS_SECONDS):
            logger.info("a person's last words were not transcribed in time", call_id=str(self._parts.call.call_id))

    def _transcribed(self, text: str, finished: bool) -> None:
        if finished and text:
            began, now = self._parts.ms(self.ear.speech_began), self._parts.ms(self._parts.clock())
            self._parts.transcript.add(TranscriptEntry("agent", text, began, now, by_person=True))
            self._parts.thinker.said(text)
