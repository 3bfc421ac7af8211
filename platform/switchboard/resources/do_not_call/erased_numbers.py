"""Numbers of the do-not-call list whose person was erased: only a keyed digest is left
(docs/decisions/0037-data-subject-requests.md).
"""

import hmac
from collections.abc import Collection

from sqlalchemy import ARRAY, LargeBinary, any_, literal
from sqlalchemy.dialects.postgresql import insert
from sqlmodel import col, delete, select

from switchboard.foundation.database import TenantSession
from switchboard.foundation.encryption import DataKey, find_organization_key, get_or_create_organization_key
from switchboard.resources.do_not_call.models import ErasedNumber

PURPOSE = "erased_numbers"


async def add_erased(session: TenantSession, phone_number: str, *, source: str) -> None:
    """Keep the digest of an E.164 number."""
    key = await get_or_create_organization_key(session, PURPOSE)
    row = ErasedNumber(organization_id=session.organization_id, digest=_digest(key, phone_number), source=source)
    await session.exec(insert(ErasedNumber).values(row.model_dump()).on_conflict_do_nothing())


async def filter_erased(session: TenantSession, phone_numbers: Collection[str]) -> set[str]:
    """Return those of the numbers that are kept as digests."""
    if not phone_numbers or (key := await find_organization_key(session, PURPOSE)) is None:
        return set()
    numbers = {_digest(key, phone_number): phone_number for phone_number in phone_numbers}
    digests = literal(list(numbers), ARRAY(LargeBinary))
    rows = select(ErasedNumber.digest).where(session.owns(ErasedNumber), col(ErasedNumber.digest) == any_(digests))
    return {numbers[digest] for digest in (await session.exec(rows)).all()}


async def is_erased_by(session: TenantSession, phone_number: str, *, source: str) -> bool:
    """Return whether a number is kept as a digest of an entry with this source."""
    key = await find_organization_key(session, PURPOSE)
    if key is None:
        return False
    rows = session.select(ErasedNumber).where(col(ErasedNumber.digest) == _digest(key, phone_number))
    return (await session.exec(rows.where(col(ErasedNumber.source) == source))).one_or_none() is not None


async def remove_erased(session: TenantSession, phone_number: str) -> None:
    """Delete the digest of a number, if there is one."""
    key = await find_organization_key(session, PURPOSE)
    if key is not None:
        same = col(ErasedNumber.digest) == _digest(key, phone_number)
        await session.exec(delete(ErasedNumber).where(session.owns(ErasedNumber), same))


def _digest(key: DataKey, phone_number: str) -> bytes:
    return hmac.digest(key.secret, phone_number.encode(), "sha256")
