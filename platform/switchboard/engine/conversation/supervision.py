"""Supervision of a live call: monitoring, whispering to the agent, taking the call over, and handing it back.

A monitor is one connection that follows the call. It reports every second that it is still there, and is dropped when
nothing was heard of it for four seconds. A call without monitors spends nothing on supervision.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol
from uuid import UUID

import numpy as np
import structlog

from switchboard.engine.conversation.call import EndedReason, SessionContext, Supervisor, TranscriptEntry
from switchboard.engine.conversation.lifetime import CallLifetime
from switchboard.engine.conversation.media.playout import BYTES_PER_SECOND
from switchboard.engine.conversation.media.recording import Channel, StereoMixer
from switchboard.engine.conversation.speech.speech_input import BatchedDetection, SpeechInput
from switchboard.engine.conversation.turn_taking import AgentState, TurnTaking
from switchboard.plugin_sdk import ProviderError
from switchboard.plugin_sdk.audio import SILENCE_CODE, encode_audio

logger = structlog.get_logger()
LEASE_SECONDS = 4.0
RECONNECT_SECONDS = 5.0
"""Time for which a supervisor who has taken the call over may be disconnected before the agent has the call again."""
STATE_INTERVAL_SECONDS = 1.0
AUDIO_INTERVAL_SECONDS = 0.04
DELAY_SAMPLES = 800
"""Delay of the monitors behind the call: caller audio that arrives a little late then leaves no gap."""
MAX_LATE_SAMPLES = 1600

TAKEN_OVER = "A person took the call over."
HANDED_BACK = "The person handed the call back to the agent."
WHISPERED = "A person whispered to the agent: {text}"
TAKEN_OVER_INSTRUCTION = (
    "A human colleague has taken the call over and speaks with the caller in your place. "
    "You are silent until the call is yours again."
)
HANDED_BACK_INSTRUCTION = (
    "Your colleague has left the conversation; what they said stands above as yours. "
    "The call is yours again: go on from there."
)
WHISPER_INSTRUCTION = (
    "A human colleague who listens to this call instructs you, unheard by the caller. "
    "Do so from your next answer on, and never mention it:\n{text}"
)
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
        words = self._context.call.agent.redactor.redact(text)
        if words.is_redacted and self.speech_input.unfinished_since is not None:
            playout = self._turns.speech_output.playout
            playout.silence(Channel.AGENT, self.speech_input.unfinished_since, self._context.clock())
        if finished and text:
            since = self.speech_input.speech_started_at
            self._turns.transcript.add("agent", words.kept, since, person=self.supervisor.name)
            self._turns.generator.add_agent_message(words.for_model)


class SupervisionRefused(Exception):
    """A supervisor's request cannot be carried out; the message is for them."""


@dataclass(frozen=True, slots=True)
class SupervisionState:
    """State of a supervised call. `supervisor` and `monitor_id` are None while the agent has the call."""

    supervisor: Supervisor | None
    monitor_id: UUID | None
    agent: AgentState
    type: Literal["state"] = "state"


@dataclass(frozen=True, slots=True)
class NewEntries:
    """Entries of the transcript from position `first` on."""

    first: int
    entries: Sequence[TranscriptEntry]
    type: Literal["entries"] = "entries"


@dataclass(frozen=True, slots=True)
class CallOver:
    """End of the call."""

    reason: EndedReason
    type: Literal["over"] = "over"


class MonitorFeed(Protocol):
    """Sends a call to its monitors. The methods are called in order and must return at once: queue slow work.

    `frames` are 16-bit PCM at 8 kHz in two channels, the caller left, the agent right.
    """

    def send_audio(self, frames: bytes) -> None: ...
    def send(self, update: SupervisionState | NewEntries | CallOver) -> None: ...
    def close(self) -> None: ...


@dataclass(slots=True)
class _Monitor:
    supervisor: Supervisor
    seen_at: float


class Supervision:
    """Monitors and takeover of one call. `feed` is None while there is no monitor."""

    def __init__(
        self, context: SessionContext, turns: TurnTaking, lifetime: CallLifetime, detection: BatchedDetection
    ) -> None:
        self.feed: MonitorFeed | None = None
        self.takeover: Takeover | None = None
        self._context = context
        self._turns = turns
        self._lifetime = lifetime
        self._detection = detection
        self._monitors: dict[UUID, _Monitor] = {}
        self._mixer = StereoMixer(context.encoding)
        self._transcribing: asyncio.Task[None] | None = None
        self._seconds = 0.0
        self._audio_sent_at = self._state_sent_at = context.clock()
        self._state: AgentState = "listening"
        self._entries_sent = 0

    # --- monitors ---

    def attach(
        self,
        monitor_id: UUID,
        supervisor: Supervisor,
        known_entries: int,
        open_feed: Callable[[], MonitorFeed],
        *,
        may_control: bool,
    ) -> None:
        """Add a monitor, or renew its lease, and send it the transcript after the entries that it knows.

        A supervisor who lost the connection during a takeover gets the call back with their next monitor, if that one
        may control the call.
        """
        now = self._context.clock()
        if self.feed is None:
            playout = self._turns.speech_output.playout
            self.feed = open_feed()
            self._mixer = StereoMixer(self._context.encoding, playout.position_at(now))
            playout.mixers.append(self._mixer)
        lost = self.takeover
        if (
            may_control
            and lost is not None
            and lost.disconnected_at is not None
            and lost.supervisor.user_id == supervisor.user_id
            and monitor_id not in self._monitors
        ):
            lost.monitor_id, lost.disconnected_at = monitor_id, None
        self._monitors[monitor_id] = _Monitor(supervisor, now)
        self._send_state()
        self._send_entries(known_entries)

    def detach(self, monitor_id: UUID) -> None:
        """Remove a monitor; a second call changes nothing."""
        self._monitors.pop(monitor_id, None)
        takeover = self.takeover
        if takeover is not None and takeover.monitor_id == monitor_id and takeover.disconnected_at is None:
            takeover.disconnected_at = self._context.clock()
        self._close_unused_feed()

    def has_monitor(self, monitor_id: UUID) -> bool:
        """Return whether a monitor is attached."""
        return monitor_id in self._monitors

    # --- supervisors' actions ---

    def whisper(self, monitor_id: UUID, text: str) -> None:
        """Instruct the agent's model, unheard by the caller, from its next answer on and for the rest of the call.

        The agent does not speak because of it. The transcript gets an entry of the role `system`.
        """
        supervisor = self._monitors[monitor_id].supervisor
        self._turns.generator.add_instruction(WHISPER_INSTRUCTION.format(text=text))
        self._turns.transcript.add("system", WHISPERED.format(text=text), person=supervisor.name)
        self._context.call.log.record_whisper(supervisor)

    def take_over(self, monitor_id: UUID) -> None:
        """Silence the agent at once and let the supervisor at an attached monitor speak.

        Raises `SupervisionRefused`.
        """
        if self.takeover is not None:
            raise SupervisionRefused(f"{self.takeover.supervisor.name} has the call.")
        if self._lifetime.is_ending() or self._lifetime.transfer.in_progress:
            raise SupervisionRefused("The call is about to end.")
        if self._turns.is_opening:
            raise SupervisionRefused("The caller is being asked for consent to the recording.")
        if self._context.call.voicemail:
            raise SupervisionRefused("The call is recorded by the answering machine.")
        supervisor = self._monitors[monitor_id].supervisor
        self.takeover = Takeover(self._context, self._turns, self._detection, supervisor, monitor_id)
        self._transcribing = self._lifetime.start(self.takeover.transcribe)
        self._turns.silence_agent()
        self._record_event(supervisor, TAKEN_OVER_INSTRUCTION, TAKEN_OVER)
        self._context.call.log.record_takeover(supervisor)
        self._send_state()

    def speak(self, monitor_id: UUID, audio: bytes) -> None:
        """Play a supervisor's audio, 16-bit PCM at 8 kHz, if they have the call; otherwise drop it."""
        takeover = self.takeover
        if takeover is not None and takeover.monitor_id == monitor_id and not takeover.ending:
            takeover.speak(audio)

    def hand_back(self, monitor_id: UUID) -> None:
        """Give the call back to the agent. Raises `SupervisionRefused`."""
        self._end_takeover(self._require_takeover(monitor_id))

    def hang_up(self, monitor_id: UUID) -> None:
        """End the call. Raises `SupervisionRefused`."""
        self._require_takeover(monitor_id)
        self._lifetime.end(EndedReason.TAKEN_OVER)

    # --- the session's side ---

    @property
    def seconds(self) -> float:
        """Seconds of supervisors' speech that were transcribed."""
        return self._seconds + (self.takeover.speech_input.streams.seconds if self.takeover is not None else 0.0)

    def tick(self, now: float) -> None:
        """Send audio, entries and the agent's state, and drop monitors and takeovers whose connection is lost."""
        if self.feed is not None and now - self._audio_sent_at >= AUDIO_INTERVAL_SECONDS:
            self._audio_sent_at = now
            frames = self._mixer.take(self._turns.speech_output.playout.position_at(now) - DELAY_SAMPLES)
            self._mixer.drop_late_caller_audio(MAX_LATE_SAMPLES)
            if len(frames) and self._turns.keypad.entry_since is None:
                self.feed.send_audio(frames.tobytes())
        self._send_entries(self._entries_sent)
        if self._turns.agent_state != self._state or now - self._state_sent_at >= STATE_INTERVAL_SECONDS:
            self._send_state()
        for monitor_id in [key for key, monitor in self._monitors.items() if now - monitor.seen_at > LEASE_SECONDS]:
            self.detach(monitor_id)
        if (takeover := self.takeover) is not None:
            takeover.speech_input.tick(now)
            if takeover.disconnected_at is not None and now - takeover.disconnected_at >= RECONNECT_SECONDS:
                self._end_takeover(takeover)

    def close(self, reason: EndedReason) -> None:
        """Tell the monitors that the call is over."""
        self._send_entries(self._entries_sent)
        if self.feed is not None:
            self.feed.send(CallOver(reason))
            self.feed.close()
            self.feed = None

    def _send_entries(self, first: int) -> None:
        entries = self._turns.transcript.entries
        if self.feed is not None and len(entries) > first:
            self.feed.send(NewEntries(first, entries[first:]))
        self._entries_sent = len(entries)

    def _send_state(self) -> None:
        self._state_sent_at, self._state = self._context.clock(), self._turns.agent_state
        if self.feed is not None:
            takeover = self.takeover
            supervisor, monitor_id = (takeover.supervisor, takeover.monitor_id) if takeover else (None, None)
            self.feed.send(SupervisionState(supervisor, monitor_id, self._state))

    def _require_takeover(self, monitor_id: UUID) -> Takeover:
        if self.takeover is None or self.takeover.monitor_id != monitor_id:
            raise SupervisionRefused("You do not have the call.")
        return self.takeover

    def _record_event(self, supervisor: Supervisor, instruction: str, event: str) -> None:
        self._turns.generator.add_instruction(instruction)
        self._turns.transcript.add("system", event, person=supervisor.name)

    def _end_takeover(self, takeover: Takeover) -> None:
        if not takeover.ending:
            takeover.ending = True
            self._lifetime.start(self._finish_takeover, takeover)

    async def _finish_takeover(self, takeover: Takeover) -> None:
        await takeover.finish()
        if self._transcribing is not None:
            self._transcribing.cancel()
        self._seconds += takeover.speech_input.streams.seconds
        self.takeover = None
        self._record_event(takeover.supervisor, HANDED_BACK_INSTRUCTION, HANDED_BACK)
        self._context.call.log.record_takeover(None)
        self._turns.resume_agent()
        self._send_state()
        self._close_unused_feed()

    def _close_unused_feed(self) -> None:
        if self.feed is not None and not self._monitors and self.takeover is None:
            self._turns.speech_output.playout.mixers.remove(self._mixer)
            self._send_entries(self._entries_sent)
            self.feed.close()
            self.feed = None
