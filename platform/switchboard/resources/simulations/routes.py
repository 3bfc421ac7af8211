"""Endpoints of simulations."""

from uuid import UUID

from quart import Blueprint

from switchboard.foundation.database import ReadSession, WriteSession
from switchboard.foundation.web.endpoint import endpoint
from switchboard.foundation.web.errors import InsufficientBalance, InvalidState
from switchboard.foundation.web.paging import get_row, paginate
from switchboard.foundation.web.schemas import Page, PageQuery
from switchboard.plugin_sdk.registry import Registry
from switchboard.resources.agents.models import Agent
from switchboard.resources.simulations import service as simulations
from switchboard.resources.simulations.queries import select_simulations
from switchboard.resources.simulations.schemas import SimulationCreate, SimulationOut

blueprint = Blueprint("simulations", __name__)


@blueprint.get("/v1/agents/<agent_id>/simulations")
@endpoint(scope="agents:read")
async def list_simulations(session: ReadSession, agent_id: UUID, query: PageQuery) -> Page[SimulationOut]:
    """List an agent's simulations.

    An addition to the specification.
    """
    await get_row(session, Agent, agent_id)
    return await paginate(session, select_simulations(session, agent_id), SimulationOut.model_validate, query)


@blueprint.post("/v1/agents/<agent_id>/simulations")
@endpoint(
    scope="agents:write",
    status=201,
    errors=[InsufficientBalance, InvalidState],
)
async def create_simulation(
    session: WriteSession, agent_id: UUID, data: SimulationCreate, registry: Registry
) -> SimulationOut:
    """Simulate a conversation with an agent.

    A simulated caller talks to the agent, and assertions evaluate the conversation; `simulation.completed` reports the
    result. An addition to the specification.
    """
    return SimulationOut.model_validate(await simulations.create_simulation(session, registry, agent_id, data))


@blueprint.get("/v1/agents/<agent_id>/simulations/<simulation_id>")
@endpoint(scope="agents:read")
async def get_simulation(session: ReadSession, agent_id: UUID, simulation_id: UUID) -> SimulationOut:
    """Get a simulation.

    An addition to the specification.
    """
    return SimulationOut.model_validate(await simulations.get_simulation(session, agent_id, simulation_id))
