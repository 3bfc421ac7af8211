"""Jobs of simulations."""

from uuid import UUID

from sqlmodel import col, select

from switchboard.foundation.database import Database, SystemSession, now
from switchboard.foundation.jobs import Queue
from switchboard.resources.agents.models import Simulation
from switchboard.resources.simulations.runner import SimulationRunner
from switchboard.resources.simulations.service import JOB_SECONDS

BATCH = 100


async def run_simulation(runner: SimulationRunner, *, organization_id: str, agent_id: str, simulation_id: str) -> None:
    """Run and judge a simulation, unless another worker has claimed it."""
    await runner.run_claimed_simulation(UUID(organization_id), UUID(agent_id), UUID(simulation_id))


async def reconcile_simulations(database: Database, queue: Queue) -> int:
    """Recover simulations that no worker runs; return how many."""
    async with database.system() as session:
        found = await list_due_simulations(session)
    for organization_id, agent_id, simulation_id in found:
        await queue.enqueue(
            "run_simulation",
            timeout_seconds=JOB_SECONDS,
            organization_id=organization_id,
            agent_id=agent_id,
            simulation_id=simulation_id,
        )
    return len(found)


async def list_due_simulations(session: SystemSession) -> list[tuple[UUID, UUID, UUID]]:
    """List the organization, agent, and id of simulations whose wake-up was lost or whose worker died, longest due
    first.
    """
    rows = select(Simulation.organization_id, Simulation.agent_id, Simulation.id).where(col(Simulation.due_at) <= now())
    return list((await session.exec(rows.order_by(col(Simulation.due_at)).limit(BATCH))).all())
