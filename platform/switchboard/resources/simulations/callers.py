"""Simulated callers: fixed lines, or a model with a persona and a goal."""

from collections.abc import Sequence
from typing import Protocol

from switchboard.engine.conversation.agent_settings import AgentSettings
from switchboard.engine.conversation.text_response import TextResponder
from switchboard.engine.conversation.toolbox import Toolbox
from switchboard.engine.conversation.tools import AgentRequests, EndCall
from switchboard.plugin_sdk import LLMProvider, Message, ModelUsage, ProviderSettings, ToolContext
from switchboard.resources.agents.models import Simulation

OPENING = "(The call is answered. Nobody speaks yet.)"
INSTRUCTION = (
    "You play somebody who is on the phone with an automated agent, to test it. Say only what this person says next: "
    "one or two short sentences, no stage directions. Never help the agent, and never speak for it. When the goal is "
    "reached or cannot be, say goodbye and call end_call.\n"
)


class SimulatedCaller(Protocol):
    """A caller that speaks after the agent."""

    async def next_line(self, agent_said: str) -> str | None:
        """Return the caller's reply; None if the caller has nothing more to say. Raises `ProviderError`."""


class FixedLinesCaller:
    """Says each line in order, whatever the agent says."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = list(lines)

    async def next_line(self, agent_said: str) -> str | None:
        """Return the next line."""
        return self._lines.pop(0) if self._lines else None


class PersonaCaller:
    """A model that plays a caller with a goal. It ends by calling `end_call`; text in the same turn is still said."""

    def __init__(
        self,
        llm: LLMProvider[ProviderSettings],
        agent: AgentSettings,
        simulation: Simulation,
        context: ToolContext,
        usage: list[ModelUsage],
    ) -> None:
        self._requests = AgentRequests()
        self._responder = TextResponder(
            llm,
            agent.llm_model,
            agent.llm_temperature,
            Toolbox([EndCall(self._requests)], context),
            usage,
        )
        self._system = (
            Message(
                "system",
                f"{INSTRUCTION}\nWho you are:\n{simulation.persona or 'anybody'}\n\nWhat you want:\n{simulation.goal}",
            ),
        )
        self._history: list[Message] = []

    async def next_line(self, agent_said: str) -> str | None:
        """Return the model's reply."""
        if self._requests.ending is not None:
            return None
        self._history.append(Message("user", agent_said or OPENING))
        said = await self._responder.respond(self._system, self._history)
        self._history.append(Message("assistant", said))
        return said or None
