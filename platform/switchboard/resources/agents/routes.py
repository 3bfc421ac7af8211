"""Endpoints of agents."""

from uuid import UUID

from switchboard.foundation.database import ReadSession, WriteSession
from switchboard.foundation.web.endpoint import ApiBlueprint, endpoint
from switchboard.foundation.web.errors import Conflict, InvalidState
from switchboard.foundation.web.paging import get_row, paginate
from switchboard.foundation.web.principal import Principal
from switchboard.foundation.web.schemas import Page, PageQuery
from switchboard.resources.agents import drafts
from switchboard.resources.agents import service as agents
from switchboard.resources.agents.drafts import DraftEditor
from switchboard.resources.agents.models import Agent
from switchboard.resources.agents.publishing import AgentPublisher
from switchboard.resources.agents.queries import select_agents, select_versions
from switchboard.resources.agents.schemas import (
    AgentCreate,
    AgentOut,
    AgentQuery,
    AgentUpdate,
    AgentVersionOut,
    DraftOut,
    DraftPublish,
    DraftSave,
)

blueprint = ApiBlueprint("agents", __name__, tags={"agents": "Voice agents and their versions."})


@blueprint.get("/v1/agents")
@endpoint(scope="agents:read")
async def list_agents(session: ReadSession, query: AgentQuery) -> Page[AgentOut]:
    """List agents."""
    return await paginate(session, select_agents(session, agent_type=query.agent_type), AgentOut.from_row, query)


@blueprint.post("/v1/agents")
@endpoint(scope="agents:write", status=201)
async def create_agent(
    session: WriteSession, data: AgentCreate, principal: Principal, *, publisher: AgentPublisher
) -> AgentOut:
    """Create an agent.

    Only `name` is required; providers that are left out are the organization's first of each kind. `tools` need the
    scope `webhooks:write` too.
    """
    return AgentOut.from_row(await publisher.create_agent(session, data, principal))


@blueprint.get("/v1/agents/<agent_id>")
@endpoint(scope="agents:read")
async def get_agent(session: ReadSession, agent_id: UUID) -> AgentOut:
    """Get an agent."""
    return AgentOut.from_row(await get_row(session, Agent, agent_id))


@blueprint.put("/v1/agents/<agent_id>")
@endpoint(scope="agents:write", errors=[InvalidState])
async def update_agent(
    session: WriteSession, agent_id: UUID, data: AgentUpdate, principal: Principal, *, publisher: AgentPublisher
) -> AgentOut:
    """Update an agent.

    Only the given fields change. A change is published at once: new calls use it, and calls in progress keep the
    previous version. New and changed `tools` need the scope `webhooks:write` too. The settings of an agent with
    `required_simulations` are changed by a draft.
    """
    return AgentOut.from_row(await publisher.update_agent(session, agent_id, data, principal))


@blueprint.delete("/v1/agents/<agent_id>")
@endpoint(scope="agents:write", status=204)
async def delete_agent(session: WriteSession, agent_id: UUID) -> None:
    """Delete an agent.

    This cannot be undone. Its calls stay; phone numbers that it answered stop answering.
    """
    await agents.delete_agent(session, agent_id)


@blueprint.get("/v1/agents/<agent_id>/versions")
@endpoint(scope="agents:read")
async def list_agent_versions(session: ReadSession, agent_id: UUID, query: PageQuery) -> Page[AgentVersionOut]:
    """List an agent's versions.

    Every update that changes something creates one. An addition to the specification.
    """
    await get_row(session, Agent, agent_id)
    return await paginate(session, select_versions(session, agent_id), AgentVersionOut.model_validate, query)


@blueprint.get("/v1/agents/<agent_id>/draft")
@endpoint(scope="agents:read")
async def get_agent_draft(session: ReadSession, agent_id: UUID) -> DraftOut:
    """Get an agent's draft.

    404 if the agent has none. An addition to the specification.
    """
    agent, draft = await get_row(session, Agent, agent_id), await drafts.get_draft(session, agent_id)
    return DraftOut.from_row(draft, is_outdated=await drafts.is_outdated(session, agent, draft))


@blueprint.put("/v1/agents/<agent_id>/draft")
@endpoint(scope="agents:write", errors=[Conflict])
async def save_agent_draft(
    session: WriteSession, agent_id: UUID, data: DraftSave, principal: Principal, *, editor: DraftEditor
) -> DraftOut:
    """Save an agent's draft.

    Nothing is published: calls use the agent as it is until the draft is published. The draft has the given changes
    and no others. New and changed `tools` need the scope `webhooks:write` too. An addition to the specification.
    """
    draft = await editor.save_draft(session, agent_id, data.revision, data.changes, principal)
    return DraftOut.from_row(draft, is_outdated=False)


@blueprint.delete("/v1/agents/<agent_id>/draft")
@endpoint(scope="agents:write", status=204)
async def discard_agent_draft(session: WriteSession, agent_id: UUID) -> None:
    """Discard an agent's draft.

    An addition to the specification.
    """
    await drafts.discard_draft(session, agent_id)


@blueprint.post("/v1/agents/<agent_id>/draft/publish")
@endpoint(scope="agents:write", errors=[Conflict, InvalidState])
async def publish_agent_draft(
    session: WriteSession, agent_id: UUID, data: DraftPublish, principal: Principal, *, editor: DraftEditor
) -> AgentOut:
    """Publish an agent's draft.

    Its changes become a new version, which new calls use, and the draft is gone. 409 if other settings were published
    since it was saved, and if one of the agent's `required_simulations` has not passed with exactly this draft. An
    addition to the specification.
    """
    return AgentOut.from_row(await editor.publish_draft(session, agent_id, data.revision, principal))
