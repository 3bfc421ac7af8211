"""Reconcilers: jobs that each worker runs every few seconds by itself.

They do not use the queue's cron: a worker killed within such a job would block the others until the queue declares it
lost, minutes later, and without Redis nothing would run at all. Several workers may reconcile at once, so each
reconciler claims or locks its rows.
"""

import asyncio
import time
from dataclasses import dataclass

import structlog

from switchboard.foundation.injection import Parts
from switchboard.foundation.jobs.wakeups import JOB_TIMEOUT, Job, bind_job
from switchboard.foundation.observability import metrics

logger = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Reconciler:
    """A job, which returns how many items it found due, and the seconds to wait between two runs."""

    job: Job
    seconds: float


async def run_reconciler(reconciler: Reconciler, parts: Parts, stop: asyncio.Event) -> None:
    """Repeat until `stop` is set; a run in progress is canceled. A failed run is logged, and the next one follows.

    Raise `InvalidParameter` for a job whose parameters cannot be provided.
    """
    job = bind_job(reconciler.job, parts)
    metrics.reconciler_seconds.labels(reconciler.job.__name__, "failed")  # so that the first failure is an increase
    stopping = asyncio.create_task(stop.wait())
    while not stopping.done():
        # A task of its own: an error in it must end neither the worker nor the next run.
        running = asyncio.create_task(_run(reconciler.job.__name__, job))
        await asyncio.wait({running, stopping}, return_when=asyncio.FIRST_COMPLETED)
        running.cancel()
        await asyncio.wait({running})
        if not running.cancelled() and (error := running.exception()) is not None:
            logger.error("a reconciler failed", reconciler=reconciler.job.__name__, exc_info=error)
        await asyncio.wait({stopping}, timeout=reconciler.seconds)


async def _run(name: str, job: Job) -> None:
    began = time.perf_counter()
    try:
        async with asyncio.timeout(JOB_TIMEOUT):
            found = await job()
    except Exception:
        metrics.reconciler_seconds.labels(name, "failed").observe(time.perf_counter() - began)
        raise
    metrics.reconciler_seconds.labels(name, "ok").observe(time.perf_counter() - began)
    metrics.reconciled_items.labels(name).inc(found or 0)
