"""Mode `text`: agent and caller take turns, as in a call but without audio, a carrier, or their costs. The caller says
fixed lines, or is a model with a persona and a goal.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias
from uuid import UUID

from switchboard.engine.conversation.agent_settings import AgentSettings
from switchboard.engine.conversation.call import EndedReason, Tool
from switchboard.engine.conversation.gate import Gate
from switchboard.engine.conversation.knowledge import RETRIEVAL_SECONDS, Knowledge, SearchKnowledge
from switchboard.engine.conversation.text_response import TextResponder
from switchboard.engine.conversation.toolbox import Toolbox
from switchboard.engine.conversation.tools import AgentRequests, EndCall
from switchboard.engine.conversation.variables import Variables
from switchboard.engine.conversation.written import (
    Contribution,
    WritingAgent,
    WrittenConversation,
    WrittenLine,
    WrittenPart,
)
from switchboard.engine.providers.instances import Providers
from switchboard.foundation.database import Database
from switchboard.plugin_sdk import LLMProvider, Message, ModelUsage, ProviderSettings, ToolContext
from switchboard.resources.agents.colleagues import ClaimedAgent, WritingColleagues, claim_agents
from switchboard.resources.agents.models import Agent, Simulation
from switchboard.resources.agents.tools import AgentTools, build_agent_knowledge
from switchboard.resources.simulations.recorded_tools import RecordedTools, build_context, make_harmless
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
        gate = Gate(AgentSettings(), llm, set(), usage)  # a caller may say anything
        self._responder = TextResponder(llm, agent, Toolbox([EndCall(self._requests)], context), gate, usage)
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
        async with self.database.read(agent.organization_id) as session:
            agents = await claim_agents(session, agent)
        players = Players(self.database, self.providers, self.agent_tools, played, agents)
        async with players.open() as opened:
            first = await opened.open(agent.id)
            lines = iter(simulation.lines)

            async def say_next_line(_agent_said: str) -> str | None:
                return next(lines, None)

            persona = PersonaCaller(first.llm, agent.settings, simulation, build_context(agent), played.models)
            conversation = TextConversation(players, opened, first)
            await conversation.hold(say_next_line if simulation.lines else persona.say_next_line, simulation.max_turns)


@dataclass(slots=True)
class Players:
    """The agents of a simulated conversation. `requests` holds what they request for the call.

    Their own tools and those of plugins have an effect only if they `run_tools`. `found` has the passages that they
    searched.
    """

    database: Database
    providers: Providers
    agent_tools: AgentTools
    played: SimulatedConversation
    claimed: Mapping[UUID, ClaimedAgent]
    variables: Variables = field(default_factory=Variables)
    run_tools: bool = False
    requests: AgentRequests = field(default_factory=AgentRequests)
    found: list[str] = field(default_factory=list)

    def open(self) -> WritingColleagues:
        """Open the agents, when they are needed, until the context is left."""
        return WritingColleagues(self.providers, self.claimed, self._prepare)

    async def _prepare(self, agent: Agent) -> tuple[Knowledge | None, Callable[[Sequence[Tool]], RecordedTools]]:
        searched = build_agent_knowledge(self.database, self.providers, agent, self.played.embeddings)
        knowledge = _NotedKnowledge(searched, self.found) if searched is not None else None
        tools = await self.agent_tools.build_tools(agent)
        others = tools if self.run_tools else [make_harmless(tool) for tool in tools]
        found = [SearchKnowledge(knowledge)] if knowledge is not None else []
        context = build_context(agent, self.variables.shown)
        return knowledge, lambda handoffs: RecordedTools(
            self.played, self.requests, agent.settings, context, [*found, *others, *handoffs]
        )


@dataclass(slots=True)
class _NotedKnowledge:
    """Knowledge that notes the passages that it finds."""

    knowledge: Knowledge
    found: list[str]

    async def find_passages(self, question: str, *, limit: int) -> Sequence[str]:
        passages = await self.knowledge.find_passages(question, limit=limit)
        self.found.extend(passage for passage in passages if passage not in self.found)
        return passages


class TextConversation:
    """The agents' side of a written conversation that begins with the agent `first`, or goes on with its `parts`.

    `history` is what has been said in the `before` lines of the transcript, and `retrieval_seconds`
    bounds each search for passages.
    """

    def __init__(  # noqa: PLR0913 - the parts of a conversation, each named where it is used
        self,
        players: Players,
        agents: WritingColleagues,
        first: WritingAgent,
        *,
        parts: Sequence[WrittenPart] = (),
        history: Sequence[WrittenLine] = (),
        before: int = 0,
        retrieval_seconds: float = RETRIEVAL_SECONDS,
    ) -> None:
        self._players, self._agents, self._played = players, agents, players.played
        self._before = before
        self._begins = not history
        variables = players.variables
        self._greeting = variables.fill(first.settings.greeting_message)
        self.written = WrittenConversation(
            agents,
            list(parts) or [WrittenPart(agent_id=first.id)],
            list(history),
            self._record,
            variables=variables,
            retrieval_seconds=retrieval_seconds,
        )
        self._said = ""

    def greet(self) -> str:
        """Say the greeting, and return it."""
        self._played.add("agent", self._greeting)
        if self._greeting:
            self._add_word("assistant", self._greeting)
        return self._greeting

    async def hold(self, say_next_line: NextLine, max_turns: int) -> None:
        """Hold the conversation with a simulated caller, from the greeting to its end. Raises `ProviderError`."""
        said, requests = self.greet(), self._players.requests
        while (line := await say_next_line(said)) is not None:
            if self._played.turns == max_turns:
                self._played.ended_by = "limit"
                return
            said = await self.answer(line, said)
            if requests.transfer is not None or requests.ending is not None:
                self._played.ended_by = "agent" if requests.transfer is None else "transfer"
                return
        self._played.ended_by = "caller"

    async def answer(self, line: str, said: str) -> str:
        """Answer a line of the caller; `said` is what the agents said last. Raises `ProviderError`."""
        redactor = (await self._agents.open(self.written.parts[-1].agent_id)).redactor
        redactor.hear_agent(said)
        await redactor.search(line)
        words = redactor.redact_utterance(line)
        self._played.add("user", words.kept)
        self._add_word("user", words.for_model)
        self._said = ""
        try:
            await self.written.answer(begins=self._begins)
        finally:
            self._played.models += [usage for used in self.written.usage.values() for usage in used]
            self.written.usage.clear()
        self._begins = False
        return self._said

    def _add_word(self, role: Literal["user", "assistant"], text: str) -> None:
        self.written.words.append(WrittenLine(self._find_end() - 1, Message(role, text)))

    def _find_end(self) -> int:
        return self._before + len(self._played.spoken)

    async def _record(self, contribution: Contribution) -> int:
        if contribution.is_said:
            self._said = f"{self._said}\n{contribution.text}".strip()
            self._played.add("agent", (await contribution.agent.redactor.search_and_redact(contribution.text)).kept)
        else:
            self._played.add("system", contribution.text)
            if contribution.guardrail is not None and contribution.guardrail.action == "end":
                self._players.requests.ending = EndedReason.AGENT_HUNG_UP
        return self._find_end() - 1
