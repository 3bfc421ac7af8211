"""Private data in calls: the transcript, the model, the recording while it is written, and keys."""

import asyncio
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar
from uuid import UUID

import pytest
from structlog.testing import capture_logs
from switchboard.engine.conversation.call import LiveCall, Tool
from switchboard.engine.conversation.engine import CallEngine
from switchboard.engine.conversation.toolbox import Toolbox
from switchboard.engine.redaction.detectors import BUILT_IN
from switchboard.engine.redaction.redactor import Redactor
from switchboard.plugin_sdk import (
    AgentTool,
    JsonObject,
    KeypadEntry,
    RemotePrivateDataDetector,
    SpokenText,
    ToolCall,
    ToolContext,
    ToolParameters,
)

from tests.fixtures.conversation import (
    Log,
    Model,
    Socket,
    Transcriber,
    change_agent,
    create_call,
    list_transcript,
    read_samples,
    synthesize_caller,
)
from tests.fixtures.json_access import at

pytestmark = pytest.mark.usefixtures("task_check")
KINDS = frozenset({*(detector.name for detector in BUILT_IN), "keypad"})
CARD, PIN = "4111 1111 1111 1111", "7391"
SPEECH = synthesize_caller("Hello, is there anybody at home today?")


class PaymentParameters(ToolParameters):
    amount: int
    card: str
    pin: str


class Payment(AgentTool[PaymentParameters]):
    name = "pay"
    description = "Pay."
    Parameters = PaymentParameters
    keypad_entries: ClassVar[Sequence[KeypadEntry]] = (
        KeypadEntry("card", "Please enter your card number."),
        KeypadEntry("pin", "And the PIN.", max_digits=4),
    )

    def __init__(self) -> None:
        self.paid: list[PaymentParameters] = []

    async def run(self, context: ToolContext, parameters: PaymentParameters) -> JsonObject:
        self.paid.append(parameters)
        return {"done": True, "with": parameters.pin}


def create_private_call(
    model: Model, transcriber: Transcriber, *, tools: Sequence[Tool] = (), visible: Sequence[str] = (), **fields: Any
) -> LiveCall:
    redactor = Redactor([detector() for detector in BUILT_IN], KINDS, frozenset(visible))
    return change_agent(create_call(model, transcriber, **fields), redactor=redactor, tools=tools)


def list_requests(model: Model) -> str:
    return json.dumps([message.content for request in model.requests for message in request.messages])


async def press_keys(socket: Socket, keys: str) -> None:
    for key in keys:
        socket.press(key)
        await asyncio.sleep(0.5)


async def test_neither_transcript_nor_model_has_the_callers_private_data(engine: CallEngine) -> None:
    model, socket = Model("And your mail?", "Thank you."), Socket()
    live = create_private_call(
        model, Transcriber(f"My card is {CARD}.", "ada at example dot com"), visible=["email_address"]
    )
    running = asyncio.create_task(engine.run_call(live, socket))
    for _ in range(2):
        await socket.say(SPEECH)
        await socket.spoke.wait()
        await socket.say(b"\xff" * 16_000)
    socket.hang_up()
    transcript = list_transcript(await running)
    assert ("user", "My card is [card number].") in transcript
    assert ("user", "[email address]") in transcript
    assert "4111" not in list_requests(model)
    assert "ada at example dot com" in list_requests(model)
    assert isinstance(live.log, Log)
    assert [(entry.role, entry.content) for entry in live.log.entries] == transcript


class NameService(RemotePrivateDataDetector):
    """Finds a name."""

    name, title = "full_name", "Names"

    async def search(self, spoken: SpokenText) -> list[tuple[int, int]]:
        await asyncio.sleep(0.05)
        return [match.span() for match in re.finditer("Ada Lovelace|Grace Hopper", spoken.text)]


async def test_what_a_service_finds_is_redacted_before_the_model_and_the_log_see_it(engine: CallEngine) -> None:
    """Also what the agent says by itself, and what a tool returns."""
    model, socket = Model("You will see Grace Hopper.", "Bye."), Socket()
    live = create_call(model, Transcriber("I am Ada Lovelace.", "It is Ada Lovelace who calls."))
    live = change_agent(live, redactor=Redactor([NameService()], frozenset({"full_name"})))
    running = asyncio.create_task(engine.run_call(live, socket))
    for _ in range(2):
        await socket.say(SPEECH)
        await socket.spoke.wait()
        await socket.say(b"\xff" * 16_000)
    socket.hang_up()
    transcript = list_transcript(await running)
    assert ("user", "I am [full name].") in transcript
    assert ("agent", "You will see [full name].") in transcript
    assert "Lovelace" not in list_requests(model)
    assert isinstance(live.log, Log)
    assert [(entry.role, entry.content) for entry in live.log.entries] == transcript


async def test_the_recording_is_silent_where_private_data_is_said(engine: CallEngine, tmp_path: Path) -> None:
    """The file never has it either: what is not transcribed yet is not written."""
    socket, path = Socket(), tmp_path / "call.wav"
    live = create_private_call(Model("Yes."), Transcriber("Hello there.", f"It is {CARD}.", "Bye."), recording=path)
    running = asyncio.create_task(engine.run_call(live, socket))
    loudest: list[int] = []
    for _ in range(3):
        await socket.say(b"\xff" * 24_000)
        await socket.say(SPEECH)
        if path.exists():
            loudest.append(int(read_samples(path)[40_000:, 0].max(initial=0)))
    socket.hang_up()
    await running
    caller = read_samples(path)[:, 0]
    turn = 24_000 + 4000 + len(SPEECH) + 4000
    heard = [int(caller[first * turn + 28_000 : (first + 1) * turn].max()) for first in range(3)]
    assert heard[1] == 0, heard
    assert min(heard[0], heard[2]) > 1000, heard


async def test_the_recording_is_silent_where_the_agent_says_private_data(engine: CallEngine, tmp_path: Path) -> None:
    socket, path = Socket(), tmp_path / "call.wav"
    live = create_private_call(
        Model("Hello."), Transcriber("Hi."), recording=path, greeting_message=f"Your card is {CARD}."
    )
    running = asyncio.create_task(engine.run_call(live, socket))
    await socket.say(b"\xff" * 80_000)
    await socket.say(SPEECH)
    await socket.say(b"\xff" * 24_000)
    socket.hang_up()
    assert ("agent", "Your card is [card number].") in list_transcript(await running)
    agent = read_samples(path)[:, 1]
    assert (int(agent[:80_000].max()), int(agent[84_000:].max()) > 1000) == (0, True)


async def test_words_that_are_never_transcribed_are_silenced(engine: CallEngine, tmp_path: Path) -> None:
    socket, path = Socket(), tmp_path / "call.wav"
    live = create_private_call(
        Model(), Transcriber("It is 4", final_after=asyncio.Event()), recording=path, max_call_duration_seconds=4
    )
    running = asyncio.create_task(engine.run_call(live, socket))
    await socket.say(b"\xff" * 16_000)
    await socket.say(SPEECH * 2)
    socket.hang_up()
    await running
    assert int(read_samples(path)[:, 0].max()) == 0


async def test_pressed_keys_are_masked(engine: CallEngine) -> None:
    model, socket = Model("Thank you."), Socket()
    running = asyncio.create_task(engine.run_call(create_private_call(model, Transcriber()), socket))
    await press_keys(socket, f"{PIN}#")
    await socket.spoke.wait()
    socket.hang_up()
    assert ("user", "DTMF: [keypad]") in list_transcript(await running)
    assert PIN not in list_requests(model)
    assert "DTMF: [keypad]" in list_requests(model)


@pytest.mark.parametrize("redacts", [True, False])
async def test_a_tool_gets_keys_that_no_model_sees(engine: CallEngine, tmp_path: Path, redacts: bool) -> None:
    """Also of an agent that redacts nothing else."""
    payment, socket, path = Payment(), Socket(), tmp_path / "call.wav"
    model = Model(ToolCall("1", "pay", {"amount": 17}), f"Paid with {PIN}.")
    live = create_private_call(model, Transcriber("I want to pay."), tools=[payment], recording=path)
    if not redacts:
        live = change_agent(live, redactor=Redactor())
    running = asyncio.create_task(engine.run_call(live, socket))
    await socket.say(SPEECH)
    await socket.spoke.wait()
    entered = asyncio.create_task(press_keys(socket, f"12*{CARD.replace(' ', '')}#{PIN}"))
    await socket.say(SPEECH)  # is not a turn
    await entered
    await socket.say(b"\xff" * 24_000)
    socket.hang_up()
    result = await running
    assert payment.paid == [PaymentParameters(amount=17, card=CARD.replace(" ", ""), pin=PIN)]
    (spec,) = [spec for spec in model.requests[0].tools if spec.name == "pay"]
    assert at(spec.parameters, "required") == ["amount"]
    assert "card" not in json.dumps(spec.parameters)
    assert [content for role, content in list_transcript(result) if role != "system"] == [
        "I want to pay.",
        "DTMF: [keypad]",
        '{"tool": "pay", "result": {"done": true, "with": "[keypad]"}}',
        "Please enter your card number. And the PIN. Paid with [keypad].",
    ]
    for secret in (CARD.replace(" ", ""), PIN):
        assert secret not in list_requests(model)
        assert secret not in str(result.transcript)
    first, last = len(SPEECH) + 8000, len(SPEECH) + 8000 + 8000 * 10
    assert int(read_samples(path)[first:last].max()) == 0, "the recording is paused"


async def test_a_caller_who_enters_nothing_is_told_so_by_the_agent(engine: CallEngine) -> None:
    payment, socket = Payment(), Socket()
    model = Model(ToolCall("1", "pay", {"amount": 17}), "Let us try again.")
    running = asyncio.create_task(
        engine.run_call(
            create_private_call(model, Transcriber("I want to pay."), tools=[payment], end_call_silence_seconds=60),
            socket,
        )
    )
    await socket.say(SPEECH)
    await model.asked_again.wait()
    socket.hang_up()
    await running
    assert not payment.paid
    assert "the caller entered nothing on the keypad" in list_requests(model)


class FailingPayment(Payment):
    async def run(self, context: ToolContext, parameters: PaymentParameters) -> JsonObject:
        raise ValueError(f"the PIN {parameters.pin} is wrong")


async def test_the_message_of_a_failing_tool_is_not_logged() -> None:
    toolbox = Toolbox([FailingPayment()], ToolContext(UUID(int=1), UUID(int=2), None, "+15550100001", "+15550100200"))
    with capture_logs() as lines:
        result = await toolbox.run(ToolCall("1", "pay", {"amount": 5}), {"card": CARD, "pin": PIN})
    assert result == {"error": "pay failed"}
    (line,) = [line for line in lines if line["event"] == "tool failed"]
    assert (line["extension"], line["error"], "exc_info" in line) == ("pay", "ValueError", False)
    assert PIN not in str(line)
