"""The look-ups that must cross organizations: whose credential is this? Run under the system role."""

from datetime import timedelta

from sqlmodel import col, select
from sqlmodel.ext.asyncio.session import AsyncSession

from switchboard.database import now
from switchboard.identity.models import ApiKey, Organization

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
