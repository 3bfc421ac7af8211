"""Whole conversations with every speech provider: answers, tools, keys, silence, goodbyes, barge-in, and a lost socket.

They run in real time, because recognition runs in a process of its own; each provider's calls therefore run at once.
"""

import asyncio
from dataclasses import replace

import pytest
from switchboard.engine.conversation.call import CallResult, EndedReason, LiveCall
from switchboard.engine.conversation.engine import CallEngine
from switchboard.plugin_sdk import ToolCall, Word

from tests.fixtures.conversation import Leg, Model, Socket, Transcriber, call
from tests.speech.providers import Speech, speech
from tests.speech.vendor import PHRASES, SENTENCE, collect_synthesis, synthesize_speech

# LiteLLM and its dependencies emit deprecation warnings that we cannot fix.
pytestmark = [
    pytest.mark.usefixtures("litellm_clients"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning"),
]

LONG = (
    "Unfortunately international telecommunications infrastructure is so big "
    "that all of us do as we can and go on and on for as long as it is on"
)
"""Long words come first, so that a share of the time is not the same share of the words."""
QUIET = b"\xff"
TOLERANCE_MS = 100
KNOW_TIMES = ("espeak", "elevenlabs", "cartesia")
PROVIDERS = [
    ("pocketsphinx", "espeak"), ("deepgram", "elevenlabs"), ("assemblyai", "cartesia"), ("deepgram", "deepgram"),
    ("openai_compatible", "openai_compatible"),
]  # fmt: skip


@pytest.mark.parametrize(("hears", "speaks"), PROVIDERS)
async def test_conversations(engine: CallEngine, hears: str, speaks: str) -> None:
    async with speech(hears, speaks) as voices, speech(hears, speaks) as others:
        await asyncio.gather(
            _is_answered(engine, voices),
            _says_goodbye(engine, voices),
            _presses_keys(engine, voices),
            _falls_silent(engine, voices),
            _interrupts(engine, voices, knows_times=speaks in KNOW_TIMES),
            _is_understood_though_the_socket_drops(engine, others),
        )


def conversation(voices: Speech, model: Model, *, leg: Leg | None = None, **agent: object) -> LiveCall:
    live = call(model, Transcriber(), leg=leg, **agent)  # type: ignore[arg-type] # an agent's fields
    return replace(live, speech_to_text=voices.ears, text_to_speech=voices.mouth, hints=PHRASES)


async def heard(socket: Socket) -> None:
    """Returns when something was heard, and half a second more."""
    async with asyncio.timeout(20):
        await socket.spoke.wait()
    await socket.say(b"")


def said(result: CallResult) -> list[tuple[str, str]]:
    return [(entry.role, entry.content) for entry in result.transcript if entry.role != "tool"]


async def _is_answered(engine: CallEngine, voices: Speech) -> None:
    socket = Socket()
    holding = asyncio.create_task(engine.run_call(conversation(voices, Model("Yes.")), socket))
    await socket.say(synthesize_speech())
    await heard(socket)
    await socket.say(QUIET * 4000)
    socket.hang_up()
    result = await holding
    assert said(result) == [("user", SENTENCE), ("agent", "Yes.")]
    assert None not in (latency := result.latencies[0].endpoint_ms, result.latencies[0].first_frame_ms), latency
    assert result.usage.text_to_speech_characters == 4
    assert result.usage.speech_to_text_seconds > 1


async def _says_goodbye(engine: CallEngine, voices: Speech) -> None:
    """A tool is used, and its answer is heard to the end before the agent hangs up."""
    socket, leg = Socket(), Leg()
    live = conversation(voices, Model(ToolCall("1", "end_call", {}), "Goodbye then."), leg=leg)
    holding = asyncio.create_task(engine.run_call(live, socket))
    await socket.say(synthesize_speech())
    await heard(socket)
    async with asyncio.timeout(20):
        result = await holding
    assert (result.ended_reason, said(result)) == (
        EndedReason.AGENT_HUNG_UP,
        [("user", SENTENCE), ("agent", "Goodbye then.")],
    )
    assert leg.done == ["hang_up"]


async def _presses_keys(engine: CallEngine, voices: Speech) -> None:
    socket, leg = Socket(), Leg()
    live = conversation(voices, Model(ToolCall("1", "press_digits", {"digits": "5#"}), "Done."), leg=leg)
    holding = asyncio.create_task(engine.run_call(live, socket))
    for digit in "42#":
        socket.press(digit)
    await heard(socket)
    await socket.say(QUIET * 4000)
    socket.hang_up()
    assert said(await holding) == [("user", "DTMF: 42"), ("agent", "Done.")]
    assert "digits 5#" in leg.done


async def _falls_silent(engine: CallEngine, voices: Speech) -> None:
    async with asyncio.timeout(20):
        result = await engine.run_call(
            conversation(voices, Model(), greeting_message="Hello.", end_call_silence_seconds=1), Socket()
        )
    assert (result.ended_reason, said(result)) == (EndedReason.SILENCE, [("agent", "Hello.")])


async def _interrupts(engine: CallEngine, voices: Speech, *, knows_times: bool) -> None:
    """The agent stops, and the transcript has the words that were heard, exactly if the voice reports their times."""
    socket = Socket()
    holding = asyncio.create_task(
        engine.run_call(conversation(voices, Model("All right."), greeting_message=LONG), socket)
    )
    await heard(socket)
    await socket.say(QUIET * 8000 + synthesize_speech())
    await socket.say(QUIET * 8000)
    socket.hang_up()
    result = await holding
    greeting, question, _ = result.transcript
    assert (greeting.interrupted, (question.role, question.content)) == (True, ("user", SENTENCE))
    assert socket.cleared_at is not None
    assert LONG.startswith(greeting.content)
    if knows_times:
        _, words = await collect_synthesis(LONG, 1.0)
        heard_ms = round((socket.cleared_at - socket.first_audio_at) * 1000)
        assert greeting.content in {_until(words, heard_ms + off) for off in (-TOLERANCE_MS, 0, TOLERANCE_MS)}
    else:
        assert 0 < len(greeting.content) < len(LONG)


def _until(words: list[Word], milliseconds: int) -> str:
    return " ".join(word.text for word in words if word.end_ms <= milliseconds)


async def _is_understood_though_the_socket_drops(engine: CallEngine, voices: Speech) -> None:
    socket = Socket()
    holding = asyncio.create_task(engine.run_call(conversation(voices, Model("Yes.")), socket))
    talking = asyncio.create_task(socket.say(synthesize_speech()))
    await asyncio.sleep(0.7)
    if voices.ear is not None:
        await voices.ear.drop()
    await talking
    await heard(socket)
    socket.hang_up()
    assert ("user", SENTENCE) in said(await holding)
