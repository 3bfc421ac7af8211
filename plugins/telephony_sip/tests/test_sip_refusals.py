"""A gateway refuses scanners and calls beyond a trunk's limits, over the wire, and reports both."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from structlog.testing import capture_logs
from switchboard.plugin_sdk import CallbackUrls, CarrierRequest, ConnectMedia, IncomingCall
from switchboard_telephony_sip.commands import BansCommand, LiftCommand
from switchboard_telephony_sip.gateways import Gateways
from switchboard_telephony_sip.provider import SipTelephony
from switchboard_telephony_sip.settings import SipSettings
from switchboard_telephony_sip.signaling import CallRefused

from tests.carriers.sip.far_end import FarEnd
from tests.carriers.sip.gateway import SECRET, FixedAccounts, build_provider_account, build_settings, run_gateway
from tests.fixtures.app import find_free_port
from tests.fixtures.eventually import eventually

SCANNER = "127.0.0.2"
SCAN = """OPTIONS sip:100@{host} SIP/2.0\r
Via: SIP/2.0/UDP {scanner}:{port};branch=z9hG4bK-{ordinal};rport\r
From: "sipvicious" <sip:100@1.1.1.1>;tag=1\r
To: "sipvicious" <sip:100@1.1.1.1>\r
Call-ID: scan-{ordinal}\r
CSeq: 1 OPTIONS\r
Max-Forwards: 70\r
User-Agent: friendly-scanner\r
Content-Length: 0\r
\r
"""


class Setup:
    """A gateway with one trunk, whose far end calls."""

    def __init__(self, trunk: FarEnd, context: FixedAccounts, sip_port: int, control_port: int) -> None:
        self.trunk, self.context, self.sip_port = trunk, context, sip_port
        self.address = f"http://127.0.0.1:{control_port}"

    def read_metric(self, name: str, **labels: str) -> float | None:
        return self.context.metrics.get_sample_value(name, labels)


@asynccontextmanager
async def run_setup(**limits: float) -> AsyncIterator[Setup]:
    trunk, control_port, sip_port = FarEnd(find_free_port()), find_free_port(), find_free_port()
    await trunk.start()
    settings = build_settings(control_port, {"name": "office", "hosts": [f"127.0.0.1:{trunk.port}"], **limits})
    carrier = SipTelephony(SipSettings.model_validate(settings))

    async def callback(request: web.Request) -> web.Response:
        headers = {name.lower(): value for name, value in request.headers.items()}
        sent = CarrierRequest("POST", str(request.url), "call", headers, await request.read())
        (event,) = (await carrier.receive(sent)).events
        if not isinstance(event, IncomingCall):
            return web.Response()
        url = str(request.url.with_scheme("ws").with_path("/media"))
        reply = await carrier.instruct(event, ConnectMedia(url), CallbackUrls(""))
        return web.Response(body=reply.body, content_type=reply.content_type)

    async def media(request: web.Request) -> web.WebSocketResponse:
        opened = web.WebSocketResponse()
        await opened.prepare(request)
        async for _ in opened:
            pass
        return opened

    application = web.Application()
    application.router.add_post("/events/{path}", callback)
    application.router.add_get("/media", media)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    events_url = f"http://127.0.0.1:{runner.addresses[0][1]}/events"
    context = FixedAccounts([build_provider_account(settings, events_url)])
    async with run_gateway(context, sip_port=sip_port, control_port=control_port):
        yield Setup(trunk, context, sip_port, control_port)
    await runner.cleanup()
    await trunk.stop()


async def test_a_scanner_is_ignored_reported_and_read_again_at_the_operators_request() -> None:
    async with run_setup() as setup:
        gateways = Gateways([setup.address], SECRET)
        scanner = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        scanner.bind((SCANNER, 0))
        scanner.setblocking(False)

        def scan(ordinal: int) -> None:
            text = SCAN.format(host="127.0.0.1", scanner=SCANNER, port=scanner.getsockname()[1], ordinal=ordinal)
            scanner.sendto(text.encode(), ("127.0.0.1", setup.sip_port))

        async def list_bans() -> dict[str, float]:
            return (await gateways.command(setup.address, BansCommand())).bans

        with capture_logs() as logs:
            for ordinal in range(5):
                scan(ordinal)
            bans = await eventually(list_bans, bool)
        assert list(bans) == [SCANNER]
        assert 590 < bans[SCANNER] <= 600
        (line,) = [entry for entry in logs if "is ignored" in entry["event"]]
        assert (line["address"], line["log_level"]) == (SCANNER, "warning")
        assert setup.read_metric("switchboard_sip_bans_total") == 1
        assert setup.read_metric("switchboard_sip_ignored_addresses") == 1
        lifted = (await gateways.command(setup.address, LiftCommand(SCANNER))).bans
        assert (list(lifted), await list_bans()) == ([SCANNER], {})
        assert (await gateways.command(setup.address, LiftCommand(SCANNER))).bans == {}
        for ordinal in range(10, 15):
            scan(ordinal)
        assert list(await eventually(list_bans, bool)) == [SCANNER]
        with pytest.raises(BlockingIOError):
            scanner.recv(1)  # a scanner gets no answer
        scanner.close()
        await gateways.close()
        telephone = await setup.trunk.call(setup.sip_port, "+12125550100")
        await telephone.dialog.bye()


@pytest.mark.parametrize(
    ("limits", "limit"), [({"max_calls": 2}, "max_calls"), ({"calls_per_second": 2}, "calls_per_second")]
)
async def test_calls_beyond_a_limit_of_the_trunk_are_refused_and_reported(limits: dict[str, float], limit: str) -> None:
    async with run_setup(**limits) as setup:
        with capture_logs() as logs:
            answers = await asyncio.gather(
                *(setup.trunk.call(setup.sip_port, f"+1212555010{ordinal}") for ordinal in range(3)),
                return_exceptions=True,
            )
        (refused,) = [answer for answer in answers if isinstance(answer, BaseException)]
        assert isinstance(refused, CallRefused)
        assert (refused.status, refused.headers["retry-after"]) == (503, ["1"])
        (line,) = [entry for entry in logs if "limit of its trunk" in entry["event"]]
        assert (line["trunk"], line["limit"]) == ("office", limit)
        assert setup.read_metric("switchboard_sip_limited_calls_total", limit=limit) == 1
        for telephone in setup.trunk.telephones:
            await telephone.dialog.bye()
