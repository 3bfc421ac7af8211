"""Extensions of an organization, created with the organization's own settings."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar
from uuid import UUID

import structlog
from pydantic import JsonValue
from sqlmodel import col

from switchboard.engine.providers.configuration import format_secrets_label
from switchboard.engine.providers.models import ProviderConfiguration
from switchboard.foundation.database import Database, TenantSession, is_among
from switchboard.foundation.keyring import KeyRing, SecretError
from switchboard.foundation.observability.extension_faults import record_extension_fault
from switchboard.plugin_sdk import Extension, ProviderSettings
from switchboard.plugin_sdk.registry import (
    ExtensionKind,
    InvalidSettings,
    Registry,
    find_extension_kind,
    parse_settings,
)

logger = structlog.get_logger()
ExtensionT = TypeVar("ExtensionT", bound=Extension)


class ExtensionNotAvailable(Exception):
    """The organization cannot use an extension. `message` says why, and where to set what is missing."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


@dataclass(frozen=True, slots=True)
class ConfiguredExtension(Generic[ExtensionT]):
    """An extension's class with an organization's settings, which are None where it is not available; `reason` then
    says why.
    """

    extension: type[ExtensionT]
    settings: ProviderSettings | None
    reason: str = ""

    def create(self) -> ExtensionT:
        """Create an instance. Raises `ExtensionNotAvailable`, and what the constructor raises."""
        if self.settings is None:
            raise ExtensionNotAvailable(self.reason)
        instance = self.extension()
        if self.extension.Settings.model_fields:
            instance.settings = self.settings
        return instance


@dataclass(frozen=True, slots=True)
class Extensions:
    """The extensions that plugins provide, for one organization at a time."""

    database: Database
    registry: Registry
    keyring: KeyRing

    async def configure(
        self, session: TenantSession, extensions: Sequence[type[ExtensionT]]
    ) -> list[ConfiguredExtension[ExtensionT]]:
        """Return extensions with the settings of the session's organization."""
        return await configure_extensions(session, self.keyring, extensions)

    async def list_reasons(self, session: TenantSession, base: type[Extension]) -> dict[str, str]:
        """Return why the session's organization cannot use extensions of an SDK base class, by their names."""
        configured = await self.configure(session, self.registry.list_extension_classes(base))
        return {each.extension.name: each.reason for each in configured if each.settings is None}

    async def create(self, organization_id: UUID, extension: type[ExtensionT]) -> ExtensionT:
        """Create an instance for an organization. Raises `ExtensionNotAvailable`, and what the constructor raises."""
        (configured,) = await self._load(organization_id, [extension])
        return configured.create()

    async def create_all(self, organization_id: UUID, base: type[ExtensionT]) -> list[ExtensionT]:
        """Create an instance of every extension of an SDK base class (`AgentTool`, say) that the organization can use.

        One that cannot be created is logged and left out.
        """
        instances = []
        for configured in await self._load(organization_id, self.registry.list_extension_classes(base)):
            if configured.settings is None:
                continue
            try:
                instances.append(configured.create())
            except Exception as error:  # noqa: BLE001 - a plugin's constructor may raise anything
                record_extension_fault("extension broke", configured.extension, "__init__", error)
        return instances

    async def _load(
        self, organization_id: UUID, extensions: Sequence[type[ExtensionT]]
    ) -> list[ConfiguredExtension[ExtensionT]]:
        if not any(extension.Settings.model_fields for extension in extensions):
            return [ConfiguredExtension(extension, ProviderSettings()) for extension in extensions]
        async with self.database.tenant(organization_id) as session:
            return await self.configure(session, extensions)


async def configure_extensions(
    session: TenantSession, keyring: KeyRing, extensions: Sequence[type[ExtensionT]]
) -> list[ConfiguredExtension[ExtensionT]]:
    """Return extensions with the settings of the session's organization. Extensions without settings need no query."""
    rows: dict[tuple[str, str], ProviderConfiguration] = {}
    if any(extension.Settings.model_fields for extension in extensions):
        kinds = [kind.value for kind in ExtensionKind]
        found = session.select(ProviderConfiguration).where(is_among(col(ProviderConfiguration.capability), kinds))
        rows = {(row.capability, row.name): row for row in (await session.exec(found)).all()}
    return [
        _configure(keyring, extension, rows.get((find_extension_kind(extension), extension.name)))
        for extension in extensions
    ]


def _configure(
    keyring: KeyRing, extension: type[ExtensionT], row: ProviderConfiguration | None
) -> ConfiguredExtension[ExtensionT]:
    kind = find_extension_kind(extension)
    values: dict[str, JsonValue] = {}
    try:
        if row is not None:
            values = {**row.settings, **json.loads(keyring.decrypt(row.secrets, format_secrets_label(row)))}
        return ConfiguredExtension(extension, parse_settings(extension, values))
    except (SecretError, InvalidSettings) as error:
        problem = f"are not usable ({error})" if row is not None else "are missing"
        place = f"[{kind.value}.{extension.name}] of the tenant file, or on the page Providers"
        return ConfiguredExtension(
            extension, None, f"the organization's settings of {extension.name} {problem}: set them in {place}"
        )
