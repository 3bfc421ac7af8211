"""A scheduler that lets one statement go at a time, chosen by a seed, and the event loop that asks it.

A process of the simulation waits at the gate before each statement, and again before its answer. Once every task
waits (at the gate, for a lock of PostgreSQL, or for a moment), the scheduler lets one of those at the gate go on, or
lets time pass. So the order of everything follows from the seed.
"""

import asyncio
import os
import random
import selectors
import signal
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import Context
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Final, Protocol, TypeVar, TypeVarTuple

from tests.fixtures.virtual_clock import CLOCK, JumpingSelector, VirtualClockLoop

ResultT = TypeVar("ResultT")
Arguments = TypeVarTuple("Arguments")

ANSWER_SECONDS: Final = 0.001
"""Real time between looks at a server process that works."""
STUCK_LOOKS: Final = 60_000
"""Looks at a statement that comes to no end and waits for no lock: a minute at least."""
PAUSE_SHARE: Final = 0.05
LONGEST_PAUSE: Final = 0.25
"""Share of the choices at which time passes although somebody waits at the gate, and how much, in seconds."""
TIMER_SECONDS: Final = 1e-8
WAITS: Final = ("ep_poll", "do_epoll_wait")
"""Functions of Linux in which a server process waits for a lock, or for its client."""


class Stuck(AssertionError):
    """Everybody waits, and neither a statement nor time brings anything."""


class Party(Protocol):
    """A participant whose statements go through the gate."""

    name: str
    stalled_until: float


@dataclass(slots=True, eq=False)
class Ticket:
    """A participant that waits at the gate."""

    party: Party
    label: str
    number: int
    future: asyncio.Future[None]


@dataclass(slots=True)
class Scheduler:
    """The gate. `faults` are functions by the number of the step before which they run."""

    choices: random.Random
    waiting: list[Ticket] = field(default_factory=list)
    running: dict[int, str] = field(default_factory=dict)
    """Statements under way, by the server's processes, in the order in which they began."""
    stopped: dict[int, None] = field(default_factory=dict)
    """Server processes that wait for a lock. They are stopped: when it is free, one goes on after the other."""
    unchecked: deque[int] = field(default_factory=deque)
    """Those of them that may have got their lock."""
    outside: int = 0
    """Number of those who ask the database beside the gate, for whom everybody else waits."""
    steps: int = 0
    timers: int = 0
    faults: deque[tuple[int, Callable[[], None]]] = field(default_factory=deque)
    trace: list[str] = field(default_factory=list)
    began_at: float = 0.0

    async def pass_gate(self, party: Party, label: str, number: int = 0) -> None:
        """Wait until the scheduler chooses this statement, or this answer."""
        ticket = Ticket(party, label, number, asyncio.get_running_loop().create_future())
        self.waiting.append(ticket)
        try:
            await ticket.future
        finally:
            if ticket in self.waiting:
                self.waiting.remove(ticket)

    async def run(self, pid: int, label: str, work: Awaitable[ResultT]) -> ResultT:
        """Await a statement's answer from a server process."""
        self.running[pid] = label
        try:
            return await work
        finally:
            del self.running[pid]
            self.stopped.pop(pid, None)

    def free_locks(self) -> None:
        """Look, before the next step, who has got a lock: a transaction has ended."""
        self.unchecked = deque(self.stopped)

    @contextmanager
    def stop_others(self) -> Iterator[None]:
        """Ask the database beside the gate in the block: nobody else goes on, and no time passes."""
        self.outside += 1
        try:
            yield
        finally:
            self.outside -= 1

    def note(self, party: str, sentence: str) -> None:
        """Add a line to the trace."""
        self.trace.append(f"{CLOCK.read() - self.began_at:9.3f}  {party:10}  {sentence}")

    def is_working(self) -> bool:
        """Return whether a server process works on a statement, as opposed to waiting for a lock."""
        return self.outside > 0 or not all(pid in self.stopped or _is_asleep(pid) for pid in self.running)

    def check_locks(self) -> bool:
        """Stop the server processes that wait for a lock; let one of them go on that may have got it, and return
        whether there was one.
        """
        for pid in self.running:
            if pid not in self.stopped:
                self.stopped[pid] = None
                os.kill(pid, signal.SIGSTOP)
        while self.unchecked:
            pid = self.unchecked.popleft()
            if pid in self.stopped:
                del self.stopped[pid]
                os.kill(pid, signal.SIGCONT)
                return True
        return False

    def step(self, seconds: float) -> bool:
        """Let somebody at the gate go on; return False if time must pass. `seconds` is the time to the next timer."""
        moment = CLOCK.read()
        ready = [ticket for ticket in self.waiting if ticket.party.stalled_until <= moment]
        if not ready:
            return False
        self.steps += 1
        if self.faults and self.faults[0][0] <= self.steps:
            self.faults.popleft()[1]()
            return True
        if seconds < inf and self.choices.random() < PAUSE_SHARE:
            CLOCK.advance(min(seconds, self.choices.random() * LONGEST_PAUSE))
            return True
        ready.sort(key=lambda ticket: (ticket.party.name, ticket.number, ticket.label))
        chosen = self.choices.choice(ready)
        self.waiting.remove(chosen)
        self.note(chosen.party.name, chosen.label)
        chosen.future.set_result(None)
        return True


def _is_asleep(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/wchan").read_text() in WAITS
    except (FileNotFoundError, ProcessLookupError):
        return True


class SimulationSelector(JumpingSelector):
    """Selector that asks a scheduler in place of waiting, once every server process has answered or waits."""

    def __init__(self) -> None:
        super().__init__(CLOCK, None)
        self.scheduler = Scheduler(random.Random(0))

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return what has arrived; nothing while the loop has something to do, so that its order depends on nobody."""
        if timeout is not None and timeout <= 0:
            return []
        scheduler = self.scheduler
        for _ in range(STUCK_LOOKS):
            is_working = bool(self.working_threads) or scheduler.is_working()
            if events := selectors.DefaultSelector.select(self, ANSWER_SECONDS if is_working else 0):
                return events
            if not is_working and not scheduler.check_locks():
                break
        else:
            raise Stuck(f"statements without an end: {scheduler.running}")
        if scheduler.step(inf if timeout is None else timeout):
            return []
        if timeout is None:
            raise Stuck(f"nobody can go on; for locks wait {scheduler.running}, at the gate {scheduler.waiting}")
        CLOCK.advance(timeout)
        return []


class SimulationLoop(VirtualClockLoop):
    """Event loop on the virtual clock, whose order a scheduler decides."""

    def __init__(self) -> None:
        self.selector = SimulationSelector()
        super().__init__(selector=self.selector)

    def call_at(
        self,
        moment: float,
        callback: Callable[[*Arguments], object],
        *args: *Arguments,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Set a timer. No two timers of a seed have one moment: the loop's order of these depends on its past."""
        scheduler = self.selector.scheduler
        scheduler.timers += not scheduler.outside  # new connections set some, and not every run needs new ones
        return super().call_at(moment + scheduler.timers * TIMER_SECONDS, callback, *args, context=context)
