"""Mode `text`: agent and caller take turns, as in a call but without audio, a carrier, or their costs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from switchboard.engine.conversation.knowledge import RETRIEVAL_SECONDS, Knowledge, retrieve_context
from switchboard.engine.conversation.response_generator import fill_placeholders
from switchboard.engine.conversation.text_response import TextResponder
from switchboard.engine.providers.conversation import open_agent_model
from switchboard.engine.providers.instances import Providers
from switchboard.engine.redaction.redactor import Redactor
from switchboard.foundation.database import Database
from switchboard.plugin_sdk import LLMProvider, Message, ProviderSettings, ToolContext
from switchboard.plugin_sdk.registry import Registry
from switchboard.resources.agents.models import Agent, Simulation
from switchboard.resources.agents.redaction import open_redactor
from switchboard.resources.agents.tools import AgentTools
from switchboard.resources.knowledge_bases.search import build_agent_knowledge
from switchboard.resources.simulations.callers import FixedLinesCaller, PersonaCaller, SimulatedCaller
from switchboard.resources.simulations.recorded_tools import RecordedTools
from switchboard.resources.simulations.result import SimulatedConversation

CALLER, CALLED = "+15550100001", "+15550100000"
"""The caller's number that tools see; nothing is sent to it."""


@dataclass(frozen=True, slots=True)
class TextMode:
    """Holds conversations in which agent and caller write."""

    database: Database
    providers: Providers
    registry: Registry
    agent_tools: AgentTools

    async def hold_conversation(self, simulation: Simulation, agent: Agent, played: SimulatedConversation) -> None:
        """Hold the conversation; `played` holds what was said even if it fails. Raises `ProviderError`."""
        knowledge = build_agent_knowledge(
            self.database, self.providers, agent.organization_id, agent.settings.knowledge_base_ids, played.embeddings
        )
        context = ToolContext(agent.organization_id, agent.id, None, CALLER, CALLED)
        tools = RecordedTools(
            played, context, agent, knowledge=knowledge, others=await self.agent_tools.build_tools(agent)
        )
        async with self.database.tenant(agent.organization_id) as session:
            redactor = await open_redactor(session, agent)
        async with open_agent_model(self.providers, simulation.organization_id, agent.settings) as llm:
            caller = (
                FixedLinesCaller(simulation.lines)
                if simulation.lines
                else PersonaCaller(llm, agent.settings, simulation, context, played.models)
            )
            conversation = TextConversation(agent, llm, knowledge, tools, played, redactor=redactor)
            await conversation.hold(caller, simulation.max_turns)


class TextConversation:
    """An agent's side of a written conversation. `history` is what has been said before, `variables` fill the
    placeholders of the prompt, and `retrieval_seconds` bounds each search for passages.
    """

    def __init__(  # noqa: PLR0913 - the parts of a conversation, each named where it is used
        self,
        agent: Agent,
        llm: LLMProvider[ProviderSettings],
        knowledge: Knowledge | None,
        tools: RecordedTools,
        played: SimulatedConversation,
        *,
        redactor: Redactor,
        history: Sequence[Message] = (),
        variables: Mapping[str, str] = MappingProxyType({}),
        retrieval_seconds: float = RETRIEVAL_SECONDS,
    ) -> None:
        self._played = played
        self._redactor = redactor
        self._greeting = fill_placeholders(agent.settings.greeting_message, variables)
        self._prompt = Message("system", fill_placeholders(agent.settings.system_prompt, variables))
        self._retrieval_seconds = retrieval_seconds
        self._knowledge = knowledge
        self._tools = tools
        self._responder = TextResponder(
            llm, agent.settings.llm_model, agent.settings.llm_temperature, tools, played.models
        )
        self._history = list(history)

    def greet(self) -> str:
        """Say the greeting, and return it."""
        if self._greeting:
            self._history.append(Message("assistant", self._greeting))
        self._played.add("agent", self._greeting)
        return self._greeting

    async def hold(self, caller: SimulatedCaller, max_turns: int) -> None:
        """Hold the conversation with a simulated caller, from the greeting to its end. Raises `ProviderError`."""
        said = self.greet()
        while (line := await caller.next_line(said)) is not None:
            if self._played.turns == max_turns:
                self._played.ended_by = "limit"
                return
            said = await self.answer(line, said)
            if self._tools.requests.transfer is not None or self._tools.requests.ending is not None:
                self._played.ended_by = "agent" if self._tools.requests.transfer is None else "transfer"
                return
        self._played.ended_by = "caller"

    async def answer(self, line: str, said: str) -> str:
        """Return the agent's answer to a line of the caller, after what the agent said last. Raises
        `ProviderError`.
        """
        self._redactor.hear_agent(said)
        await self._redactor.search(line)
        words = self._redactor.redact_utterance(line)
        self._played.add("user", words.kept)
        self._history.append(Message("user", words.for_model))
        passages = await retrieve_context(self._knowledge, words.for_model, seconds=self._retrieval_seconds)
        system = (self._prompt, *passages)
        said = await self._responder.respond(system, self._history)
        if said:
            self._history.append(Message("assistant", said))
        await self._redactor.search(said)
        self._played.add("agent", self._redactor.redact(said).kept)
        return said
