"""A small platform in the process of a test, with a gateway and a trunk: callbacks, and a media socket that greets."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp import WSMsgType, web
from pydantic import JsonValue
from switchboard.plugin_sdk import (
    CallbackRequest,
    CallbackUrls,
    CallEnded,
    CarrierEvent,
    ConnectMedia,
    IncomingCall,
    Instruction,
    OutboundCall,
)
from switchboard_telephony_sip.provider import SipTelephony
from switchboard_telephony_sip.settings import SipSettings

from tests.carriers.sip.far_end import FarEnd, Telephone
from tests.carriers.sip.gateway import FixedAccounts, TestGateway, build_provider_account, build_settings, run_gateway
from tests.fixtures.eventually import eventually
from tests.fixtures.free_ports import find_free_port

VOICE = bytes([0x20, 0xA0] * 80)
OURS = "+12125550100"
LAST_WORDS_SECONDS = 0.1


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
    may_answer: asyncio.Event = field(default_factory=asyncio.Event)
    """Cleared, the platform does not say what happens to a call that comes in."""
    may_connect: asyncio.Event = field(default_factory=asyncio.Event)
    """Cleared, the platform does not open media sockets."""
    last_words_sent: bool = False
    """Set once a socket was still open after the platform had heard of the call's end, and had taken its time."""
    gateway: TestGateway | None = None
    idle_sockets: int = 0
    """Sockets for signaling, whose ports may be among those for audio."""

    @property
    def provider(self) -> SipTelephony:
        assert self.carrier is not None
        return self.carrier

    @property
    def callbacks(self) -> CallbackUrls:
        return CallbackUrls(f"{self.base}/events")

    async def callback(self, request: web.Request) -> web.Response:
        path = request.match_info["path"]
        headers = {name.lower(): value for name, value in request.headers.items()}
        sent = CallbackRequest("POST", str(request.url), path, headers, await request.read())
        (event,) = (await self.provider.receive(sent)).events
        self.events.append(event)
        if not isinstance(event, IncomingCall):
            return web.Response()
        await self.may_answer.wait()
        instruction = self.instruction or ConnectMedia(f"{self.base}/media")
        reply = await self.provider.instruct(event, instruction, self.callbacks)
        return web.Response(body=reply.body, content_type=reply.content_type)

    async def media(self, request: web.Request) -> web.WebSocketResponse:
        await self.may_connect.wait()
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
            elif parsed["event"] == "stop":
                await asyncio.sleep(LAST_WORDS_SECONDS)
                await socket.send_bytes(VOICE)
                self.last_words_sent = True
        return socket

    async def place(self, to_number: str, **more: object) -> str:
        order = OutboundCall(
            f"reference {to_number}",
            OURS,
            to_number,
            f"{self.base}/media",
            self.callbacks,
            **more,  # type: ignore[arg-type]
        )
        return await self.provider.place_call(order)

    async def receive_call(self) -> tuple[str, Telephone]:
        """Return the only call that came in, once the platform greets, and the telephone that called."""
        telephone = await self.trunk.call(self.sip_port, OURS)
        incoming = await self.wait_for(IncomingCall)
        assert isinstance(incoming, IncomingCall)
        await self.wait_for_message("start")
        return incoming.carrier_call_id, telephone

    async def wait_for(self, kind: type[CarrierEvent]) -> CarrierEvent:
        async def look() -> list[CarrierEvent]:
            return [event for event in self.events if isinstance(event, kind)]

        return (await eventually(look, bool))[0]

    async def wait_for_end(self) -> CallEnded:
        ended = await self.wait_for(CallEnded)
        assert isinstance(ended, CallEnded)
        return ended

    async def wait_until_idle(self) -> None:
        """Wait until the gateway has no call left, and of sockets only its own and the trunk's for signaling."""
        assert self.gateway is not None
        registry = self.gateway.context.metrics

        async def look() -> tuple[float | None, int]:
            return registry.get_sample_value("switchboard_sip_live_calls"), self.count_media_sockets()

        await eventually(look, lambda found: found == (0, self.idle_sockets))

    def count_media_sockets(self) -> int:
        """Return how many UDP sockets of this process have a port of the gateway's range for audio."""
        assert self.gateway is not None
        own = {str(path.readlink()) for path in Path("/proc/self/fd").iterdir() if path.is_symlink()}
        fields = [line.split() for line in Path("/proc/net/udp").read_text().splitlines()[1:]]
        ports = [int(field[1].partition(":")[2], 16) for field in fields if f"socket:[{field[9]}]" in own]
        return sum(port in self.gateway.rtp_ports for port in ports)

    async def wait_for_message(self, event: str) -> dict[str, object]:
        async def look() -> list[dict[str, object]]:
            return [message for message in self.messages if message["event"] == event]

        return (await eventually(look, bool))[0]


@asynccontextmanager
async def open_small_platform(neighbor: str | None = None, /, **office: JsonValue) -> AsyncIterator[SmallPlatform]:
    """Run the small platform with a trunk of these settings, and a trunk before it that cannot be reached.

    `neighbor` is the signing secret of another organization at the gateway, with a trunk at the same host.
    """
    trunk = FarEnd(find_free_port())
    await trunk.start()
    platform = SmallPlatform(trunk)
    platform.may_answer.set()
    platform.may_connect.set()
    application = web.Application()
    application.router.add_post("/events/{path}", platform.callback)
    application.router.add_post("/neighbor/{path}", _ignore)
    application.router.add_get("/media", platform.media)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    platform.base = f"http://127.0.0.1:{runner.addresses[0][1]}"
    control_port, platform.sip_port = find_free_port(), find_free_port()
    settings = build_settings(
        control_port,
        {"name": "gone", "hosts": [f"127.0.0.1:{find_free_port()}"], "transport": "tcp"},
        {"name": "office", "hosts": [f"127.0.0.1:{trunk.port}"], "domain": "127.0.0.1", **office},
    )
    platform.carrier = SipTelephony(SipSettings.model_validate(settings))
    await platform.carrier.open()
    accounts = [build_provider_account(settings, platform.callbacks.events)]
    context = FixedAccounts(accounts, {OURS: accounts[0].organization_id})
    if neighbor is not None:
        shared: dict[str, JsonValue] = {"name": "shared", "hosts": [f"127.0.0.1:{trunk.port}"]}
        second = build_settings(control_port, shared, signing_secret=neighbor)
        accounts.append(build_provider_account(second, f"{platform.base}/neighbor"))
    async with run_gateway(context, sip_port=platform.sip_port, control_port=control_port) as gateway:
        platform.gateway = gateway
        platform.idle_sockets = platform.count_media_sockets()
        yield platform
    await platform.carrier.close()
    await runner.cleanup()
    await trunk.stop()


async def _ignore(_: web.Request) -> web.Response:
    return web.Response()
