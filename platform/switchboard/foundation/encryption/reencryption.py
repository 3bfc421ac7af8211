"""Re-encryption of an organization's content as its policy wants it, while the platform serves."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from pydantic import JsonValue
from sqlalchemy import JSON, Column, ColumnElement, and_, not_, or_
from sqlalchemy.orm.attributes import flag_modified
from sqlmodel import col, select, update

from switchboard.foundation.database import Database, TenantTable, WriteSession
from switchboard.foundation.encryption.content import (
    KEY_PURPOSE,
    RETIRED_PURPOSE,
    OrganizationKey,
    build_prefix,
    get_or_create_organization_key,
    get_table,
    is_unreadable,
    list_conversation_columns,
    list_encrypted_models,
    match_prefix,
)

BATCH: Final = 200


@dataclass(frozen=True, slots=True)
class TableReencryption:
    """Result for one table: rows that were written again. `unreadable` rows were altered, and stay."""

    table: str
    rewritten: int
    unreadable: int


async def retire_content_key(session: WriteSession) -> None:
    """Encrypt content under a new key from now on. The old key decrypts until nothing needs it."""
    ours = (session.owns(OrganizationKey), col(OrganizationKey.purpose) == KEY_PURPOSE)
    await session.exec(update(OrganizationKey).where(*ours).values(purpose=RETIRED_PURPOSE))


async def reencrypt_content(
    database: Database, organization_id: UUID, *, is_encrypted: bool
) -> AsyncGenerator[TableReencryption]:
    """Encrypt all content under the organization's current key, or decrypt it; yield each table's result.

    Each batch is a transaction, and rows that are as wanted are skipped: an interrupted run is continued by another.
    """
    async with database.write(organization_id) as session:
        key_id = (await get_or_create_organization_key(session, KEY_PURPOSE)).id if is_encrypted else None
    for model in list_encrypted_models():
        rewritten = unreadable = 0
        after: UUID | None = None
        while True:
            async with database.write(organization_id) as session:
                rows = await _lock_batch(session, model, key_id, after)
                failed = sum(not _write_again(row) for row in rows)
            rewritten, unreadable = rewritten + len(rows) - failed, unreadable + failed
            if len(rows) < BATCH:
                break
            after = rows[-1].id
        yield TableReencryption(get_table(model).name, rewritten, unreadable)


async def delete_unused_content_keys(session: WriteSession) -> list[UUID]:
    """Delete the retired keys under which nothing is encrypted any more; return their ids.

    Waits for transactions that encrypt under one of them, and so sees what they wrote.
    """
    rows = session.select(OrganizationKey).where(col(OrganizationKey.purpose) == RETIRED_PURPOSE)
    deleted = []
    for key in (await session.exec(rows.with_for_update())).all():
        for model in list_encrypted_models():
            used = [
                match_prefix(column, build_prefix(key.id)) for column in list_conversation_columns(get_table(model))
            ]
            if (await session.exec(select(model.id).where(session.owns(model), or_(*used)).limit(1))).first():
                break
        else:
            await session.delete(key)
            deleted.append(key.id)
    return deleted


async def _lock_batch(
    session: WriteSession, model: type[TenantTable], key_id: UUID | None, after: UUID | None
) -> Sequence[TenantTable]:
    """Lock the next rows with content that is not as wanted. Rows that refer to them may be written meanwhile."""
    wrong = [_is_wrong(column, key_id) for column in list_conversation_columns(get_table(model))]
    rows = session.select(model).where(or_(*wrong))
    if after is not None:
        rows = rows.where(col(model.id) > after)
    return (await session.exec(rows.order_by(col(model.id)).limit(BATCH).with_for_update(key_share=True))).all()


def _is_wrong(column: Column[JsonValue], key_id: UUID | None) -> ColumnElement[bool]:
    """Return the condition that a value is encrypted, or not under this key. Empty values are never encrypted."""
    if key_id is None:
        return match_prefix(column, build_prefix())
    is_empty = column.in_([[], {}]) if isinstance(column.type, JSON) else column == ""
    return and_(not_(match_prefix(column, build_prefix(key_id))), not_(is_empty))


def _write_again(row: TenantTable) -> bool:
    """Write a row's content again; return False if some of it cannot be decrypted."""
    names = [column.name for column in list_conversation_columns(get_table(type(row)))]
    readable = [name for name in names if not is_unreadable(getattr(row, name))]
    for name in readable:
        flag_modified(row, name)
    return len(readable) == len(names)
