"""What crosses organizations: whose is an access token, and what has expired. Run under the system role."""

from datetime import timedelta

from sqlalchemy import delete
from sqlmodel import col, or_, select

from switchboard.foundation.database import SystemSession, now
from switchboard.foundation.web.principal import OWNERS_SCOPES, Principal
from switchboard.resources.identity.authentication import principal_of
from switchboard.resources.identity.models import Organization, User
from switchboard.resources.identity.system_queries import role_in
from switchboard.resources.oauth.models import OAuthClient, OAuthGrant, OAuthToken

COARSE = timedelta(minutes=1)


async def find_access_token(session: SystemSession, token_hash: bytes) -> Principal | None:
    """Who acts by an access token: a user, through an application, with what the user may still do. Notes its use, to the minute."""
    live = (
        select(OAuthGrant, OAuthToken.scopes, OAuthClient.client_id, Organization)
        .join(OAuthToken, col(OAuthToken.grant_id) == col(OAuthGrant.id))
        .join(OAuthClient, col(OAuthClient.id) == col(OAuthGrant.client_id))
        .join(Organization, col(Organization.id) == col(OAuthGrant.organization_id))
        .join(User, col(User.id) == col(OAuthGrant.user_id))
        .where(
            col(OAuthToken.access_hash) == token_hash,
            col(OAuthToken.access_expires_at) > now(),
            col(OAuthGrant.revoked_at).is_(None),
            or_(col(OAuthGrant.membership_id).is_not(None), col(User.is_superadmin)),
        )
    )
    found = (await session.exec(live)).one_or_none()
    if found is None:
        return None
    grant, granted, client_id, organization = found
    scopes = frozenset(granted)
    if (
        scopes & OWNERS_SCOPES
        and await role_in(session, await session.get_one(User, grant.user_id), organization.id) != "owner"
    ):
        scopes -= OWNERS_SCOPES
    if grant.last_used_at is None or grant.last_used_at < now() - COARSE:
        grant.last_used_at = now()
    # The whole family is one credential: it shares its limits, and is revoked as one.
    return principal_of(
        organization, credential_id=grant.id, actor=f"user:{grant.user_id} via {client_id}", scopes=scopes
    )


async def forget_expired(session: SystemSession) -> None:
    """Delete approvals of which nothing can be used any more, and refresh tokens so old that a replay would be refused anyway."""
    await session.exec(delete(OAuthToken).where(col(OAuthToken.expires_at) < now()))
    await session.exec(delete(OAuthGrant).where(col(OAuthGrant.expires_at) < now()))
