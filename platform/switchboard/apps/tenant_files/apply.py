"""Making the database say what the files say: one transaction a file, nothing where there is nothing to change."""

from uuid import UUID

from sqlmodel import col, select
from sqlmodel.ext.asyncio.session import AsyncSession

from switchboard.apps.tenant_files.files import TenantFile
from switchboard.engine.providers.configuration import configure
from switchboard.foundation.database import Database
from switchboard.foundation.keyring import KeyRing
from switchboard.plugin_sdk.registry import Registry
from switchboard.resources.identity.models import AuditEntry, Organization
from switchboard.resources.identity.service import OPERATOR, create_organization


class _NotForGood(Exception):
    """Rolls a comparison back."""


async def apply(database: Database, registry: Registry, keyring: KeyRing, file: TenantFile) -> tuple[UUID, list[str]]:
    """Apply a file without faults; answers the organization's id and what was changed, in words."""
    async with database.system() as session:
        return await _apply(session, registry, keyring, file)


async def compare(database: Database, registry: Registry, keyring: KeyRing, file: TenantFile) -> list[str]:
    """What `apply` would change."""
    changes: list[str] = []
    try:
        async with database.system() as session:
            _, changes = await _apply(session, registry, keyring, file)
            raise _NotForGood
    except _NotForGood:
        return changes


async def _apply(
    session: AsyncSession, registry: Registry, keyring: KeyRing, file: TenantFile
) -> tuple[UUID, list[str]]:
    found = await session.exec(select(Organization).where(col(Organization.slug) == file.slug).with_for_update())
    organization = found.one_or_none()
    changes: list[str] = []
    if organization is None:
        organization = await create_organization(session, name=file.name, slug=file.slug)
        changes.append(f"create organization {file.name}")
    changes += _update(organization, file)
    session.info["organization_id"] = organization.id
    changes += await configure(session, registry, keyring, file.providers)
    if changes:
        session.add(
            AuditEntry(
                organization_id=organization.id,
                actor=OPERATOR,
                action="tenant_file.applied",
                subject="; ".join(changes)[:1000],
            )
        )
    return organization.id, changes


def _update(organization: Organization, file: TenantFile) -> list[str]:
    wanted = {"name": file.name, "timezone": file.timezone, "policy": file.policy.model_dump(mode="json")}
    changes = []
    for name, value in wanted.items():
        if getattr(organization, name) != value:
            changes.append(f"change {name}")
            setattr(organization, name, value)
    return changes
