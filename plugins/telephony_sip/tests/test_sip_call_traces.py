"""Traces of calls with several parties: failover between trunks, and the target of a transfer."""

from switchboard_telephony_sip.commands import TraceCommand, TraceEntry
from switchboard_telephony_sip.gateways import Gateways

from tests.carriers.sip.gateway import SECRET
from tests.carriers.sip.small_platform import OURS, SmallPlatform, open_small_platform
from tests.fixtures.eventually import eventually


async def fetch(platform: SmallPlatform, call_id: str) -> list[TraceEntry]:
    (address,) = platform.provider.settings.gateways
    gateways = Gateways([address], SECRET)
    try:
        trace = (await gateways.command(address, TraceCommand(call_id))).trace
    finally:
        await gateways.close()
    assert trace is not None
    return trace.messages


def draw(messages: list[TraceEntry]) -> list[str]:
    return [f"{each.direction} {each.transport} {each.summary}" for each in messages]


async def test_a_call_over_the_second_trunk_has_the_messages_to_both() -> None:
    async with open_small_platform() as platform:
        call_id = await platform.place("+15550100001")
        await platform.trunk.wait_for_telephone()
        await platform.wait_for_message("start")
        await platform.provider.hang_up(call_id)
        await platform.wait_for_end()

        async def look() -> list[str]:
            return draw(await fetch(platform, call_id))

        found = await eventually(look, lambda rows: rows[-1] == "in udp 200 OK")
    assert found[0] == "out tcp INVITE"
    assert found[1:2] + found[-4:] == ["out udp INVITE", "in udp 200 OK", "out udp ACK", "out udp BYE", "in udp 200 OK"]


async def test_a_transfers_target_is_in_the_trace_of_the_call() -> None:
    async with open_small_platform() as platform:
        call_id, _ = await platform.receive_call()
        await platform.provider.transfer(
            call_id, to_number="+15550100002", caller_id=OURS, callbacks=platform.callbacks
        )
        target = await platform.trunk.wait_for_telephone(2)
        messages = await fetch(platform, call_id)
        await target.dialog.bye()
        await platform.wait_for_end()
    assert draw(messages)[0] == "in udp INVITE"
    invites = [each for each in messages if each.direction == "out" and each.summary == "INVITE"]
    assert [each.transport for each in invites] == ["tcp", "udp"]
    assert "sip:+1555***0002@" in invites[1].text
