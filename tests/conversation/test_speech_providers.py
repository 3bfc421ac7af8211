"""Conversations with every speech provider: answers, tools, keys, silence, goodbyes, barge-in, and a lost socket."""

import asyncio

import pytest
from switchboard.engine.conversation.call import CallResult, EndedReason, LiveCall
from switchboard.engine.conversation.engine import CallEngine
from switchboard.plugin_sdk import ToolCall, Word

from tests.fixtures.conversation import Leg, Model, Socket, Transcriber, change_agent, create_call
from tests.speech.providers import Speech, open_speech_providers
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
JUDGED = {"deepgram_flux": 0.8, "assemblyai_turns": 0.7}
REPORTS_TIMES = ("espeak", "elevenlabs", "cartesia")
PROVIDERS = [
    ("pocketsphinx", "espeak"), ("deepgram", "elevenlabs"), ("assemblyai", "cartesia"), ("deepgram", "deepgram"),
    ("elevenlabs", "espeak"), ("cartesia", "espeak"), ("azure_speech", "azure_speech"),
    ("deepgram_flux", "elevenlabs"),
    ("assemblyai_turns", "elevenlabs"), ("openai_compatible", "openai_compatible"),
]  # fmt: skip


@pytest.mark.parametrize(("hears", "speaks"), PROVIDERS)
async def test_conversations(engine: CallEngine, hears: str, speaks: str) -> None:
    async with open_speech_providers(hears, speaks) as voices, open_speech_providers(hears, speaks) as other_voices:
        await asyncio.gather(
            _check_answer(engine, voices, JUDGED.get(hears)),
            _check_goodbye(engine, voices),
            _check_keys(engine, voices),
            _check_silence(engine, voices),
            _check_interruption(engine, voices, reports_times=speaks in REPORTS_TIMES),
            _check_dropped_socket(engine, other_voices),
        )


def create_conversation(voices: Speech, model: Model, *, leg: Leg | None = None, **agent: object) -> LiveCall:
    live = create_call(model, Transcriber(), leg=leg, **agent)  # type: ignore[arg-type] # an agent's fields
    return change_agent(live, speech_to_text=voices.speech_to_text, text_to_speech=voices.text_to_speech, hints=PHRASES)


async def wait_for_answer(socket: Socket) -> None:
    """Wait until the caller has heard audio, and half a second more."""
    async with asyncio.timeout(60):
        await socket.spoke.wait()
    await socket.say(b"")


def list_transcript(result: CallResult) -> list[tuple[str, str]]:
    return [(entry.role, remove_format(entry.content)) for entry in result.transcript if entry.role != "tool"]


def remove_format(text: str) -> str:
    """Return the caller's sentence as most vendors write it, of a vendor that writes it with case and a stop too."""
    return SENTENCE if text == f"{SENTENCE.capitalize()}." else text


async def _check_answer(engine: CallEngine, voices: Speech, judged: float | None) -> None:
    """Check a turn, which ended with this probability if the transcriber judges turns."""
    socket = Socket()
    holding = asyncio.create_task(engine.run_call(create_conversation(voices, Model("Yes.")), socket))
    await socket.say(synthesize_speech())
    await wait_for_answer(socket)
    await socket.say(QUIET * 4000)
    socket.hang_up()
    result = await holding
    assert list_transcript(result) == [("user", SENTENCE), ("agent", "Yes.")]
    (pause,) = result.transcript[0].pauses
    assert pause.probability == judged
    assert None not in (latency := result.latencies[0].endpoint_ms, result.latencies[0].first_frame_ms), latency
    assert result.usage.text_to_speech_characters == 4
    assert result.usage.speech_to_text_seconds > 1


async def _check_goodbye(engine: CallEngine, voices: Speech) -> None:
    """Check that a tool runs, and that its answer is played to the end before the agent hangs up."""
    socket, leg = Socket(), Leg()
    live = create_conversation(voices, Model(ToolCall("1", "end_call", {}), "Goodbye then."), leg=leg)
    holding = asyncio.create_task(engine.run_call(live, socket))
    await socket.say(synthesize_speech())
    await wait_for_answer(socket)
    async with asyncio.timeout(60):
        result = await holding
    assert (result.ended_reason, list_transcript(result)) == (
        EndedReason.AGENT_HUNG_UP,
        [("user", SENTENCE), ("agent", "Goodbye then.")],
    )
    assert leg.done == ["hang_up"]


async def _check_keys(engine: CallEngine, voices: Speech) -> None:
    socket, leg = Socket(), Leg()
    live = create_conversation(voices, Model(ToolCall("1", "press_digits", {"digits": "5#"}), "Done."), leg=leg)
    holding = asyncio.create_task(engine.run_call(live, socket))
    for digit in "42#":
        socket.press(digit)
    await wait_for_answer(socket)
    await socket.say(QUIET * 4000)
    socket.hang_up()
    assert list_transcript(await holding) == [("user", "DTMF: 42"), ("agent", "Done.")]
    assert "digits 5#" in leg.done


async def _check_silence(engine: CallEngine, voices: Speech) -> None:
    async with asyncio.timeout(60):
        result = await engine.run_call(
            create_conversation(voices, Model(), greeting_message="Hello.", end_call_silence_seconds=1), Socket()
        )
    assert (result.ended_reason, list_transcript(result)) == (EndedReason.SILENCE, [("agent", "Hello.")])


async def _check_interruption(engine: CallEngine, voices: Speech, *, reports_times: bool) -> None:
    """Check that the agent stops, and that the transcript has the audible words, exactly if the voice reports times."""
    socket = Socket()
    holding = asyncio.create_task(
        engine.run_call(create_conversation(voices, Model("All right."), greeting_message=LONG), socket)
    )
    await wait_for_answer(socket)
    await socket.say(QUIET * 8000 + synthesize_speech())
    await socket.say(QUIET * 8000)
    socket.hang_up()
    result = await holding
    greeting, question, _ = result.transcript
    assert (greeting.interrupted, (question.role, remove_format(question.content))) == (
        True,
        ("user", SENTENCE),
    )
    assert socket.cleared_at is not None
    assert LONG.startswith(greeting.content)
    if reports_times:
        _, words = await collect_synthesis(LONG, 1.0)
        heard_ms = round((socket.cleared_at - socket.first_audio_at) * 1000)
        assert greeting.content in {
            _join_words_until(words, heard_ms + off) for off in (-TOLERANCE_MS, 0, TOLERANCE_MS)
        }
    else:
        assert 0 < len(greeting.content) < len(LONG)


def _join_words_until(words: list[Word], milliseconds: int) -> str:
    return " ".join(word.text for word in words if word.end_ms <= milliseconds)


async def _check_dropped_socket(engine: CallEngine, voices: Speech) -> None:
    socket = Socket()
    holding = asyncio.create_task(engine.run_call(create_conversation(voices, Model("Yes.")), socket))
    talking = asyncio.create_task(socket.say(synthesize_speech()))
    await asyncio.sleep(0.7)
    if voices.stt_vendor is not None:
        await voices.stt_vendor.drop()
    await talking
    await wait_for_answer(socket)
    socket.hang_up()
    assert ("user", SENTENCE) in list_transcript(await holding)
