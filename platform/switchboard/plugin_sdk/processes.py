"""Processes that plugins bring: `switchboard <name>` runs one beside servers and workers, for connections other than
HTTP, such as those of a gateway to another network.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar
from uuid import UUID

import click
from prometheus_client import CollectorRegistry

from switchboard.plugin_sdk.provider import Provider, ProviderSettings
from switchboard.plugin_sdk.telephony import CallbackUrls

AccountSettingsT = TypeVar("AccountSettingsT", bound=ProviderSettings)


@dataclass(frozen=True, slots=True)
class ProviderAccount(Generic[AccountSettingsT]):
    """An organization's current configuration of the provider that a process serves.

    `settings` are validated and contain the secrets. `callbacks` are the organization's callback addresses, for
    everything but the calls and text messages that the platform has ordered, which bring their own.
    """

    organization_id: UUID
    settings: AccountSettingsT
    callbacks: CallbackUrls


class ProcessContext(ABC, Generic[AccountSettingsT]):
    """Surroundings of a process: its accounts, its metrics, and the request to stop.

    `stop` is set by the first SIGTERM or SIGINT; finish what is live, and return. `stop_at_once` is set by the second:
    return without waiting. Metrics that are registered in `metrics` are served at `/metrics` with the platform's own.
    """

    stop: asyncio.Event
    stop_at_once: asyncio.Event
    metrics: CollectorRegistry

    @abstractmethod
    def watch_accounts(self) -> AsyncIterator[Sequence[ProviderAccount[AccountSettingsT]]]:
        """Yield the accounts of all organizations: now, and again within seconds after one has changed, until `stop`.

        An account whose settings cannot be read is left out, and logged. While the database cannot be reached, nothing
        is yielded.
        """

    @abstractmethod
    async def find_number_owner(self, phone_number: str) -> UUID | None:
        """Return the organization that has a phone number, in E.164; None if no organization has it.

        Raises `ProviderError` while the database cannot be reached.
        """

    @abstractmethod
    def derive_secrets(self, purpose: str) -> Sequence[str]:
        """Derive secrets of the installation for a purpose, which no organization has: the last signs, and all verify.

        `Installation.derive_secrets` has the same ones, so that the operator's commands can ask this process.
        """


class ProviderProcess(ABC, Generic[AccountSettingsT]):
    """A process of a provider, over all organizations that have configured the provider.

    `name` is its command, in lower case with hyphens, and `title` the help of the command. `provider` is the class of
    the provider. `options` are further options of the command, which the class takes as keyword arguments; their
    environment variables are named for the command (`ACME_GATEWAY_PORT` for `--port` of `acme-gateway`). The platform
    adds `--health-port`, waits for the schema, configures logging, and handles signals.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    provider: ClassVar[type[Provider[ProviderSettings]]]
    options: ClassVar[Sequence[click.Option]] = ()

    @abstractmethod
    async def run(self, context: ProcessContext[AccountSettingsT]) -> None:
        """Serve until `context.stop` is set, and finish what is live. An exception ends the process with status 1."""
