"""What workers do for automations."""

from datetime import timedelta
from uuid import UUID

from switchboard.automations import crossing, running, triggering
from switchboard.events.crossing import untriggered
from switchboard.runtime import Runtime

KEPT = timedelta(days=30)
BATCH = 5000


async def pull_triggers(runtime: Runtime, *, organization_id: str, event_id: str) -> None:
    """Record what an event that was just published makes automations do."""
    await triggering.pull(runtime, UUID(organization_id), UUID(event_id))


async def advance_run(runtime: Runtime, *, organization_id: str, run_id: str) -> None:
    """Take a run's next action."""
    await running.advance(runtime, UUID(organization_id), UUID(run_id))


async def sweep_automations(runtime: Runtime) -> None:
    """Find events and runs whose wake-up was lost, whose worker died, or whose time has come; each is a job of its own, as actions take time."""
    async with runtime.database.system() as session:
        events = await untriggered(session)
        runs = await crossing.due(session)
    for organization_id, event_id in events:
        await runtime.queue.enqueue("pull_triggers", organization_id=str(organization_id), event_id=str(event_id))
    for organization_id, run_id in runs:
        await runtime.queue.enqueue("advance_run", organization_id=str(organization_id), run_id=str(run_id))


async def forget_runs(runtime: Runtime) -> None:
    """Delete the runs that ended thirty days ago."""
    deleted = BATCH
    while deleted == BATCH:
        async with runtime.database.system() as session:
            deleted = await crossing.forget(session, age=KEPT, most=BATCH)
