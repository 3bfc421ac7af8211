"""Mode `text`: agent and caller take turns, as in a call but without audio, a carrier, or their costs."""

from dataclasses import dataclass

from switchboard.engine.conversation.knowledge import Knowledge, retrieve_context
from switchboard.engine.conversation.response_generator import fill_placeholders
from switchboard.engine.conversation.text_response import TextResponder
from switchboard.engine.providers.conversation import open_agent_model
from switchboard.engine.providers.instances import Providers
from switchboard.engine.redaction.redactor import Redactor
from switchboard.foundation.database import Database
from switchboard.plugin_sdk import LLMProvider, Message, ProviderSettings, ToolContext
from switchboard.plugin_sdk.registry import Registry
from switchboard.resources.agents.models import Agent
from switchboard.resources.agents.redaction import open_redactor
from switchboard.resources.agents.tools import AgentTools
from switchboard.resources.knowledge_bases.agent_knowledge import build_agent_knowledge
from switchboard.resources.simulations.callers import FixedLinesCaller, PersonaCaller, SimulatedCaller
from switchboard.resources.simulations.models import Simulation
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
            self.database, self.providers, agent.organization_id, agent.knowledge_base_ids, played.embeddings
        )
        context = ToolContext(agent.organization_id, agent.id, None, CALLER, CALLED)
        tools = RecordedTools(
            played, context, agent, knowledge=knowledge, others=await self.agent_tools.build_tools(agent)
        )
        async with self.database.tenant(agent.organization_id) as session:
            redactor = await open_redactor(session, agent)
        async with open_agent_model(self.database, self.providers, simulation.organization_id, agent) as llm:
            caller = (
                FixedLinesCaller(simulation.lines)
                if simulation.lines
                else PersonaCaller(llm, agent, simulation, context, played.models)
            )
            await _Conversation(agent, llm, knowledge, tools, played, redactor=redactor).hold(
                caller, simulation.max_turns
            )


class _Conversation:
    def __init__(
        self,
        agent: Agent,
        llm: LLMProvider[ProviderSettings],
        knowledge: Knowledge | None,
        tools: RecordedTools,
        played: SimulatedConversation,
        *,
        redactor: Redactor,
    ) -> None:
        self._played = played
        self._redactor = redactor
        self._greeting = fill_placeholders(agent.greeting_message, {})
        self._prompt = Message("system", fill_placeholders(agent.system_prompt, {}))
        self._knowledge = knowledge
        self._tools = tools
        self._responder = TextResponder(llm, agent.llm_model, agent.llm_temperature, tools, played.models)
        self._history: list[Message] = []

    async def hold(self, caller: SimulatedCaller, max_turns: int) -> None:
        said = self._greeting
        if said:
            self._history.append(Message("assistant", said))
        self._played.add("agent", said)
        while (line := await caller.next_line(said)) is not None:
            if self._played.turns == max_turns:
                self._played.ended_by = "limit"
                return
            self._redactor.hear_agent(said)
            await self._redactor.search(line)
            words = self._redactor.redact_utterance(line)
            self._played.add("user", words.kept)
            said = await self._answer(words.for_model)
            if self._tools.requests.transfer is not None or self._tools.requests.ending is not None:
                self._played.ended_by = "agent" if self._tools.requests.transfer is None else "transfer"
                return
        self._played.ended_by = "caller"

    async def _answer(self, line: str) -> str:
        self._history.append(Message("user", line))
        system = (self._prompt, *await retrieve_context(self._knowledge, line))
        said = await self._responder.respond(system, self._history)
        if said:
            self._history.append(Message("assistant", said))
        await self._redactor.search(said)
        self._played.add("agent", self._redactor.redact(said).kept)
        return said
