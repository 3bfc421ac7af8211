"""Values that are encrypted again while the platform serves: those of the keyring under its first key, and an
organization's content as its policy wants it.
"""

from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from string import Formatter
from typing import Any, Final, TypeVar, cast
from uuid import UUID

from sqlalchemy import Column, ColumnElement, LargeBinary, Table, Text, and_, not_, or_, tuple_
from sqlmodel import SQLModel, col, func, null, select, update

from switchboard.foundation.database import (
    ENCRYPTION_LABEL,
    Database,
    DatabaseSession,
    WriteSession,
    is_among,
)
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
from switchboard.foundation.keyring import KeyRing, SecretError

BATCH: Final = 100
CONTENT_BATCH: Final = 200
FINGERPRINT_END: Final = len("v1.01234567")
SessionT = TypeVar("SessionT", bound=DatabaseSession)


@dataclass(frozen=True, slots=True)
class EncryptedColumn:
    """A column with ciphertexts. `label` is the template of the place that a value is bound to."""

    column: Column[Any]
    label: str

    @property
    def name(self) -> str:
        """The name with its table, `event_target.secret`."""
        return f"{self.column.table.name}.{self.column.name}"

    @property
    def label_fields(self) -> list[Column[Any]]:
        """The columns that the label names."""
        return [self.column.table.c[field] for _, field, _, _ in Formatter().parse(self.label) if field]

    @property
    def fingerprint(self) -> ColumnElement[str]:
        """The fingerprint of a value's key, as an SQL expression that reads only the beginning of the value."""
        start = func.substr(self.column, 1, FINGERPRINT_END)
        return func.split_part(func.convert_from(start, "UTF8") if self.is_binary else start, ".", 2, type_=Text)

    @property
    def is_binary(self) -> bool:
        """True for a column of bytes, False for one of text."""
        return isinstance(self.column.type, LargeBinary)


def list_encrypted_columns() -> list[EncryptedColumn]:
    """Return every encrypted column of the imported models."""
    return [
        EncryptedColumn(column, column.info[ENCRYPTION_LABEL])
        for table in SQLModel.metadata.sorted_tables
        for column in table.columns
        if ENCRYPTION_LABEL in column.info
    ]


async def count_values_by_key(database: Database) -> Counter[str]:
    """Count the encrypted values of the whole database by the fingerprint of their key, and read no more of them."""
    counted: Counter[str] = Counter()
    async with database.system() as session:
        for encrypted in list_encrypted_columns():
            keys = select(encrypted.fingerprint.label("key")).where(encrypted.column.is_not(None)).subquery()
            rows = select(keys.c.key, func.count()).group_by(keys.c.key)
            counted.update(dict((await session.exec(rows)).all()))
    return counted


@dataclass(frozen=True, slots=True)
class Reencryption:
    """Result for one column, such as `event_target.secret`, or for one table: the number of rows that were encrypted
    again. `unreadable` ones were altered or moved, and stay.
    """

    name: str
    rewritten: int
    unreadable: int


async def _rewrite_rows(
    open_transaction: Callable[[], AbstractAsyncContextManager[SessionT]],
    columns: Iterable[Column[Any]],
    table: Table,
    condition: ColumnElement[bool],
    rewrite: Callable[[SessionT, dict[str, Any]], Awaitable[bool]],
    *,
    batch: int,
) -> Counter[bool]:
    """Rewrite the rows of a table that meet a condition, in the order of their key and a batch in each transaction.
    Count what `rewrite` returns for their key and columns.

    Rows are locked against writers that would set a value meanwhile, but those that refer to them may be written.
    """
    key, counted = list(table.primary_key), Counter[bool]()
    page = rows = select(*dict.fromkeys([*key, *columns])).where(condition).order_by(*key).limit(batch)
    while True:
        async with open_transaction() as session:
            found = [row._asdict() for row in await session.fetch(page.with_for_update(key_share=True))]
            counted.update([await rewrite(session, row) for row in found])
        if len(found) < batch:
            return counted
        page = rows.where(tuple_(*key) > tuple(found[-1][column.name] for column in key))


async def rotate_keys(database: Database, keyring: KeyRing, *, batch: int = BATCH) -> AsyncGenerator[Reencryption]:
    """Encrypt under the first key each value that is under another key of the ring; yield each column's result.

    Each batch is one transaction of one organization, or of users, so that an interrupted rotation continues where it
    was.
    """
    for encrypted in list_encrypted_columns():
        counted, table = Counter[bool](), encrypted.column.table
        is_retired = is_among(encrypted.fingerprint, keyring.fingerprints[1:])
        tenant = table.c.get("organization_id", null())  # null stands for users
        async with database.system() as session:
            owners = (await session.exec(select(tenant).where(is_retired).distinct())).all()
        columns, rotate = [*encrypted.label_fields, encrypted.column], partial(_rotate_value, keyring, encrypted)
        for owner in owners:
            begin = database.system if owner is None else partial(database.write, owner)
            is_owned = and_(is_retired, tenant == owner)
            counted += await _rewrite_rows(begin, columns, table, is_owned, rotate, batch=batch)
        yield Reencryption(encrypted.name, counted[True], counted[False])


async def _rotate_value(
    keyring: KeyRing, encrypted: EncryptedColumn, session: DatabaseSession, row: dict[str, Any]
) -> bool:
    """Encrypt one value again; return False for one that cannot be decrypted."""
    place = encrypted.label.format(**{column.name: row[column.name] for column in encrypted.label_fields})
    sealed = row[encrypted.column.name]
    try:
        fresh = keyring.encrypt(keyring.decrypt(sealed.decode() if encrypted.is_binary else sealed, place), place)
    except SecretError:
        return False
    table = encrypted.column.table
    same_row = [column == row[column.name] for column in table.primary_key]
    value = fresh.encode() if encrypted.is_binary else fresh
    await session.exec(update(table).where(*same_row).values({encrypted.column.name: value}))
    return True


async def retire_content_key(session: WriteSession) -> None:
    """Encrypt content under a new key from now on. The old key decrypts until nothing needs it."""
    ours = (session.owns(OrganizationKey), col(OrganizationKey.purpose) == KEY_PURPOSE)
    await session.exec(update(OrganizationKey).where(*ours).values(purpose=RETIRED_PURPOSE))


async def reencrypt_content(
    database: Database, organization_id: UUID, *, is_encrypted: bool
) -> AsyncGenerator[Reencryption]:
    """Encrypt all content under the organization's current key, or decrypt it; yield each table's result.

    Each batch is a transaction, and rows that are as wanted are skipped: an interrupted run is continued by another.
    """
    async with database.write(organization_id) as session:
        key_id = (await get_or_create_organization_key(session, KEY_PURPOSE)).id if is_encrypted else None
    begin = partial(database.write, organization_id)
    for table in list_content_tables():
        contents, owner = list_content_columns(table), table.c.organization_id
        is_wrong = and_(owner == organization_id, or_(*(_is_wrong(column, key_id) for column in contents)))
        write = partial(_write_again, table)
        counted = await _rewrite_rows(begin, [owner, *contents], table, is_wrong, write, batch=CONTENT_BATCH)
        yield Reencryption(table.name, counted[True], counted[False])


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
