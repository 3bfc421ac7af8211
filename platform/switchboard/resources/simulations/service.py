"""Business rules of simulations."""

from collections.abc import Sequence
from uuid import UUID

from switchboard.foundation.audit import AuditAction, record_audit
from switchboard.foundation.database import ReadSession, WriteSession, now
from switchboard.foundation.web.errors import InvalidState, NotFound
from switchboard.foundation.web.paging import get_row
from switchboard.plugin_sdk.registry import Registry
from switchboard.resources.agents import drafts
from switchboard.resources.agents.models import Agent, AgentDraft, Simulation
from switchboard.resources.billing import ledger
from switchboard.resources.phone_numbers import service as numbers
from switchboard.resources.phone_numbers.models import PhoneNumber
from switchboard.resources.phone_numbers.queries import list_numbers_answered_by
from switchboard.resources.simulations.queries import find_last_simulation
from switchboard.resources.simulations.schemas import SimulationCreate

JOB_SECONDS = 660
"""Seconds after which a worker's job is canceled; the conversation itself may take ten minutes."""


async def get_simulation(session: ReadSession, agent_id: UUID, simulation_id: UUID) -> Simulation:
    """Return a simulation of an agent. Raises `NotFound`."""
    simulation = await get_row(session, Simulation, simulation_id)
    if simulation.agent_id != agent_id:
        raise NotFound
    return simulation


async def create_simulation(
    session: WriteSession, registry: Registry, agent_id: UUID, data: SimulationCreate
) -> Simulation:
    """Create a simulation; a worker runs it.

    Raises `NotFound` (a missing draft, too), `ValidationFailed`, `InsufficientBalance`, and `InvalidState` for mode
    `audio` if the agent answers no number that a simulated caller can call.
    """
    agent = await get_row(session, Agent, agent_id)
    data.check()
    await ledger.require_solvency(session)
    if data.mode == "audio" and await find_simulated_number(session, registry, agent.id) is None:
        raise InvalidState(
            "The agent answers no number whose carrier can simulate callers. Give it a number of the loopback "
            "carrier, or use mode text."
        )
    draft = await drafts.get_draft(session, agent_id) if data.target == "draft" else None
    fields = data.model_dump(mode="json", exclude={"target"})
    simulation = Simulation(organization_id=agent.organization_id, agent_id=agent.id, due_at=now(), **fields)
    simulation.draft_revision = draft.revision if draft is not None else None
    session.add(simulation)
    record_audit(session, AuditAction.SIMULATION_CREATED, simulation.id, fields=data.model_fields_set)
    session.wake("run_simulation")
    return simulation


async def run_required_simulations(
    session: WriteSession, registry: Registry, agent: Agent, draft: AgentDraft
) -> Sequence[str]:
    """Start the required simulations that this draft has not passed and does not run; return those of them that the
    agent does not have.

    Each is a copy of the last text simulation of its name. Raises what `create_simulation` raises.
    """
    missing = []
    for name, status in (await drafts.list_results(session, agent, draft)).items():
        if status in ("passed", "queued", "running"):
            continue
        last = await find_last_simulation(session, agent.id, name)
        if last is None:
            missing.append(name)
            continue
        fields = last.model_dump(include=SimulationCreate.model_fields.keys() - {"target"})
        data = SimulationCreate.model_validate({**fields, "target": "draft"})
        await create_simulation(session, registry, agent.id, data)
    return missing


async def find_simulated_number(session: ReadSession, registry: Registry, agent_id: UUID) -> PhoneNumber | None:
    """Return a number that the agent answers and a simulated caller can call; None if there is none."""
    for number in (await list_numbers_answered_by(session, [agent_id]))[agent_id]:
        if number.status == "active" and numbers.is_simulated(registry, number):
            return number
    return None
