"""Failing and slow models and voices, over the wire: the silence that a caller hears, and the agent's words then."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, Literal

import pytest
from pydantic import HttpUrl, SecretStr
from switchboard.engine.conversation.call import CallResult, LiveCall
from switchboard.engine.conversation.engine import CallEngine
from switchboard.engine.conversation.response_generator import APOLOGY
from switchboard.engine.providers.failover import HEDGE_AFTER_SECONDS, STALL_SECONDS, FailoverLLM, FailoverTextToSpeech
from switchboard.engine.providers.health import ServiceRecord
from switchboard.plugin_sdk import ChatRequest, Message, ToolCall
from switchboard_speech.deepgram import DeepgramTextToSpeech, DeepgramVoiceSettings
from switchboard_speech.elevenlabs import ElevenLabsSettings, ElevenLabsTextToSpeech

from tests.fixtures.chat_models import build_chat_model
from tests.fixtures.chat_server import ChatServer, Fault
from tests.fixtures.conversation import (
    Leg,
    Model,
    Socket,
    Speech,
    Transcriber,
    change_agent,
    create_call,
    list_candidates,
    synthesize_caller,
)
from tests.speech.deepgram import Deepgram
from tests.speech.elevenlabs import ElevenLabs
from tests.speech.vendor import KEY, in_use

# LiteLLM and its dependencies emit deprecation warnings that we cannot fix.
pytestmark = [
    pytest.mark.usefixtures("litellm_clients"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning"),
]

Trouble = Fault | Literal["unreachable"] | None
QUESTION: Final = synthesize_caller("Can you help me please?")
ANSWER: Final = "We open at seven."
ROUNDS: Final = 3
"""Attempts until the waits are short enough: a busy machine delays callers too."""


@dataclass(frozen=True, slots=True)
class CallerResult:
    """A caller's wait for the answer, and the result of the call."""

    response_seconds: float
    result: CallResult

    @property
    def transcript(self) -> list[str]:
        return [entry.content for entry in self.result.transcript if entry.role == "agent"]


async def ask_question(engine: CallEngine, live: LiveCall, *, listens: float = 1.5) -> CallerResult:
    """Ask a question, listen to the answer for `listens` seconds, and hang up."""
    socket = Socket()
    holding = asyncio.create_task(engine.run_call(live, socket))
    await socket.say(QUESTION)
    async with asyncio.timeout(60):
        await socket.spoke.wait()
    response_seconds = socket.response_seconds
    await socket.say(b"\xff" * int(listens * 8000))
    socket.hang_up()
    return CallerResult(response_seconds, await holding)


# --- models ---


@asynccontextmanager
async def serve_two_models(trouble: Trouble) -> AsyncIterator[tuple[ChatServer, FailoverLLM]]:
    """Serve a model that has this trouble, and a second one that works."""
    async with ChatServer.listening() as first, ChatServer.listening() as second:
        first.fault = None if trouble == "unreachable" else trouble
        chosen = "http://127.0.0.1:9/v1" if trouble == "unreachable" else first.base_url
        models = [build_chat_model(chosen), build_chat_model(second.base_url)]
        for provider in models:
            await provider.open()
        yield first, FailoverLLM(list_candidates(*models), ServiceRecord(), hedge_after_seconds=HEDGE_AFTER_SECONDS)
        for provider in models:
            await provider.close()


async def _ask_models(engine: CallEngine, trouble: Trouble) -> CallerResult:
    async with serve_two_models(trouble) as (first, models):
        result = await ask_question(engine, change_agent(create_call(Model(), Transcriber("help")), llm=models))
        if trouble in ("silent", "mute"):
            assert first.closed.is_set(), "the slower request is stopped"
    return result


async def test_calls_survive_model_failures(engine: CallEngine) -> None:
    """Run all calls concurrently."""
    async with serve_two_models(None) as (_, models):
        assert [event async for event in models.chat(ChatRequest((Message("user", "warm up"),)))]
    await asyncio.gather(
        _check_replacement_within_a_second(engine),
        _check_interrupted_answer(engine, "drop"),
        _check_interrupted_answer(engine, "hang"),
        _check_tool_call(engine),
    )


async def _check_replacement_within_a_second(engine: CallEngine) -> None:
    """Check that a silent model is replaced within a second, and a refusal sooner."""
    troubles: Sequence[Trouble] = (None, "limited", "overloaded", "unreachable", "silent", "mute")
    for _ in range(ROUNDS):
        results = dict(
            zip(troubles, await asyncio.gather(*(_ask_models(engine, trouble) for trouble in troubles)), strict=True)
        )
        assert {tuple(answer.transcript) for answer in results.values()} == {("You said help.",)}
        longer = {
            trouble: answer.response_seconds - results[None].response_seconds for trouble, answer in results.items()
        }
        late = [
            trouble
            for trouble, seconds in longer.items()
            if seconds >= (1 if trouble in ("silent", "mute") else HEDGE_AFTER_SECONDS / 2)
        ]
        if not late:
            break
    assert not late, longer
    used = results["silent"].result.usage.models
    assert [(usage.input_tokens, usage.output_tokens, "overtaken_by" in usage.detail) for usage in used] == [
        (12, 5, False),
        (12, 0, True),
    ]


async def _check_interrupted_answer(engine: CallEngine, fault: Fault) -> None:
    """Check that the spoken words stay, and that the agent asks the caller to repeat."""
    speech = Speech()
    async with serve_two_models(fault) as (_, models):
        result = await ask_question(
            engine,
            change_agent(create_call(Model(), Transcriber("help. And more")), llm=models, text_to_speech=speech),
            listens=STALL_SECONDS + 1.5,
        )
    assert [request.text for request in speech.requests] == ["You said help.", APOLOGY]
    assert result.transcript[0].startswith("You said help.")
    assert result.result.error_message is None


async def _check_tool_call(engine: CallEngine) -> None:
    """Check that a tool call that arrives in pieces is complete."""
    leg = Leg()
    async with serve_two_models(None) as (server, models):
        server.tool = ("press_digits", '{"digits": "5#"}')
        result = await ask_question(
            engine, change_agent(create_call(Model(), Transcriber("weather"), leg=leg), llm=models)
        )
    assert leg.done[0] == "digits 5#"
    assert result.transcript[0].startswith("You said")


async def test_a_model_that_calls_tools_without_end_is_a_failure_that_the_caller_hears_of(engine: CallEngine) -> None:
    again = [ToolCall(str(number), "press_digits", {"digits": "5"}) for number in range(8)]
    result = await ask_question(engine, create_call(Model(*again), Transcriber("help")), listens=6)
    assert APOLOGY in result.transcript


# --- voices ---


@asynccontextmanager
async def serve_two_voices() -> AsyncIterator[tuple[ElevenLabs, Deepgram, FailoverTextToSpeech]]:
    async with ElevenLabs.listening() as first, Deepgram.listening() as second:
        chosen = ElevenLabsTextToSpeech(ElevenLabsSettings(api_key=SecretStr(KEY), base_url=HttpUrl(first.address)))
        other = DeepgramTextToSpeech(DeepgramVoiceSettings(api_key=SecretStr(KEY), base_url=HttpUrl(second.address)))
        async with in_use(chosen), in_use(other):
            candidates = list_candidates(chosen, other)
            yield (
                first,
                second,
                FailoverTextToSpeech(candidates, ServiceRecord(), hedge_after_seconds=HEDGE_AFTER_SECONDS),
            )


async def _ask_voices(engine: CallEngine, trouble: Literal["refuses", "hangs", "breaks"] | None) -> CallerResult:
    async with serve_two_voices() as (first, second, voices):
        first.hangs, first.breaks = trouble == "hangs", trouble == "breaks"
        first.refusals = [503] if trouble == "refuses" else []
        result = await ask_question(
            engine, change_agent(create_call(Model(ANSWER), Transcriber("help")), text_to_speech=voices), listens=2.5
        )
        request_counts = {None: (1, 0), "breaks": (2, 0)}.get(trouble, (1, 1))
        assert (len(first.requests), len(second.requests)) == request_counts
    return result


async def test_a_failing_voice_is_replaced_within_a_second_and_repeats_the_sentence(
    engine: CallEngine,
) -> None:
    for _ in range(ROUNDS):
        usual, refused, slow, broken = await asyncio.gather(
            *(_ask_voices(engine, trouble) for trouble in (None, "refuses", "hangs", "breaks"))
        )
        assert [result.transcript for result in (usual, refused, slow, broken)] == [[ANSWER]] * 4
        assert broken.result.error_message is None
        longer = (slow.response_seconds - usual.response_seconds, refused.response_seconds - usual.response_seconds)
        if longer[0] < 1 and longer[1] < HEDGE_AFTER_SECONDS / 2:
            break
    assert longer[0] < 1
    assert longer[1] < HEDGE_AFTER_SECONDS / 2
