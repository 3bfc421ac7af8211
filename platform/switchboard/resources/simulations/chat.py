"""A chat with an agent, to test it: a simulation in mode `text` with a person as the caller, which is not saved.

The person's browser keeps the conversation, and sends it with each message.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from switchboard.engine.conversation.knowledge import UNHURRIED_SECONDS
from switchboard.engine.conversation.variables import GIVEN, MOST_CHARACTERS, Variables
from switchboard.engine.conversation.written import WrittenLine, WrittenPart, read_parts
from switchboard.engine.providers.instances import Providers
from switchboard.foundation.database import Database, new_id
from switchboard.foundation.web.errors import ProviderFailed, RateLimited, ValidationFailed
from switchboard.foundation.web.principal import Limit
from switchboard.foundation.web.rate_limits import RateLimiter
from switchboard.plugin_sdk import JsonObject, Message, Origin, ProviderError, ToolCall
from switchboard.resources.agents.colleagues import claim_agents
from switchboard.resources.agents.models import Agent
from switchboard.resources.agents.tools import AgentTools
from switchboard.resources.billing import ledger
from switchboard.resources.simulations.result import SimulatedConversation
from switchboard.resources.simulations.text_mode import Players, TextConversation

CHAT_LIMIT = Limit(per_second=0.5, burst=20)
"""Messages of one organization: each costs what its model costs."""


class ChatEntry(BaseModel):
    """An utterance, a tool call with JSON as `content`, or a line about a hand-off, as in a simulation's transcript."""

    model_config = ConfigDict(extra="forbid")

    role: Literal["user", "agent", "tool", "system"]
    content: str = Field(max_length=250_000)


class LearnedVariable(BaseModel):
    """A variable that an agent has learned."""

    value: str = Field(max_length=MOST_CHARACTERS)
    origin: Origin


class ChatMessage(BaseModel):
    """A message to the agent. `entries` is the conversation before it, with the `parts` of its agents and the variables
    that they have `learned`; `variables` stand for the metadata of a call.

    With `runs_tools` the tools of the agent and of plugins really run.
    """

    model_config = ConfigDict(extra="forbid")

    entries: list[ChatEntry] = Field(max_length=300)
    parts: list[WrittenPart] = Field(default_factory=list, max_length=100)
    learned: dict[str, LearnedVariable] = Field(default_factory=dict, max_length=100)
    text: str = Field(min_length=1, max_length=2000)
    variables: dict[str, str] = Field(default_factory=dict, max_length=100)
    runs_tools: bool = False


@dataclass(slots=True)
class ChatReply:
    """The new entries of a chat, the passages that were found for them, and the side that has ended it. `parts` and
    `learned` belong to the next message.
    """

    entries: list[dict[str, str]]
    parts: list[JsonObject]
    learned: dict[str, dict[str, str]]
    passages: list[str]
    ended_by: Literal["agent", "transfer"] | None


@dataclass(frozen=True, slots=True)
class AgentChat:
    database: Database
    providers: Providers
    limiter: RateLimiter
    agent_tools: AgentTools

    async def answer(self, agent: Agent, message: ChatMessage) -> ChatReply:
        """Return the agent's answer. The agent need not be saved.

        Raises `RateLimited`, `InsufficientBalance`, `ValidationFailed` for entries that do not form a conversation, and
        `ProviderFailed`.
        """
        history = _read_history(message.entries)
        if not (await self.limiter.check("agent-chat", str(agent.organization_id), CHAT_LIMIT)).allowed:
            raise RateLimited("Too many messages to agents. Wait a moment, then send it again.")
        async with self.database.read(agent.organization_id) as session:
            await ledger.require_solvency(session)
            agents = await claim_agents(session, agent)
        played = SimulatedConversation()
        variables = Variables.from_texts(message.variables, "metadata")
        for name, known in message.learned.items():
            variables.set(name, known.value, known.origin)
        players = Players(
            self.database, self.providers, self.agent_tools, played, agents, variables, message.runs_tools
        )
        stored = [part.model_dump(mode="json") for part in message.parts]
        parts = read_parts(stored, agent.id, agents)
        try:
            async with players.open() as opened:
                conversation = TextConversation(
                    players,
                    opened,
                    await opened.open(agent.id),
                    parts=parts,
                    history=history,
                    before=len(message.entries),
                    retrieval_seconds=UNHURRIED_SECONDS,
                )
                said = next((entry.content for entry in reversed(message.entries) if entry.role == "agent"), "")
                await conversation.answer(message.text, said if history else conversation.greet())
        except ProviderError as error:
            raise ProviderFailed(error.message) from None
        finally:
            async with self.database.write(agent.organization_id) as session:
                cost = await ledger.calculate_writing_cost(session, played.models, played.embeddings)
                await ledger.settle_hold(session, "simulation", new_id(), cost)
        requests = players.requests
        return ChatReply(
            [{"role": entry.role, "content": entry.content} for entry in played.spoken],
            [part.model_dump(mode="json") for part in conversation.written.parts],
            {
                name: {"value": known.value, "origin": known.origin}
                for name, known in variables.values.items()
                if known.origin not in GIVEN
            },
            players.found,
            "transfer" if requests.transfer is not None else "agent" if requests.ending is not None else None,
        )


class _ToolEntry(BaseModel):
    tool: str
    arguments: JsonObject = Field(default_factory=dict)
    result: JsonValue = None


def _read_history(entries: Sequence[ChatEntry]) -> list[WrittenLine]:
    """Return the conversation as the model reads it. Raises `ValidationFailed` for an invalid tool entry."""
    history = list[WrittenLine]()
    for place, entry in enumerate(entries):
        if entry.role == "tool":
            try:
                called = _ToolEntry.model_validate_json(entry.content)
            except ValidationError as error:
                raise ValidationFailed.from_error(error) from None
            call = ToolCall(f"chat_{place}", called.tool, called.arguments)
            history.append(WrittenLine(place, Message("assistant", "", tool_calls=(call,))))
            history.append(WrittenLine(place, Message("tool", json.dumps(called.result), tool_call_id=call.id)))
        elif entry.role != "system":
            history.append(WrittenLine(place, Message("user" if entry.role == "user" else "assistant", entry.content)))
    return history
