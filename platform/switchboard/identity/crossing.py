"""The look-ups that must cross organizations: whose credential is this, and where are they a member? Run under the system role."""

from datetime import timedelta

from sqlmodel import col, select
from sqlmodel.ext.asyncio.session import AsyncSession

from switchboard.database import now
from switchboard.identity.models import ApiKey, Membership, Organization, User

COARSE = timedelta(minutes=1)


async def find_key(session: AsyncSession, key_hash: bytes) -> tuple[ApiKey, Organization] | None:
    """The key of this hash and its organization; None where there is none or it was revoked. Notes its use, to the minute."""
    found = await session.exec(
        select(ApiKey, Organization)
        .join(Organization, col(Organization.id) == col(ApiKey.organization_id))
        .where(col(ApiKey.key_hash) == key_hash, col(ApiKey.revoked_at).is_(None))
    )
    pair = found.first()
    if pair is not None and (pair[0].last_used_at is None or pair[0].last_used_at < now() - COARSE):
        pair[0].last_used_at = now()
    return pair


async def organizations_of(session: AsyncSession, user: User, *, most: int = 500) -> list[tuple[Organization, str]]:
    """The organizations that somebody may enter, by name, with their roles; a superadmin is everywhere an owner."""
    if user.is_superadmin:
        every = await session.exec(select(Organization).order_by(Organization.name).limit(most))
        return [(organization, "owner") for organization in every]
    mine = select(Organization, Membership.role).join(Membership, col(Membership.organization_id) == col(Organization.id))
    return list(await session.exec(mine.where(col(Membership.user_id) == user.id).order_by(Organization.name).limit(most)))
