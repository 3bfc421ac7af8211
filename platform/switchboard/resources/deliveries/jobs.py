"""What workers do for deliveries beside delivering."""

from datetime import timedelta

from switchboard.resources.deliveries import system_queries
from switchboard.runtime import Runtime

WAIT = timedelta(days=7)
KEPT = timedelta(days=30)
BATCH = 5000


async def wake_delivery_worker(runtime: Runtime) -> None:
    """Have this worker look for deliveries now: some were just committed."""
    runtime.deliveries_due.set()


async def expire_deliveries(runtime: Runtime) -> None:
    """Fail what has waited for a disabled endpoint for seven days (api-decisions, "States")."""
    async with runtime.database.system() as session:
        await system_queries.expire(session, seconds=WAIT.total_seconds())


async def delete_old_deliveries(runtime: Runtime) -> None:
    """Delete deliveries and events that are over and thirty days old."""
    deleted = BATCH
    while deleted == BATCH:
        async with runtime.database.system() as session:
            deleted = await system_queries.forget(session, seconds=KEPT.total_seconds(), most=BATCH)
