"""Provider instances: one for each organization and provider, shared by its calls, replaced when the settings change."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import cast
from uuid import UUID

import structlog
from pydantic import JsonValue
from sqlmodel import col, select

from switchboard.engine.providers.configuration import secrets_label
from switchboard.engine.providers.models import ProviderConfiguration
from switchboard.foundation.database import Database
from switchboard.foundation.keyring import KeyRing, SecretError
from switchboard.plugin_sdk import (
    EmbeddingProvider,
    Provider,
    ProviderError,
    ProviderSettings,
    TelephonyProvider,
    TextToSpeechProvider,
    VectorStore,
)
from switchboard.plugin_sdk.registry import Capability, InvalidSettings, Registry, parse_settings

logger = structlog.get_logger()

Key = tuple[UUID, Capability, str]
AnyProvider = Provider[ProviderSettings]


@dataclass(slots=True)
class _Instance:
    provider: AnyProvider
    version: datetime
    users: int = 0
    retired: bool = False
    opening: asyncio.Lock = field(default_factory=asyncio.Lock)
    opened: bool = False


class Providers:
    """Hands out instances, opened, for as long as a caller uses them."""

    def __init__(self, database: Database, registry: Registry, keyring: KeyRing, *, data_dir: Path) -> None:
        self._database = database
        self._data_dir = data_dir
        self._registry = registry
        self._keyring = keyring
        self._instances: dict[Key, _Instance] = {}

    @asynccontextmanager
    async def use(
        self, organization_id: UUID, capability: Capability, name: str | None = None
    ) -> AsyncIterator[AnyProvider]:
        """A provider of the organization, its first one where none is named. Raises `ProviderError` where it cannot be had."""
        row = await self._configuration(organization_id, capability, name)
        instance = self._instance(row, capability)
        instance.users += 1
        try:
            await _open(instance)
            yield instance.provider
        finally:
            instance.users -= 1
            if instance.retired and instance.users == 0:
                await _close(instance)

    @asynccontextmanager
    async def embedding(
        self, organization_id: UUID, name: str | None = None
    ) -> AsyncIterator[EmbeddingProvider[ProviderSettings]]:
        """An embedding model of the organization. Raises `ProviderError` where it cannot be had."""
        async with self.use(organization_id, Capability.EMBEDDING, name) as provider:
            yield cast("EmbeddingProvider[ProviderSettings]", provider)

    @asynccontextmanager
    async def vector_store(self, organization_id: UUID) -> AsyncIterator[VectorStore[ProviderSettings]]:
        """The organization's vector store. Raises `ProviderError` where it cannot be had."""
        async with self.use(organization_id, Capability.VECTOR_STORE) as provider:
            yield cast("VectorStore[ProviderSettings]", provider)

    @asynccontextmanager
    async def telephony(
        self, organization_id: UUID, name: str | None = None
    ) -> AsyncIterator[TelephonyProvider[ProviderSettings]]:
        """A carrier of the organization. Raises `ProviderError` where it cannot be had."""
        async with self.use(organization_id, Capability.TELEPHONY, name) as provider:
            yield cast("TelephonyProvider[ProviderSettings]", provider)

    @asynccontextmanager
    async def text_to_speech(
        self, organization_id: UUID, name: str
    ) -> AsyncIterator[TextToSpeechProvider[ProviderSettings]]:
        """A voice of the organization. Raises `ProviderError` where it cannot be had."""
        async with self.use(organization_id, Capability.TEXT_TO_SPEECH, name) as provider:
            yield cast("TextToSpeechProvider[ProviderSettings]", provider)

    async def close(self) -> None:
        """Close every instance."""
        instances, self._instances = list(self._instances.values()), {}
        for instance in instances:
            await _close(instance)

    async def _configuration(
        self, organization_id: UUID, capability: Capability, name: str | None
    ) -> ProviderConfiguration:
        rows = select(ProviderConfiguration).where(
            col(ProviderConfiguration.organization_id) == organization_id,
            col(ProviderConfiguration.capability) == capability.value,
        )
        if name is not None:
            rows = rows.where(col(ProviderConfiguration.name) == name)
        async with self._database.tenant(organization_id) as session:
            row = (await session.exec(rows.order_by(col(ProviderConfiguration.position)).limit(1))).one_or_none()
        if row is None:
            raise ProviderError(
                f"the organization has no {capability.value} provider {name or ''}".rstrip(), retryable=False
            )
        return row

    def _instance(self, row: ProviderConfiguration, capability: Capability) -> _Instance:
        key = (row.organization_id, capability, row.name)
        known = self._instances.get(key)
        if known is not None and known.version == row.updated_at:
            return known
        if known is not None:
            known.retired = True
        fresh = _Instance(self._make(row, capability), row.updated_at)
        self._instances[key] = fresh
        return fresh

    def _make(self, row: ProviderConfiguration, capability: Capability) -> AnyProvider:
        kind = self._registry.provider(capability, row.name)
        if kind is None:
            raise ProviderError(
                f"no plugin provides {capability.value} {row.name}; see `switchboard plugins list`", retryable=False
            )
        try:
            secrets: Mapping[str, JsonValue] = json.loads(self._keyring.decrypt(row.secrets, secrets_label(row)))
            provider = kind(parse_settings(kind, {**row.settings, **secrets}))
        except (SecretError, InvalidSettings) as error:
            raise ProviderError(
                f"the settings of {capability.value} {row.name} cannot be used: {error}", retryable=False
            ) from error
        provider.data_dir = self._data_dir
        return provider


async def _open(instance: _Instance) -> None:
    async with instance.opening:
        if not instance.opened:
            await instance.provider.open()
            instance.opened = True


async def _close(instance: _Instance) -> None:
    if instance.opened:
        instance.opened = False
        try:
            await instance.provider.close()
        except ProviderError as error:
            logger.warning("provider did not close well", provider=instance.provider.name, reason=error.message)
