"""Jobs of deliveries besides sending them."""

import asyncio
from datetime import timedelta

from switchboard.foundation.database import Database
from switchboard.resources.deliveries import system_queries

WAIT = timedelta(days=7)


async def wake_delivery_worker(deliveries_due: asyncio.Event) -> None:
    """Wake this worker's delivery loop for new deliveries."""
    deliveries_due.set()


async def expire_deliveries(database: Database) -> None:
    """Fail deliveries that have waited for a disabled endpoint for seven days
    (docs/decisions/0010-webhook-deliveries.md).
    """
    async with database.system() as session:
        await system_queries.fail_expired(session, seconds=WAIT.total_seconds())
