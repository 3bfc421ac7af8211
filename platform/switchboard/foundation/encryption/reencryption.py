"""Re-encryption of an organization's content as its policy wants it, while the platform serves."""

from collections.abc import AsyncGenerator
from functools import partial
from typing import Any, Final, cast
from uuid import UUID

from sqlalchemy import Column, ColumnElement, Table, and_, not_, or_, select
from sqlmodel import col, update

from switchboard.foundation.database import Database, WriteSession
from switchboard.foundation.encryption.content import (
    KEY_PURPOSE,
    RETIRED_PURPOSE,
    Content,
    ContentText,
    build_prefix,
    list_content_columns,
    list_content_tables,
    match_prefix,
    open_columns,
    seal_value,
)
from switchboard.foundation.encryption.organization_keys import OrganizationKey, get_or_create_organization_key
from switchboard.foundation.encryption.rotation import Reencryption, rewrite_rows

BATCH: Final = 200


async def retire_content_key(session: WriteSession) -> None:
    """Encrypt content under a new key from now on. The old key decrypts until nothing needs it."""
    ours = (session.owns(OrganizationKey), col(OrganizationKey.purpose) == KEY_PURPOSE)
    await session.exec(update(OrganizationKey).where(*ours).values(purpose=RETIRED_PURPOSE))


async def reencrypt_content(
    database: Database, organization_id: UUID, *, is_encrypted: bool
) -> AsyncGenerator[Reencryption]:
    """Encrypt all content under the organization's current key, or decrypt it; yield each table's result.

    Each batch is a transaction, and rows that are as wanted are skipped: an interrupted run is continued by another.
    Rows that refer to those of a batch may be written meanwhile.
    """
    async with database.write(organization_id) as session:
        key_id = (await get_or_create_organization_key(session, KEY_PURPOSE)).id if is_encrypted else None
    for table in list_content_tables():
        contents, key = list_content_columns(table), list(table.primary_key)
        owner, is_wrong = table.c.organization_id, or_(*(_is_wrong(column, key_id) for column in contents))
        rows = select(*dict.fromkeys([*key, owner, *contents])).where(owner == organization_id, is_wrong)
        done = await rewrite_rows(
            partial(database.write, organization_id),
            rows.with_for_update(key_share=True),
            partial(_write_again, table),
            key=key,
            batch=BATCH,
        )
        yield Reencryption(table.name, *done)


async def delete_unused_content_keys(session: WriteSession) -> list[UUID]:
    """Delete the retired keys under which nothing is encrypted any more; return their ids.

    Waits for transactions that encrypt under one of them, and so sees what they wrote.
    """
    rows = session.select(OrganizationKey).where(col(OrganizationKey.purpose) == RETIRED_PURPOSE)
    deleted = []
    for key in (await session.exec(rows.with_for_update())).all():
        for table in list_content_tables():
            used = [match_prefix(column, build_prefix(key.id)) for column in list_content_columns(table)]
            under_key = select(*table.primary_key).where(table.c.organization_id == session.organization_id, or_(*used))
            if await session.fetch(under_key.limit(1)):
                break
        else:
            await session.delete(key)
            deleted.append(key.id)
    return deleted


def _is_wrong(column: Column[Content[Any]], key_id: UUID | None) -> ColumnElement[bool]:
    """Return the condition that a value is encrypted, or not under this key. Empty values are never encrypted."""
    if key_id is None:
        return match_prefix(column, build_prefix())
    is_empty: ColumnElement[bool] = column == Content(cast("ContentText", column.type).empty())
    return and_(not_(match_prefix(column, build_prefix(key_id))), not_(is_empty))


async def _write_again(table: Table, session: WriteSession, row: dict[str, Any]) -> bool:
    """Write a row's content again; return False if some of it cannot be decrypted."""
    await open_columns(session, table, row)
    contents = list_content_columns(table)
    readable = [column for column in contents if row[column.name].is_readable]
    for column in readable:
        await seal_value(session, column, row[column.name], row)
    is_row = (table.c.organization_id == session.organization_id, *(key == row[key.name] for key in table.primary_key))
    await session.exec(update(table).where(*is_row).values({column: row[column.name] for column in readable}))
    return len(readable) == len(contents)
