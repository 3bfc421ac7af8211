"""Tools that an agent declares: HTTP endpoints of the organization, called with the same signature as its webhook; and
its knowledge.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from pydantic import ConfigDict, TypeAdapter, ValidationError

from switchboard.engine.conversation.agent_settings import BUILT_IN_TOOLS, DeclaredTool
from switchboard.engine.conversation.call import Tool
from switchboard.engine.conversation.handoff_tools import TOOL_PREFIX, HandBack
from switchboard.engine.conversation.variable_tools import ENTRY_PREFIX
from switchboard.engine.conversation.variables import is_at_least
from switchboard.engine.providers.instances import Extensions, Providers
from switchboard.foundation.database import Database
from switchboard.foundation.events.outbox import decrypt_agent_secret
from switchboard.foundation.outbound import OutboundAnswer, OutboundClient, OutboundError, signature_headers
from switchboard.foundation.web.errors import ValidationFailed
from switchboard.plugin_sdk import (
    AgentTool,
    JsonObject,
    KeypadEntry,
    ModelUsage,
    Origin,
    ToolContext,
    ToolError,
    ToolParameters,
)
from switchboard.plugin_sdk.registry import Registry
from switchboard.resources.agents.models import Agent
from switchboard.resources.appointments.booking import AppointmentBook
from switchboard.resources.appointments.tools import build_appointment_tools
from switchboard.resources.knowledge_bases.search import AgentKnowledge, PassageSearch

ANSWER_BYTES: Final = 64 * 1024
NEEDED_FROM: Final[Mapping[Origin, str]] = {
    "words": "from the caller or a better source",
    "keypad": "from the keypad or a better source: what the caller says does not count",
    "carrier": "from the carrier or a better source: what the caller says or enters does not count",
    "crm": "from the contact or a better source: nothing that the caller gives counts",
    "metadata": "from the metadata of the call or a tool: nothing that the caller gives counts",
    "tool": "from the result of a tool: nothing that the caller gives counts",
}
"""What the model is told about a variable whose origin is not trusted enough."""
_answer: TypeAdapter[JsonObject] = TypeAdapter(JsonObject)


class AnyArguments(ToolParameters):
    """Arguments described by the declared JSON schema; the endpoint validates them."""

    model_config = ConfigDict(extra="allow", frozen=True)


class HttpTool(AgentTool[AnyArguments]):
    """Post the model's arguments to the tool's endpoint, and return the response to the model. Requests are signed if
    there is a secret.
    """

    Parameters: ClassVar[type[ToolParameters]] = AnyArguments

    def __init__(self, outbound: OutboundClient, declared: DeclaredTool, secret: str | None) -> None:
        self._outbound, self._declared = outbound, declared
        self._secrets = (secret,) if secret else ()
        self.name = declared.name  # type: ignore[misc]
        self.description = declared.description  # type: ignore[misc]
        self.time_limit_seconds = declared.time_limit_seconds  # type: ignore[misc]
        self.keypad_entries = [  # type: ignore[misc]
            KeypadEntry(entry.parameter, entry.prompt, entry.max_digits) for entry in declared.keypad_entries
        ]

    def schema(self) -> JsonObject:
        return self._declared.parameters

    async def run(self, context: ToolContext, parameters: AnyArguments) -> JsonObject:
        for need in self._declared.needs:
            known = context.variables.get(need.name)
            if known is None or not is_at_least(known.origin, need.least_origin):
                raise ToolError(f"{self.name} needs {need.name} first, {NEEDED_FROM[need.least_origin]}")
        body = build_tool_request(self.name, parameters.model_dump(mode="json"), context)
        try:
            reply = await self.send(body)
        except OutboundError as error:
            raise ToolError(f"{self.name} could not be reached: {error}") from None
        if not 200 <= reply.status < 300:
            raise ToolError(f"{self.name} returned status {reply.status}")
        try:
            return _answer.validate_json(reply.body) if reply.body.strip() else {}
        except ValidationError:
            raise ToolError(f"{self.name} did not return a JSON object of at most {ANSWER_BYTES // 1024} KiB") from None

    async def send(self, body: bytes) -> OutboundAnswer:
        """Post a request to the tool. Raises `OutboundError`."""
        return await self._outbound.post(
            self._declared.url,
            body,
            headers=signature_headers(body, *self._secrets),
            seconds=self._declared.time_limit_seconds,
            read_limit=ANSWER_BYTES,
        )


def build_tool_request(name: str, arguments: JsonObject, context: ToolContext) -> bytes:
    """Return the body of a request to a tool."""
    ids = {
        "agent_id": context.agent_id,
        "call_id": context.call_id,
        "conversation_id": context.conversation_id,
    }
    numbers = {"from_number": context.from_number, "to_number": context.to_number}
    variables = {name: {"value": known.value, "origin": known.origin} for name, known in context.variables.items()}
    facts = {**ids, **numbers, "variables": variables}
    return json.dumps({"tool": name, "arguments": arguments, **facts}, default=str).encode()


def list_tool_names(registry: Registry, agent: Agent) -> list[str]:
    """List the names of the tools that an agent can have: built-in ones, those of plugins, and its own."""
    return sorted(
        {
            *BUILT_IN_TOOLS,
            *(tool.name for tool in registry.list_extension_classes(AgentTool)),
            *(tool.name for tool in agent.settings.tools),
        }
    )


def require_free_name(tool: DeclaredTool, *, field: str) -> None:
    """Raise `ValidationFailed` for a declared tool with the name of a built-in one."""
    if tool.name in (*BUILT_IN_TOOLS, HandBack.name) or tool.name.startswith((TOOL_PREFIX, ENTRY_PREFIX)):
        raise ValidationFailed.field(field, f"{tool.name} is the name of a built-in tool")


async def build_declared_tools(database: Database, outbound: OutboundClient, agent: Agent) -> list[HttpTool]:
    if not agent.settings.tools:
        return []
    async with database.read(agent.organization_id) as session:
        secret = await decrypt_agent_secret(session, agent.id)
    return [HttpTool(outbound, tool, secret) for tool in agent.settings.tools]


def build_agent_knowledge(
    database: Database, providers: Providers, agent: Agent, usage: list[ModelUsage]
) -> AgentKnowledge | None:
    """Build the knowledge of an agent, whose searches add to `usage`; None for one without knowledge bases."""
    ids, search = agent.settings.knowledge_base_ids, PassageSearch(database, providers)
    return AgentKnowledge(search, agent.organization_id, ids, usage) if ids else None


@dataclass(frozen=True, slots=True)
class AgentTools:
    """Builds the tools of agents: for appointments, those of plugins, and those that an agent declares."""

    database: Database
    extensions: Extensions
    outbound: OutboundClient
    book: AppointmentBook

    async def build_tools(self, agent: Agent, *, depth: int = 0) -> list[Tool]:
        """Build an agent's tools for one conversation, to which an automation chain of some depth has led. A plugin's
        tool whose settings the organization has not set is left out.
        """
        declared = await build_declared_tools(self.database, self.outbound, agent)
        appointments = await build_appointment_tools(
            self.book,
            agent.organization_id,
            agent.settings.appointment_type_ids,
            language=agent.settings.stt_language,
            depth=depth,
        )
        return [*appointments, *await self.extensions.create_all(agent.organization_id, AgentTool), *declared]
