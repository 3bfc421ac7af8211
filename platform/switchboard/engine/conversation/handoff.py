"""Hand-offs of a call from one agent to another: the parts of its agents, the moment of a switch, and the way back.

The next agent gets the words that the caller has heard or said, from the transcript. Its providers are opened as soon
as an agent that may hand over to it has the call, and its first answer is prepared while the last words of the agent
before it are heard.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal, Protocol
from uuid import UUID

import structlog

from switchboard.engine.conversation.agent_settings import Handoff
from switchboard.engine.conversation.call import (
    CallAgent,
    HandoffRecord,
    LiveCall,
    Tool,
    TranscriptEntry,
    VariableRecord,
)
from switchboard.engine.conversation.handoff_tools import (
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
from switchboard.engine.conversation.lifetime import CallLifetime
from switchboard.engine.conversation.response_generator import ResponseGenerator
from switchboard.engine.conversation.speech.speech_input import SpeechInput
from switchboard.engine.conversation.speech.transcription import TranscriptionStream
from switchboard.engine.conversation.transcript import CallTranscript
from switchboard.engine.conversation.variable_tools import build_variable_tools, read_result
from switchboard.plugin_sdk import JsonObject, Message, Origin, ProviderError, ToolError

logger = structlog.get_logger()


@dataclass(slots=True, eq=False)
class AgentPart:
    """An agent's part in a call.

    `returns_to` waits until it comes back. `left_at` is the number of lines of the transcript when the agent left, and
    `note` the message after which it speaks first, None if it waits for the caller.
    """

    agent: CallAgent
    generator: ResponseGenerator
    handoff: Handoff | None = None
    returns_to: "AgentPart | None" = None
    left_at: int = 0
    note: Message | None = None


@dataclass(slots=True, eq=False)
class PendingHandoff:
    """A hand-off that happens as soon as the agent's words have been heard.

    `known` is what the generator of the next part knows without it, and `first_entry` the first line of the transcript
    that it does not know.
    """

    part: AgentPart
    handoff: Handoff
    mode: HandoffMode
    reason: str
    forced: bool
    stream: TranscriptionStream
    known: Sequence[Message]
    first_entry: int = 0
    summary: asyncio.Future[str] | None = None

    @property
    def speaks_first(self) -> bool:
        """Return whether the agent goes on by itself."""
        return self.handoff.greeting == "continue" or self.mode == "return"


class HandingAgents(Protocol):
    """Part of the call's turn taking that hand-offs use."""

    transcript: CallTranscript
    speech_input: SpeechInput

    def build_generator(self, agent: CallAgent, tools: Sequence[Tool]) -> ResponseGenerator:
        """Build the generator of a new part, with tools besides those that the agent has in every call."""
        ...

    def open_stream(self, agent: CallAgent) -> TranscriptionStream:
        """Begin to transcribe for an agent that will get the call."""
        ...


class AgentParts:
    """The parts of a call's agents: `current` has the call, and `pending` says who gets it next."""

    def __init__(self, call: LiveCall, lifetime: CallLifetime, turns: HandingAgents) -> None:
        self._call = call
        self._lifetime = lifetime
        self._turns = turns
        self.pending: PendingHandoff | None = None
        self.all = list[AgentPart]()
        self._learned = set[str]()
        self._count = 0
        self.current = self._add(call.agent)
        self.current.generator.history.extend(call.history)

    async def open_colleagues(self) -> None:
        """Open the agents to which the current one may hand over, so that none is waited for."""
        for handoff in self._list_handoffs():
            with suppress(ProviderError):  # said when the hand-off is asked for
                await self._open(handoff)

    def find_forced(self, facts: Mapping[str, JsonObject | str]) -> Handoff | None:
        """Return the first hand-off of the current agent that an event forces: its `facts`, or variables that were
        learned since the last one. Without an event the variables alone force it.
        """
        learned, self._learned = self._learned, set()
        return find_forced(self._list_handoffs(), self._call.variables, facts, learned)

    async def learn(self, name: str, value: str, origin: Origin) -> bool:
        """Set a variable of the call; return False if it has that value already, or one of a better origin."""
        call, transcript = self._call, self._turns.transcript
        if not call.variables.set(name, value, origin):
            return False
        self._learned.add(name)
        kept = (await call.agent.redactor.search_and_redact(value)).kept
        transcript.add("system", f"{name} is {kept} ({origin}).")
        call.log.record_variable(VariableRecord(name, kept, origin, call.agent.id, transcript.entries[-1].timestamp_ms))
        return True

    async def learn_from_result(self, tool: str, result: JsonObject) -> None:
        """Learn the variables that the current agent finds in a tool's result."""
        for name, value in read_result(self._call.agent.settings, tool, result).items():
            await self.learn(name, value, "tool")

    async def request(self, handoff: Handoff, reason: str = "", *, forced: bool = False) -> None:
        """Hand the call over once the agent's words have been heard. Raises `ToolError` if that is not possible."""
        if self._count >= MOST_HANDOFFS:
            raise ToolError(TOO_MANY)
        try:
            agent = await self._open(handoff)
        except ProviderError as error:
            logger.warning("hand-off failed", to_agent_id=handoff.agent_id, reason=error.message)
            raise ToolError(f"the other agent cannot take the call now ({error.message}): go on yourself") from error
        returns_to = self.current if handoff.mode == "call_and_return" else None
        part = self._add(agent, handoff, returns_to)
        known = tuple(part.generator.history)
        self._prepare(
            PendingHandoff(part, handoff, handoff.mode, reason, forced, self._turns.open_stream(agent), known)
        )

    async def request_return(self, result: str) -> None:
        """Give the call back once the agent's words have been heard."""
        part, handoff = self.current.returns_to, self.current.handoff
        if part is None or handoff is None:
            raise ToolError(NOBODY_WAITS)
        stream, known = self._turns.open_stream(part.agent), tuple(part.generator.history)
        self._prepare(PendingHandoff(part, handoff, "return", result, False, stream, known, part.left_at))

    def prepare_answer(self, spoken: str) -> None:
        """Let the next agent prepare its first answer, as if the caller will hear what is `spoken` to its end."""
        if self.pending is not None:
            self._tell(self.pending, spoken)
            if self.pending.speaks_first:
                self.pending.part.generator.prepare_first(self._lifetime.start)

    def take_pending(self) -> PendingHandoff | None:
        """Return the pending hand-off, which is not pending any more."""
        pending, self.pending = self.pending, None
        return pending

    def drop(self) -> None:
        """Forget the pending hand-off, because the call ends."""
        if self.pending is not None:
            self._turns.speech_input.streams.stop(self.pending.stream)
            self.pending.part.generator.preemptive.drop()
            self.pending = None

    def switch(self, pending: PendingHandoff) -> None:
        """Give the call to the next agent, which gets to know what was heard."""
        old, self._count = self.current, self._count + 1
        self._tell(pending, "")
        reason = pending.part.agent.redactor.redact(pending.reason).kept
        text = describe_handoff(pending.mode, old.agent.name, pending.part.agent.name, reason)
        self._turns.transcript.add("system", text)
        old.left_at = len(self._turns.transcript.entries)
        old.generator.preemptive.drop()
        pending.part.agent.redactor.inherit(old.agent.redactor)
        self.current, self._call.agent = pending.part, pending.part.agent
        self._call.log.record_handoff(
            HandoffRecord(
                old.agent.id,
                pending.part.agent.id,
                pending.part.agent.version,
                pending.mode,
                pending.forced,
                self._turns.transcript.entries[-1].timestamp_ms,
            )
        )

    def _add(self, agent: CallAgent, handoff: Handoff | None = None, returns_to: AgentPart | None = None) -> AgentPart:
        name = None if returns_to is None else returns_to.agent.name
        tools = build_handoff_tools(agent.settings, self._names, self, returns_to=name)
        tools += build_variable_tools(agent.settings, self)
        part = AgentPart(agent, self._turns.build_generator(agent, tools), handoff, returns_to)
        self.all.append(part)
        return part

    @property
    def _names(self) -> Mapping[UUID, str]:
        return self._call.colleagues.names if self._call.colleagues is not None else {}

    def _list_handoffs(self) -> list[Handoff]:
        return list_handoffs(self._call.agent.settings, self._names)

    async def _open(self, handoff: Handoff) -> CallAgent:
        if self._call.colleagues is None:
            raise ProviderError("the call has no other agents", retryable=False)
        return await self._call.colleagues.open(UUID(handoff.agent_id))

    def _prepare(self, pending: PendingHandoff) -> None:
        self.drop()
        self.pending = pending
        pending.part.agent.redactor.inherit(self.current.agent.redactor)
        if pending.handoff.context == "summary":
            pending.summary = asyncio.get_running_loop().create_future()
            self._lifetime.start(_summarize, self.current, self._list_words(pending), pending.summary)

    def _tell(self, pending: PendingHandoff, spoken: str) -> None:
        """Let the next agent's generator know what is passed on; `spoken` is not in the transcript yet."""
        generator, handoff = pending.part.generator, pending.handoff
        words = self._list_words(pending)
        if spoken:
            words.append(Message("assistant", pending.part.agent.redactor.redact(spoken).for_model))
        if handoff.context == "everything" and pending.mode != "return":
            redact = pending.part.agent.redactor.redact
            before = [replace(message, content=redact(message.content).for_model) for message in self._call.history]
            words = [*before, *words]
        question = next((word.content for word in reversed(words) if word.role == "user"), "")
        words = choose_words(handoff, words)
        is_greeted = bool(spoken) or self._turns.transcript.has_agent_words()
        reason = pending.part.agent.redactor.redact(pending.reason).for_model
        name = self.current.agent.name
        text = HandoffNote(name, pending.mode, handoff.context, reason, bool(words), is_greeted).write()
        note = Message("system", text)
        pending.part.note = note if pending.speaks_first else None
        generator.history = [generator.write_prompt(), *pending.known[1:], *words, note]
        generator.begin(question if handoff.context != "nothing" else "", pending.summary)

    def _list_words(self, pending: PendingHandoff) -> list[Message]:
        """List the words of both sides that the next agent does not know, redacted for it."""
        entries = self._turns.transcript.entries[pending.first_entry :]
        return list(_list_messages(entries, pending.part.agent))


def _list_messages(entries: Iterable[TranscriptEntry], agent: CallAgent) -> Iterable[Message]:
    for entry in entries:
        if entry.role in ("user", "agent") and not entry.backchannel:
            role: Literal["user", "assistant"] = "user" if entry.role == "user" else "assistant"
            yield Message(role, agent.redactor.redact(entry.content).for_model)


async def _summarize(part: AgentPart, words: Sequence[Message], summary: asyncio.Future[str]) -> None:
    summary.set_result(await summarize(part.agent.llm, part.agent.settings, words, part.generator.usage))
