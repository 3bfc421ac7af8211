"""Commands of one organization and of the operator, tried on another organization's calls at the same gateway."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import get_args

import pytest
from switchboard.plugin_sdk import CallEnded, ProviderError, WarmTransfer
from switchboard_telephony_sip.commands import (
    BansCommand,
    CheckCommand,
    Command,
    DigitsCommand,
    FindCommand,
    IntroduceCommand,
    LiftCommand,
    MeasureCommand,
    MeasurementCommand,
    PlaceCommand,
    SipConnectCommand,
    SipHangUpCommand,
    TextCommand,
    TraceCommand,
    TransferCommand,
)
from switchboard_telephony_sip.gateways import CallUnknown, Gateways, NotServed

from tests.carriers.sip.gateway import OPERATOR_SECRET
from tests.carriers.sip.small_platform import OURS, SmallPlatform, open_small_platform

NEIGHBOR = "another organization's signing secret"
PERSON, UNKNOWN = "+15550100001", "+15550100023"
PLACED = "reference of both organizations"


@asynccontextmanager
async def open_gateways(platform: SmallPlatform, secret: str) -> AsyncIterator[Gateways]:
    gateways = Gateways(platform.provider.settings.gateways, secret)
    try:
        yield gateways
    finally:
        await gateways.close()


def list_commands_of_calls(platform: SmallPlatform, call_id: str, target_id: str, test_id: str) -> list[Command]:
    """List the commands that name a call, a target, or a test call."""
    events_url = platform.callbacks.events
    return [
        SipHangUpCommand(call_id),
        SipHangUpCommand(target_id),
        DigitsCommand(call_id, "1"),
        TransferCommand(call_id, PERSON, OURS),
        IntroduceCommand(call_id, PERSON, OURS, 20, b"\xff" * 160, events_url),
        SipConnectCommand(call_id, target_id),
        TraceCommand(call_id),
        MeasurementCommand(test_id),
    ]


def list_other_commands(platform: SmallPlatform) -> list[Command]:
    return [
        PlaceCommand(PLACED, OURS, PERSON, f"{platform.base}/media", f"{platform.base}/neighbor", 20, 60),
        FindCommand(PLACED),
        TextCommand(OURS, PERSON, "Hello", f"{platform.base}/neighbor"),
        CheckCommand(platform.provider.settings.digest),
        MeasureCommand(OURS, UNKNOWN),
        BansCommand(),
        LiftCommand("192.0.2.7"),
    ]


async def test_no_command_reaches_what_another_organization_has() -> None:
    async with (
        open_small_platform(NEIGHBOR, text_messages=True) as platform,
        open_gateways(platform, NEIGHBOR) as neighbor,
        open_gateways(platform, OPERATOR_SECRET) as operator,
    ):
        (address,) = platform.provider.settings.gateways
        call_id, caller = await platform.receive_call()
        introduction = WarmTransfer(PERSON, OURS, "Ada waits.", "Press one.", ring_seconds=20, speech=b"\x20" * 1600)
        target_id = await platform.provider.start_warm_transfer(call_id, introduction, platform.callbacks)
        target = await platform.trunk.wait_for_telephone(2)
        async with open_gateways(platform, platform.provider.settings.signing_secret.get_secret_value()) as own:
            test_id = (await own.command(address, MeasureCommand(OURS, UNKNOWN))).call_id or ""
            placed = await own.command(address, list_other_commands(platform)[0])
        of_calls, others = list_commands_of_calls(platform, call_id, target_id, test_id), list_other_commands(platform)
        assert {type(command) for command in (*of_calls, *others)} == set(get_args(Command))
        for command in of_calls:
            with pytest.raises(CallUnknown):
                await neighbor.command(address, command)
        for command in (*of_calls, *others[:-2]):
            with pytest.raises(ProviderError, match="only the account"):
                await operator.command(address, command)
        place, find, text, check, measure, *of_gateway = others
        assert (await neighbor.command(address, find)).call_id is None
        neighbors = (await neighbor.command(address, place)).call_id or ""
        assert neighbors not in ("", placed.call_id), "a reference belongs to an account"
        assert (await neighbor.command(address, find)).call_id == neighbors
        await platform.trunk.wait_for_telephone(4)
        with pytest.raises(ProviderError, match="the target of the transfer has hung up"):
            await neighbor.command(address, SipConnectCommand(neighbors, target_id))
        with pytest.raises(ProviderError, match="no SIP trunk of the organization takes text messages"):
            await neighbor.command(address, text)
        with pytest.raises(NotServed):
            await neighbor.command(address, check)
        neighbors_test = (await neighbor.command(address, measure)).call_id or ""
        measured = (await neighbor.command(address, MeasurementCommand(neighbors_test))).measurement
        assert measured is not None
        assert [refusal.trunk for refusal in measured.refusals] == ["shared"]
        for command in of_gateway:
            with pytest.raises(ProviderError, match="only the operator"):
                await neighbor.command(address, command)
            assert (await operator.command(address, command)).bans == {}
        assert not caller.events.over.is_set()
        assert not target.events.over.is_set()
        assert (caller.digits, platform.trunk.texts) == ([], [])
        assert not any(isinstance(event, CallEnded) and event.carrier_call_id == call_id for event in platform.events)
