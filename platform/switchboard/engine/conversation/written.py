"""Conversations in writing, with one agent or with several that hand over to each other.

Between two messages nothing runs: the conversation is stored with the parts of its agents, and an agent's history is
built again from the words of both sides.
"""

import asyncio
from collections.abc import Awaitable, Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol
from uuid import UUID

import structlog
from pydantic import BaseModel, ConfigDict

from switchboard.engine.conversation.agent_settings import AgentSettings, Guardrail, Handoff
from switchboard.engine.conversation.call import Intervention, Tool
from switchboard.engine.conversation.claims import Finding
from switchboard.engine.conversation.gate import Gate, describe
from switchboard.engine.conversation.guardrails import IGNORE_NOTE, Guard, describe_guardrail
from switchboard.engine.conversation.handoff_tools import (
    FAILED_NOTE,
    MOST_HANDOFFS,
    NOBODY_WAITS,
    TOO_MANY,
    HandoffMode,
    HandoffNote,
    build_handoff_tools,
    choose_words,
    describe_handoff,
    find_forced,
    list_handoffs,
    summarize,
)
from switchboard.engine.conversation.knowledge import UNHURRIED_SECONDS, Knowledge, retrieve_context
from switchboard.engine.conversation.text_response import TextResponder, ToolSet
from switchboard.engine.conversation.variable_tools import build_variable_tools, read_result
from switchboard.engine.conversation.variables import Variables
from switchboard.engine.redaction.redactor import Redactor
from switchboard.plugin_sdk import (
    JsonObject,
    LLMProvider,
    Message,
    ModelUsage,
    Origin,
    ProviderError,
    ProviderSettings,
    ToolCall,
    ToolError,
    ToolSpec,
    Variable,
)

logger = structlog.get_logger()


class WrittenPart(BaseModel):
    """An agent's part in a conversation, from the word at the place `since` on.

    `note`, redacted because it is kept, tells the agent how it got the conversation, by the `handoff`. `waits`: number
    of the part of the agent to which this one gives the conversation back. `resumes`: number of the part that goes on
    with this one. `succeeded` are the names of the tools that have returned success in it.
    """

    model_config = ConfigDict(frozen=True)

    agent_id: UUID
    since: int = 0
    note: str = ""
    handoff: Handoff | None = None
    waits: int | None = None
    resumes: int | None = None
    succeeded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WrittenLine:
    """Words of one side. `place` grows with the conversation."""

    place: int
    message: Message


@dataclass(frozen=True, slots=True)
class WritingAgent:
    """An agent of a written conversation, with its model and tools.

    `build_tools` adds the tools of hand-offs to those of the agent.
    """

    id: UUID
    name: str
    settings: AgentSettings
    llm: LLMProvider[ProviderSettings]
    build_tools: Callable[[Sequence[Tool]], ToolSet]
    knowledge: Knowledge | None = None
    redactor: Redactor = field(default_factory=Redactor)
    version: int = 1


class WritingAgents(Protocol):
    """The agents of a conversation; `names` has the name of each by its id."""

    @property
    def names(self) -> Mapping[UUID, str]: ...
    async def open(self, agent_id: UUID) -> WritingAgent:
        """Open an agent, or return it if it is open. Raises `ProviderError`."""
        ...


@dataclass(frozen=True, slots=True)
class Contribution:
    """Words of an agent; with `handoff`, the line about a hand-off to it from the agent `old`; with `learned`, the line
    about a variable and its redacted value; with `held_back`, the line about what it was kept from saying; with
    `guardrail`, the line about one that the other side's words met.
    """

    agent: WritingAgent
    text: str
    handoff: HandoffMode | None = None
    old: WritingAgent | None = None
    forced: bool = False
    learned: tuple[str, Variable] | None = None
    held_back: Finding | None = None
    guardrail: Guardrail | None = None

    @property
    def is_said(self) -> bool:
        """Return whether the agent says it to the other side."""
        return not (self.handoff or self.learned or self.held_back or self.guardrail)

    def build_intervention(self, timestamp_ms: int) -> Intervention | None:
        """Return the record of what was held back, or of the guardrail."""
        if (found := self.held_back) is not None:
            return Intervention(found.rule, found.name, "held_back", self.agent.id, timestamp_ms)
        if (met := self.guardrail) is not None:
            return Intervention(met.watches, met.name, met.action, self.agent.id, timestamp_ms)
        return None


@dataclass(frozen=True, slots=True)
class _Pending:
    """A hand-off that happens as soon as the agent has said its words."""

    agent: WritingAgent
    mode: HandoffMode
    handoff: Handoff
    reason: str
    forced: bool = False
    resumes: int | None = None


@dataclass(slots=True)
class WrittenConversation:
    """A conversation and the agents that answer in it, the last of `parts` at present.

    `record` keeps what the agents contribute, in order, and returns its place. `instructions` follow each agent's
    prompt, and `variables` fill its placeholders. `usage` has the usage of each agent's model by the agent's id.
    `guardrail` is the one that the last words met.
    """

    agents: WritingAgents
    parts: list[WrittenPart]
    words: list[WrittenLine]
    record: Callable[[Contribution], Awaitable[int]]
    instructions: Sequence[str] = ()
    variables: Variables = field(default_factory=Variables)
    retrieval_seconds: float = UNHURRIED_SECONDS
    usage: dict[UUID, list[ModelUsage]] = field(default_factory=dict)
    guardrail: Guardrail | None = None
    _history: list[Message] | None = None
    _known: int = 0
    _pending: _Pending | None = None
    _learned: set[str] = field(default_factory=set)

    async def answer(self, *, begins: bool = False) -> None:
        """Answer the last words. A conversation that `begins` is handed over at once if the variables force it.

        Raises `ProviderError`.
        """
        agent = await self.agents.open(self.parts[-1].agent_id)
        checking = asyncio.create_task(self._check(agent))
        try:
            is_told = any(guardrail.action == "ignore" for guardrail in agent.settings.guardrails)
            await (checking if is_told else asyncio.sleep(0))  # what needs no model is known at once
            if begins:
                await self._force(agent, {})
            await self._answer(agent, checking)
        finally:
            checking.cancel()

    async def _answer(self, agent: WritingAgent, checking: asyncio.Task[None]) -> None:
        while True:
            text = await self._respond(agent, checking) if self._pending is None else ""
            if not await self._may_go_on(checking) and self.guardrail is not None:
                self._pending = None
                return await self._say(agent, self.guardrail.text)
            await self._say(agent, text)
            if (pending := self._pending) is None:
                return None
            await self._switch(agent, pending)
            agent, greeting = pending.agent, pending.handoff.greeting
            if pending.mode != "return":
                await self._force(agent, {})
                if self._pending is None and greeting != "continue":
                    own = agent.settings.greeting_message if greeting == "own" else ""
                    return await self._say(agent, self.variables.fill(own, partial(_show, agent)))

    @property
    def _is_stopped(self) -> bool:
        return self.guardrail is not None and self.guardrail.action != "ignore"

    async def _may_go_on(self, checking: asyncio.Task[None]) -> bool:
        """Return whether the agent may answer the last words, once they were checked."""
        await checking
        return not self._is_stopped

    async def _check(self, agent: WritingAgent) -> None:
        """Look for a guardrail that the last words meet."""
        self.guardrail = None
        messages = [line.message for line in self.words]
        answered = max((place for place, each in enumerate(messages) if each.role != "user"), default=-1)
        words = "\n".join(each.content for each in messages[answered + 1 :])
        guard = Guard(agent.settings, agent.llm, self.usage.setdefault(agent.id, []))
        found = await guard.check(words, messages[answered].content if answered >= 0 else "")
        if found is not None:
            await self.record(Contribution(agent, describe_guardrail(found), guardrail=found))
            self.guardrail = found

    def forget_after(self, known: int) -> None:
        """Forget the words after the first `known` ones, because nobody has read them."""
        del self.words[known:]
        self._known = min(self._known, known)

    async def request(self, handoff: Handoff, reason: str = "", *, forced: bool = False) -> None:
        """Hand the conversation over after the agent's words. Raises `ToolError` if that is not possible."""
        agent = await self._open(UUID(handoff.agent_id))
        self._pending = _Pending(agent, handoff.mode, handoff, reason, forced)

    async def request_return(self, result: str) -> None:
        """Give the conversation back after the agent's words. Raises `ToolError` if that is not possible."""
        part = self.parts[-1]
        if part.waits is None or part.handoff is None:
            raise ToolError(NOBODY_WAITS)
        agent = await self._open(self.parts[part.waits].agent_id)
        self._pending = _Pending(agent, "return", part.handoff, result, resumes=part.waits)

    async def _open(self, agent_id: UUID) -> WritingAgent:
        if len(self.parts) > MOST_HANDOFFS:
            raise ToolError(TOO_MANY)
        try:
            return await self.agents.open(agent_id)
        except ProviderError as error:
            logger.warning("hand-off failed", to_agent_id=str(agent_id), reason=error.message)
            raise ToolError(f"the other agent cannot answer now ({error.message}): go on yourself") from error

    async def _force(self, agent: WritingAgent, facts: Mapping[str, JsonObject | str]) -> None:
        """Request the hand-off that facts force, or what was just learned; tell the model if it is not possible."""
        learned, self._learned = self._learned, set()
        forced = find_forced(list_handoffs(agent.settings, self.agents.names), self.variables, facts, learned)
        if forced is None or self._pending is not None:
            return
        try:
            await self.request(forced, forced=True)
        except ToolError as error:
            history = await self._read_history(agent)
            history.append(Message("system", FAILED_NOTE.format(reason=error.message)))

    async def _respond(self, agent: WritingAgent, checking: asyncio.Task[None]) -> str:
        part = self.parts[-1]
        waiting = None if part.waits is None else self.agents.names.get(self.parts[part.waits].agent_id)
        offered = build_handoff_tools(agent.settings, self.agents.names, self, returns_to=waiting)
        offered += build_variable_tools(agent.settings, self)
        tools = _WatchedTools(
            agent.build_tools(offered), partial(self._may_go_on, checking), partial(self._handle_result, agent)
        )
        usage = self.usage.setdefault(agent.id, [])
        succeeded = {name for each in self.parts for name in each.succeeded}
        gate = Gate(agent.settings, agent.llm, succeeded, usage, partial(self._hold_back, agent))
        responder = TextResponder(
            agent.llm, agent.settings, tools, gate, usage, lambda: self._pending is None and not self._is_stopped
        )
        history = await self._read_history(agent)
        question = next((message.content for message in reversed(history) if message.role == "user"), "")
        passages = await retrieve_context(agent.knowledge, question, seconds=self.retrieval_seconds)
        prompt = self.variables.fill(agent.settings.system_prompt, partial(_show, agent))
        cautions = [IGNORE_NOTE.format(name=self.guardrail.name)] if self.guardrail is not None else []
        text = await responder.respond((prompt, *self.instructions, *cautions), history, passages)
        self.parts[-1] = self.parts[-1].model_copy(update={"succeeded": tuple(sorted(gate.succeeded))})
        return text

    async def _handle_result(self, agent: WritingAgent, tool: str, result: JsonObject) -> None:
        """Learn the variables in a tool's result, and hand over if the result, or what was learned, forces that."""
        for name, value in read_result(agent.settings, tool, result).items():
            await self.learn(name, value, "tool")
        await self._force(agent, {"tool": tool, "result": result})

    async def learn(self, name: str, value: str, origin: Origin) -> bool:
        """Set a variable; return False if it has that value already, or one of a better origin."""
        if not self.variables.set(name, value, origin):
            return False
        self._learned.add(name)
        agent = await self.agents.open(self.parts[-1].agent_id)
        kept = (await agent.redactor.search_and_redact(value)).kept
        await self.record(Contribution(agent, f"{name} is {kept} ({origin}).", learned=(name, Variable(kept, origin))))
        return True

    async def _hold_back(self, agent: WritingAgent, finding: Finding, sentence: str) -> None:
        """Record what an agent must not say, and has not said."""
        kept = (await agent.redactor.search_and_redact(sentence)).kept
        await self.record(Contribution(agent, describe(finding, kept), held_back=finding))

    async def _say(self, agent: WritingAgent, text: str) -> None:
        if text:
            place = await self.record(Contribution(agent, text))
            self.words.append(WrittenLine(place, Message("assistant", text)))

    async def _switch(self, old: WritingAgent, pending: _Pending) -> None:
        """Begin the part of the next agent."""
        agent, mode, resumes = pending.agent, pending.mode, pending.resumes
        agent.redactor.inherit(old.redactor)
        reason = await agent.redactor.search_and_redact(pending.reason)
        text = describe_handoff(mode, old.name, agent.name, reason.kept)
        since = await self.record(Contribution(agent, text, mode, old, pending.forced))
        resumed = None if resumes is None else self.parts[resumes]
        self.parts.append(
            WrittenPart(
                agent_id=agent.id,
                since=since,
                handoff=pending.handoff if resumed is None else resumed.handoff,
                waits=len(self.parts) - 1 if mode == "call_and_return" else None if resumed is None else resumed.waits,
                resumes=resumes,
            )
        )
        new, context = self._list_new_words(len(self.parts) - 1), pending.handoff.context
        is_greeted = any(word.message.role == "assistant" for word in self.words)
        has_words = bool(choose_words(pending.handoff, new))
        note = HandoffNote(old.name, mode, context, reason.kept, has_words, is_greeted).write()
        if context == "summary":
            readable = await _redact(new, agent.redactor)
            summary = await summarize(old.llm, old.settings, readable, self.usage.setdefault(old.id, []))
            note = f"{note}\n\n{(await agent.redactor.search_and_redact(summary)).kept}"
        self.parts[-1] = self.parts[-1].model_copy(update={"note": note})
        self._history, self._pending = None, None

    async def _read_history(self, agent: WritingAgent) -> list[Message]:
        """Return what the agent knows, with its tool calls since this conversation was read."""
        if self._history is None:
            self._history = list[Message]()
            new = self._list_known(len(self.parts) - 1, len(self.words))
        else:
            new = [word.message for word in self.words[self._known :]]
        self._known = len(self.words)
        # With one agent its redactor has read the words before they became part of the conversation.
        for message in await _redact(new, agent.redactor) if len(self.parts) > 1 else new:
            last = self._history[-1] if self._history else None
            is_same_side = last is not None and last.role == message.role and message.role in ("user", "assistant")
            if last is not None and is_same_side and not (last.tool_calls or message.tool_calls):
                self._history[-1] = Message(last.role, f"{last.content}\n{message.content}")
            else:
                self._history.append(message)
        return self._history

    def _list_known(self, number: int, end: int) -> list[Message]:
        """List what the agent of a part knows when the conversation has `end` words."""
        part, passed = self.parts[number], self._list_new_words(number)
        if part.resumes is None:
            passed = choose_words(part.handoff, passed) if part.handoff is not None else []
        elif (left := self.parts[part.resumes + 1]).handoff is not None:
            until = sum(1 for word in self.words if word.place < left.since)
            passed = [*self._list_known(part.resumes, until), *choose_words(left.handoff, passed)]
        note = [Message("system", part.note)] if part.note else []
        return [*passed, *note, *(word.message for word in self.words[:end] if word.place >= part.since)]

    def _list_new_words(self, number: int) -> list[Message]:
        """List the words of both sides before a part that its agent does not know without it."""
        part = self.parts[number]
        since = self.parts[part.resumes + 1].since if part.resumes is not None else -1
        before = (word.message for word in self.words if since <= word.place < part.since)
        return [message for message in before if message.role in ("user", "assistant") and not message.tool_calls]


def _show(agent: WritingAgent, value: str) -> str:
    return agent.redactor.redact(value).for_model


async def _redact(messages: Sequence[Message], redactor: Redactor) -> list[Message]:
    """Return messages as an agent's model may read them."""
    return [
        replace(message, content=(await redactor.search_and_redact(message.content)).for_model)
        if message.role in ("user", "assistant")
        else message
        for message in messages
    ]


@dataclass(frozen=True, slots=True)
class _WatchedTools:
    """Tools that run if they `may_run`, which is known once the words before them were checked, and whose results are
    watched.
    """

    tools: ToolSet
    may_run: Callable[[], Awaitable[bool]]
    watch: Callable[[str, JsonObject], Awaitable[None]]

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        return self.tools.specs

    async def run(self, call: ToolCall) -> JsonObject:
        if not await self.may_run():
            return {"error": "the conversation goes on in another way"}
        result = await self.tools.run(call)
        await self.watch(call.name, result)
        return result


def read_parts(stored: Sequence[JsonObject], first: UUID, names: Container[UUID]) -> list[WrittenPart]:
    """Return the stored parts of a conversation; a new one of the `first` agent if another agent is first by now, or if
    the one that has the conversation is not among those with `names`.
    """
    parts = [WrittenPart.model_validate(part) for part in stored]
    if parts and parts[0].agent_id == first and parts[-1].agent_id in names:
        return parts
    return [WrittenPart(agent_id=first)]
