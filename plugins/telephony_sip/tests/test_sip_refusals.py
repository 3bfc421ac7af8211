"""A gateway refuses scanners and calls beyond a trunk's limits, over the wire, and reports both."""

import asyncio
import socket

import pytest
from structlog.testing import capture_logs
from switchboard_telephony_sip.commands import BansCommand, LiftCommand
from switchboard_telephony_sip.gateways import Gateways
from switchboard_telephony_sip.signaling.outgoing import CallRefused

from tests.carriers.sip.gateway import OPERATOR_SECRET
from tests.carriers.sip.small_platform import SmallPlatform, open_small_platform
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


def read_metric(platform: SmallPlatform, name: str, **labels: str) -> float | None:
    assert platform.gateway is not None
    return platform.gateway.context.metrics.get_sample_value(name, labels)


async def test_a_scanner_is_ignored_reported_and_read_again_at_the_operators_request() -> None:
    async with open_small_platform() as platform:
        (address,) = platform.provider.settings.gateways
        gateways = Gateways([address], OPERATOR_SECRET)
        scanner = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        scanner.bind((SCANNER, 0))
        scanner.setblocking(False)

        def scan(ordinal: int) -> None:
            text = SCAN.format(host="127.0.0.1", scanner=SCANNER, port=scanner.getsockname()[1], ordinal=ordinal)
            scanner.sendto(text.encode(), ("127.0.0.1", platform.sip_port))

        async def list_bans() -> dict[str, float]:
            return (await gateways.command(address, BansCommand())).bans

        with capture_logs() as logs:
            for ordinal in range(5):
                scan(ordinal)
            bans = await eventually(list_bans, bool)
        assert list(bans) == [SCANNER]
        assert 590 < bans[SCANNER] <= 600
        (line,) = [entry for entry in logs if "is ignored" in entry["event"]]
        assert (line["address"], line["log_level"]) == (SCANNER, "warning")
        assert read_metric(platform, "switchboard_sip_bans_total") == 1
        assert read_metric(platform, "switchboard_sip_ignored_addresses") == 1
        lifted = (await gateways.command(address, LiftCommand(SCANNER))).bans
        assert (list(lifted), await list_bans()) == ([SCANNER], {})
        assert (await gateways.command(address, LiftCommand(SCANNER))).bans == {}
        for ordinal in range(10, 15):
            scan(ordinal)
        assert list(await eventually(list_bans, bool)) == [SCANNER]
        with pytest.raises(BlockingIOError):
            scanner.recv(1)  # a scanner gets no answer
        scanner.close()
        await gateways.close()
        telephone = await platform.trunk.call(platform.sip_port, "+12125550100")
        await telephone.dialog.bye()


@pytest.mark.parametrize(
    ("limits", "limit"), [({"max_calls": 2}, "max_calls"), ({"calls_per_second": 2}, "calls_per_second")]
)
async def test_calls_beyond_a_limit_of_the_trunk_are_refused_and_reported(limits: dict[str, int], limit: str) -> None:
    async with open_small_platform(**limits) as platform:
        with capture_logs() as logs:
            answers = await asyncio.gather(
                *(platform.trunk.call(platform.sip_port, f"+1212555010{ordinal}") for ordinal in range(3)),
                return_exceptions=True,
            )
        (refused,) = [answer for answer in answers if isinstance(answer, BaseException)]
        assert isinstance(refused, CallRefused)
        assert (refused.status, refused.headers["retry-after"]) == (503, ["1"])
        (line,) = [entry for entry in logs if "limit of its trunk" in entry["event"]]
        assert (line["trunk"], line["limit"]) == ("office", limit)
        assert read_metric(platform, "switchboard_sip_limited_calls_total", limit=limit) == 1
        for telephone in platform.trunk.telephones:
            await telephone.dialog.bye()
