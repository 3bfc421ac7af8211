"""Creating and changing agents: each change is published as a new version."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID
from zoneinfo import available_timezones

from pydantic import ValidationError

from switchboard.engine.conversation.agent_settings import DeclaredTool, Handoff
from switchboard.engine.providers.instances import choose_provider
from switchboard.engine.providers.offers import VoiceCatalog
from switchboard.foundation.audit import AuditAction, record_audit
from switchboard.foundation.database import ReadSession, WriteSession, now
from switchboard.foundation.events.outbox import get_secret_label
from switchboard.foundation.events.queries import get_or_create_target
from switchboard.foundation.keyring import KeyRing
from switchboard.foundation.outbound import OutboundClient, validate_public_url
from switchboard.foundation.web.errors import InvalidState, ValidationFailed
from switchboard.foundation.web.paging import lock_row
from switchboard.foundation.web.principal import Principal
from switchboard.foundation.web.schemas import parse_id
from switchboard.plugin_sdk.registry import Registry
from switchboard.resources.agents import service as agents
from switchboard.resources.agents.disclosure import check_disclosure
from switchboard.resources.agents.models import PROVIDER_FIELDS, Agent, AgentVersion
from switchboard.resources.agents.permissions import require_receiver_scopes
from switchboard.resources.agents.queries import get_agent_names
from switchboard.resources.agents.redaction import check_redaction
from switchboard.resources.agents.schemas import AgentChanges, AgentCreate, AgentFields, AgentOut, AgentUpdate
from switchboard.resources.agents.tools import list_tool_names, require_free_name
from switchboard.resources.appointments.appointment_types import resolve_types
from switchboard.resources.appointments.queries import list_appointment_types
from switchboard.resources.knowledge_bases import service as knowledge

DRAFTED = frozenset(AgentChanges.model_fields)
"""Fields that a draft can change, and that the restoration of a version sets."""
COLUMNS = frozenset({"name", "status", "timezone", "required_simulations"})
"""Fields of an update that are not settings."""


@dataclass(frozen=True, slots=True)
class AgentPublisher:
    keyring: KeyRing
    outbound: OutboundClient
    voices: VoiceCatalog
    registry: Registry

    async def create_agent(self, session: WriteSession, data: AgentCreate, principal: Principal | None) -> Agent:
        """Create an agent and its first version. `principal` is None for the operator, who needs no scope.

        Raises `ValidationFailed` for a provider, voice, or address that cannot be used, and `InsufficientScope` for a
        tool or a webhook that the principal may not set.
        """
        agent = Agent(organization_id=session.organization_id, name=data.name)
        await self.apply_changes(session, agent, data, principal)
        session.add(agent)
        await session.flush()  # The version refers to the agent.
        await self._change_target(session, agent, data)
        _write_version(session, agent)
        record_audit(session, AuditAction.AGENT_CREATED, agent.id, fields=data.model_fields_set)
        return agent

    async def update_agent(
        self, session: WriteSession, agent_id: UUID, data: AgentUpdate, principal: Principal
    ) -> Agent:
        """Change the given fields that differ, and publish the agent as a new version if there are any.

        Raises `NotFound`, `InvalidState` for settings of an agent with required simulations, and what `create_agent`
        raises.
        """
        agent = await lock_row(session, Agent, agent_id)
        changes = keep_agent_changes(agent, data)
        if agent.required_simulations and (gated := changes.model_fields_set & DRAFTED):
            raise InvalidState(
                f"{', '.join(sorted(gated))}: this agent has required simulations, so its settings are published by a "
                "draft that has passed them. Save a draft, or take the simulations out of required_simulations."
            )
        await self.publish_changes(session, agent, changes, principal)
        return agent

    async def publish_changes(
        self, session: WriteSession, agent: Agent, changes: AgentUpdate, principal: Principal
    ) -> None:
        """Publish a locked agent with the changes, if any, as a new version. Raises what `create_agent` raises."""
        if changes.model_fields_set:
            await self._publish(session, agent, changes, principal)
            record_audit(session, AuditAction.AGENT_UPDATED, agent.id, fields=changes.model_fields_set)

    async def restore_version(self, session: WriteSession, agent_id: UUID, number: int, principal: Principal) -> Agent:
        """Publish the settings of an earlier version as a new version.

        The status stays. Knowledge bases deleted since are dropped, and fields that the version does not have keep
        their values. Raises `NotFound` and what `update_agent` raises.
        """
        data = await read_stored_settings(session, (await agents.get_version(session, agent_id, number)).settings)
        agent = await lock_row(session, Agent, agent_id)
        await self._publish(session, agent, data, principal)
        record_audit(session, AuditAction.AGENT_VERSION_RESTORED, f"{agent_id} {number}")
        return agent

    async def apply_changes(
        self, session: WriteSession, agent: Agent, data: AgentFields, principal: Principal | None
    ) -> None:
        """Check changes and set them on an agent, without a version. Raises what `create_agent` raises."""
        require_receiver_scopes(principal, agent, data)
        given = await self._resolve_settings(session, agent, data)
        agent.settings = agent.settings.model_copy(update=given)
        if "disabled_tools" in given:
            self._check_disabled_tools(agent)
        if given.keys() & {"disclosure", "stt_language"}:
            check_disclosure(agent.settings)
        if given.keys() & {"tts_provider", "tts_voice_id"}:
            voice, provider = agent.settings.tts_voice_id, agent.settings.tts_provider or ""
            if voice is not None and await self.voices.lacks_voice(agent.organization_id, provider, voice):
                raise ValidationFailed.field(
                    "tts_voice_id", f"{provider} has no voice {voice}; `switchboard voices` lists its voices"
                )
        for name in COLUMNS & data.model_fields_set:
            setattr(agent, name, getattr(data, name))
        if "timezone" in data.model_fields_set and agent.timezone not in available_timezones():
            raise ValidationFailed.field("timezone", f"{agent.timezone} is not an IANA time zone")

    async def _resolve_settings(self, session: ReadSession, agent: Agent, data: AgentFields) -> dict[str, object]:
        """Return the given settings as they are stored, with providers that the organization has."""
        given = data.list_given()
        for name, capability in PROVIDER_FIELDS.items():
            if name in given or getattr(agent.settings, name) is None:
                given[name] = await choose_provider(session, capability, getattr(data, name), field=name)
        if "tools" in given:
            given["tools"] = _check_tools(data.tools, outbound=self.outbound)
        if data.redaction is not None:
            await check_redaction(session, data.redaction)
        if "knowledge_base_ids" in given:
            bases = await knowledge.resolve_knowledge_bases(session, data.knowledge_base_ids)
            given["knowledge_base_ids"] = [str(base.id) for base in bases]
        if "appointment_type_ids" in given:
            kinds = await resolve_types(session, data.appointment_type_ids, field="appointment_type_ids")
            given["appointment_type_ids"] = [str(kind.id) for kind in kinds]
        if "handoffs" in given:
            given["handoffs"] = await _check_handoffs(session, agent, data.handoffs)
        if "webhook_url" in given:
            given["webhook_url"] = validate_public_url(self.outbound, data.webhook_url, field="webhook_url")
        return given

    async def _publish(self, session: WriteSession, agent: Agent, data: AgentUpdate, principal: Principal) -> None:
        await self.apply_changes(session, agent, data, principal)
        await self._change_target(session, agent, data)
        agent.version += 1
        agent.updated_at = now()
        _write_version(session, agent)

    def _check_disabled_tools(self, agent: Agent) -> None:
        """Raise `ValidationFailed` for a name that no tool has, so that a typo does not leave a tool switched on."""
        known = list_tool_names(self.registry, agent)
        for place, name in enumerate(agent.settings.disabled_tools):
            if name not in known:
                raise ValidationFailed.field(
                    f"disabled_tools.{place}", f"{name} is not a tool; there are {', '.join(known)}"
                )

    async def _change_target(self, session: WriteSession, agent: Agent, data: AgentFields) -> None:
        """Copy the agent's webhook to its event target. Without a secret its deliveries are not signed."""
        if not data.model_fields_set & {"webhook_url", "webhook_secret"}:
            return
        target = await get_or_create_target(session, "agent", agent.id)
        target.url, target.updated_at = agent.settings.webhook_url, now()
        if "webhook_secret" in data.model_fields_set:
            label = get_secret_label(target.kind, target.id, target.organization_id)
            target.secret = None if data.webhook_secret is None else self.keyring.encrypt(data.webhook_secret, label)


def keep_agent_changes(agent: Agent, data: AgentUpdate) -> AgentUpdate:
    """Return the update without the fields that already have the given value."""
    return data.keep_changes(AgentOut.from_row(agent), timezone=agent.timezone)


async def read_stored_settings(session: ReadSession, stored: Mapping[str, Any]) -> AgentUpdate:
    """Return the update that sets what a version or a draft has stored. Knowledge bases, appointment types, and
    hand-offs to agents that were deleted since are dropped.

    Raises `ValidationFailed` for settings that are not valid any more.
    """
    given = {name: stored[name] for name in DRAFTED & stored.keys() if name != "timezone" or stored[name]}
    if "knowledge_base_ids" in given:
        there = {str(base.id) for base in await knowledge.resolve_knowledge_bases(session, None)}
        given["knowledge_base_ids"] = [base_id for base_id in given["knowledge_base_ids"] if base_id in there]
    if given.get("handoffs"):
        names = await get_agent_names(session)
        given["handoffs"] = [each for each in given["handoffs"] if parse_id(each["agent_id"]) in names]
    if given.get("appointment_type_ids"):
        present = {str(kind.id) for kind in await list_appointment_types(session)}
        given["appointment_type_ids"] = [type_id for type_id in given["appointment_type_ids"] if type_id in present]
    try:
        return AgentUpdate.model_validate(given, strict=False)
    except ValidationError as error:
        raise ValidationFailed.from_error(error) from None


async def _check_handoffs(session: ReadSession, agent: Agent, handoffs: list[Handoff]) -> list[Handoff]:
    """Return the hand-offs with the ids of other agents of the organization, each once. Raises `ValidationFailed`."""
    checked: dict[UUID, Handoff] = {}
    for place, handoff in enumerate(handoffs):
        field = f"handoffs.{place}.agent_id"
        other = await session.find(Agent, parse_id(handoff.agent_id))
        if other is None:
            raise ValidationFailed.field(field, "is not an agent of the organization")
        if other.id == agent.id or other.id in checked:
            raise ValidationFailed.field(field, "is this agent itself" if other.id == agent.id else "is named twice")
        checked[other.id] = handoff.model_copy(update={"agent_id": str(other.id)})
    return list(checked.values())


def _check_tools(tools: list[DeclaredTool], *, outbound: OutboundClient) -> list[DeclaredTool]:
    """Return the tools with checked addresses. Raises `ValidationFailed` for an address that is not public, and for a
    name that is taken.
    """
    taken, checked = set[str](), list[DeclaredTool]()
    for place, tool in enumerate(tools):
        require_free_name(tool, field=f"tools.{place}.name")
        if tool.name in taken:
            raise ValidationFailed.field(f"tools.{place}.name", f"another tool is named {tool.name}")
        taken.add(tool.name)
        url = validate_public_url(outbound, tool.url, field=f"tools.{place}.url") or ""
        checked.append(tool.model_copy(update={"url": url}))
    return checked


def _write_version(session: WriteSession, agent: Agent) -> None:
    session.add(
        AgentVersion(
            organization_id=agent.organization_id,
            agent_id=agent.id,
            version=agent.version,
            settings=agent.list_fields(),
            made_by=session.actor,
        )
    )
