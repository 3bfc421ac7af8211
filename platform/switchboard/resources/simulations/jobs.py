"""Jobs of simulations."""

from uuid import UUID

from switchboard.foundation.database import Database
from switchboard.foundation.jobs import Queue
from switchboard.resources.simulations import system_queries
from switchboard.resources.simulations.runner import SimulationRunner
from switchboard.resources.simulations.service import JOB_SECONDS


async def run_simulation(runner: SimulationRunner, *, organization_id: str, agent_id: str, simulation_id: str) -> None:
    """Run and judge a simulation, unless another worker has claimed it."""
    await runner.run_claimed_simulation(UUID(organization_id), UUID(agent_id), UUID(simulation_id))


async def reconcile_simulations(database: Database, queue: Queue) -> int:
    """Recover simulations that no worker runs; return how many."""
    async with database.system() as session:
        found = await system_queries.list_due_simulations(session)
    for organization_id, agent_id, simulation_id in found:
        organization, agent, key = str(organization_id), str(agent_id), str(simulation_id)
        await queue.enqueue(
            "run_simulation",
            timeout_seconds=JOB_SECONDS,
            organization_id=organization,
            agent_id=agent,
            simulation_id=key,
        )
    return len(found)
