"""Background jobs: wake-ups over SAQ on Redis, and reconcilers. Redis holds only what may be lost.

Wake-ups start due work at once. Due work is a row, so a lost wake-up costs seconds, never work.
"""

import asyncio
import logging
import time
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterable,
    Sequence,
)
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar

import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError
from saq.job import Job as QueuedJob
from saq.queue.redis import RedisQueue
from saq.types import Context, PartialTimersDict, VersionTuple
from saq.worker import Worker
from sqlmodel import SQLModel, func, select

from switchboard.foundation.database import BATCH, JOB_TIMEOUT, Database, SystemSession
from switchboard.foundation.injection import Parts, list_keyword_only, resolve_parameters
from switchboard.foundation.observability import metrics
from switchboard.foundation.redis_client import HASH_TAG

logger = structlog.get_logger()

Job: TypeAlias = Callable[..., Awaitable[int | None]]
"""A job: `async def dial_call(dialer: CallDialer, *, organization_id: UUID, call_id: UUID)`. Its positional parameters
are parts and services of the process; its keyword-only parameters are ids. It may run twice, so it must be idempotent.
A job that is repeated may return how many items it found due.
"""

Follow: TypeAlias = Callable[[str, int], Awaitable[object]]
"""Looks for the due rows of a job in a bucket."""

CONCURRENCY: Final = 20
"""Wake-ups that a worker follows at once."""
TIMERS = PartialTimersDict(schedule=1, worker_info=10, sweep=20, abort=1)
JOB_RETRIES = 3
LOOK_SECONDS: Final = 10
"""Time for a look. The wake-up of a worker that was killed as it took it keeps others of its kind and bucket away for
as long, so that only reconcilers find that work.
"""
AWAY_SECONDS = 1.0
OLDEST_REDIS = (6, 2, 0)
"""Version of Redis that the platform needs: tickets are redeemed by GETDEL."""


class _RedisQueue(RedisQueue):
    """SAQ's queue, except that its workers do not spin during an outage of Redis."""

    async def version(self) -> VersionTuple:
        """Return the oldest one: INFO, by which SAQ asks, is not among the rights of `deploy/redis/users.acl`."""
        return OLDEST_REDIS

    async def dequeue(self, timeout: float = 0.0, poll_interval: float = 0.0) -> QueuedJob | None:  # noqa: ASYNC109
        try:
            return await super().dequeue(timeout, poll_interval)
        except (RedisError, OSError) as error:
            logger.warning("wake-ups wait for Redis", error=type(error).__name__)
            await asyncio.sleep(AWAY_SECONDS)
            return None


def _says_more(record: logging.LogRecord) -> bool:
    """Return whether a line of SAQ says more than that Redis does not answer, which `_RedisQueue` says in short: SAQ
    logs the traceback each second.
    """
    return record.exc_info is None or not isinstance(record.exc_info[1], RedisError | OSError)


class _Worker(Worker[Context]):
    """SAQ's worker, except that its maintenance does not keep sleeping while it is stopped."""

    async def upkeep(self) -> list[asyncio.Task[None]]:
        self._upkeep = await super().upkeep()
        return self._upkeep

    async def stop(self) -> None:
        self.event.set()
        for task in self._upkeep:
            task.cancel()
        await super().stop()


class Queue:
    """The queue of wake-ups."""

    def __init__(self, redis: Redis, blocking_redis: Redis) -> None:
        """`blocking_redis` is the worker's, whose commands wait at the server for the next wake-up."""
        self._queue = _RedisQueue(redis, name=HASH_TAG)
        self._blocking_queue = _RedisQueue(blocking_redis, name=HASH_TAG)

    async def wake(self, job: str, bucket: int) -> None:
        """Have a worker look for the due rows of a job in a bucket: once, however often it is woken meanwhile. If the
        queue cannot be reached, the wake-up is lost: a worker's reconciler finds the rows.
        """
        # In a cluster one server has all keys of the queue; that of a cancellation has the job's key in it.
        key = f"{HASH_TAG}:{job}:{bucket}"
        try:
            await self._queue.enqueue(job, key=key, timeout=LOOK_SECONDS, retries=JOB_RETRIES, bucket=bucket)
        except (RedisError, OSError) as error:
            logger.warning("wake-up lost, a reconciler will find due rows", job=job, error=type(error).__name__)

    def worker(self, jobs: Iterable[str], follow: Follow) -> Worker[Context]:
        """Create a worker that follows the wake-ups of jobs. The caller starts and stops it.

        The queue refuses a wake-up while one of the same job and bucket is in it. So it lets go of each before the look
        begins, which cannot see a row that is committed meanwhile.
        """

        async def follow_wakeup(context: Context) -> None:
            if (wakeup := context.get("job")) is not None and wakeup.kwargs is not None:
                async with asyncio.timeout(LOOK_SECONDS):
                    await follow(wakeup.function, wakeup.kwargs["bucket"])

        logging.getLogger("saq").addFilter(_says_more)
        # Bound the dequeue wait; otherwise shutdown blocks for the full grace period.
        return _Worker(
            self._blocking_queue,
            [(name, _let_go) for name in jobs],
            after_process=follow_wakeup,
            concurrency=CONCURRENCY,
            dequeue_timeout=1.0,
            shutdown_grace_period_s=2,
            timers=TIMERS,
        )


async def _let_go(_context: Context, *, bucket: int) -> None:
    """Do what the queue waits for: nothing."""


def bind_job(job: Job, parts: Parts) -> Job:
    """Bind the parts and services that a job names. Raise `InvalidParameter`."""
    return partial(job, **resolve_parameters(job, parts, list_keyword_only(job)))


@asynccontextmanager
async def run_beside(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run a coroutine beside the block, and cancel it at the block's end."""
    running = asyncio.create_task(work)
    try:
        yield
    finally:
        running.cancel()
        await asyncio.wait({running})


async def end_tasks(tasks: Iterable[asyncio.Task[None]], *, seconds: float) -> set[asyncio.Task[None]]:
    """Wait for tasks for a while, and cancel those that are left; return these."""
    left = set(tasks)
    if left and seconds:
        _, left = await asyncio.wait(left, timeout=seconds)
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
    return left


# Work on many items of several organizations, in which one organization's failures do not delay the others.

Item = TypeVar("Item")

AT_ONCE: Final = 8
ITEM_SECONDS: Final = 60.0


async def work_on_each(items: Sequence[Item], work: Callable[[Item], Awaitable[object]]) -> int:
    """Work on every item, eight at a time and each for a minute at most; return how many there are.

    An item that fails does not end the others. Raises `ExceptionGroup` with the failures when all are done.
    """
    places = asyncio.Semaphore(AT_ONCE)

    async def work_on(item: Item) -> None:
        async with places, asyncio.timeout(ITEM_SECONDS):
            await work(item)

    results = await asyncio.gather(*(work_on(item) for item in items), return_exceptions=True)
    if errors := [result for result in results if isinstance(result, Exception)]:
        raise ExceptionGroup(f"{len(errors)} of {len(items)} items failed", errors)
    return len(items)


async def repeat_in_batches(database: Database, change: Callable[[SystemSession], Awaitable[int]]) -> None:
    """Change many rows across organizations, in transactions of `BATCH` rows: `change` returns how many it has changed.

    What was changed stays if a later transaction fails or the job's time is over.
    """
    changed = BATCH
    while changed == BATCH:
        async with database.system() as session:
            changed = await change(session)


async def keep_months(database: Database) -> None:
    """Create the months of the history ahead of time, and drop those without rows
    (docs/decisions/0028-history-by-month.md).

    Each table is a transaction of its own, so that no lock on one is held while another one waits for its readers.
    """
    for name, table in SQLModel.metadata.tables.items():
        if table.dialect_options["postgresql"]["partition_by"]:
            async with database.system() as session:
                await session.exec(select(func.keep_months(name)))


# Reconcilers: jobs that each worker runs again and again by itself.
#
# They do not use the queue's cron: a worker killed within such a job would block the others until the queue declares it
# lost, minutes later, without Redis nothing would run at all, and each job would cost each worker a command a second.


@dataclass(frozen=True, slots=True)
class Reconciler:
    """A function that takes nothing and returns how many items it found due; the seconds to wait between two runs."""

    name: str
    run: Job
    seconds: float


async def run_reconciler(reconciler: Reconciler, stop: asyncio.Event) -> None:
    """Repeat until `stop` is set; a run in progress is canceled. A failed run is logged, and the next one follows."""
    metrics.reconciler_seconds.labels(reconciler.name, "failed")  # so that the first failure is an increase
    stopping = asyncio.create_task(stop.wait())
    while not stopping.done():
        # A task of its own: an error in it must end neither the worker nor the next run.
        running = asyncio.create_task(_run(reconciler))
        await asyncio.wait({running, stopping}, return_when=asyncio.FIRST_COMPLETED)
        running.cancel()
        await asyncio.wait({running})
        if not running.cancelled() and (error := running.exception()) is not None:
            logger.error("a reconciler failed", reconciler=reconciler.name, exc_info=error)
        await asyncio.wait({stopping}, timeout=reconciler.seconds)


async def _run(reconciler: Reconciler) -> None:
    began = time.perf_counter()
    try:
        async with asyncio.timeout(JOB_TIMEOUT):
            found = await reconciler.run()
    except Exception:
        metrics.reconciler_seconds.labels(reconciler.name, "failed").observe(time.perf_counter() - began)
        raise
    metrics.reconciler_seconds.labels(reconciler.name, "ok").observe(time.perf_counter() - began)
    metrics.reconciled_items.labels(reconciler.name).inc(found or 0)
