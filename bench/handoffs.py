"""Silence at hand-offs: 50 live calls in one process, two hand-offs in each, beside ordinary answers of the same calls.

Models and voices answer after the times that vendors need (`FIRST_TOKEN_SECONDS`, `FIRST_AUDIO_SECONDS`). The silence
at a hand-off is from the end of one agent's words to the beginning of the next agent's, and that before an answer from
the end of the caller's words to the agent's first frame.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import quantiles
from uuid import UUID, uuid4

from switchboard.engine.conversation.agent_settings import AgentSettings, Handoff
from switchboard.engine.conversation.call import CallAgent, CallResult
from switchboard.engine.conversation.engine import CallEngine
from switchboard.plugin_sdk import (
    ChatEvent,
    ChatRequest,
    LLMProvider,
    ProviderSettings,
    SpeechChunk,
    SpeechRequest,
    TextDelta,
    TextToSpeechProvider,
    ToolCall,
    Voice,
)
from switchboard_offline.espeak import speak_text

from tests.fixtures.conversation import Model, Socket, Transcriber, create_call, synthesize_caller

CALLS = 50
FIRST_TOKEN_SECONDS, FIRST_AUDIO_SECONDS = 0.4, 0.2
QUESTION, LAST_WORDS = "what are your opening hours", "I will connect you with my colleague, one moment please."
SPOKEN = {text: speak_text(text) for text in (LAST_WORDS, "We are open from seven to six.")}


class SlowVoice(TextToSpeechProvider[ProviderSettings]):
    name = title = "slow"

    async def check(self) -> None:
        """Succeed always."""

    async def synthesize(self, request: SpeechRequest) -> AsyncIterator[SpeechChunk]:
        await asyncio.sleep(FIRST_AUDIO_SECONDS)
        yield SpeechChunk(SPOKEN[request.text])

    async def list_voices(self) -> Sequence[Voice]:
        return []


class SlowModel(LLMProvider[ProviderSettings]):
    """Answers, and hands over with every second answer to a caller."""

    name = title = "slow"

    def __init__(self, tool: str) -> None:
        super().__init__(ProviderSettings())
        self._tool = tool

    async def check(self) -> None:
        """Succeed always."""

    async def chat(self, request: ChatRequest) -> AsyncIterator[ChatEvent]:
        await asyncio.sleep(FIRST_TOKEN_SECONDS)
        if request.messages[-1].role == "user" and sum(each.role == "user" for each in request.messages) % 2 == 0:
            yield TextDelta(LAST_WORDS)
            yield ToolCall(uuid4().hex, self._tool, {})
        else:
            yield TextDelta("We are open from seven to six.")


@dataclass
class Pair:
    """Two agents that hand over to each other."""

    agents: dict[UUID, CallAgent]

    @property
    def names(self) -> Mapping[UUID, str]:
        return {agent_id: agent.name for agent_id, agent in self.agents.items()}

    async def open(self, agent_id: UUID) -> CallAgent:
        return self.agents[agent_id]


async def call(engine: CallEngine, wait: float) -> CallResult:
    """Run one call with four questions, of which the second and the fourth lead to another agent."""
    await asyncio.sleep(wait)
    ids = {"Reception": uuid4(), "Billing": uuid4()}
    pair = Pair({})
    for (name, agent_id), (other, other_id) in zip(ids.items(), reversed(ids.items()), strict=True):
        handoff = Handoff(agent_id=str(other_id), description="Other questions.")
        settings = AgentSettings(handoffs=[handoff])
        model = SlowModel(f"hand_off_to_{other.lower()}")
        heard = Transcriber(*[QUESTION] * 4)
        pair.agents[agent_id] = CallAgent(agent_id, name, settings, heard, SlowVoice(ProviderSettings()), model)
    live = replace(create_call(Model(), Transcriber()), agent=pair.agents[ids["Reception"]], colleagues=pair)
    socket = Socket()
    running = asyncio.create_task(engine.run_call(live, socket))
    for _ in range(4):
        await socket.say(synthesize_caller(QUESTION))
        await asyncio.sleep(9)
    socket.hang_up()
    return await running


async def measure() -> tuple[list[int], list[int]]:
    """Return the milliseconds of silence at hand-offs, and those of ordinary answers."""
    engine = CallEngine(most_calls=CALLS)
    await engine.start()
    results = await asyncio.gather(*(call(engine, place * 0.2) for place in range(CALLS)))
    await engine.close()
    silences, answers = list[int](), list[int]()
    for result in results:
        spoken = [entry for entry in result.transcript if entry.role == "agent"]
        silences += [
            after.timestamp_ms - before.ended_ms
            for before, after in pairwise(spoken)
            if before.agent_id != after.agent_id
        ]
        turns = [turn for turn in result.latencies if turn.endpoint_ms is not None]  # others begin at a hand-off
        answers += [turn.first_frame_ms for turn in turns if turn.first_frame_ms is not None]
    return silences, answers


def run() -> None:
    silences, answers = asyncio.run(measure())
    print(f"| {CALLS} calls | number | p50 | p99 |\n| --- | --- | --- | --- |")
    for name, found in (("silence at a hand-off", silences), ("silence before an answer", answers)):
        cuts = quantiles(found, n=100)
        print(f"| {name} | {len(found)} | {cuts[49]:.0f} ms | {cuts[98]:.0f} ms |")
