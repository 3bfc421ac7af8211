"""Jobs of simulations."""

from uuid import UUID

from sqlmodel import col

from switchboard.foundation.database import Database
from switchboard.foundation.jobs import Queue, list_due
from switchboard.resources.agents.models import Simulation
from switchboard.resources.simulations.runner import SimulationRunner
from switchboard.resources.simulations.service import JOB_SECONDS


async def run_simulation(runner: SimulationRunner, *, organization_id: UUID, simulation_id: UUID) -> None:
    """Run and judge a simulation, unless another worker has claimed it."""
    await runner.run_claimed_simulation(organization_id, simulation_id)


async def reconcile_simulations(database: Database, queue: Queue) -> int:
    """Recover simulations whose wake-up was lost or whose worker died; return how many."""
    async with database.system() as session:
        found = await list_due(session, Simulation, col(Simulation.due_at))
    for organization_id, simulation_id in found:
        await queue.enqueue(
            "run_simulation",
            timeout_seconds=JOB_SECONDS,
            organization_id=organization_id,
            simulation_id=simulation_id,
        )
    return len(found)
