"""The agent's mind: the conversation so far, the model's answer as it is written, and the tools that it calls."""

import asyncio
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import structlog

from switchboard.engine.conversation.call import LiveCall, Tool
from switchboard.engine.conversation.knowledge import KnowledgeRetrieval
from switchboard.engine.conversation.latency import TurnClock
from switchboard.engine.conversation.speech.speech_output import SpeechOutput, SpokenReply
from switchboard.engine.conversation.toolbox import MAX_TOOL_ROUNDS, Toolbox
from switchboard.plugin_sdk import (
    ChatRequest,
    JsonObject,
    Message,
    ModelUsage,
    ProviderError,
    TextDelta,
    ToolCall,
    ToolContext,
)

logger = structlog.get_logger()
Clock: TypeAlias = Callable[[], float]
FILLER_SECONDS = 1.5
FILLER = "One moment, please."
APOLOGY = "I am sorry, something went wrong. Could you say that again?"
MAX_FAILURES = 3
SENTENCE_END = re.compile(r"(?<=[.!?…])[\"')\]]*\s+|\n+")
LONG_SENTENCE = 240
UNFINISHED = json.dumps({"error": "the caller spoke before this was finished; whether it was done is not known"})


PLACEHOLDER = re.compile(r"\{\{\s*([\w.-]+)\s*\}\}")


def fill_placeholders(text: str, variables: Mapping[str, str]) -> str:
    """A prompt with its `{{name}}` filled in; a name without a value becomes nothing."""
    return PLACEHOLDER.sub(lambda match: variables.get(match[1], ""), text)


def find_placeholders(*texts: str) -> list[str]:
    """The names that stand in prompts, each once, in their order."""
    return list(dict.fromkeys(name for text in texts for name in PLACEHOLDER.findall(text)))


def split_sentences(text: str) -> tuple[list[str], str]:
    """The whole sentences at the start of a text, and the rest."""
    *whole, rest = SENTENCE_END.split(text)
    if len(rest) > LONG_SENTENCE and (cut := max(rest.rfind(", "), rest.rfind(" ", 0, LONG_SENTENCE))) > 0:
        whole.append(rest[: cut + 1])
        rest = rest[cut + 1 :]
    return [sentence for sentence in whole if sentence.strip()], rest


class ResponseGenerator:
    """Answers turns, one at a time. The caller cancels an answer that is no longer wanted."""

    def __init__(self, call: LiveCall, speaker: SpeechOutput, tools: Sequence[Tool]) -> None:
        self._call = call
        self._speaker = speaker
        context = ToolContext(call.organization_id, call.agent.agent_id, call.call_id, call.from_number, call.to_number)
        self._toolbox = Toolbox(tools, context)
        self._failures = 0
        self.recall = KnowledgeRetrieval(call.knowledge)
        self.history: list[Message] = [Message("system", fill_placeholders(call.agent.system_prompt, call.variables))]
        self.usage: list[ModelUsage] = []
        self.on_tool_used: Callable[[str, JsonObject], None] = lambda _name, _result: None

    def heard(self, text: str) -> None:
        """The caller said something."""
        self.history.append(Message("user", text))

    def said(self, text: str) -> None:
        """The agent was heard to say something."""
        if text:
            self.history.append(Message("assistant", text))

    def note(self, text: str) -> None:
        """Something that the agent is to know, and nobody said."""
        self.history.append(Message("system", text))

    async def answer(self, turn: TurnClock, now: Clock) -> None:
        """Answer what was heard. Raises `ProviderError` when the model has failed several times in a row."""
        reply = self._speaker.begin(turn)
        try:
            await self._think(reply, turn, now)
            self._failures = 0
        except ProviderError as error:
            self._failures += 1
            logger.warning("the model failed", reason=error.message, failures=self._failures)
            if self._failures >= MAX_FAILURES:
                raise
            self._speaker.say(reply, APOLOGY)
        finally:
            reply.whole = True

    async def _think(self, reply: SpokenReply, turn: TurnClock, now: Clock) -> None:
        last = self.history[-1]
        known = await self.recall.recalled(last.content if last.role == "user" else "")
        for _ in range(MAX_TOOL_ROUNDS):
            calls = await self._round(reply, known, turn, now)
            if not calls:
                return
            spoken = " ".join(sentence.text for sentence in reply.sentences[reply.in_history :])
            reply.in_history = len(reply.sentences)
            self.history.append(Message("assistant", spoken, tool_calls=tuple(calls)))
            # Vendors refuse a conversation in which a tool's call has no result, and an interruption may come at any moment.
            first = len(self.history)
            self.history.extend(Message("tool", UNFINISHED, tool_call_id=call.id) for call in calls)
            for place, call in enumerate(calls, first):
                result = await self._with_filler(reply, call)
                self.history[place] = Message("tool", json.dumps(result), tool_call_id=call.id)
        logger.warning("the model called tools without end")

    async def _round(self, reply: SpokenReply, known: Sequence[Message], turn: TurnClock, now: Clock) -> list[ToolCall]:
        agent = self._call.agent
        # Beside the prompt and for this turn only: what is known of the next thing that is said is something else.
        messages = (self.history[0], *known, *self.history[1:])
        request = ChatRequest(messages, agent.llm_model, agent.llm_temperature, tools=self._toolbox.specs)
        calls, rest = [], ""
        async for event in self._call.llm.chat(request):
            if isinstance(event, ModelUsage):
                self.usage.append(event)
                continue
            turn.reach("first_token", now())
            if isinstance(event, TextDelta):
                sentences, rest = split_sentences(rest + event.text)
                for sentence in sentences:
                    self._speaker.say(reply, sentence)
            else:
                calls.append(event)
        self._speaker.say(reply, rest)
        return calls

    async def _with_filler(self, reply: SpokenReply, call: ToolCall) -> JsonObject:
        running = asyncio.create_task(self._run(call))
        try:
            done, _ = await asyncio.wait((running,), timeout=FILLER_SECONDS)
            if not done and not self._speaker.is_talking():
                self._speaker.say(reply, FILLER)
            return await running
        finally:
            running.cancel()

    async def _run(self, call: ToolCall) -> JsonObject:
        known = call.name in {spec.name for spec in self._toolbox.specs}
        result = await self._toolbox.run(call)
        if known:
            self.on_tool_used(call.name, result)
        return result
