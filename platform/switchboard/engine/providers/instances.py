"""Providers and extensions of organizations, created with their settings.

There is one instance per organization and provider, shared by its calls, replaced when the settings change, and closed
when nobody has used it for a while."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from typing import Any, Generic, TypeVar
from uuid import UUID

import structlog
from pydantic import JsonValue
from sqlalchemy import Select, bindparam, or_, select
from sqlalchemy.exc import SQLAlchemyError
from sqlmodel import col

from switchboard.engine.providers.configuration import read_settings
from switchboard.engine.providers.factory import ProviderFactory, refuse_settings
from switchboard.engine.providers.health import ProviderHealth
from switchboard.engine.providers.models import (
    SECRETS_LABEL,
    SHARED_PROCESS,
    ProviderConfiguration,
    StoredConfiguration,
)
from switchboard.engine.providers.turn_prediction import (
    find_default_detector,
    get_default_detector,
    require_prediction_in_time,
)
from switchboard.foundation.database import Database, ReadSession, SystemSession, is_among, retry_while_away
from switchboard.foundation.keyring import KeyRing, SecretError
from switchboard.foundation.observability.extension_faults import record_extension_fault
from switchboard.foundation.web.errors import ValidationFailed
from switchboard.plugin_sdk import (
    CalendarProvider,
    Extension,
    OAuthCalendarProvider,
    OAuthService,
    Provider,
    ProviderError,
    ProviderSettings,
    TurnDetector,
)
from switchboard.plugin_sdk.registry import (
    Capability,
    ExtensionKind,
    InvalidSettings,
    Registry,
    find_capability,
    find_extension_kind,
    parse_settings,
)

# Queries for an organization's configured providers.

ProviderT = TypeVar("ProviderT", bound=Provider[ProviderSettings])


async def list_configurations(session: ReadSession, *capabilities: Capability) -> list[StoredConfiguration]:
    """List the organization's providers of some capabilities, in order of preference."""
    rows = await session.fetch(_select_configurations(*capabilities), {"organization_id": session.organization_id})
    return [StoredConfiguration(*row) for row in rows]


@cache
def _select_configurations(*capabilities: Capability) -> Select[Any]:
    columns = (getattr(ProviderConfiguration, field.name) for field in fields(StoredConfiguration))
    wanted = or_(*(col(ProviderConfiguration.capability) == capability.value for capability in capabilities))
    ours = col(ProviderConfiguration.organization_id) == bindparam("organization_id")
    return select(*columns).where(ours, wanted).order_by(col(ProviderConfiguration.position))


async def list_configured_organizations(
    session: SystemSession, capability: Capability, name: str
) -> list[tuple[UUID, datetime]]:
    """List the organizations that have configured a provider, each with the time of its last change."""
    columns = select(col(ProviderConfiguration.organization_id), col(ProviderConfiguration.updated_at)).where(
        col(ProviderConfiguration.capability) == capability, col(ProviderConfiguration.name) == name
    )
    found = await session.fetch(columns.order_by(col(ProviderConfiguration.organization_id)))
    return [(row.organization_id, row.updated_at) for row in found]


async def list_provider_names(session: ReadSession, capability: Capability) -> list[str]:
    """List the names of the organization's providers of a capability, in order of preference."""
    return [row.name for row in await list_configurations(session, capability)]


async def find_first_provider(
    session: ReadSession,
    registry: Registry,
    base: type[ProviderT],
    is_suitable: Callable[[type[ProviderT]], bool],
) -> str | None:
    """Return the name of the organization's first provider whose class is suitable."""
    for name in await list_provider_names(session, find_capability(base)):
        kind = registry.find_provider_class(base, name)
        if kind is not None and is_suitable(kind):
            return name
    return None


async def choose_provider(session: ReadSession, capability: Capability, name: str | None, *, field: str) -> str:
    """Return the requested provider, or the organization's first.

    Raises `ValidationFailed` with the configured ones.
    """
    names = await list_provider_names(session, capability)
    if name is None and names:
        return names[0]
    if name not in names:
        have = f"the organization has {', '.join(names)}" if names else "the organization has none"
        raise ValidationFailed.field(field, f"{name or 'no provider'} is not configured; {have}")
    return name


logger = structlog.get_logger()

PROBE_SECONDS = 15.0
OPEN_SECONDS = 30.0
"""Time limit for opening a provider. A caller hears nothing meanwhile. The first use of a vendor's SDK imports it: five
seconds of the processor for the largest, of which a slow and busy machine has a quarter.
"""
IDLE_SECONDS = 600.0
"""Time after its last use for which a provider stays open."""
CALENDAR_IDLE_SECONDS = 60.0
"""Time after its last use for which a calendar stays open."""
CALENDAR_SECONDS = 600.0
"""Longest time for which an open calendar is used: a provider may remember what its server has said."""
OUTAGE_SECONDS = 10.0
"""Patience with the database where a call would fail otherwise: a restart takes some seconds."""
NEVER_SAVED = datetime.min.replace(tzinfo=UTC)
"""Version of settings that nobody has saved."""

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
    created_at: float = 0.0
    used_at: float = 0.0
    """When a calendar was created, and when the last user has left an instance, by the process's clock."""

    @property
    def is_idle(self) -> bool:
        """True if nobody has used the instance for ten minutes, and nothing goes on in it."""
        if self.users or time.monotonic() - self.used_at <= IDLE_SECONDS:
            return False
        with suppress(ProviderError):
            return not (self.opened and self.provider.is_busy())
        return True

    @property
    def is_stale(self) -> bool:
        """True for a calendar that nobody has used for a while, or that is old."""
        moment = time.monotonic()
        is_idle = not self.users and moment - self.used_at > CALENDAR_IDLE_SECONDS
        return is_idle or moment - self.created_at > CALENDAR_SECONDS


class Providers:
    """Opened provider instances, kept open while a caller uses them."""

    def __init__(self, database: Database, factory: ProviderFactory, keyring: KeyRing) -> None:
        self._database = database
        self._factory = factory
        self._keyring = keyring
        self._instances: dict[Key, _Instance] = {}
        self._calendars: dict[str, _Instance] = {}
        self._healths: dict[Key, tuple[datetime, ProviderHealth]] = {}
        self._probes: set[asyncio.Task[None]] = set()
        self._closings: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def use(
        self, organization_id: UUID, base: type[ProviderT], name: str | None = None
    ) -> AsyncIterator[ProviderT]:
        """Open a provider of the organization and yield it, or its first provider of the capability if no name is
        given.

        `base` is the capability's SDK class, `TelephonyProvider` for example. An organization without a turn detector
        has the default one. Raises `ProviderError` where the organization has no such provider, or it cannot be created
        or opened.
        """
        capability = find_capability(base)
        rows = await self.read_configurations(organization_id, capability)
        default = get_default_detector(self._factory.registry) if capability is Capability.TURN_DETECTOR else None
        if not rows and default is not None:
            rows = [self._configure_default(default, capability, organization_id)]
        async with self.use_configuration(choose_configuration(rows, capability, name), base) as provider:
            yield provider

    async def read_configurations(self, organization_id: UUID, *capabilities: Capability) -> list[StoredConfiguration]:
        """Read an organization's configurations of some capabilities, in order of preference."""

        async def read() -> list[StoredConfiguration]:
            async with self._database.read(organization_id) as session:
                return await list_configurations(session, *capabilities)

        return await retry_while_away(read, seconds=OUTAGE_SECONDS)

    def add_default_detector(self, configurations: Sequence[StoredConfiguration]) -> Sequence[StoredConfiguration]:
        """Return the configurations that serve a call, with that of the default turn detector if it judges the call."""
        default = find_default_detector(self._factory.registry, configurations)
        if default is None:
            return configurations
        organization_id = configurations[0].organization_id
        return [*configurations, self._configure_default(default, Capability.TURN_DETECTOR, organization_id)]

    @asynccontextmanager
    async def use_configuration(self, row: StoredConfiguration, base: type[ProviderT]) -> AsyncIterator[ProviderT]:
        """Open a provider whose configuration has just been read, and yield it. Raises `ProviderError`."""
        capability = find_capability(base)
        instance, replaced = self._instance(row, capability)
        async with _use(instance):
            if replaced is not None and replaced.users == 0:
                await _close(replaced)
            await _open(instance)
            assert isinstance(instance.provider, base)  # noqa: S101  the registry found it by this class
            yield instance.provider

    @asynccontextmanager
    async def open_calendar(
        self, organization_id: UUID, name: str, account: Mapping[str, JsonValue]
    ) -> AsyncIterator[CalendarProvider[ProviderSettings]]:
        """Open a provider of calendars with the settings of an account, secrets included, and yield it.

        It stays open for a while, because a conversation uses a calendar several times, and is closed then, because
        organizations have many accounts. The organization needs no configuration of a provider whose settings are all
        optional. Raises `InvalidSettings` for those of the account, and `ProviderError`.
        """
        row = await self._find_calendar_row(organization_id, name)
        content = json.dumps([str(organization_id), name, row.updated_at.isoformat(), account], sort_keys=True)
        key = sha256(content.encode()).hexdigest()
        for stale in self._retire_stale_calendars():
            await _close(stale)
        instance = self._calendars.get(key)
        if instance is None:
            provider = self._create_calendar(row)
            provider.account = parse_settings(provider.Account, account)
            instance = self._calendars[key] = _Instance(provider, row.updated_at, created_at=time.monotonic())
        async with _use(instance):
            await _open(instance)
            assert isinstance(instance.provider, CalendarProvider)  # noqa: S101  the registry found it by this class
            yield instance.provider

    def _retire_stale_calendars(self) -> list[_Instance]:
        """Let go of the calendars that are not to be used any more; return those to close. Those in use are closed by
        their last user.
        """
        keys = [key for key, instance in self._calendars.items() if instance.is_stale]
        stale = [self._calendars.pop(key) for key in keys]
        for instance in stale:
            instance.retired = True
        return [instance for instance in stale if not instance.users]

    def close_idle(self) -> None:
        """Close the providers and calendars that nobody has used for a while, in the background: a plugin may take its
        time. The next use of one opens another.
        """
        idle = [key for key, instance in self._instances.items() if instance.is_idle]
        for instance in [*map(self._instances.pop, idle), *self._retire_stale_calendars()]:
            closing = asyncio.create_task(_close(instance))
            self._closings.add(closing)
            closing.add_done_callback(self._closings.discard)

    async def describe_oauth(self, organization_id: UUID, name: str) -> OAuthService:
        """Return where accounts of a provider of calendars are connected, by the organization's settings.

        Raises `ProviderError` for settings that are missing, and for a provider whose accounts need no OAuth.
        """
        provider = await self.create_calendar(organization_id, name)
        if not isinstance(provider, OAuthCalendarProvider):
            raise ProviderError(f"accounts of {provider.title} are not connected by OAuth", retryable=False)
        return provider.describe_oauth()

    async def create_calendar(self, organization_id: UUID, name: str) -> CalendarProvider[ProviderSettings]:
        """Return a provider of calendars without an account, which is not opened. Raises `ProviderError`."""
        return self._create_calendar(await self._find_calendar_row(organization_id, name))

    def _create_calendar(self, row: StoredConfiguration) -> CalendarProvider[ProviderSettings]:
        provider = self._create(row, Capability.CALENDAR)
        assert isinstance(provider, CalendarProvider)  # noqa: S101  the registry found it by this class
        return provider

    async def _find_calendar_row(self, organization_id: UUID, name: str) -> StoredConfiguration:
        """Return the configuration of a provider of calendars, an empty one if the organization has none. Raises
        `ProviderError` for an unknown provider.
        """
        rows = await self.read_configurations(organization_id, Capability.CALENDAR)
        kind = self._factory.registry.find_provider_class(CalendarProvider, name)
        row = next((row for row in rows if row.name == name), None)
        if row is None and kind is not None:
            row = self._configure_default(kind, Capability.CALENDAR, organization_id)
        return row or choose_configuration(rows, Capability.CALENDAR, name)

    def _configure_default(
        self, kind: type[AnyProvider], capability: Capability, organization_id: UUID
    ) -> StoredConfiguration:
        """Return the configuration of a provider that an organization has not configured, with its default settings."""
        label = SECRETS_LABEL.format(id=organization_id, organization_id=organization_id)
        secrets = self._keyring.encrypt("{}", label)
        return StoredConfiguration(
            organization_id, organization_id, capability.value, kind.name, SHARED_PROCESS, {}, secrets, NEVER_SAVED
        )

    async def close(self) -> None:
        """Close every instance."""
        for probe in self._probes:
            probe.cancel()
        await asyncio.gather(*self._probes, *self._closings, return_exceptions=True)
        instances = [*self._instances.values(), *self._calendars.values()]
        self._instances, self._calendars = {}, {}
        for instance in instances:
            await _close(instance)

    def find_health(self, organization_id: UUID, base: type[ProviderT], name: str, version: datetime) -> ProviderHealth:
        """Return the health of a provider; with other settings, of another `version`, it starts over.

        Starts a probe in the background if one is due.
        """
        key = (organization_id, find_capability(base), name)
        known_version, health = self._healths.get(key, (None, None))
        if health is None or known_version != version:
            if health is not None:
                health.record_success()
            health = ProviderHealth(organization_id, key[1], name, self._factory.registry.find_plugin(key[1], name))
            self._healths[key] = version, health
        if health.claim_probe():
            probe = asyncio.create_task(self._probe(organization_id, base, name, health))
            self._probes.add(probe)
            probe.add_done_callback(self._probes.discard)
        return health

    async def _probe(self, organization_id: UUID, base: type[ProviderT], name: str, health: ProviderHealth) -> None:
        try:
            async with asyncio.timeout(PROBE_SECONDS), self.use(organization_id, base, name) as provider:
                await provider.check()
                if isinstance(provider, TurnDetector):
                    await require_prediction_in_time(provider)
        except (ProviderError, SQLAlchemyError, OSError) as error:
            logger.info("provider is still degraded", provider=name, error=str(error) or type(error).__name__)
            health.record_failure()
        else:
            health.record_success()

    def _instance(self, row: StoredConfiguration, capability: Capability) -> tuple[_Instance, _Instance | None]:
        """Return the instance of these settings, and the one that it replaces now."""
        key = (row.organization_id, capability, row.name)
        known = self._instances.get(key)
        if known is not None and known.version == row.updated_at:
            return known, None
        if known is not None:
            known.retired = True
        fresh = self._instances[key] = _Instance(self._create(row, capability), row.updated_at)
        return fresh, known

    def _create(self, row: StoredConfiguration, capability: Capability) -> AnyProvider:
        try:
            settings = read_settings(self._keyring, row)
        except SecretError as error:
            raise refuse_settings(capability, row.name, error) from error
        return self._factory.create(capability, row.name, settings, process=row.process)


def choose_configuration(
    rows: Sequence[StoredConfiguration], capability: Capability, name: str | None
) -> StoredConfiguration:
    """Return the configuration of a provider, or of the first one of the capability. Raises `ProviderError`."""
    for row in rows:
        if row.capability == capability.value and name in (None, row.name):
            return row
    raise ProviderError(f"the organization has no {capability.value} provider {name or ''}".rstrip(), retryable=False)


@asynccontextmanager
async def _use(instance: _Instance) -> AsyncIterator[None]:
    """Count a user of an instance for the block. The last user of one that was retired closes it."""
    instance.users += 1
    try:
        yield
    finally:
        instance.users -= 1
        instance.used_at = time.monotonic()
        if instance.retired and instance.users == 0:
            await _close(instance)


async def _open(instance: _Instance) -> None:
    async with instance.opening:
        if not instance.opened:
            try:
                async with asyncio.timeout(OPEN_SECONDS):
                    await instance.provider.open()
            except TimeoutError as late:
                raise ProviderError(f"{instance.provider.title} could not be opened in time") from late
            instance.opened = True


async def _close(instance: _Instance) -> None:
    if instance.opened:
        instance.opened = False
        try:
            await instance.provider.close()
        except ProviderError as error:
            logger.warning("provider failed to close", provider=instance.provider.name, reason=error.message)


# Extensions of an organization, created with the organization's own settings.

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

    async def list_reasons(self, session: ReadSession, base: type[Extension]) -> dict[str, str]:
        """Return why the session's organization cannot use extensions of an SDK base class, by their names."""
        configured = await configure_extensions(session, self.registry.list_extension_classes(base))
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
        async with self.database.read(organization_id) as session:
            return await configure_extensions(session, extensions)


async def configure_extensions(
    session: ReadSession, extensions: Sequence[type[ExtensionT]]
) -> list[ConfiguredExtension[ExtensionT]]:
    """Return extensions with the settings of the session's organization. Extensions without settings need no query."""
    rows: dict[tuple[str, str], ProviderConfiguration] = {}
    if any(extension.Settings.model_fields for extension in extensions):
        kinds = [kind.value for kind in ExtensionKind]
        found = session.select(ProviderConfiguration).where(is_among(col(ProviderConfiguration.capability), kinds))
        rows = {(row.capability, row.name): row for row in (await session.exec(found)).all()}
    return [
        _configure(session.keyring, extension, rows.get((find_extension_kind(extension), extension.name)))
        for extension in extensions
    ]


def _configure(
    keyring: KeyRing, extension: type[ExtensionT], row: ProviderConfiguration | None
) -> ConfiguredExtension[ExtensionT]:
    kind = find_extension_kind(extension)
    try:
        values = read_settings(keyring, row) if row is not None else {}
        return ConfiguredExtension(extension, parse_settings(extension.Settings, values))
    except (SecretError, InvalidSettings) as error:
        problem = f"are not usable ({error})" if row is not None else "are missing"
        place = f"[{kind.value}.{extension.name}] of the tenant file, or on the page Providers"
        return ConfiguredExtension(
            extension, None, f"the organization's settings of {extension.name} {problem}: set them in {place}"
        )
