"""All live calls of a process: voice activity is judged in batches over all of them, and one clock of 10 ms drives everything that is due."""

import asyncio
import time
from dataclasses import dataclass
from uuid import UUID

import numpy as np
import structlog

from switchboard.engine.conversation.call import (
    CallResult,
    CallUsage,
    Clock,
    EndedReason,
    LiveCall,
    MediaSocket,
    TransferTargetEvent,
)
from switchboard.engine.conversation.handoff.supervision import Supervision
from switchboard.engine.conversation.session import CallSession
from switchboard.engine.conversation.speech.vad import WINDOW, VoiceDetector
from switchboard.plugin_sdk import MediaStarted, ProviderError
from switchboard.plugin_sdk.audio import Samples, decode_audio

logger = structlog.get_logger()
TICK_SECONDS = 0.01
BATCH_SECONDS = 0.00005
"""How long a call's audio waits for others' to be judged with it, for each live call, up to a tick: a few calls are answered sooner, and many
cost what they would by the clock."""
START_SECONDS = 10.0
MAX_EARLY_ENDS = 1000


@dataclass(frozen=True, slots=True)
class CallControl:
    """What can be done to a live call from outside."""

    session: CallSession

    def hang_up(self, reason: EndedReason) -> None:
        """End it."""
        self.session.end(reason)

    def say(self, text: str) -> None:
        """Have the agent say something now."""
        self.session.say(text)

    @property
    def desk(self) -> Supervision:
        """Where people attend to it."""
        return self.session.desk

    def told(self, told: TransferTargetEvent) -> None:
        """The carrier has told something about the target of a transfer."""
        self.session.told(told)


class CallEngine:
    """Holds calls. One for each process."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._sessions: dict[UUID, CallSession] = {}
        self._early_ends: dict[UUID, EndedReason] = {}
        self._detector: VoiceDetector | None = None
        self._ticking: asyncio.Task[None] | None = None
        self._judging: asyncio.TimerHandle | None = None
        self._empty = asyncio.Event()
        self._empty.set()
        self.stopping = asyncio.Event()

    async def start(self) -> None:
        """Load the model of voice activity and start the clock."""
        self.stopping.clear()
        self._detector = await asyncio.to_thread(VoiceDetector)
        self._ticking = asyncio.create_task(self._tick())

    async def close(self) -> None:
        """End what still runs and stop the clock."""
        await self.drain(EndedReason.SHUTDOWN)
        if self._judging is not None:
            self._judging.cancel()
        if self._ticking is not None:
            self._ticking.cancel()
            await asyncio.gather(self._ticking, return_exceptions=True)

    async def drain(self, reason: EndedReason) -> None:
        """Tell every call to end and wait until all have. `stopping` tells those who only follow calls, or lead to them, to leave too."""
        self.stopping.set()
        for session in list(self._sessions.values()):
            session.end(reason)
        await self._empty.wait()

    @property
    def live_calls(self) -> int:
        """How many calls are held."""
        return len(self._sessions)

    @property
    def held(self) -> list[UUID]:
        """Which calls are held."""
        return list(self._sessions)

    def control(self, call_id: UUID) -> CallControl | None:
        """A live call, None where it is not held here."""
        session = self._sessions.get(call_id)
        return CallControl(session) if session else None

    def hang_up(self, call_id: UUID, reason: EndedReason) -> None:
        """End a call that is held here, or is about to be: its holder may be told before its media stream has started."""
        control = self.control(call_id)
        if control is not None:
            control.hang_up(reason)
            return
        self._early_ends[call_id] = reason
        if len(self._early_ends) > MAX_EARLY_ENDS:
            del self._early_ends[next(iter(self._early_ends))]

    async def hold(self, call: LiveCall, socket: MediaSocket) -> CallResult:
        """Hold one call from its media stream's start to its end; always answers how it went, and leaves no task behind."""
        try:
            async with asyncio.timeout(START_SECONDS):
                started = await _await_start(call, socket)
        except TimeoutError:
            started = None
        if started is None:
            return await _refuse(call, socket)
        session = CallSession(call, socket, started.encoding, self._clock)
        session.ears[0].on_window = self._window_came
        self._sessions[call.call_id] = session
        self._empty.clear()
        if (reason := self._early_ends.pop(call.call_id, None)) is not None:
            session.end(reason)
        try:
            return await session.run()
        finally:
            del self._sessions[call.call_id]
            if not self._sessions:
                self._empty.set()

    async def _tick(self) -> None:
        due = self._clock()
        while True:
            due = max(due + TICK_SECONDS, self._clock())
            await asyncio.sleep(due - self._clock())
            try:
                now = self._clock()
                for session in list(self._sessions.values()):
                    session.tick(now)
            except Exception:
                logger.exception("tick failed")

    def _window_came(self) -> None:
        if self._judging is None and self._detector is not None:
            room = min(TICK_SECONDS, len(self._sessions) * BATCH_SECONDS)
            self._judging = asyncio.get_running_loop().call_later(room, self._judge, self._detector)

    def _judge(self, detector: VoiceDetector) -> None:
        self._judging = None
        try:
            self._detect(detector)
        except Exception:
            logger.exception("voice activity was not judged")

    def _detect(self, detector: VoiceDetector) -> None:
        while ready := [ear for session in self._sessions.values() for ear in session.ears if len(ear.inbox) >= WINDOW]:
            windows = [bytes(ear.inbox[:WINDOW]) for ear in ready]
            samples: Samples = np.stack(
                [decode_audio(window, ear.encoding) for window, ear in zip(windows, ready, strict=True)]
            )
            changes = detector.detect([ear.activity for ear in ready], samples)
            for ear, window, change in zip(ready, windows, changes, strict=True):
                del ear.inbox[:WINDOW]
                ear.judged(window, change)


async def _await_start(call: LiveCall, socket: MediaSocket) -> MediaStarted | None:
    while (message := await socket.receive()) is not None:
        try:
            event = call.codec.decode(message)
        except ValueError:
            continue
        if isinstance(event, MediaStarted):
            return event
    return None


async def _refuse(call: LiveCall, socket: MediaSocket) -> CallResult:
    try:
        await call.leg.hang_up()
    except ProviderError as error:
        logger.warning("carrier did not hang up", call_id=str(call.call_id), reason=error.message)
    await socket.close()
    return CallResult(
        EndedReason.ERROR, "The carrier opened the call's audio but never started it.", 0.0, (), (), CallUsage(), None
    )
