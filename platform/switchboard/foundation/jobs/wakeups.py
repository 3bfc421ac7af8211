"""Wake-ups over SAQ on Redis. They start due work at once. Due work is a row, so a lost wake-up costs seconds, never
work.
"""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError
from saq.job import CronJob as SaqCronJob
from saq.job import Job as QueuedJob
from saq.queue.redis import RedisQueue
from saq.types import Context, PartialTimersDict, VersionTuple
from saq.worker import Worker
from sqlmodel.ext.asyncio.session import AsyncSession

from switchboard.foundation.database import after_commit
from switchboard.foundation.injection import Parts, list_keyword_only, resolve_parameters
from switchboard.foundation.redis_client import HASH_TAG

logger = structlog.get_logger()

Job: TypeAlias = Callable[..., Awaitable[int | None]]
"""A job: `async def dial_call(dialer: CallDialer, *, call_id: str)`. Its positional parameters are parts and services
of the process; its keyword-only parameters are the arguments of its wake-up. `wake` names it by its function name; it
may run twice, so it must be idempotent. It may return how many items it found due.
"""

JOB_TIMEOUT = 120
TIMERS = PartialTimersDict(schedule=1, worker_info=10, sweep=20, abort=1)
JOB_RETRIES = 3
AWAY_SECONDS = 1.0
OLDEST_REDIS = (6, 2, 0)
"""Version of Redis that the platform needs: tickets are redeemed by GETDEL."""


@dataclass(frozen=True, slots=True)
class CronJob:
    """A scheduled job: `every` is a cron expression with seconds as its sixth field. One process runs each period."""

    job: Job
    every: str


class _RedisQueue(RedisQueue):
    """SAQ's queue, except that its workers do not spin during an outage of Redis, and that a cluster can have it."""

    async def version(self) -> VersionTuple:
        return OLDEST_REDIS

    async def _enqueue(self, job: QueuedJob) -> QueuedJob | None:
        # SAQ's key for the cancellation of a job has the job's key in it and not the name of the queue.
        job.key = f"{HASH_TAG}:{job.key}"
        return await super()._enqueue(job)

    async def dequeue(self, timeout: float = 0.0, poll_interval: float = 0.0) -> QueuedJob | None:  # noqa: ASYNC109
        try:
            return await super().dequeue(timeout, poll_interval)
        except (RedisError, OSError) as error:
            logger.warning("wake-ups wait for Redis", error=type(error).__name__)
            await asyncio.sleep(AWAY_SECONDS)
            return None


class _Worker(Worker[Context]):
    """SAQ's worker, except that its maintenance does not keep sleeping while it is stopped, and that it stops the jobs
    that it runs without the queue, too.
    """

    own_jobs: "_OwnJobs"

    async def upkeep(self) -> list[asyncio.Task[None]]:
        self._upkeep = await super().upkeep()
        return self._upkeep

    async def stop(self) -> None:
        self.event.set()
        for task in self._upkeep:
            task.cancel()
        await asyncio.gather(self.own_jobs.stop(), super().stop())


class _OwnJobs:
    """Jobs that a worker runs without the queue, while that cannot be reached: as many at once as it runs with it."""

    def __init__(self, jobs: Mapping[str, Job], concurrency: int) -> None:
        self._jobs = jobs
        self._concurrency = concurrency
        self._running: dict[tuple[str, frozenset[tuple[str, str]]], asyncio.Task[None]] = {}

    def start(self, name: str, seconds: int, arguments: Mapping[str, str]) -> None:
        """Start a job, unless it runs already, or there are too many: then a reconciler asks for it again."""
        key = name, frozenset(arguments.items())
        if key not in self._running and len(self._running) < self._concurrency:
            self._running[key] = task = asyncio.create_task(self._run(name, seconds, arguments))
            task.add_done_callback(lambda _: self._running.pop(key))

    async def stop(self) -> None:
        """Cancel the jobs, which other workers find again."""
        running = list(self._running.values())
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _run(self, name: str, seconds: int, arguments: Mapping[str, str]) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._jobs[name](**arguments)
        except Exception:  # as in the queue, a job's failure must not end the worker
            logger.exception("a job failed", job=name)


class Queue:
    """The queue of wake-ups."""

    def __init__(self, redis: Redis, blocking_redis: Redis) -> None:
        """`blocking_redis` is the worker's, whose commands wait at the server for the next wake-up."""
        self._queue = _RedisQueue(redis, name=HASH_TAG)
        self._blocking_queue = _RedisQueue(blocking_redis, name=HASH_TAG)
        self._own_jobs: _OwnJobs | None = None

    async def enqueue(
        self, job: str, *, delay_seconds: int = 0, timeout_seconds: int = JOB_TIMEOUT, **arguments: str
    ) -> None:
        """Have a worker run a job now, or up to two seconds after a delay. The job is canceled at its time limit.

        If the queue cannot be reached, a worker runs the job itself. Other processes log the wake-up and drop it, and
        so does a worker whose job is to run later: a worker's reconciler finds the work.
        """
        try:
            due = math.ceil(time.time() + delay_seconds) if delay_seconds else 0
            await self._queue.enqueue(job, timeout=timeout_seconds, retries=JOB_RETRIES, scheduled=due, **arguments)
        except (RedisError, OSError) as error:
            if self._own_jobs is None or due:
                logger.warning("wake-up lost, a reconciler will find the work", job=job, error=type(error).__name__)
            else:
                self._own_jobs.start(job, timeout_seconds, arguments)

    def worker(
        self, *, jobs: Sequence[Job], clock: Sequence[CronJob], parts: Parts, concurrency: int = 20
    ) -> Worker[Context]:
        """Create a worker that passes to each job the parts that it names. The caller starts and stops it.

        Raise `InvalidParameter`.
        """
        functions = [(job.__name__, _adapt(job, parts)) for job in jobs]
        crons = []
        for entry in clock:
            function = _adapt(entry.job, parts)
            crons.append(SaqCronJob(function, entry.every, timeout=JOB_TIMEOUT, retries=JOB_RETRIES, ttl=1))
        self._own_jobs = _OwnJobs({job.__name__: bind_job(job, parts) for job in jobs}, concurrency)
        # Bound the dequeue wait; otherwise shutdown blocks for the full grace period.
        worker = _Worker(
            self._blocking_queue,
            functions,
            cron_jobs=crons,
            concurrency=concurrency,
            dequeue_timeout=1.0,
            shutdown_grace_period_s=2,
            timers=TIMERS,
        )
        worker.own_jobs = self._own_jobs
        return worker


def wake(
    session: AsyncSession, job: str, *, delay_seconds: int = 0, timeout_seconds: int = JOB_TIMEOUT, **arguments: str
) -> None:
    """Run a job once the session's transaction commits, or after a delay; it is canceled at its time limit.

    A wake-up that the transaction repeats is sent once.
    """
    wakeup = (job, delay_seconds, timeout_seconds, frozenset(arguments.items()))
    sent: set[object] = session.info.setdefault("wakeups", set())
    if wakeup in sent:
        return
    sent.add(wakeup)
    queue = session.info["queue"]
    after_commit(
        session, partial(queue.enqueue, job, delay_seconds=delay_seconds, timeout_seconds=timeout_seconds, **arguments)
    )


def bind_job(job: Job, parts: Parts) -> Job:
    """Bind the parts and services that a job names. Raise `InvalidParameter`."""
    return partial(job, **resolve_parameters(job, parts, list_keyword_only(job)))


def _adapt(job: Job, parts: Parts) -> Job:
    bound = bind_job(job, parts)

    async def run(_saq: Context, **arguments: str) -> None:
        await bound(**arguments)

    run.__name__ = run.__qualname__ = job.__name__
    return run
