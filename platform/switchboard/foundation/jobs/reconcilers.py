"""Reconcilers: jobs that each worker runs every few seconds by itself.

They do not use the queue's cron: a worker killed within such a job would block the others until the queue declares it
lost, minutes later, and without Redis nothing would run at all. Several workers may reconcile at once, so each
reconciler claims or locks its rows.
"""

import asyncio
from dataclasses import dataclass

import structlog

from switchboard.foundation.injection import Parts
from switchboard.foundation.jobs.wakeups import JOB_TIMEOUT, Job, bind_job

logger = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Reconciler:
    """A job and the seconds to wait between two runs."""

    job: Job
    seconds: float


async def run_reconciler(reconciler: Reconciler, parts: Parts, stop: asyncio.Event) -> None:
    """Repeat until `stop` is set; a run in progress is canceled. A failed run is logged, and the next one follows.

    Raise `InvalidParameter` for a job whose parameters cannot be provided.
    """
    job = bind_job(reconciler.job, parts)
    stopping = asyncio.create_task(stop.wait())
    while not stopping.done():
        # A task of its own: an error in it must end neither the worker nor the next run.
        running = asyncio.create_task(_run(job))
        await asyncio.wait({running, stopping}, return_when=asyncio.FIRST_COMPLETED)
        running.cancel()
        await asyncio.wait({running})
        if not running.cancelled() and (error := running.exception()) is not None:
            logger.error("a reconciler failed", reconciler=reconciler.job.__name__, exc_info=error)
        await asyncio.wait({stopping}, timeout=reconciler.seconds)


async def _run(job: Job) -> None:
    async with asyncio.timeout(JOB_TIMEOUT):
        await job()
