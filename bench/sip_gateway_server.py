"""Gateway of `bench.sip`: that of `switchboard sip-gateway`, with one trunk on this machine and no database.

Usage: `python -m bench.sip_gateway_server SIP_PORT CONTROL_PORT FIRST_RTP_PORT EVENTS_URL`.
"""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID, uuid4

import uvloop
from prometheus_client import CollectorRegistry
from switchboard.plugin_sdk import CallbackUrls, ProcessContext, ProviderAccount
from switchboard_telephony_sip.gateway.process import SipGateway
from switchboard_telephony_sip.settings import SipSettings

RTP_PORTS: Final = 8000
TRUNK: Final = {"name": "bench", "hosts": ["127.0.0.1"]}


@dataclass
class OneAccount(ProcessContext[SipSettings]):
    """Context with one account."""

    account: ProviderAccount[SipSettings]
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    stop_at_once: asyncio.Event = field(default_factory=asyncio.Event)
    metrics: CollectorRegistry = field(default_factory=CollectorRegistry)

    async def watch_accounts(self) -> AsyncIterator[Sequence[ProviderAccount[SipSettings]]]:
        yield [self.account]
        await self.stop.wait()

    async def find_number_owner(self, phone_number: str) -> UUID | None:
        return self.account.organization_id

    def derive_secrets(self, purpose: str) -> Sequence[str]:
        return ["the operator of the benchmark"]

    def end(self) -> None:
        """End the gateway with its calls."""
        self.stop.set()
        self.stop_at_once.set()


async def serve(sip_port: int, control_port: int, first_rtp: int, events_url: str) -> None:
    """Serve until the process is told to end."""
    settings = SipSettings.model_validate(
        {
            "trunks": [TRUNK],
            "gateways": [f"http://127.0.0.1:{control_port}"],
            "signing_secret": "of the benchmark",
        }
    )
    context = OneAccount(ProviderAccount(uuid4(), settings, CallbackUrls(events_url)))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, context.end)
    options: dict[str, object] = {
        option.name: option.default for option in SipGateway.options if option.name is not None
    }
    options |= {"sip_host": "127.0.0.1", "sip_port": sip_port, "control_port": control_port}
    options["rtp_ports"] = f"{first_rtp}-{first_rtp + RTP_PORTS - 1}"
    await SipGateway(**options).run(context)


if __name__ == "__main__":
    sip_port, control_port, first_rtp, events_url = sys.argv[1:]
    uvloop.run(serve(int(sip_port), int(control_port), int(first_rtp), events_url))
