"""The agents of one call as they were at its beginning, with their providers and tools, opened when needed."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self
from uuid import UUID

from switchboard.engine.conversation.agent_settings import DETECTOR_MODES
from switchboard.engine.conversation.call import CallAgent, CallUsage, Tool
from switchboard.engine.disclosure.disclosure import Disclosure
from switchboard.engine.providers.conversation import open_conversation_providers
from switchboard.engine.providers.health import ProviderFailure, ServiceRecord
from switchboard.engine.providers.instances import Providers
from switchboard.engine.providers.models import StoredConfiguration
from switchboard.foundation.database import Database
from switchboard.plugin_sdk import ModelUsage
from switchboard.resources.agents.colleagues import ClaimedAgent
from switchboard.resources.agents.models import Agent
from switchboard.resources.agents.tools import AgentTools, build_agent_knowledge
from switchboard.resources.calls.models import Call


@dataclass(slots=True)
class CallAgents:
    """Opens the agents of a call (`Colleagues` of the engine) until the context is left.

    `records` has the providers that served each agent that was opened. `build_tools(agent)` returns the tools of the
    call for an agent.
    """

    database: Database
    providers: Providers
    agent_tools: AgentTools
    call: Call
    claimed: Mapping[UUID, ClaimedAgent]
    configurations: Sequence[StoredConfiguration]
    build_tools: Callable[[Agent], Sequence[Tool]]
    records: dict[UUID, ServiceRecord] = field(default_factory=dict)
    _opening: dict[UUID, asyncio.Task[CallAgent]] = field(default_factory=dict)
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        for opening in self._opening.values():
            opening.cancel()
        await asyncio.gather(*self._opening.values(), return_exceptions=True)
        await self._stack.aclose()

    @property
    def names(self) -> Mapping[UUID, str]:
        return {agent_id: claimed.agent.name for agent_id, claimed in self.claimed.items()}

    @property
    def failures(self) -> list[ProviderFailure]:
        """Failures of the providers of all agents."""
        return [failure for record in self.records.values() for failure in record.failures.values()]

    async def open(self, agent_id: UUID, disclosure: Disclosure | None = None) -> CallAgent:
        """Open an agent, or return it if it is open; the first one with the question of consent of a `disclosure`. An
        agent that could not be opened is tried again.
        """
        opening = self._opening.get(agent_id)
        if opening is None or (opening.done() and opening.exception() is not None):
            opening = self._opening[agent_id] = asyncio.create_task(self._open(self.claimed[agent_id], disclosure))
        return await asyncio.shield(opening)  # a caller who interrupts cancels the wait only

    def add_overtaken(self, usage: Mapping[UUID, CallUsage]) -> None:
        """Add what overtaken voices will bill to the usage of each agent."""
        for agent_id, used in usage.items():
            used.text_to_speech_characters += self.records[agent_id].overtaken_characters

    async def _open(self, claimed: ClaimedAgent, disclosure: Disclosure | None) -> CallAgent:
        agent, settings = claimed.agent, claimed.agent.settings
        embeddings = list[ModelUsage]()
        providers = await self._stack.enter_async_context(
            open_conversation_providers(
                self.providers,
                self.configurations,
                settings,
                carrier=self.call.carrier,
                record=self.records.setdefault(agent.id, ServiceRecord()),
                predicts_turns=settings.turn_detection.mode in DETECTOR_MODES,
            )
        )
        return CallAgent(
            id=agent.id,
            name=agent.name,
            settings=settings,
            speech_to_text=providers.speech_to_text,
            text_to_speech=providers.text_to_speech,
            llm=providers.llm,
            tools=[
                *self.build_tools(agent),
                *await self.agent_tools.build_tools(agent, depth=self.call.cause_depth),
            ],
            hints=_list_hints(providers.llm.list_expected_phrases(settings.system_prompt), disclosure),
            knowledge=build_agent_knowledge(self.database, self.providers, agent, embeddings),
            embeddings=embeddings,
            redactor=claimed.redactor,
            turn_predictor=providers.turn_predictor,
            version=agent.version,
        )


def _list_hints(phrases: Sequence[str], disclosure: Disclosure | None) -> tuple[str, ...]:
    """Add the answers to the question of consent to the phrases that speech-to-text expects."""
    if not phrases or disclosure is None or disclosure.consent != "ask":
        return tuple(phrases)
    return (*phrases, *disclosure.phrases.yes, *disclosure.phrases.no)
