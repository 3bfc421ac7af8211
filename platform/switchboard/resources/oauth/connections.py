"""Connected applications: the grants of an organization's users, and their revocation."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from switchboard.foundation.audit import AuditAction, record_audit_as
from switchboard.foundation.database import ReadSession, WriteSession, now
from switchboard.foundation.web.errors import NotFound
from switchboard.foundation.web.rate_limits import RateLimiter
from switchboard.resources.identity.service import OPERATOR
from switchboard.resources.oauth import queries
from switchboard.resources.oauth.models import OAuthGrant


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
    grants: dict[tuple[UUID, UUID], list[tuple[OAuthGrant, str, str]]] = {}
    for row in await queries.list_redeemed_grants(session, user_id=user_id):
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
    grants = await queries.lock_live_grants(session, application, user_id)
    if not grants:
        raise NotFound
    client_id = await queries.get_client_id(session, application)
    for grant in grants:
        grant.revoked_at = now()
    subject = f"{client_id} of user:{user_id}"
    actor = session.actor or OPERATOR
    record_audit_as(session, session.organization_id, actor, AuditAction.OAUTH_GRANT_REVOKED, subject)
    revoke_after_commit(session, limiter, [grant.id for grant in grants])


def revoke_after_commit(session: WriteSession, limiter: RateLimiter, grants: Sequence[UUID]) -> None:
    """Have every process refuse these grants' tokens once the transaction commits."""

    async def notify() -> None:
        for grant in grants:
            await limiter.announce_revocation(str(grant))

    session.after_commit(notify)
