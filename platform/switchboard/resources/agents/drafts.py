"""Drafts of agents: changes that are tested before they are published (docs/decisions/0078-drafts-of-agents.md)."""

from dataclasses import dataclass
from uuid import UUID

from switchboard.engine.conversation.agent_settings import AgentSettings
from switchboard.foundation.audit import AuditAction, record_audit
from switchboard.foundation.database import ReadSession, WriteSession, new_id, now
from switchboard.foundation.web.errors import Conflict, InvalidState, NotFound
from switchboard.foundation.web.paging import lock_row
from switchboard.foundation.web.principal import Principal
from switchboard.foundation.web.schemas import parse_id
from switchboard.resources.agents import service as agents
from switchboard.resources.agents.models import Agent, AgentDraft
from switchboard.resources.agents.publishing import (
    COLUMNS,
    DRAFTED,
    AgentPublisher,
    keep_agent_changes,
    read_stored_settings,
)
from switchboard.resources.agents.queries import find_draft, list_last_results, lock_draft
from switchboard.resources.agents.schemas import AgentChanges, AgentUpdate


async def get_draft(session: ReadSession, agent_id: UUID) -> AgentDraft:
    """Return an agent's draft. Raises `NotFound`."""
    draft = await find_draft(session, agent_id)
    if draft is None:
        raise NotFound
    return draft


def build_drafted_agent(agent: Agent, draft: AgentDraft) -> Agent:
    """Return the agent as it would be published. It belongs to no session, so nothing saves it."""
    drafted, stored = agent.build_copy(), agent.settings.model_dump(mode="json") | draft.changes
    drafted.settings = AgentSettings.model_validate(stored, strict=False, extra="ignore")
    for name in COLUMNS & DRAFTED & draft.changes.keys():
        setattr(drafted, name, draft.changes[name])
    return drafted


async def is_outdated(session: ReadSession, agent: Agent, draft: AgentDraft) -> bool:
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


async def discard_draft(session: WriteSession, agent_id: UUID) -> None:
    """Delete an agent's draft. Raises `NotFound`."""
    draft = await lock_draft(session, agent_id)
    if draft is None:
        raise NotFound
    await session.delete(draft)
    record_audit(session, AuditAction.AGENT_DRAFT_DISCARDED, agent_id)


@dataclass(frozen=True, slots=True)
class DraftEditor:
    """Saves and publishes drafts.

    To be published, a draft must be the one that its editor has seen, nobody else may have changed the agent, and the
    required simulations must have passed.
    """

    publisher: AgentPublisher

    async def save_draft(
        self, session: WriteSession, agent_id: UUID, revision: str | None, data: AgentChanges, principal: Principal
    ) -> AgentDraft:
        """Save the fields that differ from the published agent as its draft, instead of those of the last draft.

        A draft that stays the same keeps its revision. Raises `NotFound`, `Conflict` if `revision` is not the draft's,
        and what a change of the agent raises.
        """
        agent = await lock_row(session, Agent, agent_id)
        draft = await lock_draft(session, agent_id)
        require_revision(draft, revision)
        update = keep_agent_changes(agent, data.as_update())
        drafted = agent.build_copy()
        await self.publisher.apply_changes(session, drafted, update, principal)
        stored = {name: value for name, value in drafted.list_fields().items() if name in update.model_fields_set}
        if draft is None:
            draft = AgentDraft(organization_id=agent.organization_id, agent_id=agent_id, base_version=agent.version)
        elif draft.changes == stored and not await is_outdated(session, agent, draft):
            return draft
        draft.revision, draft.base_version, draft.changes = new_id(), agent.version, stored
        draft.made_by, draft.updated_at = session.actor, now()
        session.add(draft)
        record_audit(session, AuditAction.AGENT_DRAFT_SAVED, agent_id, fields=update.model_fields_set)
        return draft

    async def publish_update(
        self, session: WriteSession, agent_id: UUID, revision: str | None, data: AgentUpdate, principal: Principal
    ) -> Agent:
        """Publish an update in the place of the draft that its editor has seen (None: none), and delete the draft.

        An agent with required simulations is published if they have passed with a draft that makes the same changes.
        Raises what `publish_draft` raises.
        """
        agent = await lock_row(session, Agent, agent_id)
        draft = await lock_draft(session, agent_id)
        require_revision(draft, revision)
        if agent.required_simulations and keep_agent_changes(agent, data).model_fields_set & DRAFTED:
            draft = await self.save_draft(session, agent_id, revision, AgentChanges.of_update(data), principal)
            await _require_passed(session, agent, draft)
        await self.publisher.publish_changes(session, agent, keep_agent_changes(agent, data), principal)
        if draft is not None:
            await session.delete(draft)
        return agent

    async def publish_draft(self, session: WriteSession, agent_id: UUID, revision: str, principal: Principal) -> Agent:
        """Publish the draft as a new version, and delete it.

        Raises `NotFound`; `Conflict` for another revision, or settings that were published since it was saved;
        `InvalidState` if a required simulation has not passed; and what a change of the agent raises.
        """
        agent = await lock_row(session, Agent, agent_id)
        draft = await lock_draft(session, agent_id)
        if draft is None:
            raise NotFound
        require_revision(draft, revision)
        if await is_outdated(session, agent, draft):
            raise Conflict(
                f"Version {agent.version} was published since the draft was saved. Save it again to publish it on top."
            )
        await _require_passed(session, agent, draft)
        changes = await read_stored_settings(session, draft.changes)
        await self.publisher.publish_changes(session, agent, keep_agent_changes(agent, changes), principal)
        await session.delete(draft)
        return agent


NOT_RUN = "not run"


async def list_results(session: ReadSession, agent: Agent, draft: AgentDraft) -> dict[str, str]:
    """Return the status of each required simulation with exactly this draft, by name: that of its last run."""
    last = await list_last_results(session, agent, draft)
    return {name: last.get(name, NOT_RUN) for name in agent.required_simulations}


async def _require_passed(session: ReadSession, agent: Agent, draft: AgentDraft) -> None:
    """Raise `InvalidState`, with their names, if required simulations have not passed with this draft."""
    failing = [
        f"{name} ({status})"
        for name, status in (await list_results(session, agent, draft)).items()
        if status != "passed"
    ]
    if failing:
        raise InvalidState(f"These required simulations have not passed with this draft: {', '.join(failing)}.")
