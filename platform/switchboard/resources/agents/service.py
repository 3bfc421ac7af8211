"""Business rules of agents."""

from typing import Literal
from uuid import UUID

from sqlalchemy import func, type_coerce
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import col, select
from sqlmodel.sql.expression import SelectOfScalar

from switchboard.engine.conversation.agent_settings import DETECTOR_MODES
from switchboard.foundation.audit import AuditAction, record_audit
from switchboard.foundation.database import ReadSession, WriteSession
from switchboard.foundation.events.outbox import remove_target
from switchboard.foundation.web.errors import NotFound, ValidationFailed
from switchboard.foundation.web.paging import get_row
from switchboard.foundation.web.schemas import parse_id
from switchboard.plugin_sdk.registry import Capability
from switchboard.resources.agents.models import Agent, AgentVersion

PROVIDER_FIELDS = {
    "llm_provider": Capability.LLM,
    "tts_provider": Capability.TEXT_TO_SPEECH,
    "stt_provider": Capability.SPEECH_TO_TEXT,
}
MODELS_SHOWN = 50


def list_agents(session: ReadSession, *, agent_type: str | None = None) -> SelectOfScalar[Agent]:
    """Select the organization's agents."""
    rows = session.select(Agent)
    return rows if agent_type is None else rows.where(col(Agent.agent_type) == agent_type)


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


async def get_agent(session: ReadSession, agent_id: UUID, *, lock: bool = False) -> Agent:
    """Return an agent, locked for this transaction if asked. Raises `NotFound`."""
    return await get_row(session, Agent, agent_id, lock=lock)


async def require_agent(session: ReadSession, agent_id: str, *, field: str = "agent_id") -> Agent:
    """Return the agent in a request. Raises `ValidationFailed` unless it is the organization's."""
    agent = await session.find(Agent, parse_id(agent_id))
    if agent is None:
        raise ValidationFailed.field(field, "is not an agent of the organization")
    return agent


async def list_agents_using_knowledge_base(session: ReadSession, knowledge_base_id: UUID) -> list[Agent]:
    """List the agents that use a knowledge base, by name."""
    rows = session.select(Agent).where(col(Agent.settings)["knowledge_base_ids"].contains([str(knowledge_base_id)]))
    return list((await session.exec(rows.order_by(Agent.name))).all())


async def delete_agent(session: WriteSession, agent_id: UUID) -> None:
    """Delete an agent for good. Its calls stay; its phone numbers stop answering. Raises `NotFound`."""
    await session.delete(await get_agent(session, agent_id))
    await remove_target(session, agent_id)
    record_audit(session, AuditAction.AGENT_DELETED, agent_id)


def list_versions(session: ReadSession, agent_id: UUID) -> SelectOfScalar[AgentVersion]:
    """Select an agent's versions."""
    return session.select(AgentVersion).where(col(AgentVersion.agent_id) == agent_id)


async def get_version(session: ReadSession, agent_id: UUID, number: int) -> AgentVersion:
    """Return one version of an agent. Raises `NotFound`."""
    rows = list_versions(session, agent_id).where(col(AgentVersion.version) == number)
    found = (await session.exec(rows)).one_or_none()
    if found is None:
        raise NotFound
    return found


async def list_models_in_use(session: ReadSession, field: Literal["llm_model", "tts_model", "stt_model"]) -> list[str]:
    """List the language models that the organization's agents use, to suggest them in forms."""
    model = col(Agent.settings)[field].astext
    rows = select(model).where(session.owns(Agent), model.is_not(None))
    return list((await session.exec(rows.distinct().order_by(model).limit(MODELS_SHOWN))).all())
