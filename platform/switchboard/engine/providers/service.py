"""Queries for an organization's configured providers."""

from collections.abc import Callable
from dataclasses import fields
from functools import cache
from typing import Any, TypeVar

from sqlalchemy import Select, bindparam, or_
from sqlalchemy import select as select_columns
from sqlmodel import col, select

from switchboard.engine.providers.models import ProviderConfiguration, StoredConfiguration
from switchboard.foundation.database import TenantSession
from switchboard.foundation.web.errors import ValidationFailed
from switchboard.plugin_sdk import Provider, ProviderSettings
from switchboard.plugin_sdk.registry import Capability, Registry, find_capability

ProviderT = TypeVar("ProviderT", bound=Provider[ProviderSettings])


async def list_configurations(session: TenantSession, *capabilities: Capability) -> list[StoredConfiguration]:
    """List the organization's providers of some capabilities, in order of preference."""
    rows = await session.read(_select_configurations(*capabilities), {"organization_id": session.organization_id})
    return [StoredConfiguration(**row) for row in rows]


@cache
def _select_configurations(*capabilities: Capability) -> Select[Any]:
    columns = (getattr(ProviderConfiguration, field.name) for field in fields(StoredConfiguration))
    wanted = or_(*(col(ProviderConfiguration.capability) == capability.value for capability in capabilities))
    ours = col(ProviderConfiguration.organization_id) == bindparam("organization_id")
    return select_columns(*columns).where(ours, wanted).order_by(col(ProviderConfiguration.position))


async def list_provider_names(session: TenantSession, capability: Capability) -> list[str]:
    """List the names of the organization's providers of a capability, in order of preference."""
    names = select(ProviderConfiguration.name).where(
        session.owns(ProviderConfiguration), col(ProviderConfiguration.capability) == capability.value
    )
    return list((await session.exec(names.order_by(col(ProviderConfiguration.position)))).all())


async def find_first_provider(
    session: TenantSession,
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


async def choose_provider(session: TenantSession, capability: Capability, name: str | None, *, field: str) -> str:
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
