"""Takeover of a call: the supervisor speaks with the caller in the agent's place and is transcribed."""

import asyncio
from uuid import UUID

import numpy as np
import structlog

from switchboard.engine.conversation.call import SessionContext, Supervisor
from switchboard.engine.conversation.media.playout import BYTES_PER_SECOND
from switchboard.engine.conversation.media.recording import Channel
from switchboard.engine.conversation.speech.speech_input import BatchedDetection, SpeechInput
from switchboard.engine.conversation.turn_taking import TurnTaking
from switchboard.plugin_sdk import ProviderError
from switchboard.plugin_sdk.audio import SILENCE_CODE, encode_audio

logger = structlog.get_logger()
JITTER_BUFFER_BYTES = round(0.06 * BYTES_PER_SECOND)
"""Silence before the voice begins: audio that arrives a little late then leaves no gap."""
MAX_PENDING_BYTES = round(0.25 * BYTES_PER_SECOND)
LAST_WORDS_SECONDS = 1.5


class Takeover:
    """A supervisor's part in a call.

    `monitor_id` names the connection that the supervisor uses. `disconnected_at` is set while it is lost, and `ending`
    once the call is being handed back.
    """

    def __init__(
        self,
        context: SessionContext,
        turns: TurnTaking,
        detection: BatchedDetection,
        supervisor: Supervisor,
        monitor_id: UUID,
    ) -> None:
        self.supervisor = supervisor
        self.monitor_id = monitor_id
        self.disconnected_at: float | None = None
        self.ending = False
        self.speech_input = SpeechInput(context.call, context.encoding, context.clock, self, detection.schedule)
        self._context = context
        self._turns = turns
        self._detection = detection
        self._jitter_buffer = bytes((SILENCE_CODE[context.encoding],)) * JITTER_BUFFER_BYTES

    def speak(self, audio: bytes) -> None:
        """Play the supervisor's audio, 16-bit PCM at 8 kHz.

        Bursts after a stall are dropped, as they would stay late for good.
        """
        playout, now = self._turns.speech_output.playout, self._context.clock()
        voice = encode_audio(np.frombuffer(audio, dtype="<i2").astype(np.int16), self._context.encoding)
        self.speech_input.add_audio(voice)
        if not playout.is_playing(now):
            playout.add(self._jitter_buffer)
        if playout.count_pending(now) < MAX_PENDING_BYTES:
            playout.add(voice)

    async def transcribe(self) -> None:
        """Transcribe the supervisor until canceled. A failure does not end a call between two people."""
        with self._detection.attach(self.speech_input):
            try:
                await self.speech_input.transcription.run()
            except ProviderError as error:
                logger.warning(
                    "supervisor is not transcribed", call_id=str(self._context.call.call_id), reason=error.message
                )
            # The voice is still played, and the detection must go on to consume its audio.
            await asyncio.Event().wait()

    async def finish(self) -> None:
        """Stop the supervisor's voice and wait until their last words are transcribed."""
        self.ending = True
        if not await self.speech_input.wait_for_last_words(LAST_WORDS_SECONDS):
            logger.info("supervisor's last words were not transcribed in time", call_id=str(self._context.call.call_id))

    def handle_speech_started(self) -> None:
        """Ignore: nobody interrupts the caller."""

    def handle_speech_stopped(self) -> None:
        """Ignore: the transcript follows."""

    def handle_transcript(self, text: str, finished: bool) -> None:
        """Record a finished utterance as the agent's, by a person."""
        words = self._context.call.redactor.redact(text)
        if words.is_redacted and self.speech_input.unfinished_since is not None:
            playout = self._turns.speech_output.playout
            playout.silence(Channel.AGENT, self.speech_input.unfinished_since, self._context.clock())
        if finished and text:
            since = self.speech_input.speech_started_at
            self._turns.transcript.add("agent", words.kept, since, person=self.supervisor.name)
            self._turns.generator.add_agent_message(words.for_model)
