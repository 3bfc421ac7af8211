"""Business rules of the do-not-call list."""

from collections.abc import Collection
from uuid import UUID

from sqlalchemy import ARRAY, Text, any_, literal
from sqlalchemy.dialects.postgresql import insert
from sqlmodel import col, select
from sqlmodel.sql.expression import SelectOfScalar

from switchboard.foundation.audit import AuditAction, record_audit
from switchboard.foundation.database import TenantSession
from switchboard.foundation.web.errors import NotFound
from switchboard.resources.do_not_call.models import DoNotCallEntry
from switchboard.resources.do_not_call.schemas import Source


def list_entries(session: TenantSession, *, phone_number: str | None = None) -> SelectOfScalar[DoNotCallEntry]:
    """Select the organization's entries."""
    rows = session.select(DoNotCallEntry)
    return rows if phone_number is None else rows.where(col(DoNotCallEntry.phone_number) == phone_number)


async def add_entry(session: TenantSession, phone_number: str, *, source: Source, note: str = "") -> DoNotCallEntry:
    """Add an E.164 number. An existing entry stays unchanged, also if two requests add it at once."""
    entry = DoNotCallEntry(organization_id=session.organization_id, phone_number=phone_number, source=source, note=note)
    statement = insert(DoNotCallEntry).values(**entry.model_dump())
    # An update without a change, because only a written row is returned.
    kept = statement.on_conflict_do_update(
        index_elements=["organization_id", "phone_number"], set_={"phone_number": statement.excluded.phone_number}
    ).returning(DoNotCallEntry)
    written: DoNotCallEntry = (await session.exec(kept)).scalar_one()
    if written.id == entry.id:
        record_audit(session, AuditAction.DO_NOT_CALL_ENTRY_CREATED, written.id)
    return written


async def remove_number(session: TenantSession, phone_number: str) -> None:
    """Remove a number from the list. Raises `NotFound`."""
    await _delete(session, list_entries(session, phone_number=phone_number))


async def delete_entry(session: TenantSession, entry_id: UUID) -> None:
    """Remove an entry from the list. Raises `NotFound`."""
    await _delete(session, list_entries(session).where(col(DoNotCallEntry.id) == entry_id))


async def is_listed(session: TenantSession, phone_number: str) -> bool:
    """Return whether the organization must not call the number."""
    return bool(await filter_listed(session, [phone_number]))


async def filter_listed(session: TenantSession, phone_numbers: Collection[str]) -> set[str]:
    """Return those of the numbers that the organization must not call."""
    rows = select(DoNotCallEntry.phone_number).where(
        session.owns(DoNotCallEntry),
        col(DoNotCallEntry.phone_number) == any_(literal(list(phone_numbers), ARRAY(Text))),
    )
    return set((await session.exec(rows)).all())


async def _delete(session: TenantSession, rows: SelectOfScalar[DoNotCallEntry]) -> None:
    entry = (await session.exec(rows.with_for_update())).one_or_none()
    if entry is None:
        raise NotFound
    await session.delete(entry)
    await session.flush()
    record_audit(session, AuditAction.DO_NOT_CALL_ENTRY_DELETED, entry.id)
