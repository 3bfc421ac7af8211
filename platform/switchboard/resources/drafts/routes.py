"""Endpoints of agents' drafts."""

from uuid import UUID

from quart import Blueprint

from switchboard.foundation.database import TenantSession
from switchboard.foundation.web.endpoint import endpoint
from switchboard.foundation.web.errors import Conflict, InvalidState
from switchboard.foundation.web.principal import Principal
from switchboard.resources.agents import drafts
from switchboard.resources.agents import service as agents
from switchboard.resources.agents.drafts import DraftEditor
from switchboard.resources.agents.schemas import AgentOut
from switchboard.resources.drafts.schemas import DraftOut, DraftPublish, DraftSave
from switchboard.resources.drafts.service import DraftPublisher

blueprint = Blueprint("drafts", __name__)


@blueprint.get("/v1/agents/<agent_id>/draft")
@endpoint(scope="agents:read", answer=DraftOut)
async def get_agent_draft(session: TenantSession, agent_id: UUID) -> DraftOut:
    """Get an agent's draft.

    404 if the agent has none. An addition to the specification.
    """
    agent, draft = await agents.get_agent(session, agent_id), await drafts.get_draft(session, agent_id)
    return DraftOut.from_row(draft, is_outdated=await drafts.is_outdated(session, agent, draft))


@blueprint.put("/v1/agents/<agent_id>/draft")
@endpoint(scope="agents:write", body=DraftSave, answer=DraftOut, errors=[Conflict])
async def save_agent_draft(
    session: TenantSession, agent_id: UUID, data: DraftSave, principal: Principal, *, editor: DraftEditor
) -> DraftOut:
    """Save an agent's draft.

    Nothing is published: calls use the agent as it is until the draft is published. The draft has the given changes
    and no others. New and changed `tools` need the scope `webhooks:write` too. An addition to the specification.
    """
    draft = await editor.save_draft(session, agent_id, data.revision, data.changes, principal)
    return DraftOut.from_row(draft, is_outdated=False)


@blueprint.delete("/v1/agents/<agent_id>/draft")
@endpoint(scope="agents:write", answer=None, status=204)
async def discard_agent_draft(session: TenantSession, agent_id: UUID) -> None:
    """Discard an agent's draft.

    An addition to the specification.
    """
    await drafts.discard_draft(session, agent_id)


@blueprint.post("/v1/agents/<agent_id>/draft/publish")
@endpoint(scope="agents:write", body=DraftPublish, answer=AgentOut, errors=[Conflict, InvalidState])
async def publish_agent_draft(
    session: TenantSession, agent_id: UUID, data: DraftPublish, principal: Principal, *, publisher: DraftPublisher
) -> AgentOut:
    """Publish an agent's draft.

    Its changes become a new version, which new calls use, and the draft is gone. 409 if other settings were published
    since it was saved, and if one of the agent's `required_simulations` has not passed with exactly this draft. An
    addition to the specification.
    """
    return AgentOut.from_row(await publisher.publish_draft(session, agent_id, data.revision, principal))
