"""Apply tenant files to the database, or describe what applying them would change; and change what they set without
a file.
"""

from contextlib import suppress
from uuid import UUID

import structlog

from switchboard.apps.tenant_files.files import TenantFile
from switchboard.engine.providers.configuration import configure_providers
from switchboard.engine.providers.editing import list_providers
from switchboard.foundation.audit import AuditAction, record_audit_as
from switchboard.foundation.database import Database, ReadSession, SystemSession
from switchboard.foundation.keyring import KeyRing
from switchboard.foundation.settings import OperatorError
from switchboard.plugin_sdk.registry import Capability, Registry
from switchboard.resources.agents.models import PROVIDER_FIELDS
from switchboard.resources.agents.queries import list_agents_using_provider
from switchboard.resources.identity.models import Organization
from switchboard.resources.identity.policy import Policy
from switchboard.resources.identity.queries import lock_organization_of_slug
from switchboard.resources.identity.service import OPERATOR, create_organization
from switchboard.resources.phone_numbers.entering import enter_missing_numbers
from switchboard.resources.phone_numbers.queries import list_numbers_of_others

logger = structlog.get_logger()


class FileRefused(OperatorError):
    """A file leaves out a provider that agents name, or lists another organization's number. The message says which."""


class _Discard(Exception):
    """Raised to roll a comparison's transaction back."""


async def apply_tenant_file(
    database: Database, registry: Registry, keyring: KeyRing, file: TenantFile
) -> tuple[UUID, list[str]]:
    """Apply a valid file in one transaction; return the organization's id and a description of each change.

    Raises `FileRefused`, and changes nothing then.
    """
    async with database.system() as session:
        organization_id, changes, missed = await _apply(session, registry, keyring, file)
        if missed:
            raise FileRefused(f"{file.path}: {'; '.join(missed)}")
    return organization_id, changes


async def update_organization(
    database: Database, organization_id: UUID, *, actor: str, name: str, timezone: str, policy: Policy | None = None
) -> None:
    """Change an organization that no tenant file sets, and record the changes in its audit log. Without a policy, the
    organization keeps its own.
    """
    async with database.system() as session:
        organization = await session.get_one(Organization, organization_id, with_for_update=True)
        if changes := _update(organization, name=name, timezone=timezone, policy=policy):
            async with session.narrow(organization_id) as tenant:
                record_audit_as(tenant, organization_id, actor, AuditAction.ORGANIZATION_UPDATED, "; ".join(changes))


async def compare_tenant_file(database: Database, registry: Registry, keyring: KeyRing, file: TenantFile) -> list[str]:
    """Describe each change that `apply` would make, without making any, and each reason to refuse the file."""
    changes: list[str] = []
    missed: list[str] = []
    with suppress(_Discard):
        async with database.system() as session:
            _, changes, missed = await _apply(session, registry, keyring, file)
            raise _Discard
    return [*changes, *(f"refused: {reason}" for reason in missed)]


async def _apply(
    session: SystemSession, registry: Registry, keyring: KeyRing, file: TenantFile
) -> tuple[UUID, list[str], list[str]]:
    """Return the organization's id, the changes, and each reason to refuse the file."""
    organization = await lock_organization_of_slug(session, file.slug)
    if organization is not None and organization.moving_since is not None:
        logger.warning("a tenant file waits while its organization is being moved", file=str(file.path))
        return organization.id, [], []
    organization, changes = _save_organization(session, organization, file)
    wanted = [number.phone_number for number in file.numbers]
    taken = [
        f"the phone number {number} belongs to another organization of this installation"
        for number in await list_numbers_of_others(session, organization.id, wanted)
    ]
    async with session.narrow(organization.id) as tenant:
        missed = [*taken, *await _list_missed_providers(tenant, file)]
        changes += await configure_providers(tenant, registry, keyring, file.providers)
        if not taken:
            entered = await enter_missing_numbers(tenant, registry, file.numbers)
            changes += [f"enter phone number {number.phone_number}" for number in entered]
        if changes:
            subject = "; ".join(changes)
            record_audit_as(tenant, organization.id, OPERATOR, AuditAction.TENANT_FILE_APPLIED, subject)
    return organization.id, changes, missed


async def _list_missed_providers(session: ReadSession, file: TenantFile) -> list[str]:
    kept = {(spec.capability, spec.name) for spec in file.providers}
    missed = []
    for row in await list_providers(session):
        if row.capability not in set(PROVIDER_FIELDS.values()) or (row.capability, row.name) in kept:
            continue
        capability = Capability(row.capability)
        if users := await list_agents_using_provider(session, capability, row.name):
            names = ", ".join(agent.name for agent in users)
            missed.append(
                f"{capability.value} {row.name} is removed although agents name it: {names}: keep the provider, or "
                "choose another one for these agents first"
            )
    return missed


def _save_organization(
    session: SystemSession, organization: Organization | None, file: TenantFile
) -> tuple[Organization, list[str]]:
    changes: list[str] = []
    if organization is None:
        organization = create_organization(session, name=file.name, slug=file.slug)
        changes.append(f"create organization {file.name}")
    changes += _update(organization, name=file.name, timezone=file.timezone, policy=file.policy)
    return organization, changes


def _update(organization: Organization, *, name: str, timezone: str, policy: Policy | None) -> list[str]:
    wanted: dict[str, object] = {"name": name, "timezone": timezone}
    if policy is not None:
        wanted["policy"] = policy
    changes = []
    for field, value in wanted.items():
        if getattr(organization, field) != value:
            changes.append(f"change {field}")
            setattr(organization, field, value)
    return changes
