"""Machines that answer outbound calls, on a virtual clock: greetings, beeps, and screening assistants."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from switchboard.engine.conversation.agent_settings import VoicemailPolicy
from switchboard.engine.conversation.call import (
    CallResult,
    EndedReason,
    LiveCall,
    MachineEvent,
)
from switchboard.engine.conversation.engine import CallEngine
from switchboard.engine.conversation.machine import judge_answer_words
from switchboard.engine.conversation.variables import Variables
from switchboard.plugin_sdk.audio import encode_audio

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
GREETING = "Hi, this is Ann. I am out of the office today, and will be back on Monday, so please try again then."
MESSAGE = "This is the bakery with a message for {{name}}."
SPOKEN = "This is the bakery with a message for Ada."
LEAVE = VoicemailPolicy(action="leave_message", message=MESSAGE)


def render_tone(hertz: float = 1000.0, seconds: float = 0.5) -> bytes:
    """A beep, mu-law."""
    moments = np.arange(int(seconds * 8000)) / 8000
    return encode_audio((np.sin(2 * np.pi * hertz * moments) * 6000).astype(np.int16), "mulaw")


def create_outbound_call(
    settings: VoicemailPolicy,
    *texts: str,
    model: Model | None = None,
    judges: bool = True,
    greeting_message: str = "",
) -> LiveCall:
    """A call to somebody whose utterances are transcribed as these texts."""
    call = create_call(model or Model(), Transcriber(*texts), greeting_message=greeting_message)
    return replace(
        call,
        direction="outbound",
        voicemail_policy=settings,
        judges_answer=judges,
        variables=Variables.from_texts({"name": "Ada"}, "metadata"),
    )


async def answer_call(
    engine: CallEngine,
    call: LiveCall,
    sounds: Sequence[bytes],
    *,
    events: Sequence[MachineEvent] = (),
    seconds: float = 8.0,
) -> CallResult:
    """Run a call that is answered by these sounds, with half a second of silence after each, and these events."""
    socket = Socket()
    running = asyncio.create_task(engine.run_call(call, socket))
    for sound in sounds:
        await socket.say(sound)
    for event in events:
        session = engine.find_session(call.call_id)
        assert session is not None
        session.machine.handle_event(event)
    due = asyncio.get_running_loop().time() + seconds
    while not running.done() and asyncio.get_running_loop().time() < due:
        socket.frame()
        await asyncio.sleep(0.02)
    socket.hang_up()
    return await running


async def test_a_message_follows_the_beep(engine: CallEngine) -> None:
    call = create_outbound_call(LEAVE, "I am out of the office", greeting_message="Hello, Ada?")
    result = await answer_call(engine, call, [synthesize_caller(GREETING), render_tone()])
    assert (result.ended_reason, result.machine_answered) == (EndedReason.VOICEMAIL, True)
    assert list_transcript(result)[-1] == ("agent", SPOKEN)
    beep_ends_ms = 1000 * (len(synthesize_caller(GREETING)) / 8000 + 0.5 + 0.5)
    assert beep_ends_ms - 50 < result.transcript[-1].timestamp_ms < beep_ends_ms + 700


@pytest.mark.parametrize("hertz", [425, 800, 1000, 1400, 2000])
async def test_beeps_of_all_pitches_are_heard(engine: CallEngine, hertz: int) -> None:
    call = create_outbound_call(LEAVE, "")
    result = await answer_call(engine, call, [synthesize_caller(GREETING), render_tone(hertz, 0.25)], seconds=2.2)
    assert list_transcript(result)[-1][0] == "agent"


async def test_a_greeting_without_a_beep_ends_with_a_pause(engine: CallEngine) -> None:
    result = await answer_call(engine, create_outbound_call(LEAVE, "Please try again"), [synthesize_caller(GREETING)])
    assert result.ended_reason is EndedReason.VOICEMAIL
    assert list_transcript(result)[-1] == ("agent", SPOKEN)


async def test_a_message_that_began_too_early_begins_again_after_the_beep(engine: CallEngine) -> None:
    silence = b"\xff" * 19_000
    call = create_outbound_call(LEAVE, "Please try again")
    result = await answer_call(engine, call, [synthesize_caller(GREETING), silence, render_tone()])
    first, second = [entry for entry in result.transcript if entry.content.startswith("This is the bakery")]
    assert (first.interrupted, second.interrupted, second.content) == (True, False, SPOKEN)


async def test_a_machine_is_hung_up_on_without_a_carrier_that_detects(engine: CallEngine) -> None:
    call = create_outbound_call(VoicemailPolicy(), "I am out of the office")
    result = await answer_call(engine, call, [synthesize_caller(GREETING)])
    assert (result.ended_reason, result.machine_answered) == (EndedReason.VOICEMAIL, True)
    assert result.duration_seconds < 5


@pytest.mark.parametrize(
    "hello", ["Hello, this is Ann.", "Good morning, this is Ann Miller speaking.", "Yes, who is this?"]
)
async def test_a_person_is_talked_to(engine: CallEngine, hello: str) -> None:
    call = create_outbound_call(VoicemailPolicy(), hello, model=Model("Hello, it is the bakery."))
    result = await answer_call(engine, call, [synthesize_caller(hello)])
    assert (result.ended_reason, result.machine_answered) == (EndedReason.CALLER_HUNG_UP, False)
    assert ("agent", "Hello, it is the bakery.") in list_transcript(result)


async def test_words_of_a_greeting_decide_at_once(engine: CallEngine) -> None:
    call = create_outbound_call(VoicemailPolicy(), "You've reached Ann.")
    result = await answer_call(engine, call, [synthesize_caller("You've reached Ann.")])
    assert (result.ended_reason, result.duration_seconds < 3) == (EndedReason.VOICEMAIL, True)


async def test_a_carrier_that_detects_decides_alone(engine: CallEngine) -> None:
    call = create_outbound_call(LEAVE, "Please try again", judges=False, greeting_message="Hello, Ada?")
    greeting = [synthesize_caller(GREETING)]
    assert not (await answer_call(engine, call, greeting)).machine_answered
    events = [MachineEvent(greeting_over=False), MachineEvent(greeting_over=True), MachineEvent(greeting_over=True)]
    result = await answer_call(engine, change_agent(call, speech_to_text=Transcriber()), greeting, events=events)
    assert result.ended_reason is EndedReason.VOICEMAIL
    assert [content for role, content in list_transcript(result) if role == "agent"].count(SPOKEN) == 1


@pytest.mark.parametrize("while_it_is_prepared", [False, True])
async def test_a_machine_that_the_carrier_named_before_the_audio_hears_no_greeting(
    engine: CallEngine, while_it_is_prepared: bool
) -> None:
    call = create_outbound_call(LEAVE, "Please try again", judges=False, greeting_message="Hello, Ada?")
    if while_it_is_prepared:
        engine.report_machine(call.call_id, MachineEvent(greeting_over=False))
    else:
        call = replace(call, machine_answered=True)
    result = await answer_call(engine, call, [synthesize_caller(GREETING)])
    assert [content for role, content in list_transcript(result) if role == "agent"] == [SPOKEN]


async def test_the_model_writes_the_message_by_its_instructions(engine: CallEngine) -> None:
    model = Model("Hello Ada, your bread is ready.")
    settings = VoicemailPolicy(action="leave_message", prompt="Say that the bread is ready.")
    call = replace(create_outbound_call(settings, "Please try again", model=model), machine_answered=True)
    result = await answer_call(engine, call, [synthesize_caller(GREETING), render_tone()])
    assert list_transcript(result)[-1] == ("agent", "Hello Ada, your bread is ready.")
    assert result.ended_reason is EndedReason.VOICEMAIL
    (request,) = model.requests
    assert any("Say that the bread is ready." in message.content for message in request.messages)


async def test_a_screening_assistant_is_told_who_calls_and_why(engine: CallEngine) -> None:
    words = "Hi, if you record your name and reason for calling, I will see if this person is available."
    model = Model("It is the bakery, about your order.")
    call = create_outbound_call(VoicemailPolicy(), words, model=model)
    result = await answer_call(engine, call, [synthesize_caller("Please state your name.")], seconds=5)
    assert not result.machine_answered
    assert ("agent", "It is the bakery, about your order.") in list_transcript(result)
    assert any("screens the call" in message.content for message in model.requests[0].messages)


async def test_without_a_policy_nothing_is_judged(engine: CallEngine) -> None:
    call = create_outbound_call(VoicemailPolicy(action="off"), "You've reached Ann.", model=Model("Hello."))
    result = await answer_call(engine, call, [synthesize_caller(GREETING), render_tone()])
    assert (result.ended_reason, result.machine_answered) == (EndedReason.CALLER_HUNG_UP, False)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("You\u2019ve reached the voicemail of Ann", "machine"),
        ("Bitte hinterlassen Sie eine Nachricht nach dem Signalton.", "machine"),
        ("Deje su mensaje después de la señal", "machine"),
        ("Hi, please state your name and why you're calling", "screening"),
        ("Hello? Who is this?", None),
        ("Guten Tag, Bäckerei Müller", None),
        ("", None),
    ],
)
def test_phrases_of_machines_are_recognized(text: str, answer: str | None) -> None:
    assert judge_answer_words(text) == answer
