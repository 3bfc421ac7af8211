"""Access of plugins' commands (hook `cli_commands`) to the installation: its calls, and the accounts of a provider."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar
from uuid import UUID

from switchboard.plugin_sdk.processes import ProviderAccount
from switchboard.plugin_sdk.provider import Provider, ProviderSettings

ResultT = TypeVar("ResultT")


@dataclass(frozen=True, slots=True)
class CarrierCall:
    """A call of an organization as its carrier knows it.

    `carrier` is the name of the carrier's provider. `carrier_call_id` is None for a call that was not placed.
    """

    organization_id: UUID
    carrier: str
    carrier_call_id: str | None


class Installation(ABC):
    """The installation, open while a command runs."""

    @abstractmethod
    async def find_call(self, call_id: UUID) -> CarrierCall | None:
        """Return a call of any organization by the platform's id; None if there is no such call."""

    @abstractmethod
    async def list_accounts(
        self, provider: type[Provider[ProviderSettings]]
    ) -> Sequence[ProviderAccount[ProviderSettings]]:
        """Return the accounts of a provider in all organizations, but for those whose settings cannot be read."""

    @abstractmethod
    def derive_secrets(self, purpose: str) -> Sequence[str]:
        """Derive secrets that plugins' processes have, too (`ProcessContext.derive_secrets`)."""


class InstallationAccess(ABC):
    """Way of a command to the installation. `click.pass_obj` passes it.

    Example: `call = access.run(lambda installation: installation.find_call(call_id))`.
    """

    @abstractmethod
    def run(self, work: Callable[[Installation], Awaitable[ResultT]]) -> ResultT:
        """Open the installation, run the work in an event loop, and return its result.

        The command ends with one line and exit status 1 if the database cannot be reached, and for each
        `click.ClickException` of the work.
        """
