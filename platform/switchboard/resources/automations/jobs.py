"""Jobs of automations."""

import asyncio
from uuid import UUID

from switchboard.foundation.database import Database
from switchboard.foundation.events.system_queries import list_untriggered_events
from switchboard.foundation.jobs import Queue
from switchboard.resources.automations import triggers


async def evaluate_triggers(database: Database, *, organization_id: str, event_id: str) -> None:
    """Record the runs that a new event triggers."""
    await triggers.record_triggered_runs(database, UUID(organization_id), UUID(event_id))


async def wake_run_worker(runs_due: asyncio.Event) -> None:
    """Wake this worker's run loop for new runs."""
    runs_due.set()


async def reconcile_triggers(database: Database, queue: Queue) -> int:
    """Recover events whose wake-up was lost or whose worker died; return how many."""
    async with database.system() as session:
        events = await list_untriggered_events(session)
    for organization_id, event_id in events:
        await queue.enqueue("evaluate_triggers", organization_id=str(organization_id), event_id=str(event_id))
    return len(events)
