"""Queries for an organization's configured providers."""

from datetime import datetime

from sqlmodel import col, select

from switchboard.engine.providers.models import ProviderConfiguration
from switchboard.foundation.database import TenantSession
from switchboard.foundation.web.errors import ValidationFailed
from switchboard.plugin_sdk.registry import Capability


async def list_provider_versions(session: TenantSession, capability: Capability) -> dict[str, datetime]:
    """List the organization's providers of a capability, in order of preference, with the time when their settings
    last changed.
    """
    rows = await session.exec(
        select(ProviderConfiguration.name, ProviderConfiguration.updated_at)
        .where(
            session.owns(ProviderConfiguration),
            col(ProviderConfiguration.capability) == capability.value,
        )
        .order_by(col(ProviderConfiguration.position))
    )
    return dict(rows.all())


async def list_provider_names(session: TenantSession, capability: Capability) -> list[str]:
    """List the names of the organization's providers of a capability, in order of preference."""
    return list(await list_provider_versions(session, capability))


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
