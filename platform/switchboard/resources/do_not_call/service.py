"""Business rules of the do-not-call list."""

from collections.abc import Collection
from uuid import UUID

from sqlalchemy import ARRAY, Text, any_, bindparam
from sqlalchemy.dialects.postgresql import insert
from sqlmodel import col, select
from sqlmodel.sql.expression import SelectOfScalar

from switchboard.foundation.audit import AuditAction, record_audit
from switchboard.foundation.database import TenantSession
from switchboard.foundation.web.errors import NotFound
from switchboard.resources.do_not_call import erased_numbers
from switchboard.resources.do_not_call.models import DoNotCallEntry
from switchboard.resources.do_not_call.schemas import Source

# Built once, because every call asks it.
_LISTED = select(DoNotCallEntry.phone_number).where(
    col(DoNotCallEntry.organization_id) == bindparam("organization_id"),
    col(DoNotCallEntry.phone_number) == any_(bindparam("phone_numbers", type_=ARRAY(Text))),
)


def list_entries(session: TenantSession, *, phone_number: str | None = None) -> SelectOfScalar[DoNotCallEntry]:
    """Select the organization's entries."""
    rows = session.select(DoNotCallEntry)
    return rows if phone_number is None else rows.where(col(DoNotCallEntry.phone_number) == phone_number)


async def add_entry(session: TenantSession, phone_number: str, *, source: Source, note: str = "") -> DoNotCallEntry:
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
        await erased_numbers.remove_erased(session, phone_number)
        record_audit(session, AuditAction.DO_NOT_CALL_ENTRY_CREATED, written.id)
    return written


async def delete_entry(session: TenantSession, entry_id: UUID) -> None:
    """Remove an entry from the list. Raises `NotFound`."""
    await _delete(session, list_entries(session).where(col(DoNotCallEntry.id) == entry_id))


async def is_listed(session: TenantSession, phone_number: str) -> bool:
    """Return whether the organization must not call the number."""
    return bool(await filter_listed(session, [phone_number]))


async def filter_listed(session: TenantSession, phone_numbers: Collection[str]) -> set[str]:
    """Return those of the numbers that the organization must not call."""
    values = {"organization_id": session.organization_id, "phone_numbers": list(phone_numbers)}
    listed = set((await session.exec(_LISTED, params=values)).all())
    return listed | await erased_numbers.filter_erased(session, set(phone_numbers) - listed)


async def has_text_opt_out(session: TenantSession, phone_number: str) -> bool:
    """Return whether a text message put the number on the list."""
    if await erased_numbers.is_erased_by(session, phone_number, source="text"):
        return True
    return (await session.exec(_list_text_opt_outs(session, phone_number))).one_or_none() is not None


async def withdraw_text_opt_out(session: TenantSession, phone_number: str) -> None:
    """Remove the number if a text message put it on the list; other entries stay."""
    if await erased_numbers.is_erased_by(session, phone_number, source="text"):
        await erased_numbers.remove_erased(session, phone_number)
    else:
        await _delete(session, _list_text_opt_outs(session, phone_number))


async def erase_entry(session: TenantSession, phone_number: str) -> bool:
    """Replace a number's entry with its digest; return whether the number is on the list."""
    entry = (await session.exec(list_entries(session, phone_number=phone_number).with_for_update())).one_or_none()
    if entry is not None:
        await erased_numbers.add_erased(session, phone_number, source=entry.source)
        await session.delete(entry)
        await session.flush()
    return await is_listed(session, phone_number)


def _list_text_opt_outs(session: TenantSession, phone_number: str) -> SelectOfScalar[DoNotCallEntry]:
    return list_entries(session, phone_number=phone_number).where(col(DoNotCallEntry.source) == "text")


async def _delete(session: TenantSession, rows: SelectOfScalar[DoNotCallEntry]) -> None:
    entry = (await session.exec(rows.with_for_update())).one_or_none()
    if entry is None:
        raise NotFound
    await session.delete(entry)
    await session.flush()
    record_audit(session, AuditAction.DO_NOT_CALL_ENTRY_DELETED, entry.id)
