"""The call engine on real audio and voice activity detection: turns, barge-in, and a defined end for every failure."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest
from switchboard.engine.conversation.call import CallResult, EndedReason, LiveCall
from switchboard.engine.conversation.engine import CallEngine
from switchboard.engine.conversation.speech.transcription import BACKOFF_SECONDS
from switchboard.engine.conversation.turn_taking import FAREWELLS
from switchboard.plugin_sdk import AgentTool, JsonObject, ProviderError, ToolCall, ToolContext, ToolParameters

from tests.fixtures.conversation import (
    Leg,
    Model,
    Socket,
    Speech,
    Transcriber,
    change_agent,
    create_call,
    list_transcript,
    synthesize_caller,
)

pytestmark = pytest.mark.usefixtures("task_check")
GREETING = "Hello, this is a rather long greeting, which goes on and on, so that there is time enough to break into it."


async def run(engine: CallEngine, live: LiveCall, socket: Socket) -> CallResult:
    async with asyncio.timeout(40):
        return await engine.run_call(live, socket)


async def test_a_turn_is_transcribed_answered_and_timed(engine: CallEngine) -> None:
    socket, live = Socket(), create_call(Model("Certainly."), Transcriber("can you help me"))
    running = asyncio.create_task(run(engine, live, socket))
    await socket.say(synthesize_caller("Can you help me please?"))
    await socket.spoke.wait()
    await asyncio.sleep(1.0)
    socket.hang_up()
    result = await running
    assert list_transcript(result) == [("user", "can you help me"), ("agent", "Certainly.")]
    assert result.ended_reason is EndedReason.CALLER_HUNG_UP
    latency = result.latencies[0]
    assert latency.endpoint_ms is not None
    assert latency.first_frame_ms is not None
    assert latency.endpoint_ms <= latency.first_frame_ms < latency.endpoint_ms + 500


async def test_the_clock_rests_while_there_are_no_calls() -> None:
    reads = 0

    def read_clock() -> float:
        nonlocal reads
        reads += 1
        return asyncio.get_running_loop().time()

    engine = CallEngine(read_clock)
    await engine.start()
    for _ in range(2):
        before = reads
        await asyncio.sleep(10)
        assert reads - before < 5
        socket = Socket()
        running = asyncio.create_task(run(engine, create_call(Model("Certainly."), Transcriber("hello")), socket))
        before = reads
        await asyncio.sleep(1)
        assert reads - before > 50
        socket.hang_up()
        await running
        await asyncio.sleep(0.1)
    await engine.close()


class OnePassageKnowledge:
    """Knowledge with one passage, which keeps its questions."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        self.asked_for_bread = asyncio.Event()

    async def find_passages(self, question: str, *, limit: int) -> Sequence[str]:
        self.requests.append(question)
        if "bread" in question:
            self.asked_for_bread.set()
        return ["On the shelf."]


async def test_knowledge_is_searched_once_before_the_final_transcript(engine: CallEngine) -> None:
    shelf, socket, model = OnePassageKnowledge(), Socket(), Model("Certainly.")
    transcriber = Transcriber("Where is the bread?", final_after=shelf.asked_for_bread)
    running = asyncio.create_task(run(engine, change_agent(create_call(model, transcriber), knowledge=shelf), socket))
    await socket.say(synthesize_caller("Where is the bread?"))
    await socket.spoke.wait()
    socket.hang_up()
    assert ("user", "Where is the bread?") in list_transcript(await running)
    assert shelf.requests[1:] == ["where is the bread?"], "the first warms up"
    assert model.requests[0].messages[1].content.endswith("On the shelf.")


async def test_replies_are_spoken_in_words_and_stored_as_written(engine: CallEngine) -> None:
    socket, speech = Socket(), Speech()
    live = change_agent(
        create_call(
            Model(),
            Transcriber(),
            greeting_message="That is **$5**. Ask Siobhan.",
            pronunciations={"siobhan": "Shivawn"},
        ),
        text_to_speech=speech,
    )
    running = asyncio.create_task(run(engine, live, socket))
    await socket.spoke.wait()
    await socket.say(b"\xff" * 28_000)
    socket.hang_up()
    result = await running
    assert [request.text for request in speech.requests] == ["That is five dollars. Ask Shivawn."]
    assert list_transcript(result) == [("agent", "That is **$5**. Ask Siobhan.")]


async def test_the_voice_knows_what_it_has_said_of_the_reply(engine: CallEngine) -> None:
    speech, socket = Speech(), Socket()
    live = change_agent(
        create_call(Model("First of all, good morning to you. The second is longer. Third."), Transcriber("hi")),
        text_to_speech=speech,
    )
    running = asyncio.create_task(run(engine, live, socket))
    await socket.say(synthesize_caller("Good morning, can you help me"))
    await asyncio.sleep(10)
    socket.hang_up()
    await running
    first, *others = speech.requests
    assert others
    assert first.previous_text == ""
    assert {request.reply_id for request in others} == {first.reply_id} != {""}
    assert others[-1].previous_text == " ".join(request.text for request in speech.requests[:-1])


async def test_prompts_are_filled_with_the_calls_variables(engine: CallEngine) -> None:
    model, socket = Model("Yes."), Socket()
    running = asyncio.create_task(run(engine, create_call(model, Transcriber("hello")), socket))
    await socket.say(synthesize_caller("Hello there, good morning."))
    await socket.spoke.wait()
    socket.hang_up()
    await running
    assert model.requests[0].messages[0].content == "Be kind."


@pytest.mark.parametrize(
    ("allowed", "words", "text", "stops"),
    [
        (True, 0, "stop please", True),
        (True, 2, "stop please", True),
        (True, 3, "mhm", False),
        (False, 0, "stop", False),
    ],
)
async def test_speech_interrupts_the_agent(
    engine: CallEngine, allowed: bool, words: int, text: str, stops: bool
) -> None:
    socket = Socket()
    live = create_call(
        Model("All right."),
        Transcriber(text),
        greeting_message=GREETING,
        allow_interruptions=allowed,
        interruption_min_words=words,
    )
    running = asyncio.create_task(run(engine, live, socket))
    await socket.spoke.wait()
    await socket.say(b"\xff" * 8000 + synthesize_caller("Stop it please, stop it"))
    await asyncio.sleep(0.3)
    socket.hang_up()
    result = await running
    first = result.transcript[0]
    assert first.interrupted
    assert GREETING.startswith(first.content)
    assert 0 < len(first.content) < len(GREETING)
    # If the words did not stop the agent, the caller's hang-up cut the greeting, and the words became no turn.
    turns = [entry.content for entry in result.transcript if entry.role == "user" and not entry.backchannel]
    assert (turns == [text]) is stops


async def test_no_audio_is_sent_after_an_interruption(engine: CallEngine) -> None:
    """The next message clears the carrier's buffer, so the agent is silent within one frame of the decision."""
    socket = Socket()
    live = create_call(Model(), Transcriber(), greeting_message=GREETING, interruption_min_words=0)
    running = asyncio.create_task(run(engine, live, socket))
    await socket.spoke.wait()
    await socket.say(synthesize_caller("Stop it please, stop it now"))
    assert socket.cleared_at is not None
    assert socket.audio_after_clear == 0
    socket.hang_up()
    await running


class NeverEndingTool(AgentTool[ToolParameters]):
    """Tool that never ends."""

    name, description, Parameters = "dig", "Dig.", ToolParameters

    async def run(self, context: ToolContext, parameters: ToolParameters) -> JsonObject:
        await asyncio.Event().wait()
        return {}


async def test_an_interrupted_tool_call_has_a_result(engine: CallEngine) -> None:
    """Vendors refuse a conversation with a tool call without a result, and the agent would never answer again."""
    model = Model(ToolCall("1", "dig", {}), "All right.")
    socket, live = Socket(), create_call(model, Transcriber("dig please", "stop it"))
    running = asyncio.create_task(run(engine, change_agent(live, tools=(NeverEndingTool(),)), socket))
    await socket.say(synthesize_caller("Dig for it please"))
    await socket.spoke.wait()
    await socket.say(b"\xff" * 4000 + synthesize_caller("Stop it please, stop it"))
    await model.asked_again.wait()
    socket.hang_up()
    await running
    messages = model.requests[1].messages
    place = next(at for at, message in enumerate(messages) if message.tool_calls)
    assert (messages[place + 1].role, messages[place + 1].tool_call_id) == ("tool", "1")
    assert "spoke before this was finished" in messages[place + 1].content


async def test_silence_and_maximum_duration_end_a_call(engine: CallEngine) -> None:
    for reason, silence, longest in ((EndedReason.SILENCE, 1, 60), (EndedReason.MAX_DURATION, 60, 1)):
        socket, leg = Socket(), Leg()
        live = create_call(
            Model(), Transcriber(), leg=leg, end_call_silence_seconds=silence, max_call_duration_seconds=longest
        )
        result = await run(engine, live, socket)
        assert result.ended_reason is reason
        assert leg.done == ["hang_up"]
        assert socket.closed.is_set()


async def test_missing_marks_delay_nothing(engine: CallEngine) -> None:
    socket = Socket(marks=False)
    live = create_call(Model(), Transcriber(), greeting_message="Hello.", end_call_silence_seconds=1)
    assert (await run(engine, live, socket)).ended_reason is EndedReason.SILENCE


async def test_the_goodbye_is_played_before_the_agent_hangs_up(engine: CallEngine) -> None:
    socket, leg = Socket(), Leg()
    live = create_call(Model(ToolCall("1", "end_call", {}), "Goodbye then."), Transcriber("bye"), leg=leg)
    running = asyncio.create_task(run(engine, live, socket))
    await socket.say(synthesize_caller("Goodbye, see you tomorrow"))
    result = await running
    assert result.ended_reason is EndedReason.AGENT_HUNG_UP
    assert list_transcript(result)[-1] == ("agent", "Goodbye then.")
    assert leg.done == ["hang_up"]


async def test_pressed_digits_are_a_turn_and_agents_can_send_digits(engine: CallEngine) -> None:
    socket, leg = Socket(), Leg()
    live = create_call(Model(ToolCall("1", "press_digits", {"digits": "5#"}), "Done."), Transcriber(), leg=leg)
    running = asyncio.create_task(run(engine, live, socket))
    for digit in "42#":
        socket.press(digit)
    await socket.spoke.wait()
    socket.hang_up()
    assert list_transcript(await running)[0] == ("user", "DTMF: 42")
    assert "digits 5#" in leg.done


async def test_the_agent_apologizes_for_one_model_failure_and_ends_the_call_after_three(engine: CallEngine) -> None:
    socket = Socket()
    live = create_call(Model(*(ProviderError("overloaded") for _ in range(3))), Transcriber("one", "two", "three"))
    running = asyncio.create_task(run(engine, live, socket))
    for _ in range(3):
        await socket.say(synthesize_caller("Can you hear me now"))
        await asyncio.sleep(0.2)
    result = await running
    assert (result.ended_reason, result.error_message) == (EndedReason.PROVIDER_FAILED, "overloaded")


async def test_a_call_without_a_voice_fails(engine: CallEngine) -> None:
    live = change_agent(
        create_call(Model(), Transcriber(), greeting_message="Hello."), text_to_speech=Speech(fails=True)
    )
    result = await run(engine, live, Socket())
    assert (result.ended_reason, result.error_message) == (EndedReason.PROVIDER_FAILED, "no voice today")


async def test_a_lost_transcription_stream_is_reopened_without_loss(engine: CallEngine) -> None:
    socket, transcriber = Socket(), Transcriber("still here", losses=1)
    running = asyncio.create_task(run(engine, create_call(Model("Good."), transcriber), socket))
    await socket.say(synthesize_caller("Are you still there my friend"))
    await socket.spoke.wait()
    socket.hang_up()
    assert ("user", "still here") in list_transcript(await running)


async def test_a_working_stream_resets_the_count_of_losses(engine: CallEngine) -> None:
    heard = [f"question {number}" for number in range(len(BACKOFF_SECONDS) + 1)]
    socket, transcriber = Socket(), Transcriber(*heard)
    running = asyncio.create_task(run(engine, create_call(Model("Go on."), transcriber), socket))
    for _ in heard:
        transcriber.losses = 1
        await socket.say(synthesize_caller("Can you help me please?"))
    socket.hang_up()
    result = await running
    assert [text for role, text in list_transcript(result) if role == "user"] == heard
    assert result.ended_reason is EndedReason.CALLER_HUNG_UP


async def test_unknown_messages_are_dropped(engine: CallEngine) -> None:
    socket = Socket()
    socket._to_us.put_nowait("garbage")
    result = await run(engine, create_call(Model(), Transcriber(), end_call_silence_seconds=1), socket)
    assert result.ended_reason is EndedReason.SILENCE


async def test_voicemail_greets_beeps_and_listens(engine: CallEngine) -> None:
    socket = Socket()
    live = replace(create_call(Model(), Transcriber("please call me back")), voicemail=True)
    running = asyncio.create_task(run(engine, live, socket))
    await socket.spoke.wait()
    await asyncio.sleep(6.5)
    await socket.say(synthesize_caller("Please call me back tomorrow"))
    socket.hang_up()
    result = await running
    assert [role for role, _ in list_transcript(result)] == ["agent", "user"]


async def test_a_call_canceled_before_its_stream_starts_ends(engine: CallEngine) -> None:
    live = create_call(Model(), Transcriber())
    engine.end_call(live.call_id, EndedReason.VOICEMAIL)
    assert (await run(engine, live, Socket())).ended_reason is EndedReason.VOICEMAIL


async def test_draining_ends_every_call_with_a_sentence(engine: CallEngine) -> None:
    sockets = [Socket() for _ in range(5)]
    running = [
        asyncio.create_task(run(engine, create_call(Model(), Transcriber(), greeting_message=GREETING), socket))
        for socket in sockets
    ]
    await asyncio.gather(*(socket.spoke.wait() for socket in sockets))
    await engine.drain(0)
    for result in await asyncio.gather(*running):
        assert result.ended_reason is EndedReason.SHUTDOWN
        assert list_transcript(result)[-1] == ("agent", FAREWELLS["en"])


async def test_draining_waits_for_calls_that_end_by_themselves(engine: CallEngine) -> None:
    sockets = [Socket(), Socket()]
    ending, staying = (asyncio.create_task(run(engine, create_call(Model(), Transcriber()), each)) for each in sockets)
    await asyncio.sleep(0.5)
    draining = asyncio.create_task(engine.drain(5))
    await asyncio.sleep(2)
    assert not engine.stopping.is_set()
    sockets[0].hang_up()
    assert (await ending).ended_reason is EndedReason.CALLER_HUNG_UP
    assert (await staying).ended_reason is EndedReason.SHUTDOWN
    await draining


async def test_a_farewell_is_not_interrupted(engine: CallEngine) -> None:
    socket = Socket()
    running = asyncio.create_task(run(engine, create_call(Model(), Transcriber("No, wait")), socket))
    await asyncio.sleep(0.5)
    draining = asyncio.create_task(engine.drain(0))
    await socket.spoke.wait()
    await socket.say(synthesize_caller("No, please wait a moment"))
    result = await running
    await draining
    assert ("agent", FAREWELLS["en"]) in list_transcript(result)
    assert result.ended_reason is EndedReason.SHUTDOWN
