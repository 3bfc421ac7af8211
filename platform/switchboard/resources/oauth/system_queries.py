"""Queries that cross organizations: the principal of an access token, and the deletion of expired grants."""

from datetime import timedelta

from sqlalchemy import delete
from sqlmodel import col, select

from switchboard.foundation.database import Database, now
from switchboard.foundation.web.principal import Principal, get_role_scopes
from switchboard.resources.identity.authentication import build_principal
from switchboard.resources.identity.models import Organization, User
from switchboard.resources.identity.system_queries import get_role
from switchboard.resources.oauth.models import OAuthClient, OAuthGrant, OAuthToken

LAST_USE_PRECISION = timedelta(minutes=1)


async def find_access_token(database: Database, token_hash: bytes) -> Principal | None:
    """Return the principal of an access token, and record its use to the minute; None for one that is not valid.

    A user acts through an application, with the scopes that the user may still grant.
    """
    rows = (
        select(OAuthGrant, OAuthToken.scopes, OAuthClient.client_id, Organization)
        .join(OAuthToken, col(OAuthToken.grant_id) == col(OAuthGrant.id))
        .join(OAuthClient, col(OAuthClient.id) == col(OAuthGrant.client_id))
        .join(Organization, col(Organization.id) == col(OAuthGrant.organization_id))
        .join(User, col(User.id) == col(OAuthGrant.user_id))
        .where(
            col(OAuthToken.access_hash) == token_hash,
            col(OAuthToken.access_expires_at) > now(),
            col(OAuthGrant.revoked_at).is_(None),
        )
    )
    async with database.system() as session:
        found = (await session.exec(rows)).one_or_none()
        if found is None:
            return None
        grant, granted, client_id, organization = found
        scopes = frozenset(granted)
        if scopes - get_role_scopes("viewer"):
            role = await get_role(session, await session.get_one(User, grant.user_id), organization.id)
            scopes &= get_role_scopes(role or "viewer")
        if grant.last_used_at is None or grant.last_used_at < now() - LAST_USE_PRECISION:
            grant.last_used_at = now()
        # The whole token family is one credential: it shares its rate limits and is revoked as one.
        return build_principal(
            organization, credential_id=grant.id, actor=f"user:{grant.user_id} via {client_id}", scopes=scopes
        )


async def delete_expired_grants(database: Database) -> None:
    """Delete the grants that can no longer be used, and refresh tokens so old that a replay would be refused anyway."""
    async with database.system() as session:
        await session.exec(delete(OAuthToken).where(col(OAuthToken.expires_at) < now()))
        await session.exec(delete(OAuthGrant).where(col(OAuthGrant.expires_at) < now()))
