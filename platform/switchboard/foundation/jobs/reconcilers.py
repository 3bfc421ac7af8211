"""What each worker looks after every few seconds, by itself.

Not by the queue's clock: a worker killed within such a job would keep the others from it until the queue takes it for lost, minutes later, and
without Redis nobody would look at all. Several workers may sweep at once, so a sweep claims or locks what it looks after.
"""

import asyncio
from dataclasses import dataclass

import structlog

from switchboard.foundation.jobs.wakeups import JOB_TIMEOUT, Job

logger = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Reconciler:
    """A job and how many seconds to wait between two runs of it."""

    job: Job
    seconds: float


async def run_reconciler(sweep: Reconciler, context: object, stop: asyncio.Event) -> None:
    """Run a sweep again and again until told to stop, which it need not come to its end for. One that fails is logged, and run again."""
    stopping = asyncio.create_task(stop.wait())
    while not stopping.done():
        # A task of its own, because whatever goes wrong in it must end neither the worker nor the next run.
        running = asyncio.create_task(_run(sweep, context))
        await asyncio.wait({running, stopping}, return_when=asyncio.FIRST_COMPLETED)
        running.cancel()
        await asyncio.wait({running})
        if not running.cancelled() and (error := running.exception()) is not None:
            logger.error("a sweep failed", sweep=sweep.job.__name__, exc_info=error)
        await asyncio.wait({stopping}, timeout=sweep.seconds)


async def _run(sweep: Reconciler, context: object) -> None:
    async with asyncio.timeout(JOB_TIMEOUT):
        await sweep.job(context)
