"""The worker process: its jobs and reconcilers."""

import asyncio
from collections.abc import Awaitable
from functools import partial
from typing import Final

import structlog
from sqlalchemy.exc import SQLAlchemyError

from switchboard.apps.worker import jobs
from switchboard.apps.worker.retention import delete_expired_data
from switchboard.foundation.database import now
from switchboard.foundation.jobs import Job, Reconciler, bind_job, keep_months, run_beside, run_reconciler
from switchboard.foundation.leases import BEAT_SECONDS
from switchboard.foundation.work import FRESH, Work, WorkRunner, share_buckets
from switchboard.resources.appointments import jobs as appointments
from switchboard.resources.automations import jobs as automations
from switchboard.resources.calls import jobs as calls
from switchboard.resources.calls.live.heartbeat import end_lease
from switchboard.resources.campaigns import jobs as campaigns
from switchboard.resources.deliveries import jobs as deliveries
from switchboard.resources.deliveries.delivery_worker import DeliveryWorker
from switchboard.resources.identity import password_links
from switchboard.resources.identity.sign_in import delete_old_sessions
from switchboard.resources.knowledge_bases import jobs as knowledge_bases
from switchboard.resources.oauth.clients import delete_expired_grants
from switchboard.resources.phone_numbers import jobs as phone_numbers
from switchboard.resources.privacy import jobs as privacy
from switchboard.resources.simulations import jobs as simulations
from switchboard.resources.sms import jobs as sms
from switchboard.runtime import Runtime

logger = structlog.get_logger()
STOP_SECONDS: Final = 5.0
WORK: tuple[Work, ...] = (
    *calls.WORK,
    *sms.WORK,
    *campaigns.WORK,
    *automations.WORK,
    *appointments.WORK,
    *simulations.WORK,
    *knowledge_bases.WORK,
    *phone_numbers.WORK,
    *privacy.WORK,
    *deliveries.WORK,
    *password_links.WORK,
    *jobs.WORK,
)


def list_repeated_jobs() -> tuple[tuple[Job, float], ...]:
    """List the jobs that every worker runs again and again, with the seconds between two runs."""
    return (
        (calls.watch_leases, 1),
        (calls.end_abandoned_calls, 1),
        (jobs.compact_row_counts, 5),
        (jobs.compact_limit_counters, 5),
        (delete_expired_data, 30),
        (jobs.close_idle_providers, 60),
        (keep_months, 3600),
        (jobs.delete_old_idempotent_responses, 3600),
        (deliveries.expire_deliveries, 3600),
        (delete_expired_grants, 3600),
        (delete_old_sessions, 3600),
    )


async def run_worker(runtime: Runtime, stop: asyncio.Event) -> None:
    """Do background work and deliver events until `stop` is set."""
    sender = DeliveryWorker(runtime.settings, runtime.database, runtime.keyring, runtime.outbound)
    runner = WorkRunner(runtime.database, WORK, {**runtime.parts, "delivery_worker": sender})
    queue = runtime.queue.worker(runner.works, partial(_look, runner))
    running = asyncio.create_task(queue.start())
    loops = [asyncio.create_task(run_reconciler(reconciler, stop)) for reconciler in build_reconcilers(runtime, runner)]
    stopping = asyncio.create_task(stop.wait())
    async with run_beside(_keep_lease(runtime)), sender:
        await asyncio.wait((running, *loops, stopping), return_when=asyncio.FIRST_COMPLETED)
        stop.set()
        stopping.cancel()
        await asyncio.gather(queue.stop(), runner.stop(seconds=STOP_SECONDS))
    await asyncio.gather(running, return_exceptions=True)
    await asyncio.gather(*loops)


def build_reconcilers(runtime: Runtime, runner: WorkRunner) -> list[Reconciler]:
    """Build the reconcilers, which find work that time brings, whose wake-up was lost, or whose worker died."""
    pauses = {work.name: work.seconds for work in WORK}
    pauses[campaigns.dial_campaigns.__name__] = runtime.settings.campaign_tick

    def look(name: str) -> Awaitable[int]:
        return runner.look(name, share_buckets(runtime.node, runtime.lease_watch.workers))

    repeated = [
        Reconciler(job.__name__, bind_job(job, runtime.parts), seconds) for job, seconds in list_repeated_jobs()
    ]
    return repeated + [Reconciler(work.name, partial(look, work.name), pauses[work.name]) for work in WORK]


async def _look(runner: WorkRunner, name: str, bucket: int) -> None:
    await runner.look(name, [bucket], since=now() - FRESH)


async def _keep_lease(runtime: Runtime) -> None:
    """Extend the lease of this process as a worker's, until canceled."""
    lease = runtime.lease
    lease.is_worker = True
    try:
        while True:
            try:
                async with asyncio.timeout(BEAT_SECONDS):
                    await lease.extend()
            except (SQLAlchemyError, OSError):
                logger.exception("the lease of this worker was not extended")
            await asyncio.sleep(BEAT_SECONDS)
    finally:
        lease.is_worker = False
        await end_lease(runtime.database, lease)
