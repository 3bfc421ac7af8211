"""Jobs of automations."""

from datetime import timedelta
from uuid import UUID

from switchboard.foundation.events.system_queries import list_untriggered_events
from switchboard.resources.automations import system_queries, triggers
from switchboard.runtime import Runtime

KEPT = timedelta(days=30)
BATCH = 5000


async def evaluate_triggers(runtime: Runtime, *, organization_id: str, event_id: str) -> None:
    """Record the runs that a new event triggers."""
    await triggers.record_triggered_runs(runtime.database, UUID(organization_id), UUID(event_id))


async def wake_run_worker(runtime: Runtime) -> None:
    """Wake this worker's run loop for new runs."""
    runtime.runs_due.set()


async def reconcile_triggers(runtime: Runtime) -> None:
    """Recover events whose wake-up was lost or whose worker died."""
    async with runtime.database.system() as session:
        events = await list_untriggered_events(session)
    for organization_id, event_id in events:
        await runtime.queue.enqueue("evaluate_triggers", organization_id=str(organization_id), event_id=str(event_id))


async def delete_old_runs(runtime: Runtime) -> None:
    """Delete the runs that ended thirty days ago."""
    deleted = BATCH
    while deleted == BATCH:
        async with runtime.database.system() as session:
            deleted = await system_queries.delete_ended_runs(session, age=KEPT, limit=BATCH)
