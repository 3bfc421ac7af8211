"""Calls through a gateway, between a trunk and a small platform in this process."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest
import pytest_asyncio
from aiohttp import WSMsgType, web
from switchboard.plugin_sdk import (
    CallAnswered,
    CallbackUrls,
    CalleeRinging,
    CallEnded,
    CarrierEvent,
    CarrierRequest,
    ConnectMedia,
    IncomingCall,
    Instruction,
    OutboundCall,
    ProviderError,
    RejectCall,
)
from switchboard_telephony_sip.provider import SipTelephony
from switchboard_telephony_sip.settings import SipSettings
from switchboard_telephony_sip.signaling import CallRefused

from tests.carriers.sip.far_end import FarEnd
from tests.carriers.sip.gateway import FixedAccounts, build_provider_account, build_settings, run_gateway
from tests.fixtures.app import find_free_port
from tests.fixtures.eventually import eventually

VOICE = bytes([0x20, 0xA0] * 80)
OURS = "+12125550100"


@dataclass
class SmallPlatform:
    """Callbacks and a media socket that greets with a sound. `instruction` answers calls that come in."""

    trunk: FarEnd
    sip_port: int = 0
    base: str = ""
    carrier: SipTelephony | None = None
    instruction: Instruction | None = None
    events: list[CarrierEvent] = field(default_factory=list)
    messages: list[dict[str, object]] = field(default_factory=list)
    sockets: list[web.WebSocketResponse] = field(default_factory=list)
    heard: bytearray = field(default_factory=bytearray)

    @property
    def provider(self) -> SipTelephony:
        assert self.carrier is not None
        return self.carrier

    async def callback(self, request: web.Request) -> web.Response:
        path = request.match_info["path"]
        headers = {name.lower(): value for name, value in request.headers.items()}
        sent = CarrierRequest("POST", str(request.url), path, headers, await request.read())
        (event,) = (await self.provider.receive(sent)).events
        self.events.append(event)
        if not isinstance(event, IncomingCall):
            return web.Response()
        instruction = self.instruction or ConnectMedia(f"{self.base}/media")
        reply = await self.provider.instruct(event, instruction, CallbackUrls(f"{self.base}/events"))
        return web.Response(body=reply.body, content_type=reply.content_type)

    async def media(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        self.sockets.append(socket)
        async for message in socket:
            if message.type is WSMsgType.BINARY:
                self.heard += message.data
                continue
            parsed = json.loads(message.data)
            self.messages.append(parsed)
            if parsed["event"] == "start":
                await socket.send_bytes(VOICE * 25)
                await socket.send_str('{"event":"mark","mark":{"name":"greeted"}}')
        return socket

    async def place(self, to_number: str, **more: object) -> str:
        order = OutboundCall(
            f"reference {to_number}",
            OURS,
            to_number,
            f"{self.base}/media",
            CallbackUrls(f"{self.base}/events"),
            **more,  # type: ignore[arg-type]
        )
        return await self.provider.place_call(order)

    async def wait_for(self, kind: type[CarrierEvent]) -> CarrierEvent:
        async def look() -> list[CarrierEvent]:
            return [event for event in self.events if isinstance(event, kind)]

        return (await eventually(look, bool, seconds=20))[0]

    async def wait_for_end(self) -> CallEnded:
        ended = await self.wait_for(CallEnded)
        assert isinstance(ended, CallEnded)
        return ended

    async def wait_for_message(self, event: str) -> dict[str, object]:
        async def look() -> list[dict[str, object]]:
            return [message for message in self.messages if message["event"] == event]

        return (await eventually(look, bool, seconds=20))[0]


@pytest_asyncio.fixture
async def platform() -> AsyncIterator[SmallPlatform]:
    trunk = FarEnd(find_free_port())
    await trunk.start()
    platform = SmallPlatform(trunk)
    application = web.Application()
    application.router.add_post("/events/{path}", platform.callback)
    application.router.add_get("/media", platform.media)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    platform.base = f"http://127.0.0.1:{runner.addresses[0][1]}"
    control_port, platform.sip_port = find_free_port(), find_free_port()
    unused = find_free_port()
    settings = build_settings(
        control_port,
        {"name": "gone", "hosts": [f"127.0.0.1:{unused}"], "transport": "tcp"},
        {"name": "office", "hosts": [f"127.0.0.1:{trunk.port}"], "digest": False, "domain": "127.0.0.1"},
    )
    platform.carrier = SipTelephony(SipSettings.model_validate(settings))
    await platform.carrier.open()
    context = FixedAccounts([build_provider_account(settings, f"{platform.base}/events")])
    async with run_gateway(context, sip_port=platform.sip_port, control_port=control_port):
        yield platform
    await platform.carrier.close()
    await runner.cleanup()
    await trunk.stop()


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


async def test_a_call_is_transferred_over_a_second_call(platform: SmallPlatform) -> None:
    caller = await platform.trunk.call(platform.sip_port, OURS)
    incoming = await platform.wait_for(IncomingCall)
    assert isinstance(incoming, IncomingCall)
    await platform.wait_for_message("start")
    callbacks = CallbackUrls(f"{platform.base}/events")
    with pytest.raises(ProviderError, match="SIP 486"):
        await platform.provider.transfer(
            incoming.carrier_call_id, to_number="+15550100020", caller_id=OURS, callbacks=callbacks
        )
    await platform.provider.transfer(
        incoming.carrier_call_id, to_number="+15550100002", caller_id=OURS, callbacks=callbacks
    )
    target = await platform.trunk.wait_for_telephone(2)
    await platform.wait_for_message("stop")
    target.media.play(VOICE * 50)
    caller.heard.clear()

    async def look() -> bool:
        return VOICE[:40] in caller.heard

    await eventually(look, bool, seconds=20)
    await target.dialog.bye()
    async with asyncio.timeout(10):
        await caller.events.over.wait()
    assert (await platform.wait_for_end()).outcome == "completed"
