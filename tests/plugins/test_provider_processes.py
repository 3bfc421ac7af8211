"""Processes that plugins bring: found, run as commands, and given the accounts of every organization."""

import asyncio
from collections.abc import Sequence
from typing import ClassVar, cast

import click
import pytest
from click.testing import CliRunner
from prometheus_client import CollectorRegistry
from pydantic import SecretStr
from switchboard.apps.cli import provider_processes
from switchboard.apps.cli.installation import OpenInstallation
from switchboard.apps.cli.processes import Work
from switchboard.apps.provider_accounts import AccountReader, ProviderAccounts
from switchboard.apps.server.http_server import StopRequest
from switchboard.engine.providers.configuration import ProviderSpec, configure_providers
from switchboard.plugin_sdk import ProcessContext, Provider, ProviderAccount, ProviderProcess, ProviderSettings
from switchboard.plugin_sdk.registry import Capability, Registry
from switchboard.runtime import Runtime
from switchboard_offline.loopback import LoopbackSettings, LoopbackTelephony

from tests.fixtures.app import Organizations, create_bakery, fresh_number
from tests.plugins.test_registry import create_plugin

Seen = Sequence[ProviderAccount[LoopbackSettings]]


class AcmeGateway(ProviderProcess[LoopbackSettings]):
    """A process that notes the accounts of each change."""

    name: ClassVar[str] = "acme-gateway"
    title: ClassVar[str] = "Run a gateway."
    provider: ClassVar[type[Provider[ProviderSettings]]] = LoopbackTelephony
    options: ClassVar[Sequence[click.Option]] = (click.Option(["--port"], type=int, default=7000),)

    def __init__(self, *, port: int) -> None:
        self.port = port
        self.seen: asyncio.Queue[Seen] = asyncio.Queue()

    async def run(self, context: ProcessContext[LoopbackSettings]) -> None:
        async for accounts in context.watch_accounts():
            self.seen.put_nowait(accounts)


def test_a_process_is_a_command_with_its_own_options(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[tuple[str, object]] = []

    def note(role: str, work: Work) -> None:
        ran.append((role, work.args))  # type: ignore[attr-defined]

    monkeypatch.setattr(provider_processes, "run_process", note)
    registry = Registry()
    plugin = registry.add("acme", create_plugin(provider_processes=lambda: [AcmeGateway]))
    assert (plugin.faults, plugin.provides) == ([], ["command acme-gateway"])
    command = provider_processes.create_process_command(registry.processes[0])
    assert CliRunner().invoke(command, ["--port", "7001"], env={"ACME_GATEWAY_HEALTH_PORT": "9"}).exit_code == 0
    assert CliRunner().invoke(command, [], env={"ACME_GATEWAY_PORT": "7002"}).exit_code == 0
    assert ran == [
        ("acme-gateway", (AcmeGateway, {"port": 7001}, 9)),
        ("acme-gateway", (AcmeGateway, {"port": 7002}, 0)),
    ]


def test_a_broken_process_is_left_out() -> None:
    class Shouting(AcmeGateway):
        name = "ACME Gateway"

    class Untitled(AcmeGateway):
        title = " "

    class WithoutProvider(AcmeGateway):
        provider = cast("type[Provider[ProviderSettings]]", None)

    class Unfinished(ProviderProcess[ProviderSettings]):
        name, title = "unfinished", "Unfinished"

    registry = Registry()
    broken = [Shouting, Untitled, WithoutProvider, Unfinished, LoopbackTelephony, 5]
    plugin = registry.add("acme", create_plugin(provider_processes=lambda: broken))
    assert (len(plugin.faults), registry.processes) == (len(broken), [])
    registry.add("first", create_plugin(provider_processes=lambda: [AcmeGateway]))
    taken = registry.add("again", create_plugin(cli_commands=lambda: [click.Command("acme-gateway")]))
    assert "provided by plugin first" in taken.faults[0]


async def test_a_process_sees_the_accounts_and_their_changes(runtime: Runtime, organizations: Organizations) -> None:
    stop, gateway = StopRequest(), AcmeGateway(port=1)
    reader = AccountReader(AcmeGateway.provider, runtime.database, runtime.keyring, "https://voice.example")
    context = ProviderAccounts(reader, stop, stop.at_once, CollectorRegistry())
    running = asyncio.create_task(gateway.run(cast("ProcessContext[LoopbackSettings]", context)))
    async with asyncio.timeout(60):
        assert await gateway.seen.get() == []
        caller = await organizations.create()
        (account,) = await gateway.seen.get()
        assert account.organization_id == caller.organization_id
        assert account.callbacks.events == f"https://voice.example/carriers/loopback/{caller.organization_id}/events"
        secret = SecretStr("another secret of the tests")
        spec = ProviderSpec(Capability.TELEPHONY, "loopback", {"signing_secret": secret.get_secret_value()})
        async with runtime.database.write(caller.organization_id) as session:
            await configure_providers(session, runtime.registry, runtime.keyring, [spec])
        (account,) = await gateway.seen.get()
        assert account.settings.signing_secret == secret
        async with runtime.database.write(caller.organization_id) as session:
            await configure_providers(session, runtime.registry, runtime.keyring, [])
        assert await gateway.seen.get() == []
        stop.set()
        await running


async def test_a_process_finds_the_owner_of_a_number(runtime: Runtime, organizations: Organizations) -> None:
    stop = StopRequest()
    reader = AccountReader(AcmeGateway.provider, runtime.database, runtime.keyring, "https://voice.example")
    context = ProviderAccounts(reader, stop, stop.at_once, CollectorRegistry())
    owner, _ = await organizations.create(), await organizations.create()
    number = (await create_bakery(runtime, owner, fresh_number())).number
    assert await context.find_number_owner(number) == owner.organization_id
    assert await context.find_number_owner(fresh_number()) is None


def test_processes_and_commands_derive_the_same_secrets_and_no_others(runtime: Runtime) -> None:
    stop = StopRequest()
    reader = AccountReader(AcmeGateway.provider, runtime.database, runtime.keyring, "https://voice.example")
    context = ProviderAccounts(reader, stop, stop.at_once, CollectorRegistry())
    secrets = context.derive_secrets("operator")
    assert secrets == OpenInstallation(runtime).derive_secrets("operator")
    assert set(secrets).isdisjoint([*context.derive_secrets("another purpose"), *runtime.keyring.derive("operator")])
