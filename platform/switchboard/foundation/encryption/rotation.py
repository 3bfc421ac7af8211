"""Values that the keyring encrypts: which columns hold them, which keys they need, and key rotation. It encrypts again
under the first key what another key of the ring encrypted, while the platform serves.
"""

from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from string import Formatter
from typing import Any, Final, TypeVar

from sqlalchemy import Column, ColumnElement, LargeBinary, Select, Text, tuple_
from sqlmodel import SQLModel, func, null, select, update

from switchboard.foundation.database import ENCRYPTION_LABEL, Database, DatabaseSession, is_among
from switchboard.foundation.keyring import KeyRing, SecretError

BATCH: Final = 100
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


@dataclass(frozen=True, slots=True)
class Reencryption:
    """Result for one column, such as `event_target.secret`, or for one table: the number of rows that were encrypted
    again. `unreadable` ones were altered or moved, and stay.
    """

    name: str
    rewritten: int
    unreadable: int


async def rewrite_rows(
    open_transaction: Callable[[], AbstractAsyncContextManager[SessionT]],
    rows: Select[*tuple[Any, ...]],
    rewrite: Callable[[SessionT, dict[str, Any]], Awaitable[bool]],
    *,
    key: Collection[Column[Any]],
    batch: int,
) -> tuple[int, int]:
    """Rewrite the rows of a select that locks them, in the order of their key and a batch in each transaction. Return
    how many were rewritten, and of how many `rewrite` returned False.
    """
    rewritten = unreadable = 0
    page = rows = rows.order_by(*key).limit(batch)
    while True:
        async with open_transaction() as session:
            found = [row._asdict() for row in await session.fetch(page)]
            failed = sum([not await rewrite(session, row) for row in found])
        rewritten, unreadable = rewritten + len(found) - failed, unreadable + failed
        if len(found) < batch:
            return rewritten, unreadable
        page = rows.where(tuple_(*key) > tuple(found[-1][column.name] for column in key))


async def rotate_keys(database: Database, keyring: KeyRing, *, batch: int = BATCH) -> AsyncGenerator[Reencryption]:
    """Encrypt under the first key each value that is under another key of the ring; yield each column's result.

    Each batch is one transaction of one organization, or of users, so that an interrupted rotation continues where it
    was. Its rows are locked against writers that would set a value meanwhile.
    """
    for encrypted in list_encrypted_columns():
        rotated = unreadable = 0
        columns, key = encrypted.column.table.c, list(encrypted.column.table.primary_key)
        is_retired = is_among(encrypted.fingerprint, keyring.fingerprints[1:])
        tenant = columns.get("organization_id", null())  # null stands for users
        async with database.system() as session:
            owners = (await session.exec(select(tenant).where(is_retired).distinct())).all()
        rows = select(*dict.fromkeys([*key, *encrypted.label_fields, encrypted.column])).where(is_retired)
        rotate = partial(_rotate_value, keyring, encrypted)
        for owner in owners:
            begin = database.system if owner is None else partial(database.write, owner)
            owned = (rows if owner is None else rows.where(tenant == owner)).with_for_update()
            done, failed = await rewrite_rows(begin, owned, rotate, key=key, batch=batch)
            rotated, unreadable = rotated + done, unreadable + failed
        yield Reencryption(encrypted.name, rotated, unreadable)


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


# The keys that are needed. These statements cross organizations; they read fingerprints of keys, and no value.


async def count_values_by_key(database: Database) -> Counter[str]:
    """Count the encrypted values of the whole database by the fingerprint of their key."""
    counted: Counter[str] = Counter()
    async with database.system() as session:
        for encrypted in list_encrypted_columns():
            keys = select(encrypted.fingerprint.label("key")).where(encrypted.column.is_not(None)).subquery()
            rows = select(keys.c.key, func.count()).group_by(keys.c.key)
            counted.update(dict((await session.exec(rows)).all()))
    return counted
