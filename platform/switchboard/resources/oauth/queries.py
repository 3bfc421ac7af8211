"""Statements about applications, grants, and tokens. One with a `SystemSession` crosses organizations, and so does one
with a synchronous `Session`, which is that of a system transaction, for Authlib.
"""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy.orm import Session
from sqlmodel import col, delete, select

from switchboard.foundation.database import ReadSession, SystemSession, WriteSession, is_in_batch, now
from switchboard.foundation.web.errors import OrganizationMoving
from switchboard.resources.identity.models import Organization, User
from switchboard.resources.oauth.models import OAuthClient, OAuthGrant, OAuthToken


async def list_applications(session: SystemSession) -> list[OAuthClient]:
    """List every application, by name."""
    return list(await session.exec(select(OAuthClient).order_by(OAuthClient.name, col(OAuthClient.id))))


def _require_resting(session: Session, grant: OAuthGrant | None) -> OAuthGrant | None:
    """Return a grant. Raises `OrganizationMoving`, so that the application asks again with the same code or token."""
    moving = select(Organization.id).where(col(Organization.moving_since).is_not(None))
    if (
        grant is not None
        and session.scalars(moving.where(Organization.id == grant.organization_id)).first() is not None
    ):
        raise OrganizationMoving
    return grant


def find_application(session: Session, client_id: str) -> OAuthClient | None:
    return session.scalars(select(OAuthClient).where(col(OAuthClient.client_id) == client_id)).one_or_none()


async def get_client_id(session: ReadSession, application: UUID) -> str:
    return (await session.exec(select(OAuthClient.client_id).where(col(OAuthClient.id) == application))).one()


async def get_application_names(session: ReadSession) -> dict[str, str]:
    """Return the names of the applications that have had access to the organization, by client id."""
    known = select(OAuthGrant.client_id).where(session.owns(OAuthGrant))
    rows = await session.exec(select(OAuthClient.client_id, OAuthClient.name).where(col(OAuthClient.id).in_(known)))
    return dict(rows.all())


async def list_application_grants(session: SystemSession, application: UUID) -> Sequence[UUID]:
    """List the ids of everything that users granted an application."""
    return (await session.exec(select(OAuthGrant.id).where(col(OAuthGrant.client_id) == application))).all()


async def list_live_grants(session: ReadSession, user_id: UUID) -> list[UUID]:
    """List the ids of the grants by which applications act for a user. They are deleted with the membership."""
    rows = select(OAuthGrant.id).where(session.owns(OAuthGrant), col(OAuthGrant.user_id) == user_id)
    return list((await session.exec(rows.where(col(OAuthGrant.revoked_at).is_(None)))).all())


async def list_redeemed_grants(
    session: ReadSession, *, user_id: UUID | None = None
) -> Sequence[tuple[OAuthGrant, str, str]]:
    """List the grants by which applications act in the organization, or for one user, newest first, each with the
    application's name and the user's e-mail address.
    """
    rows = (
        select(OAuthGrant, OAuthClient.name, User.email)
        .join(OAuthClient, col(OAuthClient.id) == col(OAuthGrant.client_id))
        .join(User, col(User.id) == col(OAuthGrant.user_id))
        .where(session.owns(OAuthGrant), col(OAuthGrant.redeemed_at).is_not(None))
        .where(col(OAuthGrant.revoked_at).is_(None), col(OAuthGrant.expires_at) > now())
        .order_by(col(OAuthGrant.created_at).desc())
    )
    return (await session.exec(rows if user_id is None else rows.where(col(OAuthGrant.user_id) == user_id))).all()


async def lock_live_grants(session: WriteSession, application: UUID, user_id: UUID) -> Sequence[OAuthGrant]:
    """Lock and return everything that a user granted an application in the organization, codes included."""
    rows = session.select(OAuthGrant).where(
        col(OAuthGrant.client_id) == application,
        col(OAuthGrant.user_id) == user_id,
        col(OAuthGrant.revoked_at).is_(None),
    )
    return (await session.exec(rows.with_for_update())).all()


def lock_grant_by_code(session: Session, code_hash: bytes, client: OAuthClient) -> OAuthGrant | None:
    """Lock and return the grant of a client's code. Raises `OrganizationMoving`."""
    rows = select(OAuthGrant).where(col(OAuthGrant.code_hash) == code_hash, col(OAuthGrant.client_id) == client.id)
    return _require_resting(session, session.scalars(rows.with_for_update()).one_or_none())


def lock_refresh_token(
    session: Session, token_hash: bytes, client: OAuthClient
) -> tuple[OAuthGrant, OAuthToken | None] | None:
    """Lock and return the grant of a client's refresh token, and the token pair; None for it if it was deleted. Raises
    `OrganizationMoving`.
    """
    family = select(OAuthToken.grant_id).where(col(OAuthToken.refresh_hash) == token_hash)
    rows = select(OAuthGrant).where(col(OAuthGrant.id).in_(family), col(OAuthGrant.client_id) == client.id)
    grant = _require_resting(session, session.scalars(rows.with_for_update()).one_or_none())
    # Read under the lock: its previous holder may have used the token.
    pairs = select(OAuthToken).where(col(OAuthToken.refresh_hash) == token_hash)
    return None if grant is None else (grant, session.scalars(pairs).one_or_none())


def lock_grant_by_token(session: Session, token_hash: bytes) -> OAuthGrant | None:
    """Lock and return the grant of an access or refresh token in any state. Raises `OrganizationMoving`."""
    family = select(OAuthToken.grant_id).where(
        (col(OAuthToken.access_hash) == token_hash) | (col(OAuthToken.refresh_hash) == token_hash)
    )
    grants = select(OAuthGrant).where(col(OAuthGrant.id).in_(family)).with_for_update()
    return _require_resting(session, session.scalars(grants).one_or_none())


async def find_access_token(
    session: SystemSession, token_hash: bytes
) -> tuple[OAuthGrant, Sequence[str], str, Organization] | None:
    """Return the grant of a valid access token, the token's scopes, the client id, and the organization."""
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
    return (await session.exec(rows)).one_or_none()


async def delete_old_tokens(session: SystemSession) -> int:
    """Delete refresh tokens so old that a replay would be refused anyway, a batch at most; return how many."""
    old = is_in_batch(OAuthToken, col(OAuthToken.expires_at) < now())
    return (await session.exec(delete(OAuthToken).where(old))).rowcount


async def delete_useless_grants(session: SystemSession) -> int:
    """Delete grants that can no longer be used, a batch at most; return how many."""
    old = is_in_batch(OAuthGrant, col(OAuthGrant.expires_at) < now())
    return (await session.exec(delete(OAuthGrant).where(old))).rowcount
