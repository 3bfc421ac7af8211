"""A platform with a gateway in a process of its own, and an organization whose numbers are those of SIP trunks."""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue
from switchboard.apps.embedded import DataDirectory
from switchboard.apps.tenant_files.defaults import list_embedded_providers
from switchboard.engine.providers.configuration import ProviderSpec, configure_providers
from switchboard.plugin_sdk.registry import Capability
from switchboard.runtime import Runtime

from tests.carriers.sip.gateway import build_settings
from tests.fixtures.app import Caller, LivePlatform, Organizations, create_bakery_agent, fresh_number, run_server
from tests.fixtures.command_line import start_command
from tests.fixtures.eventually import eventually, wait_for_port
from tests.fixtures.free_ports import find_free_port, find_free_ports
from tests.fixtures.json_access import at
from tests.fixtures.servers import SECRET_KEY


@dataclass(frozen=True, slots=True)
class SipLine:
    """A bakery whose number is one of its trunks', and its gateways' host, ports, and processes."""

    live: LivePlatform
    host: str
    ports: tuple["GatewayPorts", ...]
    gateways: tuple[ForkServerProcess, ...]

    @property
    def sip_port(self) -> int:
        """The first gateway's port for SIP."""
        return self.ports[0].sip

    @property
    def control_port(self) -> int:
        """The first gateway's port for commands."""
        return self.ports[0].control

    async def list_transcript(self, call_id: object) -> list[tuple[str, str]]:
        """Return what both parties have said so far."""
        items: Any = (await self.live.caller.get(f"/v1/calls/{call_id}/transcript")).json["items"]
        return [(entry["role"], entry["content"]) for entry in items]

    async def wait_until_said(self, call_id: object, role: str, words: str) -> None:
        """Wait until a party has said these words."""

        async def look() -> list[tuple[str, str]]:
            return await self.list_transcript(call_id)

        await eventually(look, lambda lines: any(speaker == role and words in text for speaker, text in lines))

    async def find_call(self, **fields: str) -> str:
        """Return the id of the first call with these fields, once there is one."""

        async def look() -> list[dict[str, Any]]:
            items: Any = (await self.live.caller.get("/v1/calls")).json["items"]
            return [item for item in items if all(item[name] == value for name, value in fields.items())]

        return str((await eventually(look, bool))[0]["id"])


@dataclass(frozen=True, slots=True)
class SipLines:
    """Opens lines on the servers of all tests. `folder` is for the files of the other side."""

    runtime: Runtime
    servers: DataDirectory
    organizations: Organizations
    folder: Path

    @asynccontextmanager
    async def open(
        self, *trunks: dict[str, JsonValue], host: str = "127.0.0.1", gateways: int = 1, **settings: JsonValue
    ) -> AsyncIterator[SipLine]:
        """Run the platform and its gateways, for a bakery with these trunks."""
        ports = [GatewayPorts() for _ in range(gateways)]
        caller = await self.organizations.create()
        addresses: list[JsonValue] = [f"http://127.0.0.1:{one.control}" for one in ports]
        account = build_settings(ports[0].control, *trunks, **settings) | {"gateways": addresses}
        live = await create_sip_bakery(self.runtime, caller, account)
        environment = {
            "SWITCHBOARD_DATA_DIR": str(self.runtime.settings.data_dir),
            "SWITCHBOARD_PUBLIC_URL": self.runtime.settings.base_url,
            "SWITCHBOARD_DATABASE_URL": self.servers.database_url,
            "SWITCHBOARD_REDIS_URL": self.servers.redis_url,
            "SWITCHBOARD_SECRET_KEYS": SECRET_KEY,
        }
        log = self.folder / "gateway.log"
        async with run_server(self.runtime), run_gateways(environment, host, ports, log) as running:
            yield SipLine(live, f"[{host}]" if ":" in host else host, tuple(ports), running)


async def create_sip_bakery(runtime: Runtime, caller: Caller, account: dict[str, JsonValue]) -> LivePlatform:
    """Give an organization these settings of SIP trunks, the embedded providers, an agent, and a number of its own."""
    provider = ProviderSpec(Capability.TELEPHONY, "sip", account)
    async with runtime.database.write(caller.organization_id) as session:
        embedded = list_embedded_providers(runtime.registry)
        await configure_providers(session, runtime.registry, runtime.keyring, [provider, *embedded])
    agent_id, number = await create_bakery_agent(runtime, caller), fresh_number()
    body = {"numbers": [{"phone_number": number}], "inbound_agent_id": agent_id}
    entered = await caller.post("/v1/phone-numbers/enter", body)
    assert entered.status == 201, entered.body
    return LivePlatform(runtime, caller, agent_id, str(at(entered.json, "items", 0, "id")), number)


@asynccontextmanager
async def run_gateways(
    environment: Mapping[str, str], host: str, ports: Sequence["GatewayPorts"], log: Path
) -> AsyncIterator[tuple[ForkServerProcess, ...]]:
    """Run gateways in processes of their own, with these variables."""
    running: list[ForkServerProcess] = []
    try:
        for one in ports:
            options = {
                "sip-host": host,
                "sip-port": one.sip,
                "control-port": one.control,
                "rtp-ports": f"{one.first_rtp}-{one.first_rtp + 200}",
                "drain-seconds": 0,
            }
            command = ["sip-gateway", *(f"--{name}={value}" for name, value in options.items())]
            started = await asyncio.to_thread(start_command, command, {**os.environ, **environment}, error=log)
            running.append(started)
            await wait_for_port("127.0.0.1", one.control)
        yield tuple(running)
    finally:
        for gateway in running:
            gateway.terminate()
        for gateway in running:
            await asyncio.to_thread(gateway.join)


@dataclass(frozen=True, slots=True)
class GatewayPorts:
    """Free ports."""

    sip: int = field(default_factory=find_free_port)
    control: int = field(default_factory=find_free_port)
    first_rtp: int = field(default_factory=lambda: find_free_ports(201))


@pytest.fixture
def sip_lines(runtime: Runtime, servers: DataDirectory, organizations: Organizations, tmp_path: Path) -> SipLines:
    """Lines of the test."""
    return SipLines(runtime, servers, organizations, tmp_path)
