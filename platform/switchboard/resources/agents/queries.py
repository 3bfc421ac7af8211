"""Statements about agents, their versions, their drafts, and the simulations of a draft."""

from typing import Literal
from uuid import UUID

from sqlalchemy import func, type_coerce
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import col, or_, select
from sqlmodel.sql.expression import SelectOfScalar

from switchboard.engine.conversation.agent_settings import DETECTOR_MODES
from switchboard.foundation.database import ReadSession, WriteSession, is_among
from switchboard.foundation.web.schemas import parse_id
from switchboard.plugin_sdk.registry import Capability
from switchboard.resources.agents.models import PROVIDER_FIELDS, Agent, AgentDraft, AgentVersion, Simulation

MODELS_SHOWN = 50
MOST_COLLEAGUES = 50
"""Agents of one conversation besides the first."""


def select_agents(session: ReadSession, *, agent_type: str | None = None) -> SelectOfScalar[Agent]:
    rows = session.select(Agent)
    return rows if agent_type is None else rows.where(col(Agent.agent_type) == agent_type)


async def list_agents_by_age(session: ReadSession) -> list[Agent]:
    """List the organization's agents, oldest first."""
    return list(await session.exec(select_agents(session).order_by(col(Agent.created_at))))


async def list_agents_named(session: ReadSession, name: str) -> list[Agent]:
    """List the agents with a name, or with an id."""
    wanted = or_(col(Agent.id) == parse_id(name), col(Agent.name) == name)
    return list(await session.exec(select_agents(session).where(wanted).limit(2)))


async def list_colleagues(session: ReadSession, agent: Agent) -> list[Agent]:
    """List the active agents that may get a conversation of an agent by hand-offs, one after the other, nearest first.
    At most `MOST_COLLEAGUES` are found.
    """
    colleagues, last, asked = list[Agent](), [agent], {agent.id}
    while len(colleagues) < MOST_COLLEAGUES and (
        named := {agent_id for each in last for agent_id in each.settings.list_handoff_ids()} - asked
    ):
        asked |= named
        rows = session.select(Agent).where(is_among(col(Agent.id), named), col(Agent.status) == "active")
        last = list((await session.exec(rows.order_by(col(Agent.id)))).all())
        colleagues += last
    return colleagues[:MOST_COLLEAGUES]


async def get_agent_names(session: ReadSession, *, status: str | None = None) -> dict[UUID, str]:
    """Return the names of the agents, or of those with one status, by id in the order of the names."""
    rows = select(Agent.id, Agent.name).where(session.owns(Agent))
    if status is not None:
        rows = rows.where(col(Agent.status) == status)
    return dict((await session.exec(rows.order_by(func.lower(Agent.name), col(Agent.id)))).all())


async def list_names_by_appointment_type(session: ReadSession) -> dict[str, dict[UUID, str]]:
    """Return the names of the agents that book each appointment type, by the type's id and then by the agent's."""
    chosen = type_coerce(col(Agent.settings)["appointment_type_ids"], JSONB)
    rows = select(Agent.id, Agent.name, chosen).where(session.owns(Agent), func.jsonb_array_length(chosen) > 0)
    found: dict[str, dict[UUID, str]] = {}
    for agent_id, name, type_ids in (await session.exec(rows.order_by(func.lower(Agent.name), col(Agent.id)))).all():
        for type_id in type_ids:
            found.setdefault(type_id, {})[agent_id] = name
    return found


async def list_agents_using_provider(session: ReadSession, capability: Capability, provider: str) -> list[Agent]:
    """List the agents that use a speech-to-text, text-to-speech, or language model provider."""
    field = next(field for field, served in PROVIDER_FIELDS.items() if served == capability)
    rows = session.select(Agent).where(col(Agent.settings)[field].astext == provider)
    return list((await session.exec(rows.order_by(col(Agent.created_at)))).all())


async def list_agents_redacting(session: ReadSession, kind: str) -> list[Agent]:
    """List the agents that redact a kind of private data by their own settings, by name."""
    rows = session.select(Agent).where(col(Agent.settings)["redaction"]["kinds"].contains([kind]))
    return list((await session.exec(rows.order_by(Agent.name))).all())


async def has_agent_with_turn_detector(session: ReadSession) -> bool:
    """Return whether the organization has an agent whose turn detection asks a turn detector."""
    rows = session.select(Agent).where(col(Agent.settings)["turn_detection"]["mode"].astext.in_(DETECTOR_MODES))
    return (await session.exec(rows.limit(1))).first() is not None


async def list_agents_using_knowledge_base(session: ReadSession, knowledge_base_id: UUID) -> list[Agent]:
    """List the agents that use a knowledge base, by name."""
    rows = session.select(Agent).where(col(Agent.settings)["knowledge_base_ids"].contains([str(knowledge_base_id)]))
    return list((await session.exec(rows.order_by(Agent.name))).all())


def select_versions(session: ReadSession, agent_id: UUID) -> SelectOfScalar[AgentVersion]:
    return session.select(AgentVersion).where(col(AgentVersion.agent_id) == agent_id)


async def find_version(session: ReadSession, agent_id: UUID, number: int) -> AgentVersion | None:
    """Return one version of an agent; None if there is none."""
    rows = select_versions(session, agent_id).where(col(AgentVersion.version) == number)
    return (await session.exec(rows)).one_or_none()


async def list_models_in_use(session: ReadSession, field: Literal["llm_model", "tts_model", "stt_model"]) -> list[str]:
    """List the language models that the organization's agents use, to suggest them in forms."""
    model = col(Agent.settings)[field].astext
    rows = select(model).where(session.owns(Agent), model.is_not(None))
    return list((await session.exec(rows.distinct().order_by(model).limit(MODELS_SHOWN))).all())


def _select_draft(session: ReadSession, agent_id: UUID) -> SelectOfScalar[AgentDraft]:
    return session.select(AgentDraft).where(col(AgentDraft.agent_id) == agent_id)


async def find_draft(session: ReadSession, agent_id: UUID) -> AgentDraft | None:
    """Return an agent's draft; None if it has none."""
    return (await session.exec(_select_draft(session, agent_id))).one_or_none()


async def lock_draft(session: WriteSession, agent_id: UUID) -> AgentDraft | None:
    """Lock an agent's draft for an update, and return it as it is now; None if it has none."""
    rows = _select_draft(session, agent_id).with_for_update().execution_options(populate_existing=True)
    return (await session.exec(rows)).one_or_none()


async def list_last_results(session: ReadSession, agent: Agent, draft: AgentDraft) -> dict[str, str]:
    """Return the status of the last run of each required simulation that has run with this draft, by name."""
    rows = select(Simulation.name, Simulation.status).where(
        session.owns(Simulation),
        col(Simulation.agent_id) == agent.id,
        col(Simulation.draft_revision) == draft.revision,
        is_among(col(Simulation.name), agent.required_simulations),
    )
    return dict((await session.exec(rows.order_by(col(Simulation.created_at), col(Simulation.id)))).all())
