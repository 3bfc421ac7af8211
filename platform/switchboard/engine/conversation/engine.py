"""All live calls of a process, driven by one clock of 10 ms, which rests while there are none, and one batched voice
activity detection.
"""

import asyncio
import time
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Final, TypeVar
from uuid import UUID

import structlog

from switchboard.engine.conversation.call import (
    CallResult,
    Clock,
    EndedReason,
    LiveCall,
    MachineEvent,
    MediaSocket,
    SessionContext,
)
from switchboard.engine.conversation.session import CallSession
from switchboard.engine.conversation.speech.speech_input import BatchedDetection
from switchboard.engine.conversation.speech.vad import VoiceDetector
from switchboard.foundation.observability import traces
from switchboard.plugin_sdk import MediaStarted, MediaStopped, ProviderError, UnsupportedAudio

# Number of calls that a process can hold, learned from the lateness of its event loop.

LATE_SECONDS: Final = 0.02
"""One frame of audio. An answer crosses the event loop several times, and is late by several times as much."""
QUIET_SECONDS: Final = LATE_SECONDS / 2
QUANTILE: Final = 0.95
"""A scrape of the metrics holds the loop for 40 ms now and then, and means nothing."""
WINDOW: Final = 500
"""Ticks of five seconds."""
LEAST_SHARE: Final = 0.25
GROWTH_SHARE: Final = 0.05


class CallCapacity:
    """Limit of a process's live calls: additive increase, and decrease to what it holds when its loop is late.

    The limit is at most that of the operator, and at least a quarter of it: a process that is late with so few calls is
    not full of calls. Something else holds its loop or the machine, and refused calls would not free it.
    """

    def __init__(self, most: int) -> None:
        """`most` is the operator's limit."""
        self.limit = self._most = most
        self._lateness: deque[float] = deque(maxlen=WINDOW)

    def observe_lateness(self, seconds: float) -> None:
        """Record by how much a tick of the engine was late."""
        self._lateness.append(seconds)

    def forget_lateness(self) -> None:
        """Forget what was recorded: the last call has ended."""
        self._lateness.clear()

    def update_limit(self, live_calls: int) -> None:
        """Adapt the limit to the last five seconds; called once a second."""
        lateness = sorted(self._lateness)[int(QUANTILE * (len(self._lateness) - 1))] if self._lateness else 0.0
        if lateness > LATE_SECONDS:
            self.limit = min(self.limit, max(live_calls, round(self._most * LEAST_SHARE), 1))
        elif lateness < QUIET_SECONDS:
            self.limit = min(self._most, self.limit + max(1, round(self._most * GROWTH_SHARE)))


logger = structlog.get_logger()
ValueT = TypeVar("ValueT")
TICK_SECONDS = 0.01
START_SECONDS = 10.0
NEVER_STARTED = "The carrier opened the call's audio but never started it."
MAX_EARLY = 1000


class CallEngine:
    """Runs calls. There is one engine for each process."""

    def __init__(self, clock: Clock = time.monotonic, *, most_calls: int = 100) -> None:
        """`most_calls` is the operator's limit of live calls."""
        self._clock = clock
        self.capacity = CallCapacity(most_calls)
        self._sessions: dict[UUID, CallSession] = {}
        self._early_ends: dict[UUID, EndedReason] = {}
        self._early_machines: dict[UUID, MachineEvent] = {}
        self._detection: BatchedDetection | None = None
        self._ticking: asyncio.Task[None] | None = None
        self._has_calls = asyncio.Event()
        self._held = 0
        self._claimed: Counter[UUID] = Counter()
        self._empty = asyncio.Event()
        self._empty.set()
        self.stopping = asyncio.Event()
        self.draining = False

    async def start(self) -> None:
        """Load the model of the voice activity detection and start the clock."""
        self.stopping.clear()
        self.draining = False
        self._detection = BatchedDetection(await asyncio.to_thread(VoiceDetector))
        self._ticking = asyncio.create_task(self._tick())

    async def close(self) -> None:
        """End the live calls and stop the clock."""
        await self.drain(0)
        if self._detection is not None:
            self._detection.close()
        if self._ticking is not None:
            self._ticking.cancel()
            await asyncio.gather(self._ticking, return_exceptions=True)

    def begin_drain(self) -> None:
        """Announce that this process is about to stop: it is no longer ready for new calls."""
        self.draining = True

    async def drain(self, seconds: float) -> None:
        """Wait until the live calls have ended by themselves, for so many seconds at most; then end the others.

        Their callers hear a sentence. `stopping` is then set for tasks that follow calls or lead to them.
        """
        self.begin_drain()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._empty.wait()
        self.stopping.set()
        for session in list(self._sessions.values()):
            session.shut_down()
        await self._empty.wait()

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Keep the process from stopping within the block: from a call's media socket to its saved result."""
        self._held += 1
        self._empty.clear()
        try:
            yield
        finally:
            self._held -= 1
            if not self._held:
                self._empty.set()

    @contextmanager
    def keep_claim(self, call_id: UUID) -> Iterator[None]:
        """Keep the claim of a call within the block: from before the claim to the saved result."""
        self._claimed[call_id] += 1
        try:
            yield
        finally:
            self._claimed[call_id] -= 1
            self._claimed += Counter()  # without calls that are kept no more

    def is_claimed(self, call_id: UUID) -> bool:
        """Return whether this process keeps the claim of a call, or is about to claim it."""
        return call_id in self._claimed

    @property
    def live_call_ids(self) -> list[UUID]:
        """Ids of the live calls of this process."""
        return list(self._sessions)

    @property
    def is_full(self) -> bool:
        """True while this process holds as many calls as it can."""
        return len(self._sessions) >= self.capacity.limit

    def count_calls_by_organization(self) -> Counter[UUID]:
        """Count the live calls of this process for each organization."""
        return Counter(session.context.call.organization_id for session in self._sessions.values())

    def find_session(self, call_id: UUID) -> CallSession | None:
        """Return a live call of this process."""
        return self._sessions.get(call_id)

    def end_call(self, call_id: UUID, reason: EndedReason) -> None:
        """End a call that this process runs, or is about to run: its media stream may not have started yet."""
        session = self._sessions.get(call_id)
        if session is not None:
            session.lifetime.end(reason)
            return
        _remember(self._early_ends, call_id, reason)

    def report_machine(self, call_id: UUID, event: MachineEvent) -> None:
        """Report a machine that answered a call which this process runs, or is about to run."""
        session = self._sessions.get(call_id)
        if session is not None:
            session.machine.handle_event(event)
        else:
            _remember(self._early_machines, call_id, event)

    async def run_call(self, call: LiveCall, socket: MediaSocket) -> CallResult:
        """Run one call from the start of its media stream to its end; return its result and leave no task behind."""
        if self._detection is None:
            raise RuntimeError("the call engine has not been started")
        context = traces.build_call_context(call.call_id)
        with traces.span("conversation", {"gen_ai.conversation.id": str(call.call_id)}, context=context):
            try:
                async with asyncio.timeout(START_SECONDS):
                    first = await _receive_start_or_stop(call, socket)
            except TimeoutError:
                first = None
            except UnsupportedAudio as error:
                return await _refuse_call(call, socket, str(error))
            if first is None:
                return await _refuse_call(call, socket, NEVER_STARTED)
            if isinstance(first, MediaStopped):
                await socket.close()
                return _create_empty_result(self._early_ends.pop(call.call_id, EndedReason.CALLER_HUNG_UP))
            if self._early_machines.pop(call.call_id, None) is not None:
                call = replace(call, machine_answered=True)
            session = CallSession(SessionContext(call, socket, first.encoding, self._clock), self._detection)
            self._sessions[call.call_id] = session
            self._has_calls.set()
            if (reason := self._early_ends.pop(call.call_id, None)) is not None:
                session.lifetime.end(reason)
            elif self.stopping.is_set():
                session.lifetime.end(EndedReason.SHUTDOWN)
            try:
                with self.hold():
                    return await session.run()
            finally:
                del self._sessions[call.call_id]

    async def _tick(self) -> None:
        while True:
            await self._has_calls.wait()
            due = now = self._clock()
            while self._sessions:
                due = max(due + TICK_SECONDS, self._clock())
                await asyncio.sleep(due - self._clock())
                before, now = now, self._clock()
                self.capacity.observe_lateness(now - before - TICK_SECONDS)
                for session in list(self._sessions.values()):
                    try:
                        session.tick(now)
                    except Exception as error:  # noqa: BLE001 - the other calls go on
                        session.lifetime.fail(error)
            self._has_calls.clear()
            self.capacity.forget_lateness()


def _remember(early: dict[UUID, ValueT], call_id: UUID, value: ValueT) -> None:
    """Keep a message to a call that has not begun, in the place of the oldest one if there are too many."""
    early[call_id] = value
    if len(early) > MAX_EARLY:
        del early[next(iter(early))]


async def _receive_start_or_stop(call: LiveCall, socket: MediaSocket) -> MediaStarted | MediaStopped | None:
    """Return the start of the stream, or its stop if the caller hung up before; None if the socket closes first."""
    while (message := await socket.receive()) is not None:
        try:
            event = call.codec.decode(message)
        except UnsupportedAudio:
            raise
        except ValueError:
            continue
        if isinstance(event, MediaStarted | MediaStopped):
            return event
    return None


async def _refuse_call(call: LiveCall, socket: MediaSocket, reason: str) -> CallResult:
    try:
        await call.leg.hang_up()
    except ProviderError as error:
        logger.warning("carrier did not hang up", call_id=str(call.call_id), reason=error.message)
    await socket.close()
    return _create_empty_result(EndedReason.ERROR, reason)


def _create_empty_result(reason: EndedReason, error: str | None = None) -> CallResult:
    return CallResult(reason, error, 0.0, (), (), {})
