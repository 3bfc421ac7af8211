"""Creating and changing agents: each change is published as a new version."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID
from zoneinfo import available_timezones

from pydantic import ValidationError

from switchboard.engine.conversation.speech.rnnoise import RNNOISE_MISSING, find_rnnoise
from switchboard.engine.providers.instances import choose_provider
from switchboard.engine.providers.voices import VoiceCatalog
from switchboard.foundation.audit import AuditAction, record_audit
from switchboard.foundation.database import TenantSession, new_id, now
from switchboard.foundation.events.outbox import get_or_create_target, get_secret_label
from switchboard.foundation.keyring import KeyRing
from switchboard.foundation.outbound import OutboundClient, validate_public_url
from switchboard.foundation.web.errors import InvalidState, ValidationFailed
from switchboard.foundation.web.principal import Principal
from switchboard.plugin_sdk.registry import Registry
from switchboard.resources.agents import service as agents
from switchboard.resources.agents.declared_tools import DeclaredTool
from switchboard.resources.agents.disclosure import check_disclosure
from switchboard.resources.agents.models import Agent, AgentVersion
from switchboard.resources.agents.permissions import require_receiver_scopes
from switchboard.resources.agents.redaction import check_redaction
from switchboard.resources.agents.schemas import (
    AgentChanges,
    AgentCreate,
    AgentFields,
    AgentOut,
    AgentUpdate,
)
from switchboard.resources.agents.tools import list_tool_names
from switchboard.resources.knowledge_bases import service as knowledge

DRAFTED = frozenset(AgentChanges.model_fields)
"""Fields that a draft can change, and that the restoration of a version sets."""
OBJECTS = {"disclosure", "turn_detection", "voicemail_policy"}
"""Fields that are stored as objects."""
UNVERSIONED = {"id", "organization_id", "created_at", "updated_at", "version"}


@dataclass(frozen=True, slots=True)
class AgentPublisher:
    """Creates agents, and publishes their changes as new versions."""

    keyring: KeyRing
    outbound: OutboundClient
    voices: VoiceCatalog
    registry: Registry

    async def create_agent(self, session: TenantSession, data: AgentCreate, principal: Principal | None) -> Agent:
        """Create an agent and its first version. `principal` is None for the operator, who needs no scope.

        Raises `ValidationFailed` for a provider, voice, or address that cannot be used, and `InsufficientScope` for a
        tool or a webhook that the principal may not set.
        """
        organization_id = session.organization_id
        agent = Agent(
            id=new_id(),
            organization_id=organization_id,
            name=data.name,
            llm_provider="",
            tts_provider="",
            stt_provider="",
        )
        for field, capability in agents.PROVIDER_FIELDS.items():
            setattr(agent, field, await choose_provider(session, capability, getattr(data, field), field=field))
        require_receiver_scopes(principal, agent, data)
        await self._change(session, agent, data)
        await self._check_voice(agent)
        session.add(agent)
        await session.flush()
        await self._change_target(session, agent, data)
        _write_version(session, agent)
        record_audit(session, AuditAction.AGENT_CREATED, agent.id, fields=data.model_fields_set)
        return agent

    async def update_agent(
        self, session: TenantSession, agent_id: UUID, data: AgentUpdate, principal: Principal
    ) -> Agent:
        """Change the given fields that differ, and publish the agent as a new version if there are any.

        Raises `NotFound`, `InvalidState` for settings of an agent with required simulations, and what `create_agent`
        raises.
        """
        agent = await agents.get_agent(session, agent_id, lock=True)
        changes = keep_agent_changes(agent, data)
        if agent.required_simulations and (gated := changes.model_fields_set & DRAFTED):
            raise InvalidState(
                f"{', '.join(sorted(gated))}: this agent has required simulations, so its settings are published by a "
                "draft that has passed them. Save a draft, or take the simulations out of required_simulations."
            )
        await self.publish_changes(session, agent, changes, principal)
        return agent

    async def publish_changes(
        self, session: TenantSession, agent: Agent, changes: AgentUpdate, principal: Principal
    ) -> None:
        """Publish a locked agent with the changes as a new version, if there are any. Raises what `create_agent`
        raises.
        """
        if changes.model_fields_set:
            await self._publish(session, agent, changes, principal)
            record_audit(session, AuditAction.AGENT_UPDATED, agent.id, fields=changes.model_fields_set)

    async def restore_version(self, session: TenantSession, agent_id: UUID, number: int, principal: Principal) -> Agent:
        """Publish the settings of an earlier version as a new version.

        The status stays. Knowledge bases deleted since are dropped, and fields that the version does not have keep
        their values. Raises `NotFound` and what `update_agent` raises.
        """
        data = await read_stored_settings(session, (await agents.get_version(session, agent_id, number)).settings)
        agent = await agents.get_agent(session, agent_id, lock=True)
        await self._publish(session, agent, data, principal)
        record_audit(session, AuditAction.AGENT_VERSION_RESTORED, f"{agent_id} {number}")
        return agent

    async def apply_changes(
        self, session: TenantSession, agent: Agent, data: AgentUpdate, principal: Principal
    ) -> None:
        """Check changes and set them on an agent, without a version. Raises what `create_agent` raises."""
        require_receiver_scopes(principal, agent, data)
        given = data.model_fields_set
        for field in given & agents.PROVIDER_FIELDS.keys():
            setattr(
                agent,
                field,
                await choose_provider(session, agents.PROVIDER_FIELDS[field], getattr(data, field), field=field),
            )
        if "timezone" in given and data.timezone not in available_timezones():
            raise ValidationFailed.field("timezone", f"{data.timezone} is not an IANA time zone")
        await self._change(session, agent, data)
        if given & {"tts_provider", "tts_voice_id"}:
            await self._check_voice(agent)

    async def _publish(self, session: TenantSession, agent: Agent, data: AgentUpdate, principal: Principal) -> None:
        await self.apply_changes(session, agent, data, principal)
        await self._change_target(session, agent, data)
        agent.version += 1
        agent.updated_at = now()
        _write_version(session, agent)

    async def _change(self, session: TenantSession, agent: Agent, data: AgentFields) -> None:
        fields = data.model_fields_set
        _check_noise_suppression(data)
        for field in (
            fields
            - agents.PROVIDER_FIELDS.keys()
            - {"webhook_url", "webhook_secret", "knowledge_base_ids", "extraction_schema", "redaction", "tools"}
            - OBJECTS
        ):
            setattr(agent, field, getattr(data, field))
        if "tools" in fields:
            agent.tools = _check_tools(data.tools, outbound=self.outbound)
        if "disabled_tools" in fields:
            self._check_disabled_tools(agent, data.disabled_tools)
        if "extraction_schema" in fields:
            agent.extraction_schema = (
                data.extraction_schema.model_dump(exclude_none=True) if data.extraction_schema else None
            )
        if "redaction" in fields:
            agent.redaction = await check_redaction(session, data.redaction)
        for field in fields & OBJECTS:
            value = getattr(data, field)
            setattr(agent, field, value.model_dump() if value else None)
        if fields & {"disclosure", "stt_language"}:
            check_disclosure(agent)
        if "knowledge_base_ids" in fields:
            agent.knowledge_base_ids = [
                str(base.id) for base in await knowledge.resolve_knowledge_bases(session, data.knowledge_base_ids)
            ]
        if "webhook_url" in fields:
            agent.webhook_url = validate_public_url(self.outbound, data.webhook_url, field="webhook_url")

    def _check_disabled_tools(self, agent: Agent, names: list[str]) -> None:
        """Raise `ValidationFailed` for a name that no tool has, so that a typo does not leave a tool switched on."""
        known = list_tool_names(self.registry, agent)
        for place, name in enumerate(names):
            if name not in known:
                raise ValidationFailed.field(
                    f"disabled_tools.{place}", f"{name} is not a tool; there are {', '.join(known)}"
                )

    async def _check_voice(self, agent: Agent) -> None:
        voice = agent.tts_voice_id
        if voice is not None and await self.voices.lacks_voice(agent.organization_id, agent.tts_provider, voice):
            raise ValidationFailed.field(
                "tts_voice_id", f"{agent.tts_provider} has no voice {voice}; `switchboard voices` lists its voices"
            )

    async def _change_target(self, session: TenantSession, agent: Agent, data: AgentFields) -> None:
        """Copy the agent's webhook to its event target. Without a secret its deliveries are not signed."""
        if not data.model_fields_set & {"webhook_url", "webhook_secret"}:
            return
        target = await get_or_create_target(session, "agent", agent.id)
        target.url, target.updated_at = agent.webhook_url, now()
        if "webhook_secret" in data.model_fields_set:
            label = get_secret_label(target.kind, target.id, target.organization_id)
            target.secret = None if data.webhook_secret is None else self.keyring.encrypt(data.webhook_secret, label)


def keep_agent_changes(agent: Agent, data: AgentUpdate) -> AgentUpdate:
    """Return the update without the fields that already have the given value."""
    return data.keep_changes(AgentOut.from_row(agent), timezone=agent.timezone)


async def read_stored_settings(session: TenantSession, stored: Mapping[str, Any]) -> AgentUpdate:
    """Return the update that sets what a version or a draft has stored. Knowledge bases deleted since are dropped.

    Raises `ValidationFailed` for settings that are not valid any more.
    """
    given = {name: stored[name] for name in DRAFTED & stored.keys() if name != "timezone" or stored[name]}
    if "knowledge_base_ids" in given:
        there = {str(base.id) for base in await knowledge.resolve_knowledge_bases(session, None)}
        given["knowledge_base_ids"] = [base_id for base_id in given["knowledge_base_ids"] if base_id in there]
    try:
        return AgentUpdate.model_validate(given, strict=False)
    except ValidationError as error:
        raise ValidationFailed.from_error(error) from None


def _check_noise_suppression(data: AgentFields) -> None:
    if data.noise_suppression == "rnnoise" and find_rnnoise() is None:
        raise ValidationFailed.field("noise_suppression", RNNOISE_MISSING)


def _check_tools(tools: list[DeclaredTool], *, outbound: OutboundClient) -> list[dict[str, Any]]:
    """Check addresses and tool names. Raises `ValidationFailed` for an address that is not public, and for a
    duplicate tool name.
    """
    for place, tool in enumerate(tools):
        tool.url = validate_public_url(outbound, tool.url, field=f"tools.{place}.url") or ""
        if tool.name in (earlier.name for earlier in tools[:place]):
            raise ValidationFailed.field(f"tools.{place}.name", f"another tool is named {tool.name}")
    # An older program refuses fields that it does not know.
    return [tool.model_dump(exclude=None if tool.keypad_entries else {"keypad_entries"}) for tool in tools]


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
