"""Access of plugins' commands to the installation (`plugin_sdk/commands.py`)."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar
from uuid import UUID

from switchboard.apps.provider_accounts import AccountReader, derive_plugin_secrets
from switchboard.plugin_sdk import (
    CarrierCall,
    Installation,
    InstallationAccess,
    Provider,
    ProviderAccount,
    ProviderSettings,
)
from switchboard.resources.calls.queries import find_carrier_call
from switchboard.runtime import Runtime

ResultT = TypeVar("ResultT")


@dataclass(frozen=True, slots=True)
class OpenInstallation(Installation):
    """The installation of an open runtime."""

    runtime: Runtime

    async def find_call(self, call_id: UUID) -> CarrierCall | None:
        async with self.runtime.database.system() as session:
            return await find_carrier_call(session, call_id)

    async def list_accounts(
        self, provider: type[Provider[ProviderSettings]]
    ) -> Sequence[ProviderAccount[ProviderSettings]]:
        runtime = self.runtime
        reader = AccountReader(provider, runtime.database, runtime.keyring, runtime.settings.base_url)
        return await reader.list_accounts()

    def derive_secrets(self, purpose: str) -> Sequence[str]:
        return derive_plugin_secrets(self.runtime.keyring, purpose)


class CommandInstallation(InstallationAccess):
    """Opens the installation of this machine's environment for one command."""

    def run(self, work: Callable[[Installation], Awaitable[ResultT]]) -> ResultT:
        from switchboard.apps.cli.session import open_runtime

        async def run() -> ResultT:
            async with open_runtime() as runtime:
                return await work(OpenInstallation(runtime))

        return asyncio.run(run())
