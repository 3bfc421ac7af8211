"""Drafts of agents: changes that are tested before they are published (docs/decisions/0078-drafts-of-agents.md)."""

from dataclasses import dataclass
from uuid import UUID

from sqlmodel import col

from switchboard.foundation.audit import AuditAction, record_audit
from switchboard.foundation.database import TenantSession, new_id, now
from switchboard.foundation.web.errors import Conflict, NotFound
from switchboard.foundation.web.principal import Principal
from switchboard.foundation.web.schemas import parse_id
from switchboard.resources.agents import service as agents
from switchboard.resources.agents.models import Agent, AgentDraft
from switchboard.resources.agents.publishing import DRAFTED, AgentPublisher, keep_agent_changes
from switchboard.resources.agents.schemas import AgentChanges


async def find_draft(session: TenantSession, agent_id: UUID, *, lock: bool = False) -> AgentDraft | None:
    """Return an agent's draft, locked for this transaction if asked; None if it has none."""
    rows = session.select(AgentDraft).where(col(AgentDraft.agent_id) == agent_id)
    if lock:
        rows = rows.with_for_update().execution_options(populate_existing=True)
    return (await session.exec(rows)).one_or_none()


async def get_draft(session: TenantSession, agent_id: UUID, *, lock: bool = False) -> AgentDraft:
    """Return an agent's draft. Raises `NotFound`."""
    draft = await find_draft(session, agent_id, lock=lock)
    if draft is None:
        raise NotFound
    return draft


def build_drafted_agent(agent: Agent, draft: AgentDraft) -> Agent:
    """Return the agent as it would be published. It belongs to no session, so nothing saves it."""
    changes = {name: value for name, value in draft.changes.items() if name in DRAFTED}
    return Agent(**{**agent.model_dump(), **changes})


async def is_outdated(session: TenantSession, agent: Agent, draft: AgentDraft) -> bool:
    """Return whether other settings were published since the draft was saved. A pause does not count."""
    if draft.base_version == agent.version:
        return False
    base, current = [
        (await agents.get_version(session, agent.id, number)).settings for number in (draft.base_version, agent.version)
    ]
    return any(base.get(name) != current.get(name) for name in DRAFTED)


def require_revision(draft: AgentDraft | None, revision: str | None) -> None:
    """Raise `Conflict` unless the draft is the one that its editor has seen; None: the editor has seen no draft."""
    seen, current = parse_id(revision) if revision else None, draft.revision if draft is not None else None
    if seen == current and (revision is None or seen is not None):
        return
    if draft is None:
        raise Conflict("The draft was published or discarded since you read it.")
    raise Conflict("Another draft was saved since you read it: read it, and save your changes again with its revision.")


async def discard_draft(session: TenantSession, agent_id: UUID) -> None:
    """Delete an agent's draft. Raises `NotFound`."""
    await session.delete(await get_draft(session, agent_id, lock=True))
    record_audit(session, AuditAction.AGENT_DRAFT_DISCARDED, agent_id)


@dataclass(frozen=True, slots=True)
class DraftEditor:
    """Saves drafts."""

    publisher: AgentPublisher

    async def save_draft(
        self, session: TenantSession, agent_id: UUID, revision: str | None, data: AgentChanges, principal: Principal
    ) -> AgentDraft:
        """Save the fields that differ from the published agent as its draft, instead of those of the last draft.

        A draft that stays the same keeps its revision. Raises `NotFound`, `Conflict` if `revision` is not the draft's,
        and what a change of the agent raises.
        """
        agent = await agents.get_agent(session, agent_id, lock=True)
        draft = await find_draft(session, agent_id, lock=True)
        require_revision(draft, revision)
        update = keep_agent_changes(agent, data.as_update())
        drafted = Agent(**agent.model_dump())
        await self.publisher.apply_changes(session, drafted, update, principal)
        stored = drafted.model_dump(mode="json", include=update.model_fields_set)
        if draft is None:
            draft = AgentDraft(organization_id=agent.organization_id, agent_id=agent_id, base_version=agent.version)
        elif draft.changes == stored and not await is_outdated(session, agent, draft):
            return draft
        draft.revision, draft.base_version, draft.changes = new_id(), agent.version, stored
        draft.made_by, draft.updated_at = session.actor, now()
        session.add(draft)
        await session.flush()
        record_audit(session, AuditAction.AGENT_DRAFT_SAVED, agent_id, fields=update.model_fields_set)
        return draft
