"""Queries that cross organizations: the owner of a credential, and the organizations that a user belongs to."""

from datetime import timedelta
from uuid import UUID

from sqlmodel import and_, col, delete, or_, select

from switchboard.foundation.database import Database, SystemSession, now
from switchboard.foundation.languages import gettext as _
from switchboard.foundation.web.principal import Principal
from switchboard.resources.identity.authentication import build_principal
from switchboard.resources.identity.models import ApiKey, Membership, Organization, SupportSession, User, UserSession
from switchboard.resources.identity.service import IdentityError

LAST_USE_PRECISION = timedelta(minutes=1)
SESSION_IDLE_LIFETIME, SESSION_LIFETIME = timedelta(days=14), timedelta(days=90)


async def find_api_key(database: Database, key_hash: bytes) -> Principal | None:
    """Return the principal of the API key with this hash, and record its use to the minute.

    None for an unknown, expired, or revoked key.
    """
    rows = (
        select(ApiKey, Organization)
        .join(Organization, col(Organization.id) == col(ApiKey.organization_id))
        .where(col(ApiKey.key_hash) == key_hash, col(ApiKey.revoked_at).is_(None))
        .where(or_(col(ApiKey.expires_at).is_(None), col(ApiKey.expires_at) > now()))
    )
    async with database.system() as session:
        found = (await session.exec(rows)).first()
        if found is None:
            return None
        key, organization = found
        if key.last_used_at is None or key.last_used_at < now() - LAST_USE_PRECISION:
            key.last_used_at = now()
        return build_principal(organization, credential_id=key.id, actor=f"key:{key.id}", scopes=key.scopes)


async def find_key_owner(database: Database, key_id: UUID) -> UUID | None:
    """Return the id of the organization that an API key belongs to; None for an unknown key."""
    async with database.system() as session:
        return (await session.exec(select(ApiKey.organization_id).where(col(ApiKey.id) == key_id))).one_or_none()


async def find_user(session: SystemSession, email: str, *, lock: bool = False) -> User | None:
    """Return the user with an e-mail address, in any letter case."""
    rows = select(User).where(col(User.email) == email.strip().lower())
    return (await session.exec(rows.with_for_update() if lock else rows)).one_or_none()


async def get_user(session: SystemSession, email: str) -> User:
    """Lock and return the user with an e-mail address. Raises `IdentityError` for an unknown one."""
    user = await find_user(session, email, lock=True)
    if user is None:
        raise IdentityError(f"there is no user {email}")
    return user


async def lock_user(session: SystemSession, user: User) -> User:
    """Lock a user who was just authenticated, for a change that lasts: a new session, key, or password.

    Raises `IdentityError` if the account was replaced or its password changed meanwhile: that change has ended what the
    old password began.
    """
    locked = await session.get(User, user.id, with_for_update=True)
    if locked is None or locked.password_hash != user.password_hash:
        raise IdentityError(_("The password of this account has just changed. Sign in again."))
    return locked


async def find_session(
    session: SystemSession, token_hash: bytes
) -> tuple[UserSession, User, Organization | None, str | None] | None:
    """Return the browser session with this hash, its user, its current organization, and the user's role there.

    The role is None for a user who is not a member.
    """
    is_member = and_(
        col(Membership.user_id) == col(User.id), col(Membership.organization_id) == col(UserSession.organization_id)
    )
    rows = (
        select(UserSession, User, Organization, Membership.role)
        .join(User, col(User.id) == col(UserSession.user_id))
        .outerjoin(Organization, col(Organization.id) == col(UserSession.organization_id))
        .outerjoin(Membership, is_member)
        .where(col(UserSession.token_hash) == token_hash)
    )
    return (await session.exec(rows)).one_or_none()


async def list_organizations(session: SystemSession, user: User, *, limit: int = 500) -> list[tuple[Organization, str]]:
    """List the organizations that a user is a member of with the user's role, by name."""
    rows = select(Organization, Membership.role).join(
        Membership, col(Membership.organization_id) == col(Organization.id)
    )
    return list(
        await session.exec(rows.where(col(Membership.user_id) == user.id).order_by(Organization.name).limit(limit))
    )


async def get_role(session: SystemSession, user: User, organization_id: UUID) -> str | None:
    """Return a user's role in an organization; None for an unknown organization or a user who is not a member."""
    rows = select(Membership.role).where(
        col(Membership.user_id) == user.id, col(Membership.organization_id) == organization_id
    )
    return (await session.exec(rows)).one_or_none()


async def find_support_session(
    session: SystemSession, user: User, browser_session_id: UUID, organization_id: UUID
) -> SupportSession | None:
    """Return the support session by which a superadmin has entered an organization in a browser session."""
    if not user.is_superadmin:
        return None
    rows = select(SupportSession).where(
        col(SupportSession.browser_session_id) == browser_session_id,
        col(SupportSession.organization_id) == organization_id,
        col(SupportSession.ended_at).is_(None),
        col(SupportSession.expires_at) > now(),
    )
    return (await session.exec(rows)).first()


async def delete_old_sessions(database: Database) -> None:
    """Delete the browser sessions that have expired."""
    expired = or_(
        col(UserSession.last_seen_at) < now() - SESSION_IDLE_LIFETIME,
        col(UserSession.created_at) < now() - SESSION_LIFETIME,
    )
    async with database.system() as session:
        await session.exec(delete(UserSession).where(expired))
