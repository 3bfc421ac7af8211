"""Processes of the platform as tasks of one loop: each has its own connections, and a crash ends all that it does."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from contextlib import suppress
from contextvars import Context, ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, Final, TypeVar

from sqlalchemy.exc import SQLAlchemyError
from switchboard.foundation.database import Database, now
from switchboard.foundation.injection import Parts, resolve_parameters
from switchboard.foundation.jobs import Reconciler, run_reconciler
from switchboard.foundation.settings import Settings
from switchboard.foundation.work import FRESH, Work, WorkRunner
from switchboard.resources.deliveries.delivery_worker import DeliveryWorker

from tests.interleavings.connections import Gate

ResultT = TypeVar("ResultT")
CURRENT: Final[ContextVar["Process | None"]] = ContextVar("current process", default=None)


@dataclass(eq=False)
class Process:
    """A process: its gate to the database, and its tasks, in the order of their creation."""

    gate: Gate
    database: Database
    complain: Callable[[str], None]
    tasks: dict[asyncio.Task[Any], None] = field(default_factory=dict)
    died_at: datetime | None = None

    def __post_init__(self) -> None:
        self.gate.is_dead = False

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine in the process."""
        token = CURRENT.set(self)
        try:
            asyncio.create_task(work).add_done_callback(self._judge_end)
        finally:
            CURRENT.reset(token)

    def _judge_end(self, task: asyncio.Task[None]) -> None:
        """Complain about work that an exception has ended: nothing begins it again."""
        error = None if task.cancelled() else task.exception()
        if error is not None and not self.gate.is_dead:
            self.complain(f"error: {self.gate.name} has ended {task.get_coro()} with {error!r}")

    def crash(self) -> None:
        """End the process at once: its transactions are rolled back, and none of its code reaches anybody any more."""
        self.died_at = now()
        self.gate.break_connections()
        self.end()

    def end(self) -> None:
        """Cancel all that the process does, whose code reaches nobody any more."""
        self.gate.is_dead = True
        for task in self.tasks:
            task.cancel()

    async def wait(self) -> None:
        """Wait until nothing of a process is left that has ended."""
        while self.tasks:
            await asyncio.wait(list(self.tasks))


def build(kind: Callable[..., ResultT], parts: Parts) -> ResultT:
    """Build a service, or call a function, with the parts that it names."""
    return kind(**resolve_parameters(kind, parts, frozenset()))


def create_owned_task(
    loop: asyncio.AbstractEventLoop,
    work: Coroutine[Any, Any, ResultT] | Generator[Any, None, ResultT],
    context: Context | None = None,
) -> asyncio.Task[ResultT]:
    """Create a task of the process whose code creates it."""
    task = asyncio.Task(work, loop=loop, context=context)
    process = CURRENT.get()
    if process is not None:
        process.tasks[task] = None
        task.add_done_callback(lambda done: process.tasks.pop(done, None))
    return task


@dataclass(eq=False)
class Worker(Process):
    """A worker: the production's runner of background work, and its sender of deliveries, with the reconcilers of some
    kinds of work.
    """

    runner: WorkRunner | None = None
    sender: DeliveryWorker | None = None
    bucket: int = 0
    pause: float = 5.0
    """The bucket into which each kind of work looks, and the seconds between two looks."""

    async def run(self, settings: Settings, parts: Parts, works: Sequence[Work], jobs: Sequence[Reconciler]) -> None:
        """Work until the process ends, with the reconcilers of these kinds of work and of these jobs."""
        sender = self.sender = build(DeliveryWorker, {**parts, "settings": settings})
        self.runner = WorkRunner(self.database, works, {**parts, "delivery_worker": sender})
        looks = [Reconciler(work.name, partial(self._look, self.runner, work.name), self.pause) for work in works]
        stop = asyncio.Event()
        async with sender:
            await asyncio.gather(*(run_reconciler(reconciler, stop) for reconciler in (*looks, *jobs)))

    def _look(self, runner: WorkRunner, name: str) -> Awaitable[int]:
        return runner.look(name, [self.bucket])

    @property
    def places_taken(self) -> int:
        """The number of requests that the worker believes to be sending."""
        return 0 if self.sender is None else self.sender._limits._taken

    async def follow_wakeup(self, job: str, bucket: int) -> None:
        """Look, as the worker's queue does for a wake-up."""
        if self.runner is not None and job in self.runner.works:
            with suppress(SQLAlchemyError, OSError):  # the wake-up is lost
                await self.runner.look(job, [bucket], since=now() - FRESH)
