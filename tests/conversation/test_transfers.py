"""Transfers of a call: blind, and warm with an introduction that the target accepts."""

import asyncio

import pytest
from switchboard.engine.conversation.call import CallResult, EndedReason, LiveCall, TransferTargetEvent
from switchboard.engine.conversation.engine import CallEngine
from switchboard.engine.conversation.transfer import INTRODUCTION_SECONDS
from switchboard.plugin_sdk import ToolCall
from switchboard.plugin_sdk.audio import decode_audio

from tests.fixtures.conversation import (
    Leg,
    Model,
    Socket,
    Transcriber,
    create_call,
    synthesize_caller,
)
from tests.fixtures.virtual_clock import CLOCK

pytestmark = pytest.mark.usefixtures("task_check")


async def run(engine: CallEngine, live: LiveCall, socket: Socket) -> CallResult:
    async with asyncio.timeout(INTRODUCTION_SECONDS + 40):
        return await engine.run_call(live, socket)


async def test_a_successful_transfer_ends_the_call_and_a_failed_one_does_not(engine: CallEngine) -> None:
    socket, leg = Socket(), Leg(refuses_transfer=True)
    transfer = ToolCall("1", "transfer_call", {"to_number": "+15550100002"})
    live = create_call(Model(transfer, "Connecting you.", transfer, "Trying again."), Transcriber("a human"), leg=leg)
    running = asyncio.create_task(run(engine, live, socket))
    await socket.say(synthesize_caller("Can I speak to a human please"))
    result = await running
    assert (result.ended_reason, result.transferred_to) == (EndedReason.TRANSFERRED, "+15550100002")
    assert leg.done == ["transfer +15550100002"]


WARM = ToolCall("1", "transfer_call", {"to_number": "+15550100002", "introduction": "Ada, about bread."})


async def start_warm_transfer(
    engine: CallEngine, leg: Leg, model: Model
) -> tuple[Socket, LiveCall, asyncio.Task[CallResult]]:
    """Run a call until the target of a warm transfer is being called."""
    socket, live = Socket(), create_call(model, Transcriber("a human"), leg=leg)
    running = asyncio.create_task(run(engine, live, socket))
    await socket.say(synthesize_caller("Can I speak to a human please"))
    await leg.introducing.wait()
    return socket, live, running


async def send_events(engine: CallEngine, live: LiveCall, *events: TransferTargetEvent) -> None:
    session = engine.find_session(live.call_id)
    assert session is not None
    for event in events:
        session.transfer.handle_event(event)


async def test_a_warm_transfer_connects_once_the_target_is_ready(engine: CallEngine) -> None:
    leg = Leg()
    _, live, running = await start_warm_transfer(engine, leg, Model(WARM, "One moment."))
    await send_events(engine, live, TransferTargetEvent("an earlier one", "busy"), TransferTargetEvent("target"))
    result = await running
    assert (result.ended_reason, result.transferred_to) == (EndedReason.TRANSFERRED, "+15550100002")
    assert leg.done == ["introduce +15550100002 Ada, about bread. en-US", "connect target"]


async def test_the_agent_speaks_the_introduction_for_a_carrier_that_cannot(engine: CallEngine) -> None:
    leg = Leg(speaks=False)
    _, live, running = await start_warm_transfer(engine, leg, Model(WARM, "One moment."))
    await send_events(engine, live, TransferTargetEvent("target"))
    result = await running
    assert leg.done[-1] == "connect target"
    assert len(leg.spoken) > 1000, "mu-law at 8 kHz"
    assert max(abs(int(sample)) for sample in decode_audio(leg.spoken, "mulaw")) > 1000
    assert result.usage.text_to_speech_characters >= len("Ada, about bread.")


async def test_a_caller_who_hangs_up_during_a_warm_transfer_ends_the_targets_call(engine: CallEngine) -> None:
    leg = Leg()
    socket, _, running = await start_warm_transfer(engine, leg, Model(WARM, "One moment."))
    socket.hang_up()
    result = await running
    assert (result.ended_reason, result.transferred_to) == (EndedReason.CALLER_HUNG_UP, None)
    assert leg.done[1:] == ["hang_up target"]


@pytest.mark.parametrize("obstacle", ["busy", "silent", "refused"])
async def test_a_failed_warm_transfer_leaves_the_caller_with_the_agent(engine: CallEngine, obstacle: str) -> None:
    leg, model = (
        Leg(refuses_transfer=obstacle == "refused"),
        Model(WARM, "One moment.", ToolCall("2", "end_call", {}), "They are not there."),
    )
    _, live, running = await start_warm_transfer(engine, leg, model)
    if obstacle == "silent":
        await asyncio.sleep(1)
        CLOCK.advance(INTRODUCTION_SECONDS)
    else:
        await send_events(engine, live, TransferTargetEvent("target", "busy" if obstacle == "busy" else None))
    result = await running
    assert (result.ended_reason, result.transferred_to) == (EndedReason.AGENT_HUNG_UP, None)
    assert leg.done[1:] == (["hang_up"] if obstacle == "busy" else ["hang_up target", "hang_up"])
    failure = {"busy": "they did not answer (busy)", "silent": "nobody answered", "refused": "busy"}[obstacle]
    assert any(
        message.content == f"The transfer did not work: {failure}. Tell the caller."
        for message in model.requests[-1].messages
    )
