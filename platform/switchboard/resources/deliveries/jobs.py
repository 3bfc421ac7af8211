"""Jobs of deliveries besides sending them."""

from datetime import timedelta

from switchboard.resources.deliveries import system_queries
from switchboard.runtime import Runtime

WAIT = timedelta(days=7)
KEPT = timedelta(days=30)
BATCH = 5000


async def wake_delivery_worker(runtime: Runtime) -> None:
    """Wake this worker's delivery loop for new deliveries."""
    runtime.deliveries_due.set()


async def expire_deliveries(runtime: Runtime) -> None:
    """Fail deliveries that have waited for a disabled endpoint for seven days
    (docs/decisions/0010-webhook-deliveries.md).
    """
    async with runtime.database.system() as session:
        await system_queries.fail_expired(session, seconds=WAIT.total_seconds())


async def delete_old_deliveries(runtime: Runtime) -> None:
    """Delete deliveries and events that ended thirty days ago."""
    deleted = BATCH
    while deleted == BATCH:
        async with runtime.database.system() as session:
            deleted = await system_queries.delete_ended_deliveries(session, seconds=KEPT.total_seconds(), most=BATCH)
