"""Written responses: the model is asked again after its tool calls, until it calls no more tools."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import structlog

from switchboard.engine.conversation.agent_settings import AgentSettings
from switchboard.engine.conversation.gate import Gate
from switchboard.engine.conversation.toolbox import MAX_TOOL_ROUNDS
from switchboard.plugin_sdk import (
    ChatRequest,
    JsonObject,
    LLMProvider,
    Message,
    ModelUsage,
    ProviderSettings,
    TextDelta,
    ToolCall,
    ToolSpec,
)

logger = structlog.get_logger()


class ToolSet(Protocol):
    """Tools that the model may call: a `Toolbox` or a stand-in for one."""

    @property
    def specs(self) -> tuple[ToolSpec, ...]: ...
    async def run(self, call: ToolCall) -> JsonObject: ...


@dataclass(slots=True)
class TextResponder:
    """An agent's model with its tools, behind a `gate`. `usage` collects the usage of its requests. The model is asked
    again after its tools as long as it `may_go_on`.
    """

    llm: LLMProvider[ProviderSettings]
    agent: AgentSettings
    tools: ToolSet
    gate: Gate
    usage: list[ModelUsage] = field(default_factory=list)
    may_go_on: Callable[[], bool] = lambda: True

    async def respond(
        self, instructions: Sequence[str], history: list[Message], passages: Sequence[Message] = ()
    ) -> str:
        """Respond to the last message of a conversation, with one line for each part of the response.

        Rounds with tool calls are added to the history, as are those with something that the agent must not say; the
        last part is not. Raises `ProviderError`.
        """
        parts: list[str] = []
        system = (*(Message("system", text) for text in instructions), *passages)
        self.gate.begin()
        for _ in range(MAX_TOOL_ROUNDS):
            part, goes_on = await self._respond_once(system, history)
            parts.append(part.strip())
            if not goes_on or not self.may_go_on():
                break
        else:
            logger.warning("the model called tools without end")
        return "\n".join(part for part in parts if part)

    async def _respond_once(self, system: Sequence[Message], history: list[Message]) -> tuple[str, bool]:
        """Return what the model says to one request, and whether it is asked again."""
        text, calls = await self._request_model((*system, *history))
        said, rest, finding = await self.gate.cut(text, (*system, *history))
        if calls:
            place = len(history)
            history.append(Message("assistant", said, tool_calls=tuple(calls)))
            for call in calls:
                result = await self.tools.run(call)
                self.gate.record_result(call.name, result)
                history.append(Message("tool", json.dumps(result), tool_call_id=call.id))
            if finding is not None:  # unless the tools have made it true
                more, rest, finding = await self.gate.cut(" ".join(rest), (*system, *history))
                said = f"{said} {more}".strip()
                history[place] = replace(history[place], content=said)
        if finding is None:
            return said, bool(calls)
        await self.gate.hold_back(finding, rest[0])
        if self.gate.has_given_up:
            return f"{said}\n{self.gate.get_last_resort(finding)}", False
        if said and not calls:
            history.append(Message("assistant", said))
        history.append(self.gate.notes[-1])
        return said, True

    async def _request_model(self, messages: tuple[Message, ...]) -> tuple[str, list[ToolCall]]:
        text, calls = "", list[ToolCall]()
        request = ChatRequest(messages, self.agent.llm_model, self.agent.llm_temperature, tools=self.tools.specs)
        async for event in self.llm.chat(request):
            if isinstance(event, TextDelta):
                text += event.text
            elif isinstance(event, ModelUsage):
                self.usage.append(event)
            else:
                calls.append(event)
        return text, calls
