"""The look-ups that must cross organizations: whose credential is this? Run under the system role."""

from sqlmodel import col, select
from sqlmodel.ext.asyncio.session import AsyncSession

from switchboard.identity.models import ApiKey, Organization


async def find_key(session: AsyncSession, key_hash: bytes) -> tuple[ApiKey, Organization] | None:
    """The key of this hash and its organization; None where there is none or it was revoked."""
    found = await session.exec(
        select(ApiKey, Organization)
        .join(Organization, col(Organization.id) == col(ApiKey.organization_id))
        .where(col(ApiKey.key_hash) == key_hash, col(ApiKey.revoked_at).is_(None))
    )
    return found.first()
