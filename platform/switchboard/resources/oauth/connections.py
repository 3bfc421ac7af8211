"""Connected applications: what users granted in an organization, and taking it back."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlmodel import col, select

from switchboard.foundation.database import Database, now
from switchboard.foundation.web.errors import NotFound
from switchboard.foundation.web.rate_limits import RateLimiter
from switchboard.resources.identity.models import AuditEntry, User
from switchboard.resources.oauth.models import OAuthClient, OAuthGrant


@dataclass(frozen=True, slots=True)
class Connection:
    """An application that acts for a user in an organization; `scopes` are those of all the user's approvals together."""

    application: UUID
    name: str
    user_id: UUID
    email: str
    scopes: tuple[str, ...]
    connected_at: datetime
    last_used_at: datetime | None


async def connections(database: Database, organization_id: UUID, *, user_id: UUID | None = None) -> list[Connection]:
    """The applications connected in an organization, the latest first; `user_id` for one user's only."""
    mine = (
        select(OAuthGrant, OAuthClient.name, User.email)
        .join(OAuthClient, col(OAuthClient.id) == col(OAuthGrant.client_id))
        .join(User, col(User.id) == col(OAuthGrant.user_id))
        .where(col(OAuthGrant.organization_id) == organization_id, col(OAuthGrant.redeemed_at).is_not(None))
        .where(col(OAuthGrant.revoked_at).is_(None), col(OAuthGrant.expires_at) > now())
        .order_by(col(OAuthGrant.created_at).desc())
    )
    if user_id is not None:
        mine = mine.where(col(OAuthGrant.user_id) == user_id)
    async with database.system() as session:
        rows = (await session.exec(mine)).all()
    found: dict[tuple[UUID, UUID], list[tuple[OAuthGrant, str, str]]] = {}
    for row in rows:
        found.setdefault((row[0].client_id, row[0].user_id), []).append(row)
    return [_together(approvals) for approvals in found.values()]


def _together(approvals: list[tuple[OAuthGrant, str, str]]) -> Connection:
    newest, name, email = approvals[0]
    grants = [grant for grant, _, _ in approvals]
    return Connection(
        application=newest.client_id,
        name=name,
        user_id=newest.user_id,
        email=email,
        scopes=tuple(sorted({scope for grant in grants for scope in grant.scopes})),
        connected_at=min(grant.created_at for grant in grants),
        last_used_at=max((grant.last_used_at for grant in grants if grant.last_used_at), default=None),
    )


async def disconnect(
    database: Database, limiter: RateLimiter, organization_id: UUID, *, application: UUID, user_id: UUID, actor: str
) -> None:
    """End everything that a user granted an application in an organization: codes too. Raises `NotFound` where there is nothing."""
    mine = select(OAuthGrant).where(
        col(OAuthGrant.organization_id) == organization_id,
        col(OAuthGrant.client_id) == application,
        col(OAuthGrant.user_id) == user_id,
        col(OAuthGrant.revoked_at).is_(None),
    )
    async with database.system() as session:
        grants = (await session.exec(mine.with_for_update())).all()
        if not grants:
            raise NotFound
        client_id = (await session.get_one(OAuthClient, application)).client_id
        for grant in grants:
            grant.revoked_at = now()
        subject = f"{client_id} of user:{user_id}"
        session.add(
            AuditEntry(organization_id=organization_id, actor=actor, action="oauth_grant.revoked", subject=subject)
        )
    for grant in grants:
        await limiter.tell_revoked(str(grant.id))


async def application_names(database: Database, organization_id: UUID) -> dict[str, str]:
    """What the applications are called that have had access to an organization, by their client ids."""
    mine = select(OAuthGrant.client_id).where(col(OAuthGrant.organization_id) == organization_id)
    async with database.system() as session:
        rows = await session.exec(select(OAuthClient.client_id, OAuthClient.name).where(col(OAuthClient.id).in_(mine)))
        return dict(rows.all())


async def live_grants(database: Database, organization_id: UUID, user_id: UUID) -> list[UUID]:
    """The credentials by which applications act for a user. They end with the membership; who ends it tells the rate limiter."""
    mine = select(OAuthGrant.id).where(
        col(OAuthGrant.organization_id) == organization_id, col(OAuthGrant.user_id) == user_id
    )
    async with database.system() as session:
        return list((await session.exec(mine.where(col(OAuthGrant.revoked_at).is_(None)))).all())
