"""Acts of the operator on an organization (docs/decisions/0083-operator-console.md): support sessions, in which a
superadmin enters it for an hour, and its suspension.

The role of a superadmin does not make its user a member of any organization. A support session sees in one browser
session what an owner sees, and acts in a role that reaches nothing secret and nothing that outlasts the session. The
organization's owners see it, may end it, and may forbid such sessions.
"""

from datetime import timedelta
from uuid import UUID

from switchboard.foundation.audit import AuditAction, record_audit, record_audit_as
from switchboard.foundation.database import Database, WriteSession, now
from switchboard.foundation.web.errors import Forbidden, NotFound, OrganizationMoving, ValidationFailed
from switchboard.foundation.web.paging import get_row
from switchboard.resources.identity.models import Organization, SupportSession, User, UserSession
from switchboard.resources.identity.queries import find_membership, list_support_sessions, mark_support_sessions_ended
from switchboard.resources.identity.service import IdentityError, lock_organization

ACTING_ROLE = "builder"
"""Role in which a support session acts. Credentials, members, providers, money, and the addresses that get an
organization's data are an owner's, and so are their scopes.
"""
SEEING_ROLE = "owner"
"""Role whose pages a support session sees. They show no stored secret."""
SUPPORT_LIFETIME = timedelta(hours=1)
MAX_REASON = 500


def build_support_actor(user_id: UUID) -> str:
    """Return the audit log's actor for a superadmin in a support session."""
    return f"user:{user_id} (support)"


async def start_support_session(
    database: Database, user: User, browser_session_id: UUID, organization_id: UUID, reason: str
) -> None:
    """Enter an organization for an hour, instead of the one that the browser session had entered.

    Raises `ValidationFailed` without a reason, `NotFound`, `OrganizationMoving`, and `Forbidden` if the organization's
    owners do not allow support sessions, or if the user is a member.
    """
    if not 0 < len(reason.strip()) <= MAX_REASON:
        raise ValidationFailed.field("reason", f"must have 1 to {MAX_REASON} characters")
    async with database.system() as session:
        organization = await session.get(Organization, organization_id)
        if organization is None:
            raise NotFound
        if organization.moving_since is not None:
            raise OrganizationMoving
        if await find_membership(session, user.id, organization_id) is not None:
            raise Forbidden("You are a member of this organization: open it under Organizations.")
        if not organization.allows_support:
            raise Forbidden("The owners of this organization do not allow support sessions.")
        await mark_support_sessions_ended(session, browser_session_id)
        started = SupportSession(
            organization_id=organization_id,
            user_id=user.id,
            user_email=user.email,
            browser_session_id=browser_session_id,
            reason=reason.strip(),
            expires_at=now() + SUPPORT_LIFETIME,
        )
        session.add(started)
        (await session.get_one(UserSession, browser_session_id)).organization_id = organization_id
        actor, subject = build_support_actor(user.id), f"{started.id} {started.reason}"
        record_audit_as(session, organization_id, actor, AuditAction.SUPPORT_SESSION_STARTED, subject)


async def leave_support_session(database: Database, started: SupportSession) -> None:
    """End a superadmin's own support session, and leave the organization."""
    async with database.system() as session:
        await mark_support_sessions_ended(session, started.browser_session_id)
        browser = await session.get(UserSession, started.browser_session_id)
        if browser is not None and browser.organization_id == started.organization_id:
            browser.organization_id = None
        actor = build_support_actor(started.user_id)
        record_audit_as(session, started.organization_id, actor, AuditAction.SUPPORT_SESSION_ENDED, started.id)


async def end_support_session(session: WriteSession, support_session_id: UUID) -> None:
    """End a support session for the organization's owners; harmless when repeated. Raises `NotFound`."""
    found = await get_row(session, SupportSession, support_session_id)
    if found.ended_at is None:
        found.ended_at = now()
        record_audit(session, AuditAction.SUPPORT_SESSION_ENDED, found.id)


async def allow_support(session: WriteSession, *, allowed: bool) -> None:
    """Allow or forbid support sessions. Forbidding them ends those that are active."""
    organization = await session.get_one(Organization, session.organization_id)
    organization.allows_support = allowed
    record_audit(session, AuditAction.SUPPORT_ACCESS_CHANGED, "allowed" if allowed else "forbidden")
    for one in [] if allowed else await list_support_sessions(session):
        await end_support_session(session, one.id)


# Suspension of organizations by the operator.
#
# A suspended organization starts nothing that reaches other people or costs money: the API and the dashboard refuse its
# users, and calls, text messages, campaigns, and automations read `suspended_at` in the transaction of their effect.


async def suspend_organization(database: Database, organization_id: UUID, *, reason: str, actor: str) -> None:
    """Suspend an organization; harmless when repeated. Raises `IdentityError` for an unknown id, and without a reason,
    which the organization's users are shown.
    """
    if not 0 < len(reason.strip()) <= MAX_REASON:
        raise IdentityError(f"a suspension needs a reason of 1 to {MAX_REASON} characters")
    async with database.system() as session:
        organization = await lock_organization(session, organization_id)
        if organization.suspended_at is None:
            organization.suspended_at, organization.suspension_reason = now(), reason.strip()
            record_audit_as(session, organization_id, actor, AuditAction.ORGANIZATION_SUSPENDED, reason.strip())


async def give_up_move(database: Database, organization_id: UUID, *, actor: str) -> bool:
    """Give up the move of an organization to another installation; return whether it was being moved. Raises
    `IdentityError` for an unknown id.
    """
    async with database.system() as session:
        organization = await lock_organization(session, organization_id)
        if organization.moving_since is None:
            return False
        organization.moving_since = organization.frozen_at = None
        record_audit_as(session, organization_id, actor, AuditAction.ORGANIZATION_MOVE_GIVEN_UP, organization_id)
        return True


async def resume_organization(database: Database, organization_id: UUID, *, actor: str) -> None:
    """Resume a suspended organization; harmless when repeated. Raises `IdentityError` for an unknown id."""
    async with database.system() as session:
        organization = await lock_organization(session, organization_id)
        if organization.suspended_at is not None:
            organization.suspended_at = organization.suspension_reason = None
            record_audit_as(session, organization_id, actor, AuditAction.ORGANIZATION_RESUMED, organization_id)
