"""Transfers through a gateway: blind and warm, over a second call or by REFER, and attended ones of the far end."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from switchboard.plugin_sdk import (
    ACCEPT_PROMPTS,
    CallEnded,
    ProviderError,
    TransferTargetGone,
    TransferTargetReady,
    WarmTransfer,
)
from switchboard.plugin_sdk.telephony_events import CallOutcome

from tests.carriers.sip.far_end import FarEnd, Telephone
from tests.carriers.sip.small_platform import OURS, VOICE, SmallPlatform, open_small_platform
from tests.fixtures.eventually import eventually
from tests.fixtures.free_ports import find_free_port

PERSON, BUSY, SILENT, GATED = "+15550100002", "+15550100020", "+15550100021", "+15550100025"
SPEECH = bytes([0x30, 0xB0] * 1600)
"""An introduction of 0.4 seconds."""


@pytest_asyncio.fixture
async def platform() -> AsyncIterator[SmallPlatform]:
    async with open_small_platform() as opened:
        yield opened


async def wait_until_heard(telephone: Telephone, audio: bytes) -> None:
    async def look() -> bool:
        return audio in telephone.heard

    await eventually(look, bool, seconds=20)


async def wait_until_over(telephone: Telephone) -> None:
    async with asyncio.timeout(120):
        await telephone.events.over.wait()


async def check_that_they_talk(caller: Telephone, target: Telephone) -> None:
    """Check that each of the two hears the other."""
    caller.heard.clear()
    target.heard.clear()
    target.media.play(VOICE * 50)
    caller.media.play(SPEECH * 3)
    await wait_until_heard(caller, VOICE[:40])
    await wait_until_heard(target, SPEECH[:40])


async def introduce(platform: SmallPlatform, call_id: str, to_number: str) -> str:
    """Start a warm transfer, and return the id of the target's call."""
    introduction = WarmTransfer(to_number, OURS, "Ada waits.", "Press one.", ring_seconds=20, speech=SPEECH)
    return await platform.provider.start_warm_transfer(call_id, introduction, platform.callbacks)


async def accept(platform: SmallPlatform, target: Telephone, target_id: str) -> None:
    """Let the target hear the introduction and press the key."""
    await wait_until_heard(target, SPEECH[:1600])
    await target.media.press("1")
    ready = await platform.wait_for(TransferTargetReady)
    assert ready == TransferTargetReady(target_id)


async def test_a_call_is_transferred_over_a_second_call(platform: SmallPlatform) -> None:
    call_id, caller = await platform.receive_call()
    with pytest.raises(ProviderError, match="SIP 486"):
        await platform.provider.transfer(call_id, to_number=BUSY, caller_id=OURS, callbacks=platform.callbacks)
    await platform.provider.transfer(call_id, to_number=PERSON, caller_id=OURS, callbacks=platform.callbacks)
    target = await platform.trunk.wait_for_telephone(2)
    await platform.wait_for_message("stop")
    await check_that_they_talk(caller, target)
    await target.dialog.bye()
    await wait_until_over(caller)
    assert (await platform.wait_for_end()).outcome == "completed"


async def test_the_caller_stays_with_the_agent_until_the_target_has_accepted(platform: SmallPlatform) -> None:
    call_id, caller = await platform.receive_call()
    target_id = await introduce(platform, call_id, PERSON)
    target = await platform.trunk.wait_for_telephone(2)
    await wait_until_heard(target, SPEECH[:1600])
    platform.heard.clear()
    caller.media.play(VOICE * 25)

    async def look() -> bool:
        return VOICE[:40] in platform.heard

    await eventually(look, bool, seconds=20)
    with pytest.raises(ProviderError, match="has hung up"):
        await platform.provider.complete_warm_transfer(call_id, target_id)
    await accept(platform, target, target_id)
    await platform.provider.complete_warm_transfer(call_id, target_id)
    await platform.wait_for_message("stop")
    await check_that_they_talk(caller, target)
    await caller.dialog.bye()
    await wait_until_over(target)
    assert (await platform.wait_for_end()).outcome == "completed"
    assert not any(isinstance(event, TransferTargetGone) for event in platform.events)


@pytest.mark.parametrize(("number", "outcome"), [(BUSY, "busy"), (SILENT, "no-answer"), (PERSON, "completed")])
async def test_a_target_that_does_not_accept_is_reported(
    platform: SmallPlatform, number: str, outcome: CallOutcome
) -> None:
    """Of the three, one is busy, one does not answer, and one is a machine that presses no key."""
    call_id, caller = await platform.receive_call()
    introduction = WarmTransfer(number, OURS, "Ada waits.", "Press one.", ring_seconds=1, speech=SPEECH)
    target_id = await platform.provider.start_warm_transfer(call_id, introduction, platform.callbacks)
    assert await platform.wait_for(TransferTargetGone) == TransferTargetGone(target_id, outcome)
    if number == PERSON:
        machine = platform.trunk.telephones[1]
        await wait_until_over(machine)
        assert bytes(machine.heard).count(SPEECH[:1600]) >= ACCEPT_PROMPTS
    assert not caller.events.over.is_set()
    assert not any(isinstance(event, CallEnded) for event in platform.events)


async def test_the_platform_gives_a_target_up(platform: SmallPlatform) -> None:
    """One rings, one has accepted: both are hung up, and the caller stays."""
    call_id, caller = await platform.receive_call()
    ringing = await introduce(platform, call_id, SILENT)
    waiting = await introduce(platform, call_id, PERSON)
    target = await platform.trunk.wait_for_telephone(2)
    await accept(platform, target, waiting)
    await platform.provider.hang_up(ringing)
    await platform.provider.hang_up(waiting)
    await wait_until_over(target)

    async def look() -> int:
        return len(platform.trunk.canceled)

    await eventually(look, bool, seconds=20)
    with pytest.raises(ProviderError):
        await platform.provider.complete_warm_transfer(call_id, waiting)
    assert not caller.events.over.is_set()


async def test_a_target_whom_nobody_connects_is_hung_up(platform: SmallPlatform) -> None:
    call_id, _ = await platform.receive_call()
    target_id = await introduce(platform, call_id, PERSON)
    target = await platform.trunk.wait_for_telephone(2)
    await accept(platform, target, target_id)
    await wait_until_over(target)
    assert await platform.wait_for(TransferTargetGone) == TransferTargetGone(target_id, "completed")


async def test_a_target_who_hangs_up_before_the_connection_is_gone(platform: SmallPlatform) -> None:
    call_id, caller = await platform.receive_call()
    target_id = await introduce(platform, call_id, PERSON)
    target = await platform.trunk.wait_for_telephone(2)
    await accept(platform, target, target_id)
    await target.dialog.bye()
    await platform.wait_for(TransferTargetGone)
    with pytest.raises(ProviderError):
        await platform.provider.complete_warm_transfer(call_id, target_id)
    assert not caller.events.over.is_set()


async def test_a_caller_who_hangs_up_before_the_target_rings_leaves_no_ringing_telephone(
    platform: SmallPlatform,
) -> None:
    call_id, caller = await platform.receive_call()
    moving = asyncio.create_task(
        platform.provider.transfer(call_id, to_number=GATED, caller_id=OURS, callbacks=platform.callbacks)
    )

    async def look() -> int:
        return len(platform.trunk.invites)

    await eventually(look, bool, seconds=20)
    await caller.dialog.bye()
    await platform.wait_for_end()
    platform.trunk.may_ring.set()
    with pytest.raises(ProviderError):
        await moving

    async def look_at_canceled() -> int:
        return len(platform.trunk.canceled)

    await eventually(look_at_canceled, bool, seconds=5)


async def test_a_trunk_that_transfers_gets_the_two_dialogs_to_connect() -> None:
    async with open_small_platform(transfers="refer") as platform:
        call_id, caller = await platform.receive_call()
        target_id = await introduce(platform, call_id, PERSON)
        target = await platform.trunk.wait_for_telephone(2)
        await accept(platform, target, target_id)
        await platform.provider.complete_warm_transfer(call_id, target_id)
        await wait_until_over(caller)
        await wait_until_over(target)
        dialog = target.dialog
        assert caller.events.referrals == [
            (
                f"sip:127.0.0.1:{platform.trunk.port}",
                f"{dialog.call_id};to-tag={dialog.local_tag};from-tag={dialog.remote_tag}",
            )
        ]
        assert (await platform.wait_for_end()).outcome == "completed"


async def test_the_far_end_transfers_the_agent_to_another_party(platform: SmallPlatform) -> None:
    """A person who has called the agent and a colleague connects the two, and leaves both calls."""
    _, caller = await platform.receive_call()
    colleague = FarEnd(find_free_port())
    await colleague.start()
    consultation = await platform.trunk.call(colleague.port, PERSON)
    statuses = [
        status async for status in caller.dialog.refer(f"sip:127.0.0.1:{colleague.port}", replaces=consultation.dialog)
    ]
    assert statuses[-1] == 200
    await wait_until_over(consultation)
    await caller.dialog.bye()
    other = await colleague.wait_for_telephone(2)
    platform.heard.clear()
    other.media.play(VOICE * 25)

    async def look() -> bool:
        return VOICE[:40] in platform.heard

    await eventually(look, bool, seconds=20)
    assert not any(isinstance(event, CallEnded) for event in platform.events)
    await platform.sockets[0].close()
    await wait_until_over(other)
    await colleague.stop()


@pytest.mark.parametrize("has_replaces", [False, True], ids=["another number", "another host"])
async def test_the_far_end_cannot_have_a_number_dialed(platform: SmallPlatform, has_replaces: bool) -> None:
    _, caller = await platform.receive_call()
    target = "sip:+15550100099@203.0.113.9" if has_replaces else f"sip:+15550100099@127.0.0.1:{platform.trunk.port}"
    replaced = caller.dialog if has_replaces else None
    statuses = [status async for status in caller.dialog.refer(target, replaces=replaced)]
    assert statuses[-1] == 603
    assert not platform.trunk.invites
    assert not caller.events.over.is_set()
