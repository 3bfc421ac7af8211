"""What workers do for campaigns."""

import asyncio
import contextlib
from datetime import timedelta
from uuid import UUID

import structlog
from sqlalchemy.exc import SQLAlchemyError

from switchboard.campaigns import crossing, dialing
from switchboard.runtime import Runtime

logger = structlog.get_logger()
LEASE = timedelta(seconds=5)


async def dial_campaigns(runtime: Runtime, *, organization_id: str) -> None:
    """Dial for an organization, whose campaign was started or lost a call."""
    await dialing.fill(runtime, UUID(organization_id))


async def run_dialer(runtime: Runtime, stop: asyncio.Event) -> None:
    """Look every tick for campaigns that have become due, until told to stop. A wake-up is only faster: the rows are the queue."""
    while not stop.is_set():
        try:
            await _look(runtime)
        except (SQLAlchemyError, OSError) as error:
            logger.warning("campaigns wait for the database", error=type(error).__name__)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), runtime.settings.campaign_tick)


async def _look(runtime: Runtime) -> None:
    async with runtime.database.system() as session:
        due = await crossing.claim_due(session, lease=LEASE)
    for organization_id in due:
        await runtime.queue.enqueue("dial_campaigns", organization_id=str(organization_id))
