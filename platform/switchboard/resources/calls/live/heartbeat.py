"""A process says every few seconds that it still holds its calls; the sweep ends the calls of one that has stopped saying so."""

import asyncio
from datetime import timedelta

import structlog
from sqlalchemy.exc import SQLAlchemyError

from switchboard.foundation.database import now
from switchboard.foundation.observability import metrics
from switchboard.resources.calls.media.funding import CallFunding
from switchboard.resources.calls.system_queries import extend_call_leases, list_prepaid_calls
from switchboard.runtime import Runtime

logger = structlog.get_logger()
BEAT_SECONDS = 3.0
LEASE = timedelta(seconds=10)


async def run_heartbeat(runtime: Runtime) -> None:
    """Until cancelled."""
    funding = CallFunding(runtime)
    while True:
        await asyncio.sleep(BEAT_SECONDS)
        metrics.live_calls.set(runtime.engine.live_calls)
        held = runtime.engine.held
        if not held:
            continue
        try:
            async with runtime.database.system() as session:
                await extend_call_leases(session, held, now() + LEASE)
                running = await list_prepaid_calls(session, held)
            await funding.extend(running)
        except (SQLAlchemyError, OSError):
            logger.exception("this process could not say that it holds its calls")
