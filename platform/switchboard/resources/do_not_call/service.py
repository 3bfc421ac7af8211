"""Business rules of the do-not-call list."""

import hmac
from collections.abc import Collection
from uuid import UUID

from switchboard.foundation.audit import AuditAction, record_audit
from switchboard.foundation.database import ReadSession, WriteSession
from switchboard.foundation.encryption.organization_keys import find_organization_key, get_or_create_organization_key
from switchboard.foundation.keyring import DataKey
from switchboard.foundation.web.errors import NotFound
from switchboard.foundation.web.paging import lock_row
from switchboard.resources.do_not_call import queries
from switchboard.resources.do_not_call.models import DoNotCallEntry, ErasedNumber
from switchboard.resources.do_not_call.schemas import Source


async def add_entry(session: WriteSession, phone_number: str, *, source: Source, note: str = "") -> DoNotCallEntry:
    """Add an E.164 number. An existing entry stays unchanged, also if two requests add it at once.

    The digest of an erased number becomes an entry again, which can be removed.
    """
    entry = DoNotCallEntry(organization_id=session.organization_id, phone_number=phone_number, source=source, note=note)
    written = await queries.insert_or_find_entry(session, entry)
    if written.id == entry.id:
        await remove_erased(session, phone_number)
        record_audit(session, AuditAction.DO_NOT_CALL_ENTRY_CREATED, written.id)
    return written


async def delete_entry(session: WriteSession, entry_id: UUID) -> None:
    """Remove an entry from the list. Raises `NotFound`."""
    await _delete(session, await lock_row(session, DoNotCallEntry, entry_id))


async def is_listed(session: ReadSession, phone_number: str) -> bool:
    """Return whether the organization must not call the number."""
    return bool(await filter_listed(session, [phone_number]))


async def filter_listed(session: ReadSession, phone_numbers: Collection[str]) -> set[str]:
    """Return those of the numbers that the organization must not call."""
    listed = set(await queries.list_listed_numbers(session, phone_numbers))
    return listed | await filter_erased(session, set(phone_numbers) - listed)


async def has_text_opt_out(session: ReadSession, phone_number: str) -> bool:
    """Return whether a text message put the number on the list."""
    if await filter_erased(session, [phone_number], source="text"):
        return True
    return await queries.find_entry(session, phone_number, source="text") is not None


async def withdraw_text_opt_out(session: WriteSession, phone_number: str) -> None:
    """Remove the number if a text message put it on the list; other entries stay."""
    if await filter_erased(session, [phone_number], source="text"):
        await remove_erased(session, phone_number)
        return
    entry = await queries.lock_entry(session, phone_number, source="text")
    if entry is None:
        raise NotFound
    await _delete(session, entry)


async def erase_entry(session: WriteSession, phone_number: str) -> bool:
    """Replace a number's entry with its digest; return whether the number is on the list."""
    entry = await queries.lock_entry(session, phone_number)
    if entry is not None:
        key = await get_or_create_organization_key(session, PURPOSE)
        erased = _digest(key, phone_number)
        await session.insert_if_new(
            ErasedNumber(organization_id=session.organization_id, digest=erased, source=entry.source)
        )
        await session.delete(entry)
    return await is_listed(session, phone_number)


async def _delete(session: WriteSession, entry: DoNotCallEntry) -> None:
    await session.delete(entry)
    record_audit(session, AuditAction.DO_NOT_CALL_ENTRY_DELETED, entry.id)


# Numbers of the do-not-call list whose person was erased: only a keyed digest is left
# (docs/decisions/0037-data-subject-requests.md).

PURPOSE = "erased_numbers"


async def filter_erased(
    session: ReadSession, phone_numbers: Collection[str], *, source: Source | None = None
) -> set[str]:
    """Return those of the numbers that are kept as digests, of entries from one channel if it is given."""
    if not phone_numbers or (key := await find_organization_key(session, PURPOSE)) is None:
        return set()
    numbers = {_digest(key, phone_number): phone_number for phone_number in phone_numbers}
    return {numbers[digest] for digest in await queries.list_erased_digests(session, numbers, source=source)}


async def remove_erased(session: WriteSession, phone_number: str) -> None:
    """Delete the digest of a number, if there is one."""
    key = await find_organization_key(session, PURPOSE)
    if key is not None:
        await queries.delete_erased_digest(session, _digest(key, phone_number))


def _digest(key: DataKey, phone_number: str) -> bytes:
    return hmac.digest(key.secret, phone_number.encode(), "sha256")
