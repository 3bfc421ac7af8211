"""Speech over the agent: backchannels, sounds without words, and interruptions, on a virtual clock."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from switchboard.engine.conversation.call import CallResult, LiveCall
from switchboard.engine.conversation.engine import CallEngine
from switchboard.engine.conversation.media.playout import Playout
from switchboard.plugin_sdk import (
    AgentTool,
    Frame,
    JsonObject,
    SpeechToTextStream,
    ToolCall,
    ToolContext,
    ToolParameters,
    Transcript,
    TranscriptionRequest,
)

from tests.fixtures.conversation import (
    Model,
    Socket,
    Transcriber,
    change_agent,
    create_call,
    list_transcript,
    synthesize_caller,
)

pytestmark = pytest.mark.usefixtures("task_check")
GREETING = (
    "Hello, this is a rather long greeting, which goes on and on. There is time enough to break into it. "
    "And when nobody does, it ends at last."
)
NOISE = "This is a television nobody listens to"


class CarrierSocket(Socket):
    """Carrier that buffers audio and plays it in order.

    `received` is the audio, `gaps` the silences within it in seconds, and `unreturned` the marks that have not been
    reached. A mark comes back when everything before it has been played, or was dropped.
    """

    def __init__(self) -> None:
        super().__init__(marks=False)
        self.received = bytearray()
        self.gaps: list[float] = []
        self.unreturned: dict[str, asyncio.TimerHandle] = {}
        self._play_end: float | None = None

    async def send(self, message: Frame) -> None:
        await super().send(message)
        loop, parsed = asyncio.get_running_loop(), json.loads(message)
        now = loop.time()
        end = now if self._play_end is None else max(now, self._play_end)
        if parsed["event"] == "media":
            audio = base64.b64decode(parsed["media"]["payload"])
            if self._play_end is not None and now > self._play_end:
                self.gaps.append(now - self._play_end)
            self.received += audio
            self._play_end = end + len(audio) / 8000
        elif parsed["event"] == "mark":
            name = parsed["mark"]["name"]
            self.unreturned[name] = loop.call_at(end, self._return_mark, name)
        elif parsed["event"] == "clear":
            self._play_end = None
            for name, timer in list(self.unreturned.items()):
                timer.cancel()
                # As slow as a carrier far away: the next reply may have begun.
                self.unreturned[name] = loop.call_at(now + 0.5, self._return_mark, name)

    def _return_mark(self, name: str) -> None:
        del self.unreturned[name]
        self.put({"event": "mark", "mark": {"name": name}})


class _WordStream(SpeechToTextStream):
    def __init__(self, owner: "WordTranscriber") -> None:
        self._owner = owner
        self._audio = 0
        self._sent = 0
        self._transcripts: asyncio.Queue[Transcript | None] = asyncio.Queue()

    async def send(self, audio: bytes) -> None:
        self._audio += len(audio)
        words = self._owner.texts[0].split() if self._owner.texts else []
        spoken = min(len(words), round(self._audio / 8000 / self._owner.seconds_per_word))
        if spoken > self._sent:
            self._sent = spoken
            text = " ".join(words[:spoken])
            self._owner.interims.append((asyncio.get_running_loop().time(), text))
            self._transcripts.put_nowait(Transcript(text, is_final=False))

    async def finalize(self) -> None:
        self._audio = self._sent = 0
        text = self._owner.texts.pop(0) if self._owner.texts else ""
        await asyncio.sleep(0.15)
        self._transcripts.put_nowait(Transcript(text, is_final=True, finalized=True))

    async def __aiter__(self) -> AsyncIterator[Transcript]:
        while (transcript := await self._transcripts.get()) is not None:
            yield transcript

    async def close(self) -> None:
        self._transcripts.put_nowait(None)


class WordTranscriber(Transcriber):
    """Speech-to-text with an interim transcript for each word, as streaming vendors have them.

    `interims` are their times and texts.
    """

    def __init__(self, *texts: str, seconds_per_word: float = 0.3) -> None:
        super().__init__(*texts)
        self.seconds_per_word = seconds_per_word
        self.interims: list[tuple[float, str]] = []

    async def transcribe(self, request: TranscriptionRequest) -> SpeechToTextStream:
        return _WordStream(self)


async def talk(
    engine: CallEngine, call: LiveCall, *sounds: str, before: float = 0.7, after: float = 9.0
) -> tuple[CallResult, CarrierSocket]:
    """Let the caller say the sounds while the greeting is spoken, each after `before` seconds, and listen."""
    socket = CarrierSocket()
    running = asyncio.create_task(engine.run_call(call, socket))
    await socket.spoke.wait()
    for sound in sounds:
        await socket.say(b"\xff" * round(before * 8000) + synthesize_caller(sound))
    await asyncio.sleep(after)
    socket.hang_up()
    async with asyncio.timeout(60):
        return await running, socket


async def collect_undisturbed(engine: CallEngine, greeting: str = GREETING) -> bytes:
    """Return the audio of a greeting into which nobody speaks."""
    _, socket = await talk(engine, create_call(Model(), Transcriber(), greeting_message=greeting))
    return bytes(socket.received)


def list_backchannels(result: CallResult) -> list[str]:
    """Return what the caller said over the agent without stopping it."""
    return [entry.content for entry in result.transcript if entry.backchannel]


@pytest.mark.parametrize("has_interims", [True, False])
async def test_backchannels_do_not_stop_the_agent(engine: CallEngine, has_interims: bool) -> None:
    said = ("Mhm.", "Okay", "yeah, right", "I see")
    model = Model()
    call = create_call(
        model,
        (WordTranscriber if has_interims else Transcriber)(*said),
        greeting_message=GREETING,
        end_call_silence_seconds=60,
    )
    result, socket = await talk(engine, call, "mhm", "okay", "yeah right", "I see")
    agent, *others = result.transcript
    assert (agent.content, agent.interrupted) == (GREETING, False)
    assert [entry.content for entry in others] == list(said)
    assert all(entry.backchannel and agent.timestamp_ms < entry.timestamp_ms < entry.ended_ms for entry in others)
    assert not model.requests, "a backchannel is not answered"
    assert not socket.gaps, "nobody hears that the agent was about to be interrupted"
    assert "clear" not in socket.messages
    assert bytes(socket.received) == await collect_undisturbed(engine)


async def test_a_backchannel_that_goes_on_interrupts_at_the_word_that_decides(engine: CallEngine) -> None:
    transcriber = WordTranscriber("Okay but I wanted to ask")
    call = create_call(Model("Yes?"), transcriber, greeting_message=GREETING)
    result, socket = await talk(engine, call, "Okay but I wanted to ask you", after=3.0)
    decided_at = next(at for at, text in transcriber.interims if "but" in text)
    assert socket.cleared_at == pytest.approx(decided_at, abs=0.02)
    agent, caller, answer = result.transcript
    assert agent.interrupted
    assert (caller.content, caller.backchannel) == ("Okay but I wanted to ask", False)
    assert answer.content == "Yes?"


async def test_speech_without_words_holds_the_agent_which_goes_on_where_it_stopped(engine: CallEngine) -> None:
    model = Model()
    call = create_call(model, Transcriber(""), greeting_message=GREETING, end_call_silence_seconds=60)
    result, socket = await talk(engine, call, NOISE)
    assert list_transcript(result) == [("agent", GREETING)]
    assert not result.transcript[0].interrupted
    (gap,) = socket.gaps
    assert gap == pytest.approx(0.8 - 0.35, abs=0.1), "the carrier plays what it has when the hold begins"
    assert bytes(socket.received) == await collect_undisturbed(engine), "nothing is lost, and nothing repeated"
    assert "clear" not in socket.messages
    assert socket.messages.count("mark") == 1
    assert not socket.unreturned
    assert not model.requests


async def test_words_that_come_while_the_agent_is_held_interrupt_it(engine: CallEngine) -> None:
    transcriber = WordTranscriber("Wait please", seconds_per_word=1.2)
    model = Model("Yes?")
    call = create_call(model, transcriber, greeting_message=GREETING)
    result, socket = await talk(engine, call, NOISE, after=3.0)
    decided_at = transcriber.interims[0][0]
    assert socket.cleared_at == pytest.approx(decided_at, abs=0.02)
    heard = result.transcript[0]
    assert heard.interrupted
    assert 0 < len(heard.content) < len(GREETING)
    assert model.requests[0].messages[1].content == heard.content


async def test_an_agent_that_allows_no_interruptions_is_not_held(engine: CallEngine) -> None:
    call = create_call(
        Model("Later."), Transcriber("I have a question"), greeting_message=GREETING, allow_interruptions=False
    )
    result, socket = await talk(engine, call, NOISE)
    assert bytes(socket.received).startswith(await collect_undisturbed(engine))
    assert max(socket.gaps) < 0.1
    assert list_transcript(result) == [("agent", GREETING), ("user", "I have a question"), ("agent", "Later.")]


async def test_any_speech_interrupts_an_agent_that_asks_for_no_words(engine: CallEngine) -> None:
    call = create_call(Model("Yes?"), Transcriber("Mhm"), greeting_message=GREETING, interruption_min_words=0)
    result, _ = await talk(engine, call, "mhm, mhm", after=3.0)
    assert result.transcript[0].interrupted
    assert not list_backchannels(result)


async def test_too_few_words_are_a_backchannel(engine: CallEngine) -> None:
    call = create_call(
        Model(),
        Transcriber("Stop that"),
        greeting_message=GREETING,
        interruption_min_words=3,
        end_call_silence_seconds=60,
    )
    result, _ = await talk(engine, call, "Stop that")
    assert not result.transcript[0].interrupted
    assert list_backchannels(result) == ["Stop that"]


async def test_a_yes_at_the_end_of_a_question_answers_it(engine: CallEngine) -> None:
    question = "Good morning. Would you like to hear what we have baked for you today, or would you not?"
    seconds = len(await collect_undisturbed(engine, question)) / 8000
    call = create_call(Model("Fine."), Transcriber("Yes"), greeting_message=question, interruption_min_words=2)
    result, _ = await talk(engine, call, "yes", before=seconds - 1.1, after=3.0)
    assert list_transcript(result) == [("agent", question), ("user", "Yes"), ("agent", "Fine.")]
    assert not list_backchannels(result)


async def test_the_next_reply_is_not_held(engine: CallEngine) -> None:
    """The caller begins to speak while the carrier plays the last of the agent's words, and is answered at once."""
    greeting = "Good morning, here is the bakery."
    seconds = len(await collect_undisturbed(engine, greeting)) / 8000
    call = create_call(Model("Yes."), Transcriber("Hello there"), greeting_message=greeting)
    result, _ = await talk(engine, call, "Hello there", before=seconds - 0.75, after=3.0)
    assert list_transcript(result)[1:] == [("user", "Hello there"), ("agent", "Yes.")]
    latency = result.latencies[0]
    assert latency.first_frame_ms is not None
    assert latency.first_audio_ms is not None
    assert latency.first_frame_ms - latency.first_audio_ms < 50


async def test_a_backchannel_to_an_answering_machine_is_no_message(engine: CallEngine) -> None:
    call = create_call(
        Model(), Transcriber("Mhm", "Please call me back"), greeting_message="Please leave a message. Thank you."
    )
    result, socket = await talk(engine, replace(call, voicemail=True), "mhm", after=4.0)
    assert list_backchannels(result) == ["Mhm"]
    assert len(socket.received) > len(await collect_undisturbed(engine, call.agent.settings.greeting_message)), (
        "the beep follows"
    )


class SlowTool(AgentTool[ToolParameters]):
    """Tool that takes five seconds."""

    name, description, Parameters = "dig", "Dig.", ToolParameters

    async def run(self, context: ToolContext, parameters: ToolParameters) -> JsonObject:
        await asyncio.sleep(5.0)
        return {"found": "a bone"}


class DiggingModel(Model):
    """Announces a tool call with a long sentence."""

    SENTENCE = "Let me dig for it in the garden behind the house, which takes me quite a while, I am afraid."

    def __init__(self) -> None:
        super().__init__()
        self.answers = [self.SENTENCE, "Stopped."]

    async def chat(self, request: object) -> AsyncIterator[object]:  # type: ignore[override]
        first = not self.requests
        async for event in super().chat(request):  # type: ignore[arg-type]
            yield event
        if first:
            yield ToolCall("1", "dig", {})


async def test_the_model_is_told_what_was_heard_before_a_tool_call(engine: CallEngine) -> None:
    model, socket = DiggingModel(), CarrierSocket()
    call = change_agent(create_call(model, WordTranscriber("Please dig", "No stop")), tools=(SlowTool(),))
    running = asyncio.create_task(engine.run_call(call, socket))
    await socket.say(synthesize_caller("Please dig for it"))
    await socket.spoke.wait()
    await socket.say(b"\xff" * 4000 + synthesize_caller("No, stop it"))
    await asyncio.sleep(3.0)
    socket.hang_up()
    result = await running
    heard = next(entry for entry in result.transcript if entry.role == "agent")
    assert heard.interrupted
    assert 0 < len(heard.content) < len(model.SENTENCE)
    said = [message for message in model.requests[1].messages if message.role == "assistant"]
    assert [(message.content, len(message.tool_calls)) for message in said] == [(heard.content, 1)]


async def test_a_mark_that_was_dropped_says_nothing_about_the_next_reply(engine: CallEngine) -> None:
    """Carriers return the marks that they drop, and may do so after the next reply has begun."""
    socket, loop = CarrierSocket(), asyncio.get_running_loop()
    playout = Playout(socket, create_call(Model(), Transcriber()).codec, loop.time, lambda: None)
    running = asyncio.create_task(playout.run())
    playout.add(bytes(8000))
    playout.add_mark()
    await asyncio.sleep(0.1)
    playout.clear()
    playout.add(bytes(1600))
    await asyncio.sleep(0.1)
    playout.handle_mark("1")
    assert playout.count_pending(loop.time()) == 800
    running.cancel()
    await asyncio.wait((running,))
