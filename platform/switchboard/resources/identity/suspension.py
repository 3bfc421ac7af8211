"""Suspension of organizations by the operator (docs/decisions/0083-operator-console.md).

A suspended organization starts nothing that reaches other people or costs money: the API and the dashboard refuse its
users, and calls, text messages, campaigns, and automations read `suspended_at` in the transaction of their effect.
"""

from uuid import UUID

from sqlmodel import col, select
from sqlmodel.sql.expression import SelectOfScalar

from switchboard.foundation.audit import AuditAction, record_audit_as
from switchboard.foundation.database import SystemSession, TenantSession, now
from switchboard.resources.identity.models import Organization
from switchboard.resources.identity.service import IdentityError

MAX_REASON = 500


async def suspend_organization(session: SystemSession, organization_id: UUID, *, reason: str, actor: str) -> None:
    """Suspend an organization; harmless when repeated. Raises `IdentityError` for an unknown id, and without a reason,
    which the organization's users are shown.
    """
    if not 0 < len(reason.strip()) <= MAX_REASON:
        raise IdentityError(f"a suspension needs a reason of 1 to {MAX_REASON} characters")
    organization = await _lock_organization(session, organization_id)
    if organization.suspended_at is None:
        organization.suspended_at, organization.suspension_reason = now(), reason.strip()
        record_audit_as(session, organization_id, actor, AuditAction.ORGANIZATION_SUSPENDED, reason.strip())


async def resume_organization(session: SystemSession, organization_id: UUID, *, actor: str) -> None:
    """Resume a suspended organization; harmless when repeated. Raises `IdentityError` for an unknown id."""
    organization = await _lock_organization(session, organization_id)
    if organization.suspended_at is not None:
        organization.suspended_at = organization.suspension_reason = None
        record_audit_as(session, organization_id, actor, AuditAction.ORGANIZATION_RESUMED, organization_id)


async def is_suspended(session: TenantSession) -> bool:
    """Return whether the session's organization is suspended."""
    return (await session.get_one(Organization, session.organization_id)).suspended_at is not None


def select_suspended_ids() -> SelectOfScalar[UUID]:
    """Select the ids of the suspended organizations, for the claims of workers."""
    return select(Organization.id).where(col(Organization.suspended_at).is_not(None))


async def _lock_organization(session: SystemSession, organization_id: UUID) -> Organization:
    organization = await session.get(Organization, organization_id, with_for_update={"key_share": True})
    if organization is None:
        raise IdentityError(f"there is no organization {organization_id}; `switchboard orgs list` shows them")
    return organization
