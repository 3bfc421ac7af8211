"""Connected applications: the grants of an organization's users, and their revocation."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlmodel import col, select

from switchboard.foundation.audit import AuditAction, record_audit_as
from switchboard.foundation.database import ReadSession, WriteSession, now
from switchboard.foundation.web.errors import NotFound
from switchboard.foundation.web.rate_limits import RateLimiter
from switchboard.resources.identity.models import User
from switchboard.resources.identity.service import OPERATOR
from switchboard.resources.oauth.models import OAuthClient, OAuthGrant


@dataclass(frozen=True, slots=True)
class Connection:
    """An application that acts for a user in an organization; `scopes` is the union of the user's grants."""

    application: UUID
    name: str
    user_id: UUID
    email: str
    scopes: tuple[str, ...]
    connected_at: datetime
    last_used_at: datetime | None


async def list_connections(session: ReadSession, *, user_id: UUID | None = None) -> list[Connection]:
    """List the applications connected to the organization, or by one user, newest first."""
    rows = (
        select(OAuthGrant, OAuthClient.name, User.email)
        .join(OAuthClient, col(OAuthClient.id) == col(OAuthGrant.client_id))
        .join(User, col(User.id) == col(OAuthGrant.user_id))
        .where(session.owns(OAuthGrant), col(OAuthGrant.redeemed_at).is_not(None))
        .where(col(OAuthGrant.revoked_at).is_(None), col(OAuthGrant.expires_at) > now())
        .order_by(col(OAuthGrant.created_at).desc())
    )
    if user_id is not None:
        rows = rows.where(col(OAuthGrant.user_id) == user_id)
    grants: dict[tuple[UUID, UUID], list[tuple[OAuthGrant, str, str]]] = {}
    for row in (await session.exec(rows)).all():
        grants.setdefault((row[0].client_id, row[0].user_id), []).append(row)
    return [
        Connection(
            application=application,
            name=approvals[0][1],
            user_id=connected_by,
            email=approvals[0][2],
            scopes=tuple(sorted({scope for grant, _, _ in approvals for scope in grant.scopes})),
            connected_at=min(grant.created_at for grant, _, _ in approvals),
            last_used_at=max((grant.last_used_at for grant, _, _ in approvals if grant.last_used_at), default=None),
        )
        for (application, connected_by), approvals in grants.items()
    ]


async def disconnect(session: WriteSession, limiter: RateLimiter, *, application: UUID, user_id: UUID) -> None:
    """Revoke everything that a user granted an application in the organization, codes included. Raises `NotFound` if
    there is nothing.
    """
    rows = session.select(OAuthGrant).where(
        col(OAuthGrant.client_id) == application,
        col(OAuthGrant.user_id) == user_id,
        col(OAuthGrant.revoked_at).is_(None),
    )
    grants = (await session.exec(rows.with_for_update())).all()
    if not grants:
        raise NotFound
    names = select(OAuthClient.client_id).where(col(OAuthClient.id) == application)
    client_id = (await session.exec(names)).one()
    for grant in grants:
        grant.revoked_at = now()
    subject = f"{client_id} of user:{user_id}"
    actor = session.actor or OPERATOR
    record_audit_as(session, session.organization_id, actor, AuditAction.OAUTH_GRANT_REVOKED, subject)
    revoke_after_commit(session, limiter, [grant.id for grant in grants])


async def get_application_names(session: ReadSession) -> dict[str, str]:
    """Return the names of the applications that have had access to the organization, by client id."""
    known = select(OAuthGrant.client_id).where(session.owns(OAuthGrant))
    rows = await session.exec(select(OAuthClient.client_id, OAuthClient.name).where(col(OAuthClient.id).in_(known)))
    return dict(rows.all())


async def list_live_grants(session: ReadSession, user_id: UUID) -> list[UUID]:
    """List the ids of the grants by which applications act for a user. They are deleted with the membership."""
    rows = select(OAuthGrant.id).where(session.owns(OAuthGrant), col(OAuthGrant.user_id) == user_id)
    return list((await session.exec(rows.where(col(OAuthGrant.revoked_at).is_(None)))).all())


def revoke_after_commit(session: WriteSession, limiter: RateLimiter, grants: Sequence[UUID]) -> None:
    """Have every process refuse these grants' tokens once the transaction commits."""

    async def notify() -> None:
        for grant in grants:
            await limiter.announce_revocation(str(grant))

    session.after_commit(notify)
