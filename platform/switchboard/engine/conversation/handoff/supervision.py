"""People of the organization at a live call: they hear it, whisper to the agent, take the call over and hand it back.

A monitor is one place that the call is followed from. It says every second that it is still there; one that has not been heard of for four
seconds is gone. While there is none, nothing of this costs anything.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias
from uuid import UUID

from switchboard.engine.conversation.call import EndedReason, Supervisor, TranscriptEntry
from switchboard.engine.conversation.handoff.takeover import SessionContext, Takeover
from switchboard.engine.conversation.media.stereo_mixer import StereoMixer
from switchboard.engine.conversation.speech.speech_input import SpeechInput

LEASE_SECONDS = 4.0
RECONNECT_SECONDS = 5.0
"""How long a person who has the call may be away before the agent has it again."""
STATE_INTERVAL_SECONDS = 1.0
AUDIO_INTERVAL_SECONDS = 0.04
DELAY_SAMPLES = 800
"""So far behind the call are its monitors: a caller's audio that comes a little late then leaves no gap."""
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
    "A human colleague who listens to this call instructs you, unheard by the caller. Do so from your next answer on, and never mention it:\n"
    "{text}"
)

AgentState: TypeAlias = Literal["listening", "thinking", "speaking", "silent"]


class SupervisionRefused(Exception):
    """What a person asked for cannot be done; the message is for them."""


@dataclass(frozen=True, slots=True)
class SupervisionState:
    """Who has the call (None: the agent) and from which monitor, what the agent does, and how many entries the transcript has."""

    person: Supervisor | None
    monitor_id: UUID | None
    agent: AgentState
    entries: int


class MonitorFeed(Protocol):
    """Where the monitors of a call are told of it. All are called in order and must not be slow: hand the work on.

    `frames` are 16-bit PCM at 8 kHz in two channels, the caller left, the agent's side right. `first` is the position of the first of `entries`.
    """

    def audio(self, frames: bytes) -> None: ...
    def state(self, state: SupervisionState) -> None: ...
    def entries(self, first: int, entries: Sequence[TranscriptEntry]) -> None: ...
    def ended(self, reason: EndedReason) -> None: ...
    def close(self) -> None: ...


class CallController(Protocol):
    """The conversation, as people may act on it: a `CallSession`."""

    ears: list[SpeechInput]

    def end(self, reason: EndedReason, error: str | None = None) -> None: ...
    def start(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]: ...
    def fall_silent(self) -> None: ...
    def go_on(self) -> None: ...
    def doing(self) -> AgentState: ...
    def not_to_be_taken_over(self) -> str | None: ...


@dataclass(slots=True)
class _Monitor:
    person: Supervisor
    seen_at: float


class Supervision:
    """The people at one call. `feed` is None while there are none."""

    def __init__(self, floor: CallController, parts: SessionContext) -> None:
        self.feed: MonitorFeed | None = None
        self.takeover: Takeover | None = None
        self._floor = floor
        self._parts = parts
        self._monitors: dict[UUID, _Monitor] = {}
        self._timeline = StereoMixer(parts.encoding)
        self._listening: asyncio.Task[None] | None = None
        self._seconds = 0.0
        self._fed_at = self._told_at = parts.clock()
        self._doing: AgentState = "listening"
        parts.transcript.on_entry = self._entry

    # --- who is there ---

    def attach(
        self,
        monitor_id: UUID,
        person: Supervisor,
        known: int,
        open_feed: Callable[[], MonitorFeed],
        *,
        may_control: bool,
    ) -> None:
        """A monitor is there, or still there; `known` is how many entries of the transcript it has, so that it gets the rest.

        Somebody whose monitor was lost while they had the call has it again with their next one, if that may control the call.
        """
        if self.feed is None:
            self.feed = open_feed()
            self._timeline = StereoMixer(self._parts.encoding, self._parts.playout.position(self._parts.clock()))
            self._parts.playout.timelines.append(self._timeline)
        lost = (
            self.takeover if may_control and self.takeover is not None and self.takeover.lost_at is not None else None
        )
        if lost is not None and lost.person.user_id == person.user_id and monitor_id not in self._monitors:
            lost.monitor_id, lost.lost_at = monitor_id, None
        self._monitors[monitor_id] = _Monitor(person, self._parts.clock())
        self._tell_state()
        if missing := self._parts.transcript.entries[known:]:
            self.feed.entries(known, missing)

    def detach(self, monitor_id: UUID) -> None:
        """A monitor is gone; harmless when told twice."""
        self._monitors.pop(monitor_id, None)
        if self.takeover is not None and self.takeover.monitor_id == monitor_id and self.takeover.lost_at is None:
            self.takeover.lost_at = self._parts.clock()
        self._close_unused()

    def knows(self, monitor_id: UUID) -> bool:
        """Whether a monitor is there."""
        return monitor_id in self._monitors

    # --- what they do ---

    def whisper(self, text: str) -> None:
        """An instruction to the agent's model, which the caller never hears: it counts from the agent's next answer on and stays for the call.

        It does not make the agent speak. The transcript has it as an entry of the role `system`.
        """
        self._parts.thinker.note(WHISPER_INSTRUCTION.format(text=text))
        self._parts.note(WHISPERED.format(text=text))

    def take_over(self, monitor_id: UUID) -> None:
        """Silence the agent at once and let the person at a monitor that is there speak. Raises `Refused`."""
        if self.takeover is not None:
            raise SupervisionRefused(f"{self.takeover.person.name} has the call.")
        if (reason := self._floor.not_to_be_taken_over()) is not None:
            raise SupervisionRefused(reason)
        person = self._monitors[monitor_id].person
        self.takeover = Takeover(self._parts, person, monitor_id)
        self.takeover.ear.on_window = self._floor.ears[0].on_window
        self._floor.ears.append(self.takeover.ear)
        self._listening = self._floor.start(self.takeover.listen())
        self._floor.fall_silent()
        self._parts.thinker.note(TAKEN_OVER_INSTRUCTION)
        self._parts.note(TAKEN_OVER)
        self._parts.call.log.taken_over(person)
        self._tell_state()

    def speak(self, monitor_id: UUID, audio: bytes) -> None:
        """What a person says, 16-bit PCM at 8 kHz; dropped unless they have the call."""
        takeover = self.takeover
        if takeover is not None and takeover.monitor_id == monitor_id and not takeover.ending:
            takeover.speak(audio)

    def hand_back(self, monitor_id: UUID) -> None:
        """Give the call back to the agent. Raises `Refused`."""
        self._give_back(self._held_from(monitor_id))

    def hang_up(self, monitor_id: UUID) -> None:
        """End the call. Raises `Refused`."""
        self._held_from(monitor_id)
        self._floor.end(EndedReason.TAKEN_OVER)

    # --- the call's side ---

    @property
    def seconds(self) -> float:
        """How much of people's speech was transcribed."""
        return self._seconds + (self.takeover.ear.listener.seconds if self.takeover is not None else 0.0)

    def tick(self, now: float) -> None:
        """What is due while there is a feed: audio, news of the agent, monitors and people who are gone."""
        if self.feed is not None and now - self._fed_at >= AUDIO_INTERVAL_SECONDS:
            self._fed_at = now
            frames = self._timeline.take(self._parts.playout.position(now) - DELAY_SAMPLES)
            self._timeline.catch_up(MAX_LATE_SAMPLES)
            if len(frames):
                self.feed.audio(frames.tobytes())
        if self._floor.doing() != self._doing or now - self._told_at >= STATE_INTERVAL_SECONDS:
            self._tell_state()
            for monitor_id in [key for key, monitor in self._monitors.items() if now - monitor.seen_at > LEASE_SECONDS]:
                self.detach(monitor_id)
        if (takeover := self.takeover) is not None:
            takeover.ear.tick(now)
            if takeover.lost_at is not None and now - takeover.lost_at >= RECONNECT_SECONDS:
                self._give_back(takeover)

    def close(self, reason: EndedReason) -> None:
        """The call is over."""
        if self.feed is not None:
            self.feed.ended(reason)
            self.feed.close()
            self.feed = None

    def _entry(self, position: int, entry: TranscriptEntry) -> None:
        if self.feed is not None:
            self.feed.entries(position, (entry,))

    def _tell_state(self) -> None:
        self._told_at, self._doing = self._parts.clock(), self._floor.doing()
        if self.feed is not None:
            person, monitor_id = (
                (self.takeover.person, self.takeover.monitor_id) if self.takeover is not None else (None, None)
            )
            self.feed.state(SupervisionState(person, monitor_id, self._doing, len(self._parts.transcript.entries)))

    def _held_from(self, monitor_id: UUID) -> Takeover:
        if self.takeover is None or self.takeover.monitor_id != monitor_id:
            raise SupervisionRefused("You do not have the call.")
        return self.takeover

    def _give_back(self, takeover: Takeover) -> None:
        if not takeover.ending:
            takeover.ending = True
            self._floor.start(self._finish(takeover))

    async def _finish(self, takeover: Takeover) -> None:
        await takeover.finish()
        if self._listening is not None:
            self._listening.cancel()
        self._seconds += takeover.ear.listener.seconds
        self._floor.ears.remove(takeover.ear)
        self.takeover = None
        self._parts.thinker.note(HANDED_BACK_INSTRUCTION)
        self._parts.note(HANDED_BACK)
        self._parts.call.log.taken_over(None)
        self._floor.go_on()
        self._tell_state()
        self._close_unused()

    def _close_unused(self) -> None:
        if self.feed is not None and not self._monitors and self.takeover is None:
            self._parts.playout.timelines.remove(self._timeline)
            self.feed.close()
            self.feed = None
