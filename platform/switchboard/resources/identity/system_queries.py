"""The look-ups that must cross organizations: whose credential is this, and where are they a member? Run under the system role."""

from datetime import timedelta
from uuid import UUID

from sqlmodel import and_, col, or_, select

from switchboard.foundation.database import SystemSession, now
from switchboard.resources.identity.models import ApiKey, Membership, Organization, User, UserSession

COARSE = timedelta(minutes=1)


async def find_key(session: SystemSession, key_hash: bytes) -> tuple[ApiKey, Organization] | None:
    """The key of this hash and its organization; None where there is none, or it has expired or was revoked. Notes its use, to the minute."""
    found = await session.exec(
        select(ApiKey, Organization)
        .join(Organization, col(Organization.id) == col(ApiKey.organization_id))
        .where(col(ApiKey.key_hash) == key_hash, col(ApiKey.revoked_at).is_(None))
        .where(or_(col(ApiKey.expires_at).is_(None), col(ApiKey.expires_at) > now()))
    )
    pair = found.first()
    if pair is not None and (pair[0].last_used_at is None or pair[0].last_used_at < now() - COARSE):
        pair[0].last_used_at = now()
    return pair


async def find_user(session: SystemSession, email: str, *, lock: bool = False) -> User | None:
    """Whoever has an e-mail address, in whatever case it is written."""
    rows = select(User).where(col(User.email) == email.strip().lower())
    return (await session.exec(rows.with_for_update() if lock else rows)).one_or_none()


async def find_session(
    session: SystemSession, token_hash: bytes
) -> tuple[UserSession, User, Organization | None, str | None] | None:
    """The browser's session of this hash, its user, the organization that it works in, and the user's role there, None for no member."""
    belongs = and_(
        col(Membership.user_id) == col(User.id), col(Membership.organization_id) == col(UserSession.organization_id)
    )
    rows = (
        select(UserSession, User, Organization, Membership.role)
        .join(User, col(User.id) == col(UserSession.user_id))
        .outerjoin(Organization, col(Organization.id) == col(UserSession.organization_id))
        .outerjoin(Membership, belongs)
        .where(col(UserSession.token_hash) == token_hash)
    )
    return (await session.exec(rows)).one_or_none()


async def organizations_of(session: SystemSession, user: User, *, most: int = 500) -> list[tuple[Organization, str]]:
    """The organizations that somebody may enter, by name, with their roles; a superadmin is everywhere an owner."""
    if user.is_superadmin:
        every = await session.exec(select(Organization).order_by(Organization.name).limit(most))
        return [(organization, "owner") for organization in every]
    mine = select(Organization, Membership.role).join(
        Membership, col(Membership.organization_id) == col(Organization.id)
    )
    return list(
        await session.exec(mine.where(col(Membership.user_id) == user.id).order_by(Organization.name).limit(most))
    )


async def role_in(session: SystemSession, user: User, organization_id: UUID) -> str | None:
    """What somebody is in an organization; None where there is none such, or they are no member."""
    if user.is_superadmin:
        return "owner" if await session.get(Organization, organization_id) else None
    rows = select(Membership.role).where(
        col(Membership.user_id) == user.id, col(Membership.organization_id) == organization_id
    )
    return (await session.exec(rows)).one_or_none()
