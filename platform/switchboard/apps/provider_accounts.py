"""Accounts of a provider over all organizations, for plugins' processes and commands (`plugin_sdk/processes.py`)."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeAlias
from uuid import UUID

import structlog
from prometheus_client import CollectorRegistry
from sqlalchemy.exc import SQLAlchemyError

from switchboard.engine.providers.configuration import read_settings
from switchboard.engine.providers.instances import list_configurations, list_configured_organizations
from switchboard.engine.providers.models import StoredConfiguration
from switchboard.foundation.database import Database
from switchboard.foundation.keyring import KeyRing, SecretError
from switchboard.plugin_sdk import ProcessContext, Provider, ProviderAccount, ProviderError, ProviderSettings
from switchboard.plugin_sdk.registry import Capability, InvalidSettings, parse_settings
from switchboard.resources.phone_numbers.purchases import build_callback_urls
from switchboard.resources.phone_numbers.queries import find_number_owner

logger = structlog.get_logger()
Version: TypeAlias = tuple[UUID, datetime]
POLL_SECONDS: Final = 5.0
"""A change of settings takes effect after so long; the query takes a millisecond."""


@dataclass(frozen=True, slots=True)
class AccountReader:
    """Reads the accounts of `provider` from the database."""

    provider: type[Provider[ProviderSettings]]
    database: Database
    keyring: KeyRing
    base_url: str

    async def list_accounts(self) -> list[ProviderAccount[ProviderSettings]]:
        """Return the accounts of all organizations. Those whose settings cannot be read are left out, and logged."""
        return await self.read_accounts(await self.list_versions())

    async def list_versions(self) -> Sequence[Version]:
        """List the organizations that have configured the provider, each with the time of its last change."""
        async with self.database.system() as session:
            return await list_configured_organizations(session, self._capability, self.provider.name)

    async def read_accounts(self, versions: Sequence[Version]) -> list[ProviderAccount[ProviderSettings]]:
        """Return the accounts of these organizations, as `list_accounts` does."""
        rows: list[StoredConfiguration] = []
        for organization_id, _ in versions:
            async with self.database.read(organization_id) as session:
                found = await list_configurations(session, self._capability)
            rows += [row for row in found if row.name == self.provider.name]
        return [account for row in rows if (account := self._open_account(row)) is not None]

    @property
    def _capability(self) -> Capability:
        return next(capability for capability in Capability if issubclass(self.provider, capability.base_class))

    def _open_account(self, row: StoredConfiguration) -> ProviderAccount[ProviderSettings] | None:
        try:
            settings = parse_settings(self.provider.Settings, read_settings(self.keyring, row))
        except (SecretError, InvalidSettings) as error:
            logger.error(
                "account left out: its settings cannot be used",
                organization_id=str(row.organization_id),
                reason=str(error),
            )
            return None
        callbacks = build_callback_urls(self.base_url, row.organization_id, row.name)
        return ProviderAccount(row.organization_id, settings, callbacks)


def derive_plugin_secrets(keyring: KeyRing, purpose: str) -> Sequence[str]:
    """Derive secrets of the installation for a plugin's purpose, which differ from those of the platform itself."""
    return keyring.derive(f"plugin {purpose}")


@dataclass(slots=True)
class ProviderAccounts(ProcessContext[ProviderSettings]):
    """Context of a process that serves a provider's accounts."""

    reader: AccountReader
    stop: asyncio.Event
    stop_at_once: asyncio.Event
    metrics: CollectorRegistry

    async def watch_accounts(self) -> AsyncIterator[Sequence[ProviderAccount[ProviderSettings]]]:
        known: Sequence[Version] | None = None
        while not self.stop.is_set():
            try:
                versions = await self.reader.list_versions()
                accounts = [] if versions == known else await self.reader.read_accounts(versions)
            except (SQLAlchemyError, OSError) as error:
                logger.warning("accounts cannot be read", error=type(error).__name__)
            else:
                if versions != known:
                    known = versions
                    yield accounts
            with suppress(TimeoutError):
                async with asyncio.timeout(POLL_SECONDS):
                    await self.stop.wait()

    async def find_number_owner(self, phone_number: str) -> UUID | None:
        try:
            async with self.reader.database.system() as session:
                number = await find_number_owner(session, phone_number)
        except (SQLAlchemyError, OSError) as error:
            raise ProviderError("the database cannot be read") from error
        return number.organization_id if number is not None else None

    def derive_secrets(self, purpose: str) -> Sequence[str]:
        return derive_plugin_secrets(self.reader.keyring, purpose)
