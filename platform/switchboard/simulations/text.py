"""Mode `text`: agent and caller in turns, as in a call but without sound, carrier and costs of them."""

from switchboard.agents.models import Agent
from switchboard.conversation.knowledge import recalled
from switchboard.conversation.thinking import filled
from switchboard.conversation.writing import Writer
from switchboard.knowledge_bases.conversation import AgentKnowledge
from switchboard.plugins import LLMProvider, Message, ProviderSettings, ToolContext
from switchboard.providers.conversation import agent_model
from switchboard.runtime import Runtime
from switchboard.simulations.callers import Lines, Persona
from switchboard.simulations.models import Simulation
from switchboard.simulations.played import Played
from switchboard.simulations.rehearsal import Rehearsal

CALLER, CALLED = "+15550100001", "+15550100000"
"""Whom the tools are told that they work for; nothing is sent to them."""


async def hold(runtime: Runtime, simulation: Simulation, agent: Agent, played: Played) -> None:
    """Hold the conversation; `played` has what was said even where it breaks. Raises `ProviderError`."""
    async with agent_model(runtime.database, runtime.providers, simulation.organization_id, agent) as llm:
        await _Conversation(runtime, simulation, agent, llm, played).hold()


class _Conversation:
    def __init__(self, runtime: Runtime, simulation: Simulation, agent: Agent, llm: LLMProvider[ProviderSettings], played: Played) -> None:
        context = ToolContext(agent.organization_id, agent.id, None, CALLER, CALLED)
        self._played = played
        self._max_turns = simulation.max_turns
        self._greeting = filled(agent.greeting_message, {})
        self._prompt = Message("system", filled(agent.system_prompt, {}))
        self._knowledge = AgentKnowledge(runtime, agent.organization_id, agent.knowledge_base_ids) if agent.knowledge_base_ids else None
        self._tools = Rehearsal(self._played, context, self._knowledge, tuple(runtime.registry.tools))
        self._writer = Writer(llm, agent.llm_model, agent.llm_temperature, self._tools)
        self._caller = Lines(simulation.lines) if simulation.lines else Persona(llm, agent, simulation.persona, simulation.goal, context)
        self._history: list[Message] = []

    async def hold(self) -> None:
        said = self._greeting
        if said:
            self._history.append(Message("assistant", said))
        self._played.add("agent", said)
        while (line := await self._caller.next_line(said)) is not None:
            if self._played.turns == self._max_turns:
                self._played.ended_by = "limit"
                return
            self._played.add("user", line)
            said = await self._answer(line)
            if self._tools.wishes.transfer_to is not None or self._tools.wishes.hang_up:
                self._played.ended_by = "agent" if self._tools.wishes.transfer_to is None else "transfer"
                return
        self._played.ended_by = "caller"

    async def _answer(self, line: str) -> str:
        self._history.append(Message("user", line))
        system = (self._prompt, *await recalled(self._knowledge, line))
        said = await self._writer.answer(system, self._history)
        if said:
            self._history.append(Message("assistant", said))
        self._played.add("agent", said)
        return said
