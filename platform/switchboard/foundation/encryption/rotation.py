"""Key rotation: encrypt again under the first key what another key of the ring encrypted, while the platform serves."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import tuple_
from sqlmodel import null, select, update

from switchboard.foundation.database import Database, DatabaseSession, is_among
from switchboard.foundation.encryption.content import EncryptedColumn, list_encrypted_columns
from switchboard.foundation.keyring import KeyRing, SecretError

BATCH = 100


@dataclass(frozen=True, slots=True)
class ColumnRotation:
    """Result for one column, as `event_target.secret`. `unreadable` values were altered or moved, and stay."""

    column: str
    rotated: int
    unreadable: int


async def rotate_keys(database: Database, keyring: KeyRing, *, batch: int = BATCH) -> AsyncGenerator[ColumnRotation]:
    """Encrypt under the first key each value that is under another key of the ring; yield each column's result.

    Each batch is one transaction of one organization, or of users, so that an interrupted rotation continues where it
    was.
    """
    retired = keyring.fingerprints[1:]
    for encrypted in list_encrypted_columns():
        rotated = unreadable = 0
        tenant = encrypted.column.table.c.organization_id if encrypted.is_tenants else null()  # null stands for users
        owners = select(tenant).where(is_among(encrypted.fingerprint, retired)).distinct()
        async with database.system() as session:
            found = (await session.exec(owners)).all()
        for owner in found:
            after: Sequence[Any] | None = None
            while True:
                async with database.system() if owner is None else database.write(owner) as session:
                    rows = await _lock_batch(session, encrypted, owner, retired, after, limit=batch)
                    failed = [row for row in rows if not await _rotate_value(session, keyring, encrypted, row)]
                rotated, unreadable = rotated + len(rows) - len(failed), unreadable + len(failed)
                if len(rows) < batch:
                    break
                after = [rows[-1][column.name] for column in encrypted.column.table.primary_key]
        yield ColumnRotation(encrypted.name, rotated, unreadable)


async def _lock_batch(
    session: DatabaseSession,
    encrypted: EncryptedColumn,
    organization_id: UUID | None,
    retired: Sequence[str],
    after: Sequence[Any] | None,
    *,
    limit: int,
) -> list[dict[str, Any]]:
    """Lock the next rows in the order of their key, against writers that would set a value meanwhile."""
    table = encrypted.column.table
    key = list(table.primary_key)
    columns = dict.fromkeys([*key, *encrypted.label_fields, encrypted.column])
    rows = select(*columns).where(is_among(encrypted.fingerprint, retired))
    if organization_id is not None:
        rows = rows.where(table.c.organization_id == organization_id)
    if after is not None:
        rows = rows.where(tuple_(*key) > tuple(after))
    return [row._asdict() for row in await session.fetch(rows.order_by(*key).limit(limit).with_for_update())]


async def _rotate_value(
    session: DatabaseSession, keyring: KeyRing, encrypted: EncryptedColumn, row: dict[str, Any]
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
