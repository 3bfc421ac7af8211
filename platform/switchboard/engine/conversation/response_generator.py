"""The agent's replies: the conversation so far, the model's streamed answer, and the tools that it calls."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

import structlog
from opentelemetry.context import attach

from switchboard.engine.conversation.call import CallAgent, Clock, LiveCall, Tool
from switchboard.engine.conversation.claims import Finding
from switchboard.engine.conversation.gate import Gate
from switchboard.engine.conversation.guardrails import Guard
from switchboard.engine.conversation.knowledge import KnowledgeRetrieval, TaskStarter
from switchboard.engine.conversation.sentences import split_sentences
from switchboard.engine.conversation.speech.speech_output import SpeechOutput, SpokenReply, join_heard
from switchboard.engine.conversation.toolbox import MAX_TOOL_ROUNDS, Toolbox
from switchboard.engine.conversation.transcript import TurnClock
from switchboard.engine.redaction.redactor import MODEL_NOTE, Pace
from switchboard.plugin_sdk import (
    ChatEvent,
    ChatRequest,
    JsonObject,
    KeypadEntry,
    LLMProvider,
    Message,
    ModelUsage,
    ProviderError,
    ProviderSettings,
    TextDelta,
    ToolCall,
    ToolContext,
)

# Preemptive generation: the model is asked when a turn may be over, and its answer is held until the turn is.

CHARACTERS_PER_TOKEN: Final = 4
"""Estimate for a request that was dropped before the vendor reported its usage, in English text."""


@dataclass(slots=True, eq=False)
class _HeldAnswer:
    """An answer to a turn that may be over. None ends its events."""

    text: str
    request: ChatRequest | None = None
    task: asyncio.Task[None] | None = None
    events: asyncio.Queue[ChatEvent | ProviderError | None] = field(default_factory=asyncio.Queue)
    received: list[ChatEvent] = field(default_factory=list)


class PreemptiveGeneration:
    """Holds the answer to at most one request, which is used if the very same request is made once the turn is over.

    Tools that the model calls are run by the code that takes the answer, so none runs before. `dropped` has the usage
    of answers that were not taken, estimated where the vendor has not reported it.
    """

    def __init__(self, llm: LLMProvider[ProviderSettings]) -> None:
        self._llm = llm
        self._held: _HeldAnswer | None = None
        self.dropped: list[ModelUsage] = []

    def begin(self, text: str, build: Callable[[], Awaitable[ChatRequest]], start: TaskStarter) -> None:
        """Build the request for a turn and ask the model, unless its answer to the same words is held already."""
        if self._held is not None and self._held.text == text:
            return
        self.drop()
        held = self._held = _HeldAnswer(text)

        async def generate() -> None:
            held.request = await build()
            try:
                async for event in self._llm.chat(held.request):
                    held.received.append(event)
                    held.events.put_nowait(event)
            except ProviderError as error:
                held.events.put_nowait(error)
            held.events.put_nowait(None)

        held.task = start(generate)

    async def chat(self, request: ChatRequest) -> AsyncIterator[ChatEvent]:
        """Yield the held answer to this request, or else ask the model. Raises `ProviderError`."""
        held = self._held
        if held is None or held.request != request:
            self.drop()
            async for event in self._llm.chat(request):
                yield event
            return
        self._held = None
        try:
            while (held_event := await held.events.get()) is not None:
                if isinstance(held_event, ProviderError):
                    raise held_event
                yield held_event
        finally:
            if held.task is not None:
                held.task.cancel()

    def drop(self) -> None:
        """Stop and forget the answer that is held, because the caller went on, and record its usage."""
        held, self._held = self._held, None
        if held is None:
            return
        if held.task is not None:
            held.task.cancel()
        if held.request is None:
            return
        reported = [event for event in held.received if isinstance(event, ModelUsage)]
        asked = sum(len(message.content) for message in held.request.messages)
        answered = sum(len(event.text) for event in held.received if isinstance(event, TextDelta))
        estimated = ModelUsage(
            held.request.model or "",
            input_tokens=asked // CHARACTERS_PER_TOKEN,
            output_tokens=answered // CHARACTERS_PER_TOKEN,
            detail={"estimated": True},
        )
        self.dropped += reported or [estimated]


logger = structlog.get_logger()
FILLER_SECONDS = 1.5
FILLER = "One moment, please."
APOLOGY = "I am sorry, something went wrong. Could you say that again?"
MAX_FAILURES = 3
UNFINISHED = json.dumps({"error": "the caller spoke before this was finished; whether it was done is not known"})


class ReplyEvents(Protocol):
    """Events of a reply that is being generated.

    `enter_digits` returns the arguments that the caller has entered on the keypad, or None. `handle_tool_result` gets
    the result of a tool, as it is and as it is kept. `hold_back` records a sentence that the agent must not say.
    `may_go_on` returns whether the model is to be asked for more: not if the call goes to another agent.
    """

    async def enter_digits(self, reply: SpokenReply, entries: Sequence[KeypadEntry]) -> Mapping[str, str] | None: ...
    async def handle_tool_result(self, name: str, result: JsonObject, kept: JsonObject) -> None: ...
    async def hold_back(self, finding: Finding, sentence: str) -> None: ...
    def may_go_on(self, reply: SpokenReply) -> bool: ...


@dataclass(slots=True)
class _Answer:
    """A model's answer to one request: its tool calls, and the sentences from the first on that must not be said."""

    calls: list[ToolCall] = field(default_factory=list)
    held: list[str] = field(default_factory=list)
    finding: Finding | None = None


class ResponseGenerator:
    """Generates the replies of one agent, one turn at a time; canceling `generate` drops a reply that is no longer
    wanted.
    """

    def __init__(
        self, call: LiveCall, agent: CallAgent, speech_output: SpeechOutput, tools: Sequence[Tool], events: ReplyEvents
    ) -> None:
        self._agent = agent
        self._speech_output = speech_output
        self._events = events
        self._redactor = agent.redactor
        self._question = ""
        self._summary: tuple[asyncio.Future[str], int] | None = None
        person = call.from_number if call.direction == "inbound" else call.to_number
        context = ToolContext(
            call.organization_id,
            agent.id,
            call.call_id,
            call.from_number,
            call.to_number,
            person_number=person,
            variables=call.variables.shown,
        )
        self._toolbox = Toolbox(tools, context, disabled=agent.settings.disabled_tools)
        self._failures = 0
        self.preemptive = PreemptiveGeneration(agent.llm)
        self.retrieval = KnowledgeRetrieval(agent.knowledge)
        self._variables = call.variables
        self.history: list[Message] = [self.write_prompt()]
        self.usage: list[ModelUsage] = []
        self.guard = Guard(agent.settings, agent.llm, self.usage)
        self._gate = Gate(agent.settings, agent.llm, call.succeeded, self.usage, events.hold_back)

    def write_prompt(self) -> Message:
        """Return the agent's prompt with the variables as they are now."""
        redact = self._agent.redactor.redact
        prompt = self._variables.fill(self._agent.settings.system_prompt, lambda value: redact(value).for_model)
        return Message("system", f"{prompt}\n\n{MODEL_NOTE}" if self._agent.redactor.hides_from_model else prompt)

    def add_agent_message(self, text: str) -> None:
        """Add what the caller heard the agent, or a supervisor in its place, say to the history."""
        if text:
            self.history.append(Message("assistant", text))

    def record_heard(self, reply: SpokenReply) -> None:
        """Record the part of a reply that the caller has heard, also where the history has all of it already."""
        begin = 0
        for place, end in reply.recorded:
            self.history[place] = replace(self.history[place], content=join_heard(reply.sentences[begin:end]))
            begin = end
        self.add_agent_message(join_heard(reply.sentences[begin:]))

    def add_instruction(self, text: str) -> None:
        """Add an instruction to the model that neither side said."""
        self.history.append(Message("system", text))

    def add_caution(self, text: str) -> None:
        """Add an instruction about the caller's last words, before them if they are not answered yet."""
        is_open = self.history[-1].role == "user"
        self.history.insert(len(self.history) - is_open, Message("system", text))

    def prepare(self, text: str, start: TaskStarter) -> None:
        """Ask the model for its answer to a turn that may be over. `generate` uses it if nothing has changed."""
        known = len(self.history)  # without words that follow during the retrieval

        async def build() -> ChatRequest:
            await self._add_summary()
            passages = await self.retrieval.retrieve(text)
            return self._build_request(passages, (*self.history[:known], Message("user", text)))

        self.preemptive.begin(text, build, start)

    def begin(self, question: str, summary: asyncio.Future[str] | None) -> None:
        """Begin with a history whose last message is the note of a hand-off.

        `question` are the caller's last words, for the retrieval. A `summary` is waited for and added to the note.
        """
        self._question = question
        self._summary = None if summary is None else (summary, len(self.history) - 1)

    def prepare_first(self, start: TaskStarter) -> None:
        """Ask the model for its first answer after a hand-off. `generate` uses it if nothing has changed."""

        async def build() -> ChatRequest:
            await self._add_summary()
            return self._build_request(await self.retrieval.retrieve(self._question), tuple(self.history))

        self.preemptive.drop()
        self.preemptive.begin("", build, start)

    async def _add_summary(self) -> None:
        if (awaited := self._summary) is not None:
            summary, place = awaited
            text = await asyncio.shield(summary)
            if self._summary is awaited:
                self._summary, note = None, self.history[place]
                self.history[place] = replace(note, content=f"{note.content}\n\n{text}".strip())

    def _build_request(self, passages: Sequence[Message], conversation: Sequence[Message]) -> ChatRequest:
        # The passages stand beside the prompt and for this turn only: the caller's next words need others.
        messages, settings = (conversation[0], *passages, *conversation[1:]), self._agent.settings
        return ChatRequest(messages, settings.llm_model, settings.llm_temperature, tools=self._toolbox.specs)

    async def generate(self, turn: TurnClock, clock: Clock) -> None:
        """Reply to the caller's last message.

        Raises `ProviderError` when the model has failed several times in a row.
        """
        reply = self._speech_output.start_reply(turn)
        attach(turn.context)  # for the rest of this task, which is the turn's own
        try:
            await self._generate(reply, turn, clock)
            self._failures = 0
        except ProviderError as error:
            self._failures += 1
            logger.warning("the model failed", reason=error.message, failures=self._failures)
            if self._failures >= MAX_FAILURES:
                raise
            self._speech_output.say(reply, APOLOGY)
        finally:
            reply.complete = True

    async def _generate(self, reply: SpokenReply, turn: TurnClock, clock: Clock) -> None:
        self._gate.begin()
        await self._add_summary()
        last, began_at = self.history[-1], clock()
        passages = await self.retrieval.retrieve(last.content if last.role == "user" else self._question)
        self._question = ""
        for _ in range(MAX_TOOL_ROUNDS):
            answer = await self._request_model(reply, passages, turn, clock)
            if answer.calls:
                if not reply.sentences and clock() - began_at >= FILLER_SECONDS:
                    self._speech_output.say(reply, FILLER)
                await self._run_tools(reply, answer, passages)
            if answer.finding is not None:
                await self._gate.hold_back(answer.finding, answer.held[0])
            if answer.calls and not self._events.may_go_on(reply):
                return
            if answer.finding is None and not answer.calls:
                return
            if answer.finding is not None and self._gate.has_given_up:
                self._speech_output.say(reply, self._gate.get_last_resort(answer.finding))
                return
        raise ProviderError("the model called tools without end")

    async def _request_model(
        self, reply: SpokenReply, passages: Sequence[Message], turn: TurnClock, clock: Clock
    ) -> _Answer:
        answer, rest, pace = _Answer(), "", Pace()
        notes = self._gate.new_notes
        spoken = self._join_unrecorded(reply) if notes else ""
        conversation = (*self.history, *([Message("assistant", spoken)] if spoken else []), *notes)
        async for event in self.preemptive.chat(self._build_request(passages, conversation)):
            if isinstance(event, ModelUsage):
                self.usage.append(event)
                continue
            turn.record_step("first_token", clock())
            if isinstance(event, TextDelta):
                sentences, rest = split_sentences(rest + event.text)
                for sentence in sentences:
                    await self._say(reply, answer, sentence, passages)
                    await pace.pause()  # a model that does not stream returns thousands at once
            else:
                answer.calls.append(event)
        await self._say(reply, answer, rest, passages)
        await self._redactor.search(reply.text)  # while it is spoken, and before it is an entry of the transcript
        return answer

    async def _say(self, reply: SpokenReply, answer: _Answer, sentence: str, passages: Sequence[Message]) -> None:
        """Say a sentence of an answer, unless it, or one before it, must not be said."""
        if answer.finding is None:
            answer.finding = await self._gate.review(sentence, (*passages, *self.history))
        if answer.finding is None:
            self._speech_output.say(reply, sentence)
        else:
            answer.held.append(sentence)

    def _join_unrecorded(self, reply: SpokenReply) -> str:
        """Return what is said in a reply and not in the history yet."""
        begin = reply.recorded[-1][1] if reply.recorded else 0
        return " ".join(sentence.text for sentence in reply.sentences[begin:])

    async def _run_tools(self, reply: SpokenReply, answer: _Answer, passages: Sequence[Message]) -> None:
        """Run the tools that an answer calls, once the caller's words were checked, and then say what has become true
        by them.
        """
        await self.guard.wait()
        calls, place, begin = answer.calls, len(self.history), reply.recorded[-1][1] if reply.recorded else 0
        self.history.append(Message("assistant", self._join_unrecorded(reply), tool_calls=tuple(calls)))
        reply.recorded.append((place, len(reply.sentences)))
        # Vendors refuse a conversation with a tool call that has no result, and an interruption may come at any moment.
        self.history.extend(Message("tool", UNFINISHED, tool_call_id=call.id) for call in calls)
        for number, call in enumerate(calls, place + 1):
            result = await self._redactor.redact_json(await self._run_tool(reply, call), for_model=True)
            self.history[number] = Message("tool", json.dumps(result), tool_call_id=call.id)
        if answer.held:
            held, answer.held, answer.finding = answer.held, [], None
            for sentence in held:
                await self._say(reply, answer, sentence, passages)
            spoken = " ".join(sentence.text for sentence in reply.sentences[begin:])
            self.history[place] = replace(self.history[place], content=spoken)
            reply.recorded[-1] = (place, len(reply.sentences))

    async def _run_tool(self, reply: SpokenReply, call: ToolCall) -> JsonObject:
        entries = self._toolbox.list_keypad_entries(call)
        entered = await self._events.enter_digits(reply, entries) if entries else None
        if entries and entered is None:
            result: JsonObject = {"error": "the caller entered nothing on the keypad"}
        else:
            result = await self._run_tool_with_filler(reply, call, entered)
        self._gate.record_result(call.name, result)
        await self._redactor.search_json(result)
        if call.name in {spec.name for spec in self._toolbox.specs}:
            kept = await self._redactor.redact_json(result, for_model=False)
            await self._events.handle_tool_result(call.name, result, kept)
            await asyncio.sleep(0)  # a large result takes milliseconds there, and as many for the model
        return result

    async def _run_tool_with_filler(
        self, reply: SpokenReply, call: ToolCall, entered: Mapping[str, str] | None
    ) -> JsonObject:
        running = asyncio.create_task(self._toolbox.run(call, entered))
        try:
            done, _ = await asyncio.wait((running,), timeout=FILLER_SECONDS)
            if not done and not self._speech_output.is_speaking():
                self._speech_output.say(reply, FILLER)
            return await running
        finally:
            running.cancel()
