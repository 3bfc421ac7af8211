"""Statements about the do-not-call list."""

from collections.abc import Collection, Sequence
from typing import Final

from sqlalchemy import ARRAY, Text, any_, bindparam
from sqlalchemy.dialects.postgresql import insert
from sqlmodel import col, delete, select
from sqlmodel.sql.expression import SelectOfScalar

from switchboard.foundation.database import ReadSession, WriteSession, is_among
from switchboard.resources.do_not_call.models import DoNotCallEntry, ErasedNumber
from switchboard.resources.do_not_call.schemas import Source

# Built once, because every call asks it.
_LISTED: Final = select(DoNotCallEntry.phone_number).where(
    col(DoNotCallEntry.organization_id) == bindparam("organization_id"),
    col(DoNotCallEntry.phone_number) == any_(bindparam("phone_numbers", type_=ARRAY(Text))),
)


def select_entries(session: ReadSession, *, phone_number: str | None = None) -> SelectOfScalar[DoNotCallEntry]:
    rows = session.select(DoNotCallEntry)
    return rows if phone_number is None else rows.where(col(DoNotCallEntry.phone_number) == phone_number)


def _select_entry(session: ReadSession, phone_number: str, source: Source | None) -> SelectOfScalar[DoNotCallEntry]:
    rows = select_entries(session, phone_number=phone_number)
    return rows if source is None else rows.where(col(DoNotCallEntry.source) == source)


async def find_entry(session: ReadSession, phone_number: str, *, source: Source) -> DoNotCallEntry | None:
    """Return the entry of a number from one channel."""
    return (await session.exec(_select_entry(session, phone_number, source))).one_or_none()


async def lock_entry(
    session: WriteSession, phone_number: str, *, source: Source | None = None
) -> DoNotCallEntry | None:
    """Lock and return the entry of a number, from one channel if it is given."""
    return (await session.exec(_select_entry(session, phone_number, source).with_for_update())).one_or_none()


async def list_listed_numbers(session: ReadSession, phone_numbers: Collection[str]) -> Sequence[str]:
    """List those of the numbers that have an entry."""
    values = {"organization_id": session.organization_id, "phone_numbers": list(phone_numbers)}
    return (await session.exec(_LISTED, params=values)).all()


async def insert_or_find_entry(session: WriteSession, entry: DoNotCallEntry) -> DoNotCallEntry:
    """Insert an entry unless its number has one; return the number's entry."""
    statement = insert(DoNotCallEntry).values(**entry.model_dump())
    # An update without a change, because only a written row is returned.
    kept = statement.on_conflict_do_update(
        index_elements=["organization_id", "phone_number"], set_={"phone_number": statement.excluded.phone_number}
    ).returning(DoNotCallEntry)
    written: DoNotCallEntry = (await session.exec(kept)).scalar_one()
    return written


async def list_erased_digests(
    session: ReadSession, digests: Collection[bytes], *, source: Source | None = None
) -> Sequence[bytes]:
    """List those of the digests that are kept, from one channel if it is given."""
    rows = select(ErasedNumber.digest).where(session.owns(ErasedNumber), is_among(col(ErasedNumber.digest), digests))
    return (await session.exec(rows if source is None else rows.where(col(ErasedNumber.source) == source))).all()


async def delete_erased_digest(session: WriteSession, digest: bytes) -> None:
    """Delete a digest, if it is kept."""
    await session.exec(delete(ErasedNumber).where(session.owns(ErasedNumber), col(ErasedNumber.digest) == digest))
