"""Calls through a gateway, between a trunk and a small platform in this process."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import ExitStack, suppress

import pytest
import pytest_asyncio
from switchboard.plugin_sdk import (
    CallAnswered,
    CalleeRinging,
    CallEnded,
    IncomingCall,
    ProviderError,
    RejectCall,
)
from switchboard_telephony_sip.gateway.running import find_announced_address
from switchboard_telephony_sip.media import audio_codecs
from switchboard_telephony_sip.signaling.outgoing import CallRefused

from tests.carriers.sip.small_platform import OURS, VOICE, SmallPlatform, open_small_platform
from tests.fixtures.eventually import eventually


@pytest_asyncio.fixture
async def platform() -> AsyncIterator[SmallPlatform]:
    async with open_small_platform() as opened:
        yield opened


async def test_a_call_is_placed_over_the_next_trunk_and_both_sides_hear_each_other(platform: SmallPlatform) -> None:
    call_id = await platform.place("+15550100001", metadata={"X-Customer": 42, "name": "Ada"})
    assert await platform.place("+15550100001") == call_id, "a repeated order is the same call"
    telephone = await platform.trunk.wait_for_telephone()
    assert platform.trunk.invites[0].headers.get("X-Customer") == ["42"]
    await platform.wait_for_message("mark")
    telephone.media.play(VOICE * 25)

    async def look() -> bool:
        return VOICE[:40] in platform.heard and telephone.has_heard_sound

    await eventually(look, bool, seconds=20)
    await platform.provider.send_digits(call_id, "12#")

    async def look_at_digits() -> list[str]:
        return telephone.digits

    await eventually(look_at_digits, lambda digits: digits == ["1", "2", "#"], seconds=20)
    await platform.provider.hang_up(call_id)
    ended = await platform.wait_for_end()
    assert [type(event) for event in platform.events] == [CalleeRinging, CallAnswered, CallEnded]
    assert ended.outcome == "completed"
    assert ended.quality is not None
    assert ended.quality.mos > 3
    async with asyncio.timeout(10):
        await telephone.events.over.wait()


@pytest.mark.parametrize(("number", "outcome", "code"), [("20", "busy", "486"), ("23", "failed", "invalid_number")])
async def test_a_refused_call_states_its_reason(platform: SmallPlatform, number: str, outcome: str, code: str) -> None:
    await platform.place(f"+155501000{number}")
    ended = await platform.wait_for_end()
    assert (ended.outcome, ended.error_code) == (outcome, code)
    assert "SIP" in (ended.error_message or "")


async def test_a_ringing_call_is_given_up(platform: SmallPlatform) -> None:
    call_id = await platform.place("+15550100021")
    await platform.wait_for(CalleeRinging)
    await platform.provider.hang_up(call_id)
    assert (await platform.wait_for_end()).outcome == "canceled"
    assert await platform.provider.find_call("reference +15550100021") is None


async def test_a_call_that_nobody_answers_ends(platform: SmallPlatform) -> None:
    await platform.place("+15550100021", ring_seconds=1)
    assert (await platform.wait_for_end()).outcome == "no-answer"


async def test_a_caller_is_answered_and_hangs_up(platform: SmallPlatform) -> None:
    telephone = await platform.trunk.call(platform.sip_port, OURS, X_Account="A 7")
    incoming = await platform.wait_for(IncomingCall)
    assert isinstance(incoming, IncomingCall)
    assert (incoming.from_number, incoming.to_number) == ("+15550100001", OURS)
    assert incoming.metadata == {"x-account": "A 7"}
    await platform.wait_for_message("mark")

    async def look() -> bool:
        return telephone.has_heard_sound

    await eventually(look, bool, seconds=20)
    await telephone.dialog.bye()
    assert (await platform.wait_for_end()).outcome == "completed"
    await platform.wait_for_message("stop")

    async def look_again() -> bool:
        return platform.last_words_sent

    # A socket that was closed at once would be reset, and a busy platform would not read that the caller hung up.
    await eventually(look_again, bool)


async def test_the_platform_ends_a_call_by_closing_its_socket(platform: SmallPlatform) -> None:
    telephone = await platform.trunk.call(platform.sip_port, OURS)
    await platform.wait_for_message("start")
    await platform.sockets[0].close()
    async with asyncio.timeout(10):
        await telephone.events.over.wait()
    assert (await platform.wait_for_end()).outcome == "completed"


async def test_a_wrong_number_gets_404(platform: SmallPlatform) -> None:
    platform.instruction = RejectCall(unknown_number=True)
    with pytest.raises(CallRefused) as refused:
        await platform.trunk.call(platform.sip_port, "+12125550999")
    assert refused.value.status == 404


async def test_a_caller_without_free_ports_for_audio_gets_503(platform: SmallPlatform) -> None:
    assert platform.gateway is not None
    with ExitStack() as taken:
        for port in platform.gateway.rtp_ports:
            other = taken.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            with suppress(OSError):  # a port for signaling
                other.bind(("127.0.0.1", port))
        with pytest.raises(CallRefused, match="503"):
            await platform.trunk.call(platform.sip_port, OURS)
    ended = await platform.wait_for_end()
    assert (ended.outcome, ended.error_code) == ("failed", "503")
    assert "no two free ports" in (ended.error_message or "")


async def test_a_trunk_with_a_codec_that_the_gateway_does_not_have_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audio_codecs, "load_opus", lambda: None)
    async with open_small_platform(codecs=["opus", "PCMA"]) as platform:
        with pytest.raises(ProviderError, match=r"trunk office: .*; opus needs libopus"):
            await platform.provider.check()
        telephone = await platform.trunk.call(platform.sip_port, OURS)
        assert "PCMA" in telephone.dialog.remote_sdp


def test_a_gateway_that_listens_on_all_ipv6_addresses_announces_one_that_trunks_reach() -> None:
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("2001:db8::1", 9))
        except OSError:
            pytest.skip("this machine has no IPv6 address but its loopback")
        own = probe.getsockname()[0]
    assert find_announced_address({"public_address": "", "sip_host": "::"}) == own


async def test_the_verdict_about_the_callers_number_is_the_trunks_alone(platform: SmallPlatform) -> None:
    forged = '"x;verstat=TN-Validation-Passed-A" <sip:+15550100001@far.example>;verstat=TN-Validation-Passed-A'
    attested = "<sip:+15550100001;verstat=TN-Validation-Passed-B@far.example;user=phone>"
    for asserted, verdict in ((forged, None), (attested, "B")):
        telephone = await platform.trunk.call(platform.sip_port, OURS, P_Asserted_Identity=asserted)
        incoming = await platform.wait_for(IncomingCall)
        assert isinstance(incoming, IncomingCall)
        assert (incoming.from_number, incoming.metadata.get("stir_shaken")) == ("+15550100001", verdict)
        await telephone.dialog.bye()
        await platform.wait_for_end()
        platform.events.clear()
