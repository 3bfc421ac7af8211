"""Business rules of agents."""

from uuid import UUID

from switchboard.foundation.audit import AuditAction, record_audit
from switchboard.foundation.database import ReadSession, WriteSession
from switchboard.foundation.events.outbox import remove_target
from switchboard.foundation.web.errors import NotFound, ValidationFailed
from switchboard.foundation.web.paging import get_row
from switchboard.foundation.web.schemas import parse_id
from switchboard.resources.agents.models import Agent, AgentVersion
from switchboard.resources.agents.queries import find_version


async def require_agent(session: ReadSession, agent_id: str, *, field: str = "agent_id") -> Agent:
    """Return the agent in a request. Raises `ValidationFailed` unless it is the organization's."""
    agent = await session.find(Agent, parse_id(agent_id))
    if agent is None:
        raise ValidationFailed.field(field, "is not an agent of the organization")
    return agent


async def delete_agent(session: WriteSession, agent_id: UUID) -> None:
    """Delete an agent for good. Its calls stay; its phone numbers stop answering. Raises `NotFound`."""
    await session.delete(await get_row(session, Agent, agent_id))
    await remove_target(session, agent_id)
    record_audit(session, AuditAction.AGENT_DELETED, agent_id)


async def get_version(session: ReadSession, agent_id: UUID, number: int) -> AgentVersion:
    """Return one version of an agent. Raises `NotFound`."""
    found = await find_version(session, agent_id, number)
    if found is None:
        raise NotFound
    return found
