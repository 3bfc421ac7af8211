"""Endpoints of agents."""

from uuid import UUID

from switchboard.foundation.database import TenantSession
from switchboard.foundation.web.blueprint import ApiBlueprint
from switchboard.foundation.web.endpoint import endpoint
from switchboard.foundation.web.errors import InvalidState
from switchboard.foundation.web.paging import paginate, paginate_table
from switchboard.foundation.web.principal import Principal
from switchboard.foundation.web.row_answers import get_row_answer
from switchboard.foundation.web.schemas import Page, PageQuery
from switchboard.resources.agents import service as agents
from switchboard.resources.agents.models import Agent
from switchboard.resources.agents.publishing import AgentPublisher
from switchboard.resources.agents.schemas import AgentCreate, AgentOut, AgentQuery, AgentUpdate, AgentVersionOut

blueprint = ApiBlueprint("agents", __name__, tags={"agents": "Voice agents and their versions."})


@blueprint.get("/v1/agents")
@endpoint(scope="agents:read", query=AgentQuery, answer=Page[AgentOut])
async def list_agents(session: TenantSession, query: AgentQuery) -> Page[AgentOut]:
    """List agents."""
    if query.agent_type is None:
        return await paginate_table(session, Agent, AgentOut, query)
    return await paginate(session, agents.list_agents(session, agent_type=query.agent_type), AgentOut.from_row, query)


@blueprint.post("/v1/agents")
@endpoint(scope="agents:write", body=AgentCreate, answer=AgentOut, status=201)
async def create_agent(
    session: TenantSession, data: AgentCreate, principal: Principal, *, publisher: AgentPublisher
) -> AgentOut:
    """Create an agent.

    Only `name` is required; providers that are left out are the organization's first of each kind. `tools` need the
    scope `webhooks:write` too.
    """
    return AgentOut.from_row(await publisher.create_agent(session, data, principal))


@blueprint.get("/v1/agents/<agent_id>")
@endpoint(scope="agents:read", answer=AgentOut)
async def get_agent(session: TenantSession, agent_id: UUID) -> AgentOut:
    """Get an agent."""
    return await get_row_answer(session, Agent, AgentOut, agent_id)


@blueprint.put("/v1/agents/<agent_id>")
@endpoint(scope="agents:write", body=AgentUpdate, answer=AgentOut, errors=[InvalidState])
async def update_agent(
    session: TenantSession, agent_id: UUID, data: AgentUpdate, principal: Principal, *, publisher: AgentPublisher
) -> AgentOut:
    """Update an agent.

    Only the given fields change. A change is published at once: new calls use it, and calls in progress keep the
    previous version. New and changed `tools` need the scope `webhooks:write` too. The settings of an agent with
    `required_simulations` are changed by a draft.
    """
    return AgentOut.from_row(await publisher.update_agent(session, agent_id, data, principal))


@blueprint.delete("/v1/agents/<agent_id>")
@endpoint(scope="agents:write", answer=None, status=204)
async def delete_agent(session: TenantSession, agent_id: UUID) -> None:
    """Delete an agent.

    This cannot be undone. Its calls stay; phone numbers that it answered stop answering.
    """
    await agents.delete_agent(session, agent_id)


@blueprint.get("/v1/agents/<agent_id>/versions")
@endpoint(scope="agents:read", query=PageQuery, answer=Page[AgentVersionOut])
async def list_agent_versions(session: TenantSession, agent_id: UUID, query: PageQuery) -> Page[AgentVersionOut]:
    """List an agent's versions.

    Every update that changes something creates one. An addition to the specification.
    """
    await agents.get_agent(session, agent_id)
    return await paginate(session, agents.list_versions(session, agent_id), AgentVersionOut.from_row, query)
