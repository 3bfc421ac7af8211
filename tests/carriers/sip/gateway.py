"""A gateway in the process of a test, and the settings of an account that it serves."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from uuid import UUID, uuid4

from prometheus_client import CollectorRegistry
from pydantic import JsonValue
from switchboard.plugin_sdk import CallbackUrls, ProcessContext, ProviderAccount
from switchboard_telephony_sip.gateway.legs import wait_for_any
from switchboard_telephony_sip.gateway.process import SipGateway
from switchboard_telephony_sip.settings import SipSettings

from tests.fixtures.eventually import wait_for_port
from tests.fixtures.free_ports import find_free_ports

SECRET = "a signing secret of the tests"
OPERATOR_SECRET = "a secret of the tests' operator"


@dataclass
class FixedAccounts(ProcessContext[SipSettings]):
    """Context with accounts that a test changes, and the owners of numbers."""

    accounts: Sequence[ProviderAccount[SipSettings]]
    owners: dict[str, UUID] = field(default_factory=dict)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set after a change of the accounts."""
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    stop_at_once: asyncio.Event = field(default_factory=asyncio.Event)
    metrics: CollectorRegistry = field(default_factory=CollectorRegistry)

    async def watch_accounts(self) -> AsyncIterator[Sequence[ProviderAccount[SipSettings]]]:
        while not self.stop.is_set():
            self.changed.clear()
            yield self.accounts
            await wait_for_any(self.changed, self.stop)

    async def find_number_owner(self, phone_number: str) -> UUID | None:
        return self.owners.get(phone_number)

    def derive_secrets(self, purpose: str) -> Sequence[str]:
        return [OPERATOR_SECRET]


@dataclass
class TestGateway:
    """Ports of a gateway, and how to stop it."""

    __test__ = False
    sip_port: int
    control_port: int
    rtp_ports: range
    context: ProcessContext[SipSettings]
    running: "asyncio.Task[None]"

    async def stop(self, *, at_once: bool = True) -> None:
        self.context.stop.set()
        if at_once:
            self.context.stop_at_once.set()
        await self.running


def build_settings(control_port: int, *trunks: dict[str, JsonValue], **more: JsonValue) -> dict[str, JsonValue]:
    """Return settings of an account at one gateway."""
    return {
        "trunks": list(trunks),
        "gateways": [f"http://127.0.0.1:{control_port}"],
        "signing_secret": SECRET,
        **more,
    }


def build_provider_account(
    settings: dict[str, JsonValue], events_url: str = "http://127.0.0.1:9/events", organization_id: UUID | None = None
) -> ProviderAccount[SipSettings]:
    return ProviderAccount(organization_id or uuid4(), SipSettings.model_validate(settings), CallbackUrls(events_url))


@asynccontextmanager
async def run_gateway(
    context: ProcessContext[SipSettings], *, sip_port: int, control_port: int
) -> AsyncIterator[TestGateway]:
    """Run a gateway on the loopback interface within the block."""
    options: dict[str, object] = {
        option.name: option.default for option in SipGateway.options if option.name is not None
    }
    options |= {"sip_host": "127.0.0.1", "sip_port": sip_port, "control_port": control_port}
    first = find_free_ports(201)
    options["rtp_ports"] = f"{first}-{first + 200}"
    process = SipGateway(**options)
    gateway = TestGateway(
        sip_port, control_port, range(first, first + 201), context, asyncio.create_task(process.run(context))
    )
    try:
        await wait_for_port("127.0.0.1", control_port)
        yield gateway
    finally:
        await gateway.stop()
