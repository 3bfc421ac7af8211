"""Changes to one provider or extension at a time, from the dashboard; a tenant file replaces all of them
(`configuration.py`).
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from pydantic import JsonValue
from sqlmodel import col

from switchboard.engine.providers.configuration import (
    ProviderSpec,
    UnknownProvider,
    decrypt_secrets,
    find_secret_settings,
    require_class,
    write_provider,
)
from switchboard.engine.providers.models import OWN_PROCESS, SHARED_PROCESS, ProcessMode, ProviderConfiguration
from switchboard.foundation.audit import AuditAction, record_audit
from switchboard.foundation.database import ReadSession, WriteSession, lock_name
from switchboard.foundation.keyring import KeyRing
from switchboard.foundation.web.errors import FieldError, InvalidState, NotFound, ValidationFailed
from switchboard.plugin_sdk import OPERATOR_ONLY
from switchboard.plugin_sdk.provider import Configurable
from switchboard.plugin_sdk.registry import AnyCapability, Capability, InvalidSettings, Registry


def find_tenant_file(tenants_dir: Path, slug: str | None) -> Path | None:
    """Return the tenant file that configures an organization's providers; None without one.

    While the file exists, other changes are overwritten by it.
    """
    path = tenants_dir / f"{slug}.toml"
    return path if slug is not None and path.exists() else None


def require_no_file(tenants_dir: Path, slug: str | None) -> None:
    """Raise `InvalidState` for an organization that is configured by a tenant file. The message has the command that
    applies changes of the file.
    """
    if (path := find_tenant_file(tenants_dir, slug)) is not None:
        raise InvalidState(
            f"The operator sets this organization in {path}. Edit the file and run `switchboard tenants apply {path}`."
        )


async def list_providers(session: ReadSession) -> list[ProviderConfiguration]:
    """List the organization's providers and extensions, within a capability in the order in which they are tried."""
    rows = session.select(ProviderConfiguration)
    rows = rows.order_by(col(ProviderConfiguration.position), col(ProviderConfiguration.id))
    return list((await session.exec(rows)).all())


async def _lock_providers(session: WriteSession) -> list[ProviderConfiguration]:
    """List the organization's providers under a lock, so that concurrent changes see each other."""
    await lock_name(session, f"providers {session.organization_id}")
    return await list_providers(session)


async def find_provider(session: ReadSession, capability: AnyCapability, name: str) -> ProviderConfiguration | None:
    """Return one of the organization's providers or extensions; None if it is not configured."""
    return next(
        (row for row in await list_providers(session) if (row.capability, row.name) == (capability, name)), None
    )


def list_saved_secrets(keyring: KeyRing, row: ProviderConfiguration | None) -> frozenset[str]:
    """Return the names of the stored secrets."""
    return frozenset(name for name, value in decrypt_secrets(keyring, row).items() if value)


def list_saved_keys(keyring: KeyRing, row: ProviderConfiguration | None) -> dict[str, frozenset[str]]:
    """Return the keys of the stored secrets that are dicts, by the names of their settings."""
    secrets = decrypt_secrets(keyring, row)
    return {name: frozenset(value) for name, value in secrets.items() if isinstance(value, dict)}


def list_operator_settings(kind: type[Configurable]) -> frozenset[str]:
    """Return the names of the settings that only the operator may set (`OPERATOR_ONLY`)."""
    return frozenset(
        name
        for name, field in kind.Settings.model_fields.items()
        if "pydantic.networks." in str(field.annotation)
        or (isinstance(extra := field.json_schema_extra, dict) and extra.items() >= OPERATOR_ONLY.items())
    )


async def put_provider(
    session: WriteSession,
    registry: Registry,
    keyring: KeyRing,
    wanted: ProviderSpec,
    *,
    by_operator: bool,
    as_first: bool = False,
) -> None:
    """Add a provider or an extension after the others, or `as_first` before them, or change the settings of an existing
    one.

    Secrets that are not given keep their value, and so do operator-only settings and the kind of process unless the
    operator asks. Raises `NotFound` for an unknown provider, and `ValidationFailed` with the settings' names as fields.
    """
    rows = await _lock_providers(session)
    row = next((row for row in rows if (row.capability, row.name) == (wanted.capability, wanted.name)), None)
    places = [row.position for row in rows]
    added = min(places, default=1) - 1 if as_first else max(places, default=-1) + 1
    position = row.position if row is not None else added
    try:
        kind = require_class(registry, wanted)
        secrets = decrypt_secrets(keyring, row)
        given = _keep_keys(wanted, secrets)
        settings = _merge_settings(kind, row, secrets, given, by_operator=by_operator)
        kept: ProcessMode = OWN_PROCESS if row is not None and row.process == OWN_PROCESS else SHARED_PROCESS
        process = wanted.process if by_operator else kept
        changed = replace(wanted, settings=settings, process=process)
        write_provider(session, registry, keyring, changed, row=row, position=position)
    except UnknownProvider as error:
        raise NotFound(str(error)) from None
    except InvalidSettings as error:
        faults: list[FieldError] = [
            {"field": name, "message": message.removeprefix("Value error, ")} for name, message in error.faults
        ]
        raise ValidationFailed(str(error), errors=faults) from None
    name = f"{wanted.capability}/{wanted.name}"
    record_audit(session, AuditAction.PROVIDER_SAVED, name, fields=wanted.settings)


def _keep_keys(wanted: ProviderSpec, secrets: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    merged = dict(wanted.settings)
    for name, keys in wanted.kept_keys.items():
        stored, typed = secrets.get(name), wanted.settings.get(name)
        old = stored if isinstance(stored, dict) else {}
        kept = old if keys is None else {key: old[before] for key, before in keys.items() if before in old}
        merged[name] = {**kept, **(typed if isinstance(typed, dict) else {})}
    return merged


def _merge_settings(
    kind: type[Configurable],
    row: ProviderConfiguration | None,
    secrets: Mapping[str, JsonValue],
    given: Mapping[str, JsonValue],
    *,
    by_operator: bool,
) -> dict[str, JsonValue]:
    locked = frozenset() if by_operator else list_operator_settings(kind)
    if refused := sorted(locked & given.keys()):
        faults = [(name, "only whoever runs this installation may set it") for name in refused]
        raise InvalidSettings(faults)
    kept = {**(row.settings if row is not None else {}), **secrets}
    hidden = locked | find_secret_settings(kind.Settings)
    return {**{name: value for name, value in kept.items() if name in hidden}, **given}


async def record_check(
    session: WriteSession, capability: AnyCapability, name: str, began_at: datetime, *, works: bool
) -> None:
    """Record the result of a check of a provider's or an extension's settings."""
    row = await find_provider(session, capability, name)
    if row is None:
        return
    if works:
        row.checked_at, row.check_failed_at = began_at, None
    else:
        row.check_failed_at = began_at


async def remove_provider(session: WriteSession, capability: AnyCapability, name: str) -> None:
    """Delete a provider or an extension of the organization, with its secrets. Raises `NotFound`."""
    row = await find_provider(session, capability, name)
    if row is None:
        raise NotFound
    await session.delete(row)
    record_audit(session, AuditAction.PROVIDER_REMOVED, f"{capability}/{name}")


async def move_provider_up(session: WriteSession, capability: Capability, name: str) -> None:
    """Move a provider one place up in the order of failover; no effect on the first one. Raises `NotFound`."""
    rows = [row for row in await _lock_providers(session) if row.capability == capability]
    place = next((index for index, row in enumerate(rows) if row.name == name), None)
    if place is None:
        raise NotFound
    if place:
        before, row = rows[place - 1], rows[place]
        before.position, row.position = row.position, before.position
        record_audit(session, AuditAction.PROVIDER_MOVED, f"{capability}/{name}")
