"""Business rules of the do-not-call list."""

import hmac
from collections.abc import Collection
from uuid import UUID

from sqlalchemy import ARRAY, LargeBinary, Text, any_, bindparam, literal
from sqlalchemy.dialects.postgresql import insert
from sqlmodel import col, delete, select
from sqlmodel.sql.expression import SelectOfScalar

from switchboard.foundation.audit import AuditAction, record_audit
from switchboard.foundation.database import ReadSession, WriteSession
from switchboard.foundation.encryption.organization_keys import find_organization_key, get_or_create_organization_key
from switchboard.foundation.keyring import DataKey
from switchboard.foundation.web.errors import NotFound
from switchboard.resources.do_not_call.models import DoNotCallEntry, ErasedNumber
from switchboard.resources.do_not_call.schemas import Source

# Built once, because every call asks it.
_LISTED = select(DoNotCallEntry.phone_number).where(
    col(DoNotCallEntry.organization_id) == bindparam("organization_id"),
    col(DoNotCallEntry.phone_number) == any_(bindparam("phone_numbers", type_=ARRAY(Text))),
)


def list_entries(session: ReadSession, *, phone_number: str | None = None) -> SelectOfScalar[DoNotCallEntry]:
    """Select the organization's entries."""
    rows = session.select(DoNotCallEntry)
    return rows if phone_number is None else rows.where(col(DoNotCallEntry.phone_number) == phone_number)


async def add_entry(session: WriteSession, phone_number: str, *, source: Source, note: str = "") -> DoNotCallEntry:
    """Add an E.164 number. An existing entry stays unchanged, also if two requests add it at once.

    The digest of an erased number becomes an entry again, which can be removed.
    """
    entry = DoNotCallEntry(organization_id=session.organization_id, phone_number=phone_number, source=source, note=note)
    statement = insert(DoNotCallEntry).values(**entry.model_dump())
    # An update without a change, because only a written row is returned.
    kept = statement.on_conflict_do_update(
        index_elements=["organization_id", "phone_number"], set_={"phone_number": statement.excluded.phone_number}
    ).returning(DoNotCallEntry)
    written: DoNotCallEntry = (await session.exec(kept)).scalar_one()
    if written.id == entry.id:
        await remove_erased(session, phone_number)
        record_audit(session, AuditAction.DO_NOT_CALL_ENTRY_CREATED, written.id)
    return written


async def delete_entry(session: WriteSession, entry_id: UUID) -> None:
    """Remove an entry from the list. Raises `NotFound`."""
    await _delete(session, list_entries(session).where(col(DoNotCallEntry.id) == entry_id))


async def is_listed(session: ReadSession, phone_number: str) -> bool:
    """Return whether the organization must not call the number."""
    return bool(await filter_listed(session, [phone_number]))


async def filter_listed(session: ReadSession, phone_numbers: Collection[str]) -> set[str]:
    """Return those of the numbers that the organization must not call."""
    values = {"organization_id": session.organization_id, "phone_numbers": list(phone_numbers)}
    listed = set((await session.exec(_LISTED, params=values)).all())
    return listed | await filter_erased(session, set(phone_numbers) - listed)


async def has_text_opt_out(session: ReadSession, phone_number: str) -> bool:
    """Return whether a text message put the number on the list."""
    if await _is_erased_text_opt_out(session, phone_number):
        return True
    return (await session.exec(_list_text_opt_outs(session, phone_number))).one_or_none() is not None


async def withdraw_text_opt_out(session: WriteSession, phone_number: str) -> None:
    """Remove the number if a text message put it on the list; other entries stay."""
    if await _is_erased_text_opt_out(session, phone_number):
        await remove_erased(session, phone_number)
    else:
        await _delete(session, _list_text_opt_outs(session, phone_number))


async def erase_entry(session: WriteSession, phone_number: str) -> bool:
    """Replace a number's entry with its digest; return whether the number is on the list."""
    entry = (await session.exec(list_entries(session, phone_number=phone_number).with_for_update())).one_or_none()
    if entry is not None:
        await add_erased(session, phone_number, source=entry.source)
        await session.delete(entry)
        await session.flush()
    return await is_listed(session, phone_number)


def _list_text_opt_outs(session: ReadSession, phone_number: str) -> SelectOfScalar[DoNotCallEntry]:
    return list_entries(session, phone_number=phone_number).where(col(DoNotCallEntry.source) == "text")


async def _delete(session: WriteSession, rows: SelectOfScalar[DoNotCallEntry]) -> None:
    entry = (await session.exec(rows.with_for_update())).one_or_none()
    if entry is None:
        raise NotFound
    await session.delete(entry)
    await session.flush()
    record_audit(session, AuditAction.DO_NOT_CALL_ENTRY_DELETED, entry.id)


# Numbers of the do-not-call list whose person was erased: only a keyed digest is left
# (docs/decisions/0037-data-subject-requests.md).

PURPOSE = "erased_numbers"


async def add_erased(session: WriteSession, phone_number: str, *, source: str) -> None:
    """Keep the digest of an E.164 number."""
    key = await get_or_create_organization_key(session, PURPOSE)
    row = ErasedNumber(organization_id=session.organization_id, digest=_digest(key, phone_number), source=source)
    await session.exec(insert(ErasedNumber).values(row.model_dump()).on_conflict_do_nothing())


async def filter_erased(session: ReadSession, phone_numbers: Collection[str]) -> set[str]:
    """Return those of the numbers that are kept as digests."""
    if not phone_numbers or (key := await find_organization_key(session, PURPOSE)) is None:
        return set()
    numbers = {_digest(key, phone_number): phone_number for phone_number in phone_numbers}
    digests = literal(list(numbers), ARRAY(LargeBinary))
    rows = select(ErasedNumber.digest).where(session.owns(ErasedNumber), col(ErasedNumber.digest) == any_(digests))
    return {numbers[digest] for digest in (await session.exec(rows)).all()}


async def _is_erased_text_opt_out(session: ReadSession, phone_number: str) -> bool:
    """Return whether a number is kept as a digest of an entry that a text message made."""
    key = await find_organization_key(session, PURPOSE)
    if key is None:
        return False
    rows = session.select(ErasedNumber).where(col(ErasedNumber.digest) == _digest(key, phone_number))
    return (await session.exec(rows.where(col(ErasedNumber.source) == "text"))).one_or_none() is not None


async def remove_erased(session: WriteSession, phone_number: str) -> None:
    """Delete the digest of a number, if there is one."""
    key = await find_organization_key(session, PURPOSE)
    if key is not None:
        same = col(ErasedNumber.digest) == _digest(key, phone_number)
        await session.exec(delete(ErasedNumber).where(session.owns(ErasedNumber), same))


def _digest(key: DataKey, phone_number: str) -> bytes:
    return hmac.digest(key.secret, phone_number.encode(), "sha256")
