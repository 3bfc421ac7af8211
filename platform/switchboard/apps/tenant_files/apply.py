"""Apply tenant files to the database, or describe what applying them would change."""

from contextlib import suppress
from uuid import UUID

from sqlmodel import col, select

from switchboard.apps.tenant_files.files import TenantFile
from switchboard.engine.providers.configuration import configure_providers
from switchboard.foundation.audit import AuditAction, record_audit_as
from switchboard.foundation.database import Database, SystemSession
from switchboard.foundation.keyring import KeyRing
from switchboard.plugin_sdk.registry import Registry
from switchboard.resources.identity.models import Organization
from switchboard.resources.identity.service import OPERATOR, create_organization


class _Discard(Exception):
    """Raised to roll a comparison's transaction back."""


async def apply_tenant_file(
    database: Database, registry: Registry, keyring: KeyRing, file: TenantFile
) -> tuple[UUID, list[str]]:
    """Apply a valid file in one transaction; return the organization's id and a description of each change."""
    async with database.system() as session:
        return await _apply(session, registry, keyring, file)


async def compare_tenant_file(database: Database, registry: Registry, keyring: KeyRing, file: TenantFile) -> list[str]:
    """Return a description of each change that `apply` would make, without making any."""
    changes: list[str] = []
    with suppress(_Discard):
        async with database.system() as session:
            _, changes = await _apply(session, registry, keyring, file)
            raise _Discard
    return changes


async def _apply(
    session: SystemSession, registry: Registry, keyring: KeyRing, file: TenantFile
) -> tuple[UUID, list[str]]:
    organization, changes = await _save_organization(session, file)
    async with session.narrow(organization.id) as tenant:
        changes += await configure_providers(tenant, registry, keyring, file.providers)
        if changes:
            subject = "; ".join(changes)
            record_audit_as(tenant, organization.id, OPERATOR, AuditAction.TENANT_FILE_APPLIED, subject)
    return organization.id, changes


async def _save_organization(session: SystemSession, file: TenantFile) -> tuple[Organization, list[str]]:
    found = await session.exec(select(Organization).where(col(Organization.slug) == file.slug).with_for_update())
    organization = found.one_or_none()
    changes: list[str] = []
    if organization is None:
        organization = await create_organization(session, name=file.name, slug=file.slug)
        changes.append(f"create organization {file.name}")
    changes += _update(organization, file)
    return organization, changes


def _update(organization: Organization, file: TenantFile) -> list[str]:
    wanted = {"name": file.name, "timezone": file.timezone, "policy": file.policy.model_dump(mode="json")}
    changes = []
    for name, value in wanted.items():
        if getattr(organization, name) != value:
            changes.append(f"change {name}")
            setattr(organization, name, value)
    return changes
