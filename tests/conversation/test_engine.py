"""The call engine on real audio and voice activity detection: turns, barge-in, and a defined end for every failure."""

import asyncio
import wave
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from switchboard.engine.conversation import transfer as transferring
from switchboard.engine.conversation.call import CallResult, EndedReason, LiveCall, TransferTargetEvent
from switchboard.engine.conversation.engine import CallEngine
from switchboard.engine.conversation.speech import transcription
from switchboard.plugin_sdk import AgentTool, JsonObject, ProviderError, ToolCall, ToolContext, ToolParameters

from tests.fixtures.conversation import Leg, Model, Socket, Speech, Transcriber, call, voice

VIRTUAL_CLOCK = True
pytestmark = pytest.mark.usefixtures("task_check")
GREETING = "Hello, this is a rather long greeting, which goes on and on, so that there is time enough to break into it."


async def run(engine: CallEngine, live: LiveCall, socket: Socket) -> CallResult:
    async with asyncio.timeout(40):
        return await engine.run_call(live, socket)


def said(result: CallResult) -> list[tuple[str, str]]:
    return [(entry.role, entry.content) for entry in result.transcript]


async def test_a_turn_is_heard_answered_and_timed(engine: CallEngine) -> None:
    socket, live = Socket(), call(Model("Certainly."), Transcriber("can you help me"))
    running = asyncio.create_task(run(engine, live, socket))
    await socket.say(voice("Can you help me please?"))
    await socket.spoke.wait()
    await asyncio.sleep(1.0)
    socket.hang_up()
    result = await running
    assert said(result) == [("user", "can you help me"), ("agent", "Certainly.")]
    assert result.ended_reason is EndedReason.CALLER_HUNG_UP
    latency = result.latencies[0]
    assert latency.endpoint_ms is not None
    assert latency.first_frame_ms is not None
    assert latency.endpoint_ms <= latency.first_frame_ms < latency.endpoint_ms + 500


class Shelf:
    """Knowledge with one passage, which keeps its questions."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.asked_for_bread = asyncio.Event()

    async def find_passages(self, question: str, *, limit: int) -> Sequence[str]:
        self.asked.append(question)
        if "bread" in question:
            self.asked_for_bread.set()
        return ["On the shelf."]


async def test_knowledge_is_searched_before_the_final_transcript_and_once(engine: CallEngine) -> None:
    shelf, socket, model = Shelf(), Socket(), Model("Certainly.")
    transcriber = Transcriber("Where is the bread?", final_after=shelf.asked_for_bread)
    running = asyncio.create_task(run(engine, replace(call(model, transcriber), knowledge=shelf), socket))
    await socket.say(voice("Where is the bread?"))
    await socket.spoke.wait()
    socket.hang_up()
    assert ("user", "Where is the bread?") in said(await running)
    assert shelf.asked[1:] == ["where is the bread?"], "the first warms up"
    assert model.asked[0].messages[1].content.endswith("On the shelf.")


async def test_what_is_written_is_read_aloud_in_words_and_kept_as_written(engine: CallEngine) -> None:
    socket, speech = Socket(), Speech()
    live = replace(
        call(
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
    assert [request.text for request in speech.asked] == ["That is five dollars. Ask Shivawn."]
    assert said(result) == [("agent", "That is **$5**. Ask Siobhan.")]


async def test_prompts_are_filled_with_the_calls_variables(engine: CallEngine) -> None:
    model, socket = Model("Yes."), Socket()
    running = asyncio.create_task(run(engine, call(model, Transcriber("hello")), socket))
    await socket.say(voice("Hello there, good morning."))
    await socket.spoke.wait()
    socket.hang_up()
    await running
    assert model.asked[0].messages[0].content == "Be kind."


@pytest.mark.parametrize(
    ("allowed", "words", "text", "stops"),
    [
        (True, 0, "stop please", True),
        (True, 2, "stop please", True),
        (True, 3, "mhm", False),
        (False, 0, "stop", False),
    ],
)
async def test_barge_in(engine: CallEngine, allowed: bool, words: int, text: str, stops: bool) -> None:
    socket = Socket()
    live = call(
        Model("All right."),
        Transcriber(text),
        greeting_message=GREETING,
        allow_interruptions=allowed,
        interruption_min_words=words,
    )
    running = asyncio.create_task(run(engine, live, socket))
    await socket.spoke.wait()
    await socket.say(b"\xff" * 8000 + voice("Stop it please, stop it"))
    await asyncio.sleep(0.3)
    socket.hang_up()
    result = await running
    first = result.transcript[0]
    assert first.interrupted
    assert GREETING.startswith(first.content)
    assert 0 < len(first.content) < len(GREETING)
    # If the words did not stop the agent, the caller's hang-up cut the greeting, and the words became no turn.
    assert (("user", text) in said(result)) is stops


async def test_after_the_decision_nothing_more_is_sent(engine: CallEngine) -> None:
    """The next message clears the carrier's buffer, so the agent is silent within one frame of the decision."""
    socket = Socket()
    live = call(Model(), Transcriber(), greeting_message=GREETING, interruption_min_words=0)
    running = asyncio.create_task(run(engine, live, socket))
    await socket.spoke.wait()
    await socket.say(voice("Stop it please, stop it now"))
    assert socket.cleared_at is not None
    assert socket.audio_after_clear == 0
    socket.hang_up()
    await running


class Dig(AgentTool[ToolParameters]):
    """Tool that never ends."""

    name, description, Parameters = "dig", "Dig.", ToolParameters

    async def run(self, context: ToolContext, parameters: ToolParameters) -> JsonObject:
        await asyncio.Event().wait()
        return {}


async def test_a_tool_that_is_broken_into_leaves_no_call_without_a_result(engine: CallEngine) -> None:
    """Vendors refuse a conversation with a tool call without a result, and the agent would never answer again."""
    model = Model(ToolCall("1", "dig", {}), "All right.")
    socket, live = Socket(), call(model, Transcriber("dig please", "stop it"))
    running = asyncio.create_task(run(engine, replace(live, tools=(Dig(),)), socket))
    await socket.say(voice("Dig for it please"))
    await socket.spoke.wait()
    await socket.say(b"\xff" * 4000 + voice("Stop it please, stop it"))
    await model.asked_again.wait()
    socket.hang_up()
    await running
    asked = model.asked[1].messages
    place = next(at for at, message in enumerate(asked) if message.tool_calls)
    assert (asked[place + 1].role, asked[place + 1].tool_call_id) == ("tool", "1")
    assert "spoke before this was finished" in asked[place + 1].content


async def test_silence_and_length_end_a_call(engine: CallEngine) -> None:
    for reason, silence, longest in ((EndedReason.SILENCE, 1, 60), (EndedReason.MAX_DURATION, 60, 1)):
        socket, leg = Socket(), Leg()
        live = call(
            Model(), Transcriber(), leg=leg, end_call_silence_seconds=silence, max_call_duration_seconds=longest
        )
        result = await run(engine, live, socket)
        assert result.ended_reason is reason
        assert leg.done == ["hang_up"]
        assert socket.closed.is_set()


async def test_marks_that_never_come_back_delay_nothing(engine: CallEngine) -> None:
    socket = Socket(marks=False)
    live = call(Model(), Transcriber(), greeting_message="Hello.", end_call_silence_seconds=1)
    assert (await run(engine, live, socket)).ended_reason is EndedReason.SILENCE


async def test_the_goodbye_is_heard_before_the_agent_hangs_up(engine: CallEngine) -> None:
    socket, leg = Socket(), Leg()
    live = call(Model(ToolCall("1", "end_call", {}), "Goodbye then."), Transcriber("bye"), leg=leg)
    running = asyncio.create_task(run(engine, live, socket))
    await socket.say(voice("Goodbye, see you tomorrow"))
    result = await running
    assert result.ended_reason is EndedReason.AGENT_HUNG_UP
    assert said(result)[-1] == ("agent", "Goodbye then.")
    assert leg.done == ["hang_up"]


async def test_a_transfer_ends_the_call_and_a_failed_one_does_not(engine: CallEngine) -> None:
    socket, leg = Socket(), Leg(refuses_transfer=True)
    transfer = ToolCall("1", "transfer_call", {"to_number": "+15550100002"})
    live = call(Model(transfer, "Connecting you.", transfer, "Trying again."), Transcriber("a human"), leg=leg)
    running = asyncio.create_task(run(engine, live, socket))
    await socket.say(voice("Can I speak to a human please"))
    result = await running
    assert (result.ended_reason, result.transferred_to) == (EndedReason.TRANSFERRED, "+15550100002")
    assert leg.done == ["transfer +15550100002"]


WARM = ToolCall("1", "transfer_call", {"to_number": "+15550100002", "introduction": "Ada, about bread."})


async def warm(engine: CallEngine, leg: Leg, model: Model) -> tuple[Socket, LiveCall, asyncio.Task[CallResult]]:
    """Run a call until the target of a warm transfer is being called."""
    socket, live = Socket(), call(model, Transcriber("a human"), leg=leg)
    running = asyncio.create_task(run(engine, live, socket))
    await socket.say(voice("Can I speak to a human please"))
    await leg.introducing.wait()
    return socket, live, running


async def send_events(engine: CallEngine, live: LiveCall, *events: TransferTargetEvent) -> None:
    session = engine.find_session(live.call_id)
    assert session is not None
    for event in events:
        session.handle_target_event(event)


async def test_a_warm_transfer_connects_once_the_target_waits(engine: CallEngine) -> None:
    leg = Leg()
    _, live, running = await warm(engine, leg, Model(WARM, "One moment."))
    await send_events(engine, live, TransferTargetEvent("an earlier one", "busy"), TransferTargetEvent("target"))
    result = await running
    assert (result.ended_reason, result.transferred_to) == (EndedReason.TRANSFERRED, "+15550100002")
    assert leg.done == ["introduce +15550100002 Ada, about bread. en-US", "connect target"]


async def test_a_caller_who_hangs_up_during_a_warm_transfer_ends_the_targets_call(engine: CallEngine) -> None:
    leg = Leg()
    socket, _, running = await warm(engine, leg, Model(WARM, "One moment."))
    socket.hang_up()
    result = await running
    assert (result.ended_reason, result.transferred_to) == (EndedReason.CALLER_HUNG_UP, None)
    assert leg.done[1:] == ["hang_up target"]


@pytest.mark.parametrize("how", ["busy", "silent", "refused"])
async def test_a_warm_transfer_that_fails_leaves_the_caller_with_the_agent(
    engine: CallEngine, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transferring, "INTRODUCTION_SECONDS", 0.2 if how == "silent" else 60)
    leg, model = (
        Leg(refuses_transfer=how == "refused"),
        Model(WARM, "One moment.", ToolCall("2", "end_call", {}), "They are not there."),
    )
    _, live, running = await warm(engine, leg, model)
    if how != "silent":
        await send_events(engine, live, TransferTargetEvent("target", "busy" if how == "busy" else None))
    result = await running
    assert (result.ended_reason, result.transferred_to) == (EndedReason.AGENT_HUNG_UP, None)
    assert leg.done[1:] == (["hang_up"] if how == "busy" else ["hang_up target", "hang_up"])
    failure = {"busy": "they did not answer (busy)", "silent": "nobody answered", "refused": "busy"}[how]
    assert any(
        message.content == f"The transfer did not work: {failure}. Tell the caller."
        for message in model.asked[-1].messages
    )


async def test_digits_are_a_turn_and_can_be_pressed(engine: CallEngine) -> None:
    socket, leg = Socket(), Leg()
    live = call(Model(ToolCall("1", "press_digits", {"digits": "5#"}), "Done."), Transcriber(), leg=leg)
    running = asyncio.create_task(run(engine, live, socket))
    for digit in "42#":
        socket.press(digit)
    await socket.spoke.wait()
    socket.hang_up()
    assert said(await running)[0] == ("user", "DTMF: 42")
    assert "digits 5#" in leg.done


async def test_a_model_that_fails_once_is_apologized_for_and_three_times_ends_the_call(engine: CallEngine) -> None:
    socket = Socket()
    live = call(Model(*(ProviderError("overloaded") for _ in range(3))), Transcriber("one", "two", "three"))
    running = asyncio.create_task(run(engine, live, socket))
    for _ in range(3):
        await socket.say(voice("Can you hear me now"))
        await asyncio.sleep(0.2)
    result = await running
    assert (result.ended_reason, result.error_message) == (EndedReason.PROVIDER_FAILED, "overloaded")


async def test_without_a_voice_the_call_fails(engine: CallEngine) -> None:
    live = replace(call(Model(), Transcriber(), greeting_message="Hello."), text_to_speech=Speech(fails=True))
    result = await run(engine, live, Socket())
    assert (result.ended_reason, result.error_message) == (EndedReason.PROVIDER_FAILED, "no voice today")


async def test_a_lost_transcription_stream_is_reopened_and_nothing_is_lost(engine: CallEngine) -> None:
    socket, transcriber = Socket(), Transcriber("still here", losses=1)
    running = asyncio.create_task(run(engine, call(Model("Good."), transcriber), socket))
    await socket.say(voice("Are you still there my friend"))
    await socket.spoke.wait()
    socket.hang_up()
    assert ("user", "still here") in said(await running)


async def test_a_stream_that_worked_in_between_may_be_lost_again(
    engine: CallEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transcription, "BACKOFF_SECONDS", (0.0,))
    socket, transcriber = Socket(), Transcriber("first", "second")
    running = asyncio.create_task(run(engine, call(Model("Go on."), transcriber), socket))
    for _ in range(2):
        transcriber.losses = 1
        await socket.say(voice("Can you help me please?"))
    socket.hang_up()
    result = await running
    assert [text for role, text in said(result) if role == "user"] == ["first", "second"]
    assert result.ended_reason is EndedReason.CALLER_HUNG_UP


async def test_messages_that_are_not_understood_are_dropped(engine: CallEngine) -> None:
    socket = Socket()
    socket._to_us.put_nowait("garbage")
    result = await run(engine, call(Model(), Transcriber(), end_call_silence_seconds=1), socket)
    assert result.ended_reason is EndedReason.SILENCE


async def test_a_recording_holds_both_voices_on_their_channels(engine: CallEngine, tmp_path: Path) -> None:
    socket, path = Socket(), tmp_path / "calls" / "one.wav"
    live = call(Model("A good answer."), Transcriber("hello"), recording=path)
    running = asyncio.create_task(run(engine, live, socket))
    await socket.say(voice("Hello, is there anybody"))
    await socket.spoke.wait()
    await socket.say(b"")
    socket.hang_up()
    await running
    with wave.open(str(path)) as file:
        samples = np.frombuffer(file.readframes(file.getnframes()), dtype="<i2").reshape(-1, 2).astype(int)
    half = int(8000 * 0.8)
    assert np.abs(samples[:half, 0]).max() > 1000 > np.abs(samples[:half, 1]).max()
    assert np.abs(samples[:, 1]).max() > 1000


async def test_a_call_that_is_taken_late_is_recorded_from_its_beginning(engine: CallEngine, tmp_path: Path) -> None:
    """Audio from before the call was taken arrives in one burst; it and everything after it are recorded in place."""
    socket, path, before = Socket(), tmp_path / "call.wav", voice("Hello, is there anybody?")
    await socket.say(before)
    running = asyncio.create_task(run(engine, call(Model(), Transcriber(), recording=path), socket))
    await socket.say(voice("Goodbye"))
    socket.hang_up()
    result, seconds = await running, asyncio.get_running_loop().time() - socket.opened_at
    assert abs(result.duration_seconds - seconds) < 0.5
    with wave.open(str(path)) as recorded:
        assert abs(recorded.getnframes() / 8000 - result.duration_seconds) < 0.5
        caller = np.abs(np.frombuffer(recorded.readframes(recorded.getnframes()), dtype="<i2")[::2])
    assert (caller[:4000].max() > 1000, caller[-12000:].max() > 1000) == (True, True)
    assert caller[len(before) + 1000 : len(before) + 3500].max() < 1000, "between the two nothing was said"


async def test_an_answering_machine_greets_beeps_and_listens(engine: CallEngine) -> None:
    socket = Socket()
    live = replace(call(Model(), Transcriber("please call me back")), voicemail=True)
    running = asyncio.create_task(run(engine, live, socket))
    await socket.spoke.wait()
    await asyncio.sleep(6.5)
    await socket.say(voice("Please call me back tomorrow"))
    socket.hang_up()
    result = await running
    assert [role for role, _ in said(result)] == ["agent", "user"]


async def test_a_call_that_is_ended_before_its_stream_starts_ends(engine: CallEngine) -> None:
    live = call(Model(), Transcriber())
    engine.end_call(live.call_id, EndedReason.VOICEMAIL)
    assert (await run(engine, live, Socket())).ended_reason is EndedReason.VOICEMAIL


async def test_draining_ends_every_call_in_a_defined_way(engine: CallEngine) -> None:
    sockets = [Socket() for _ in range(5)]
    running = [
        asyncio.create_task(run(engine, call(Model(), Transcriber(), greeting_message=GREETING), socket))
        for socket in sockets
    ]
    await asyncio.gather(*(socket.spoke.wait() for socket in sockets))
    await engine.drain(EndedReason.SHUTDOWN)
    assert {result.ended_reason for result in await asyncio.gather(*running)} == {EndedReason.SHUTDOWN}
