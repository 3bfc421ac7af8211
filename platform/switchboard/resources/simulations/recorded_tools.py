"""The agent's tools as in a call, but nothing is done: each is noted and answered as if it had been. Only knowledge is really searched."""

import json
from collections.abc import Sequence

from switchboard.engine.conversation.call import Tool
from switchboard.engine.conversation.knowledge import Knowledge, SearchKnowledge
from switchboard.engine.conversation.toolbox import Toolbox
from switchboard.engine.conversation.tools import AgentRequests, EndCall, OptOut, PressDigits, SendSms, TransferCall
from switchboard.plugin_sdk import AgentTool, JsonObject, ToolCall, ToolContext, ToolParameters, ToolSpec
from switchboard.resources.simulations.result import Played, ToolUse


class Rehearsal:
    """The tools of one simulated conversation. `wishes` is what the agent wants done with the call."""

    def __init__(
        self, played: Played, context: ToolContext, knowledge: Knowledge | None, others: Sequence[Tool]
    ) -> None:
        """`others` are offered as they are, and never run."""
        self.wishes = AgentRequests()
        self._played = played
        own: list[Tool] = [
            EndCall(self.wishes),
            TransferCall(self.wishes),
            PressDigits(_press),
            SendSms(_NoTexts()),
            OptOut(_opt_out),
        ]
        known = [SearchKnowledge(knowledge)] if knowledge else []
        self._toolbox = Toolbox([*own, *known, *(_Harmless(tool) for tool in others)], context)

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """What the model is told of them."""
        return self._toolbox.specs

    async def run(self, call: ToolCall) -> JsonObject:
        """Note a call, and answer it."""
        result = await self._toolbox.run(call)
        self._played.tools.append(ToolUse(call.name, call.arguments))
        self._played.add("tool", json.dumps({"tool": call.name, "arguments": call.arguments, "result": result}))
        return result


class _Harmless(AgentTool[ToolParameters]):
    """The same tool to the model, which checks its arguments and does nothing."""

    def __init__(self, tool: Tool) -> None:
        self._tool = tool
        self.name, self.description, self.Parameters = tool.name, tool.description, tool.Parameters  # type: ignore[misc]

    def schema(self) -> JsonObject:
        return self._tool.schema()

    async def run(self, context: ToolContext, parameters: ToolParameters) -> JsonObject:
        return {"done": True}


class _NoTexts:
    """Sends nothing (`TextSender`)."""

    async def send_text(self, body: str, to_number: str | None) -> None:
        """As if it had been sent."""


async def _press(digits: str) -> None:
    """As if they had been pressed."""


async def _opt_out() -> None:
    """As if it had been noted."""
