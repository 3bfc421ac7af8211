"""The agents of one conversation: the first one, and those that may get it by hand-offs."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Self
from uuid import UUID

from switchboard.engine.conversation.call import Tool
from switchboard.engine.conversation.knowledge import Knowledge
from switchboard.engine.conversation.text_response import ToolSet
from switchboard.engine.conversation.variables import Variables
from switchboard.engine.conversation.written import WritingAgent
from switchboard.engine.providers.conversation import open_agent_model
from switchboard.engine.providers.health import ServiceRecord
from switchboard.engine.providers.instances import Providers
from switchboard.engine.redaction.redactor import Redactor
from switchboard.foundation.database import ReadSession
from switchboard.resources.agents.models import Agent
from switchboard.resources.agents.queries import list_colleagues
from switchboard.resources.agents.redaction import open_redactor
from switchboard.resources.contacts.queries import find_contact_by_number

CONTACT_PREFIX: Final = "contact_"
CONTACT_FIELDS: Final = ("name", "email", "company", "role", "address", "tags")


@dataclass(frozen=True, slots=True)
class ClaimedAgent:
    """An agent as it is when the conversation is claimed, with its redactor."""

    agent: Agent
    redactor: Redactor


async def claim_agents(session: ReadSession, first: Agent) -> dict[UUID, ClaimedAgent]:
    """Read the agents of a conversation by id: the first one, and those that may get it by hand-offs."""
    agents = [first, *await list_colleagues(session, first)]
    return {agent.id: ClaimedAgent(agent, await open_redactor(session, agent)) for agent in agents}


async def read_contact(session: ReadSession, agents: Iterable[ClaimedAgent], number: str) -> Variables:
    """Return the variables for the contact with a phone number, such as `contact_name`, if an agent may use them."""
    is_used = any(CONTACT_PREFIX in each.agent.settings.model_dump_json() for each in agents)
    contact = await find_contact_by_number(session, number) if is_used else None
    known = {} if contact is None else {name: getattr(contact, name) for name in CONTACT_FIELDS}
    return Variables.from_texts({f"{CONTACT_PREFIX}{name}": value for name, value in known.items() if value}, "crm")


@dataclass(slots=True)
class WritingColleagues:
    """Opens the agents of a written conversation (`WritingAgents` of the engine) until the context is left.

    `prepare` returns the knowledge of an agent, and the function that adds tools to its own.
    """

    providers: Providers
    claimed: Mapping[UUID, ClaimedAgent]
    prepare: Callable[[Agent], Awaitable[tuple[Knowledge | None, Callable[[Sequence[Tool]], ToolSet]]]]
    record: ServiceRecord = field(default_factory=ServiceRecord)
    _opened: dict[UUID, WritingAgent] = field(default_factory=dict)
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    @property
    def names(self) -> Mapping[UUID, str]:
        return {agent_id: claimed.agent.name for agent_id, claimed in self.claimed.items()}

    async def open(self, agent_id: UUID) -> WritingAgent:
        """Open an agent, or return it if it is open. Raises `ProviderError`."""
        if agent_id not in self._opened:
            claimed = self.claimed[agent_id]
            agent = claimed.agent
            model = open_agent_model(self.providers, agent.organization_id, agent.settings, self.record)
            llm = await self._stack.enter_async_context(model)
            knowledge, build_tools = await self.prepare(agent)
            self._opened[agent_id] = WritingAgent(
                agent.id, agent.name, agent.settings, llm, build_tools, knowledge, claimed.redactor, agent.version
            )
        return self._opened[agent_id]
