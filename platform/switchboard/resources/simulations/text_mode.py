"""Mode `text`: agent and caller take turns, as in a call but without audio, a carrier, or their costs. The caller says
fixed lines, or is a model with a persona and a goal.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

from switchboard.engine.conversation.agent_settings import AgentSettings
from switchboard.engine.conversation.knowledge import RETRIEVAL_SECONDS, retrieve_context
from switchboard.engine.conversation.response_generator import fill_placeholders
from switchboard.engine.conversation.text_response import TextResponder
from switchboard.engine.conversation.toolbox import Toolbox
from switchboard.engine.conversation.tools import AgentRequests, EndCall
from switchboard.engine.providers.conversation import open_agent_model
from switchboard.engine.providers.instances import Providers
from switchboard.engine.redaction.redactor import Redactor
from switchboard.foundation.database import Database
from switchboard.plugin_sdk import LLMProvider, Message, ModelUsage, ProviderSettings, ToolContext
from switchboard.resources.agents.models import Agent, Simulation
from switchboard.resources.agents.redaction import open_redactor
from switchboard.resources.agents.tools import AgentTools, build_agent_knowledge
from switchboard.resources.simulations.recorded_tools import RecordedTools
from switchboard.resources.simulations.result import SimulatedConversation

NextLine: TypeAlias = Callable[[str], Awaitable[str | None]]
"""Returns a simulated caller's reply to what the agent said; None if the caller has nothing more to say. Raises
`ProviderError`.
"""
OPENING = "(The call is answered. Nobody speaks yet.)"
INSTRUCTION = (
    "You play somebody who is on the phone with an automated agent, to test it. Say only what this person says next: "
    "one or two short sentences, no stage directions. Never help the agent, and never speak for it. When the goal is "
    "reached or cannot be, say goodbye and call end_call.\n"
)


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
        self._responder = TextResponder(llm, agent, Toolbox([EndCall(self._requests)], context), usage)
        self._instruction = (
            f"{INSTRUCTION}\nWho you are:\n{simulation.persona or 'anybody'}\n\nWhat you want:\n{simulation.goal}"
        )
        self._history: list[Message] = []

    async def say_next_line(self, agent_said: str) -> str | None:
        """Return the model's reply."""
        if self._requests.ending is not None:
            return None
        self._history.append(Message("user", agent_said or OPENING))
        said = await self._responder.respond([self._instruction], self._history)
        self._history.append(Message("assistant", said))
        return said or None


@dataclass(frozen=True, slots=True)
class TextMode:
    database: Database
    providers: Providers
    agent_tools: AgentTools

    async def hold_conversation(self, simulation: Simulation, agent: Agent, played: SimulatedConversation) -> None:
        """Hold the conversation; `played` holds what was said even if it fails. Raises `ProviderError`."""
        knowledge = build_agent_knowledge(self.database, self.providers, agent, played.embeddings)
        others = await self.agent_tools.build_tools(agent)
        tools = RecordedTools(played, agent, knowledge=knowledge, others=others)
        async with self.database.read(agent.organization_id) as session:
            redactor = await open_redactor(session, agent)
        async with open_agent_model(self.providers, simulation.organization_id, agent.settings) as llm:
            lines = iter(simulation.lines)

            async def say_next_line(_agent_said: str) -> str | None:
                return next(lines, None)

            persona = PersonaCaller(llm, agent.settings, simulation, tools.context, played.models)
            conversation = TextConversation(agent, llm, tools, redactor=redactor)
            await conversation.hold(say_next_line if simulation.lines else persona.say_next_line, simulation.max_turns)


class TextConversation:
    """An agent's side of a written conversation. `history` is what has been said before, `variables` fill the
    placeholders of the prompt, and `retrieval_seconds` bounds each search for passages.
    """

    def __init__(  # noqa: PLR0913 - the parts of a conversation, each named where it is used
        self,
        agent: Agent,
        llm: LLMProvider[ProviderSettings],
        tools: RecordedTools,
        *,
        redactor: Redactor,
        history: Sequence[Message] = (),
        variables: Mapping[str, str] = MappingProxyType({}),
        retrieval_seconds: float = RETRIEVAL_SECONDS,
    ) -> None:
        self._played = tools.played
        self._redactor = redactor
        self._greeting = fill_placeholders(agent.settings.greeting_message, variables)
        self._prompt = fill_placeholders(agent.settings.system_prompt, variables)
        self._retrieval_seconds = retrieval_seconds
        self._tools = tools
        self._responder = TextResponder(llm, agent.settings, tools, self._played.models)
        self._history = list(history)

    def greet(self) -> str:
        """Say the greeting, and return it."""
        if self._greeting:
            self._history.append(Message("assistant", self._greeting))
        self._played.add("agent", self._greeting)
        return self._greeting

    async def hold(self, say_next_line: NextLine, max_turns: int) -> None:
        """Hold the conversation with a simulated caller, from the greeting to its end. Raises `ProviderError`."""
        said = self.greet()
        while (line := await say_next_line(said)) is not None:
            if self._played.turns == max_turns:
                self._played.ended_by = "limit"
                return
            said = await self.answer(line, said)
            if self._tools.requests.transfer is not None or self._tools.requests.ending is not None:
                self._played.ended_by = "agent" if self._tools.requests.transfer is None else "transfer"
                return
        self._played.ended_by = "caller"

    async def answer(self, line: str, said: str) -> str:
        """Answer a line of the caller; `said` is what the agent said last. Raises `ProviderError`."""
        self._redactor.hear_agent(said)
        await self._redactor.search(line)
        words = self._redactor.redact_utterance(line)
        self._played.add("user", words.kept)
        self._history.append(Message("user", words.for_model))
        passages = await retrieve_context(self._tools.knowledge, words.for_model, seconds=self._retrieval_seconds)
        said = await self._responder.respond([self._prompt], self._history, passages)
        if said:
            self._history.append(Message("assistant", said))
        self._played.add("agent", (await self._redactor.search_and_redact(said)).kept)
        return said
