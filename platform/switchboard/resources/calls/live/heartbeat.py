"""A process says every few seconds that it still holds its calls; the sweep ends the calls of one that has stopped saying so."""

import asyncio
from datetime import timedelta

import structlog
from sqlalchemy.exc import SQLAlchemyError

from switchboard.foundation.database import now
from switchboard.foundation.observability import metrics
from switchboard.resources.calls.media.funding import Funding
from switchboard.resources.calls.system_queries import prepaid, prolong
from switchboard.runtime import Runtime

logger = structlog.get_logger()
BEAT_SECONDS = 3.0
LEASE = timedelta(seconds=10)


async def heartbeat(runtime: Runtime) -> None:
    """Until cancelled."""
    funding = Funding(runtime)
    while True:
        await asyncio.sleep(BEAT_SECONDS)
        metrics.live_calls.set(runtime.engine.live_calls)
        held = runtime.engine.held
        if not held:
            continue
        try:
            async with runtime.database.system() as session:
                await prolong(session, held, now() + LEASE)
                running = await prepaid(session, held)
            await funding.extend(running)
        except (SQLAlchemyError, OSError):
            logger.exception("this process could not say that it holds its calls")
