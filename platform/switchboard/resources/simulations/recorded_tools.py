"""The agent's tools as in a call, without effects: each call is recorded and answered as if it had succeeded. Only
knowledge is really searched, and in a chat the agent's own tools may run.
"""

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from switchboard.engine.conversation.agent_settings import AgentSettings
from switchboard.engine.conversation.call import Tool
from switchboard.engine.conversation.toolbox import Toolbox
from switchboard.engine.conversation.tools import (
    AgentRequests,
    EndCall,
    OptOut,
    PressDigits,
    SendTextMessage,
    TransferCall,
)
from switchboard.plugin_sdk import AgentTool, JsonObject, ToolCall, ToolContext, ToolParameters, ToolSpec, Variable
from switchboard.resources.agents.models import Agent
from switchboard.resources.agents.tool_tests import CALLED, CALLER
from switchboard.resources.appointments.tools import AppointmentTool
from switchboard.resources.simulations.result import RecordedToolCall, SimulatedConversation


class RecordedTools:
    """The tools of an agent in a simulated conversation. `requests` holds what the agents request for the call."""

    def __init__(
        self,
        played: SimulatedConversation,
        requests: AgentRequests,
        settings: AgentSettings,
        context: ToolContext,
        tools: Sequence[Tool],
    ) -> None:
        """Offer `tools`, besides those that every agent has in a call."""
        self._played = played
        own: list[Tool] = [
            EndCall(requests),
            TransferCall(requests, settings),
            PressDigits(_do_nothing),
            SendTextMessage(_do_nothing, settings),
            OptOut(_do_nothing),
        ]
        self._toolbox = Toolbox([*own, *tools], context, disabled=settings.disabled_tools)

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """Return the tool specifications for the model."""
        return self._toolbox.specs

    async def run(self, call: ToolCall) -> JsonObject:
        """Record a tool call and return its result."""
        result = await self._toolbox.run(call)
        self._played.tools.append(RecordedToolCall(call.name, call.arguments))
        self._played.add("tool", json.dumps({"tool": call.name, "arguments": call.arguments, "result": result}))
        return result


def build_context(agent: Agent, variables: Mapping[str, Variable] = MappingProxyType({})) -> ToolContext:
    """Return the context of an agent's tools in a simulated conversation."""
    ids = agent.organization_id, agent.id, None
    return ToolContext(*ids, CALLER, CALLED, person_number=CALLER, variables=variables)


def make_harmless(tool: Tool) -> Tool:
    """Return a tool without effect. Those for appointments find free times, and write nothing."""
    return tool.rehearse() if isinstance(tool, AppointmentTool) else _Harmless(tool)


class _Harmless(AgentTool[ToolParameters]):
    """The same tool to the model: it validates arguments and has no effect."""

    def __init__(self, tool: Tool) -> None:
        self._tool = tool
        self.name = tool.name  # type: ignore[misc]
        self.description = tool.description  # type: ignore[misc]
        self.Parameters = tool.Parameters  # type: ignore[misc]

    def schema(self) -> JsonObject:
        return self._tool.schema()

    async def run(self, context: ToolContext, parameters: ToolParameters) -> JsonObject:
        return {"done": True}


async def _do_nothing(*_given: str | None) -> None:
    """Pretend to press the keys, to send the message, or to record the opt-out."""
