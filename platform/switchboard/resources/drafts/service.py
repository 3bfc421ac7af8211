"""Publishing of drafts: a draft must be the one that its editor has seen, nobody else may have changed the agent, and
the required simulations must have passed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlmodel import col, select

from switchboard.foundation.database import TenantSession, is_among
from switchboard.foundation.web.errors import Conflict, InvalidState
from switchboard.foundation.web.principal import Principal
from switchboard.plugin_sdk.registry import Registry
from switchboard.resources.agents import drafts
from switchboard.resources.agents import service as agents
from switchboard.resources.agents.drafts import DraftEditor
from switchboard.resources.agents.models import Agent, AgentDraft
from switchboard.resources.agents.publishing import DRAFTED, AgentPublisher, keep_agent_changes, read_stored_settings
from switchboard.resources.agents.schemas import AgentChanges, AgentUpdate
from switchboard.resources.simulations import service as simulations
from switchboard.resources.simulations.models import Simulation
from switchboard.resources.simulations.schemas import SimulationCreate

NOT_RUN = "not run"


async def list_results(session: TenantSession, agent: Agent, draft: AgentDraft) -> dict[str, str]:
    """Return the status of each required simulation with exactly this draft, by name: that of its last run."""
    rows = select(Simulation.name, Simulation.status).where(
        session.owns(Simulation),
        col(Simulation.agent_id) == agent.id,
        col(Simulation.draft_revision) == draft.revision,
        is_among(col(Simulation.name), agent.required_simulations),
    )
    last = dict((await session.exec(rows.order_by(col(Simulation.created_at), col(Simulation.id)))).all())
    return {name: last.get(name, NOT_RUN) for name in agent.required_simulations}


async def run_required_simulations(
    session: TenantSession, registry: Registry, agent: Agent, draft: AgentDraft
) -> Sequence[str]:
    """Start the required simulations that this draft has not passed and does not run; return those of them that the
    agent does not have.

    Each is a copy of the last text simulation of its name. Raises what `create_simulation` raises.
    """
    missing = []
    for name, status in (await list_results(session, agent, draft)).items():
        if status in ("passed", "queued", "running"):
            continue
        rows = simulations.list_simulations(session, agent.id).where(
            col(Simulation.name) == name, col(Simulation.mode) == "text"
        )
        last = (await session.exec(rows.order_by(col(Simulation.created_at).desc()).limit(1))).one_or_none()
        if last is None:
            missing.append(name)
            continue
        fields = last.model_dump(include=SimulationCreate.model_fields.keys() - {"target"})
        data = SimulationCreate.model_validate({**fields, "target": "draft"})
        await simulations.create_simulation(session, registry, agent.id, data)
    return missing


@dataclass(frozen=True, slots=True)
class DraftPublisher:
    """Publishes drafts."""

    publisher: AgentPublisher
    editor: DraftEditor

    async def publish_update(
        self, session: TenantSession, agent_id: UUID, revision: str | None, data: AgentUpdate, principal: Principal
    ) -> Agent:
        """Publish an update in the place of the draft that its editor has seen (None: none), and delete the draft.

        An agent with required simulations is published if they have passed with a draft that makes the same changes.
        Raises what `publish_draft` raises.
        """
        agent = await agents.get_agent(session, agent_id, lock=True)
        draft = await drafts.find_draft(session, agent_id, lock=True)
        drafts.require_revision(draft, revision)
        if agent.required_simulations and keep_agent_changes(agent, data).model_fields_set & DRAFTED:
            draft = await self.editor.save_draft(session, agent_id, revision, AgentChanges.of_update(data), principal)
            await _require_passed(session, agent, draft)
        await self.publisher.publish_changes(session, agent, keep_agent_changes(agent, data), principal)
        if draft is not None:
            await session.delete(draft)
        return agent

    async def publish_draft(self, session: TenantSession, agent_id: UUID, revision: str, principal: Principal) -> Agent:
        """Publish the draft as a new version, and delete it.

        Raises `NotFound`; `Conflict` for another revision, or settings that were published since it was saved;
        `InvalidState` if a required simulation has not passed; and what a change of the agent raises.
        """
        agent = await agents.get_agent(session, agent_id, lock=True)
        draft = await drafts.get_draft(session, agent_id, lock=True)
        drafts.require_revision(draft, revision)
        if await drafts.is_outdated(session, agent, draft):
            raise Conflict(
                f"Version {agent.version} was published since the draft was saved. Save it again to publish it on top."
            )
        await _require_passed(session, agent, draft)
        changes = await read_stored_settings(session, draft.changes)
        await self.publisher.publish_changes(session, agent, keep_agent_changes(agent, changes), principal)
        await session.delete(draft)
        return agent


async def _require_passed(session: TenantSession, agent: Agent, draft: AgentDraft) -> None:
    """Raise `InvalidState`, with their names, if required simulations have not passed with this draft."""
    failing = [
        f"{name} ({status})"
        for name, status in (await list_results(session, agent, draft)).items()
        if status != "passed"
    ]
    if failing:
        raise InvalidState(f"These required simulations have not passed with this draft: {', '.join(failing)}.")
