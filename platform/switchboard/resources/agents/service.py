"""Business rules of agents."""

from typing import Any, Literal
from uuid import UUID
from zoneinfo import available_timezones

from pydantic import ValidationError
from sqlalchemy import func
from sqlmodel import col, select
from sqlmodel.sql.expression import SelectOfScalar

from switchboard.engine.providers import service as providers
from switchboard.engine.providers.voices import VoiceCatalog
from switchboard.foundation.audit import AuditAction, record_audit
from switchboard.foundation.database import TenantSession, new_id, now
from switchboard.foundation.events.targets import get_or_create_target, get_secret_label, remove_target
from switchboard.foundation.keyring import KeyRing
from switchboard.foundation.outbound import OutboundClient
from switchboard.foundation.outbound.fields import validate_public_url
from switchboard.foundation.web.errors import NotFound, ValidationFailed
from switchboard.plugin_sdk.registry import Capability
from switchboard.resources.agents.models import Agent, AgentVersion
from switchboard.resources.agents.schemas import AgentCreate, AgentFields, AgentUpdate, DeclaredTool
from switchboard.resources.knowledge_bases import service as knowledge

PROVIDER_FIELDS = {
    "llm_provider": Capability.LLM,
    "tts_provider": Capability.TEXT_TO_SPEECH,
    "stt_provider": Capability.SPEECH_TO_TEXT,
}
MODELS_SHOWN = 50
RESTORED = AgentUpdate.model_fields.keys() - {"status", "webhook_secret"}
UNVERSIONED = {"id", "organization_id", "created_at", "updated_at", "version"}


def list_agents(session: TenantSession, *, agent_type: str | None = None) -> SelectOfScalar[Agent]:
    """Select the organization's agents."""
    rows = session.select(Agent)
    return rows if agent_type is None else rows.where(col(Agent.agent_type) == agent_type)


async def get_agent_names(session: TenantSession, *, status: str | None = None) -> dict[UUID, str]:
    """Return the names of the agents, or of those with one status, by id in the order of the names."""
    rows = select(Agent.id, Agent.name).where(session.owns(Agent))
    if status is not None:
        rows = rows.where(col(Agent.status) == status)
    return dict((await session.exec(rows.order_by(func.lower(Agent.name), col(Agent.id)))).all())


async def find_agent(session: TenantSession, agent_id: UUID, *, lock: bool = False) -> Agent | None:
    """Return an agent by id; None if the organization has none."""
    rows = list_agents(session).where(col(Agent.id) == agent_id)
    return (await session.exec(rows.with_for_update() if lock else rows)).one_or_none()


async def list_agents_using_provider(session: TenantSession, capability: Capability, provider: str) -> list[Agent]:
    """List the agents that use a speech-to-text, text-to-speech, or language model provider."""
    field = next(field for field, served in PROVIDER_FIELDS.items() if served == capability)
    return list(
        (
            await session.exec(
                list_agents(session).where(col(getattr(Agent, field)) == provider).order_by(col(Agent.created_at))
            )
        ).all()
    )


async def get_agent(session: TenantSession, agent_id: UUID, *, lock: bool = False) -> Agent:
    """Return an agent, locked for this transaction if asked. Raises `NotFound`."""
    agent = await find_agent(session, agent_id, lock=lock)
    if agent is None:
        raise NotFound
    return agent


async def list_agents_using_knowledge_base(session: TenantSession, knowledge_base_id: UUID) -> list[Agent]:
    """List the agents that use a knowledge base, by name."""
    rows = list_agents(session).where(col(Agent.knowledge_base_ids).contains([str(knowledge_base_id)]))
    return list((await session.exec(rows.order_by(Agent.name))).all())


async def create_agent(
    session: TenantSession, data: AgentCreate, *, keyring: KeyRing, outbound: OutboundClient, voices: VoiceCatalog
) -> Agent:
    """Create an agent and its first version.

    Raises `ValidationFailed` for a provider, voice, or address that cannot be used.
    """
    organization_id = session.organization_id
    agent = Agent(
        id=new_id(), organization_id=organization_id, name=data.name, llm_provider="", tts_provider="", stt_provider=""
    )
    for field, capability in PROVIDER_FIELDS.items():
        setattr(agent, field, await providers.choose_provider(session, capability, getattr(data, field), field=field))
    await _change(session, agent, data, outbound=outbound)
    await _check_voice(agent, voices)
    session.add(agent)
    await session.flush()
    await _change_target(session, agent, data, keyring=keyring)
    _write_version(session, agent)
    record_audit(session, AuditAction.AGENT_CREATED, agent.id, fields=data.model_fields_set)
    return agent


async def update_agent(
    session: TenantSession,
    agent_id: UUID,
    data: AgentUpdate,
    *,
    keyring: KeyRing,
    outbound: OutboundClient,
    voices: VoiceCatalog,
) -> Agent:
    """Change the given fields and publish the agent as a new version.

    Raises `NotFound` and what `create_agent` raises.
    """
    agent = await _publish(session, agent_id, data, keyring=keyring, outbound=outbound, voices=voices)
    record_audit(session, AuditAction.AGENT_UPDATED, agent_id, fields=data.model_fields_set)
    return agent


async def _publish(
    session: TenantSession,
    agent_id: UUID,
    data: AgentUpdate,
    *,
    keyring: KeyRing,
    outbound: OutboundClient,
    voices: VoiceCatalog,
) -> Agent:
    agent = await get_agent(session, agent_id, lock=True)
    given = data.model_fields_set
    for field in given & PROVIDER_FIELDS.keys():
        setattr(
            agent,
            field,
            await providers.choose_provider(session, PROVIDER_FIELDS[field], getattr(data, field), field=field),
        )
    if "timezone" in given and data.timezone not in available_timezones():
        raise ValidationFailed.field("timezone", f"{data.timezone} is not an IANA time zone")
    await _change(session, agent, data, outbound=outbound)
    if given & {"tts_provider", "tts_voice_id"}:
        await _check_voice(agent, voices)
    await _change_target(session, agent, data, keyring=keyring)
    agent.version += 1
    agent.updated_at = now()
    _write_version(session, agent)
    return agent


async def delete_agent(session: TenantSession, agent_id: UUID) -> None:
    """Delete an agent for good. Its calls stay; its phone numbers stop answering. Raises `NotFound`."""
    await session.delete(await get_agent(session, agent_id))
    await remove_target(session, agent_id)
    record_audit(session, AuditAction.AGENT_DELETED, agent_id)


def list_versions(session: TenantSession, agent_id: UUID) -> SelectOfScalar[AgentVersion]:
    """Select an agent's versions."""
    return session.select(AgentVersion).where(col(AgentVersion.agent_id) == agent_id)


async def get_version(session: TenantSession, agent_id: UUID, number: int) -> AgentVersion:
    """Return one version of an agent. Raises `NotFound`."""
    found = (
        await session.exec(list_versions(session, agent_id).where(col(AgentVersion.version) == number))
    ).one_or_none()
    if found is None:
        raise NotFound
    return found


async def restore_version(
    session: TenantSession,
    agent_id: UUID,
    number: int,
    *,
    keyring: KeyRing,
    outbound: OutboundClient,
    voices: VoiceCatalog,
) -> Agent:
    """Publish the settings of an earlier version as a new version. Raises `NotFound` and what `update_agent` raises.

    The status stays. Knowledge bases deleted since are dropped, and fields that the version does not have keep their
    values.
    """
    kept = (await get_version(session, agent_id, number)).settings
    given = {name: kept[name] for name in RESTORED & kept.keys() if name != "timezone" or kept[name]}
    if "knowledge_base_ids" in given:
        there = {str(base.id) for base in await knowledge.resolve_knowledge_bases(session, None)}
        given["knowledge_base_ids"] = [base_id for base_id in given["knowledge_base_ids"] if base_id in there]
    try:
        data = AgentUpdate.model_validate(given, strict=False)
    except ValidationError as error:
        raise ValidationFailed.of(error) from None
    agent = await _publish(session, agent_id, data, keyring=keyring, outbound=outbound, voices=voices)
    record_audit(session, AuditAction.AGENT_VERSION_RESTORED, f"{agent_id} {number}")
    return agent


async def list_models_in_use(
    session: TenantSession, field: Literal["llm_model", "tts_model", "stt_model"]
) -> list[str]:
    """List the language models that the organization's agents use, to suggest them in forms."""
    column = {"llm_model": col(Agent.llm_model), "tts_model": col(Agent.tts_model), "stt_model": col(Agent.stt_model)}[
        field
    ]
    rows = select(column).where(session.owns(Agent), column.is_not(None))
    return [
        model for model in (await session.exec(rows.distinct().order_by(column).limit(MODELS_SHOWN))).all() if model
    ]


async def _change(session: TenantSession, agent: Agent, data: AgentFields, *, outbound: OutboundClient) -> None:
    fields = data.model_fields_set
    for field in (
        fields
        - PROVIDER_FIELDS.keys()
        - {"webhook_url", "webhook_secret", "knowledge_base_ids", "extraction_schema", "tools"}
    ):
        setattr(agent, field, getattr(data, field))
    if "tools" in fields:
        agent.tools = _check_tools(data.tools, outbound=outbound)
    if "extraction_schema" in fields:
        agent.extraction_schema = (
            data.extraction_schema.model_dump(exclude_none=True) if data.extraction_schema else None
        )
    if "knowledge_base_ids" in fields:
        agent.knowledge_base_ids = [
            str(base.id) for base in await knowledge.resolve_knowledge_bases(session, data.knowledge_base_ids)
        ]
    if "webhook_url" in fields:
        agent.webhook_url = validate_public_url(outbound, data.webhook_url, field="webhook_url")


def _check_tools(tools: list[DeclaredTool], *, outbound: OutboundClient) -> list[dict[str, Any]]:
    """Check addresses and tool names. Raises `ValidationFailed` for an address that is not public, and for a
    duplicate tool name.
    """
    for place, tool in enumerate(tools):
        tool.url = validate_public_url(outbound, tool.url, field=f"tools.{place}.url") or ""
        if tool.name in (earlier.name for earlier in tools[:place]):
            raise ValidationFailed.field(f"tools.{place}.name", f"another tool is named {tool.name}")
    return [tool.model_dump() for tool in tools]


async def _check_voice(agent: Agent, voices: VoiceCatalog) -> None:
    voice = agent.tts_voice_id
    if voice is not None and await voices.lacks_voice(agent.organization_id, agent.tts_provider, voice):
        raise ValidationFailed.field(
            "tts_voice_id", f"{agent.tts_provider} has no voice {voice}; `switchboard voices` lists its voices"
        )


async def _change_target(session: TenantSession, agent: Agent, data: AgentFields, *, keyring: KeyRing) -> None:
    """Copy the agent's webhook to its event target. Without a secret its deliveries are not signed."""
    if not data.model_fields_set & {"webhook_url", "webhook_secret"}:
        return
    target = await get_or_create_target(session, "agent", agent.id)
    target.url, target.updated_at = agent.webhook_url, now()
    if "webhook_secret" in data.model_fields_set:
        label = get_secret_label(target.kind, target.id, target.organization_id)
        target.secret = None if data.webhook_secret is None else keyring.encrypt(data.webhook_secret, label)


def _write_version(session: TenantSession, agent: Agent) -> None:
    settings, made_by = agent.model_dump(mode="json", exclude=UNVERSIONED), session.actor
    session.add(
        AgentVersion(
            organization_id=agent.organization_id,
            agent_id=agent.id,
            version=agent.version,
            settings=settings,
            made_by=made_by,
        )
    )
