"""Queries about encrypted values that cross organizations. They read fingerprints of keys, and no value."""

from collections import Counter
from collections.abc import Sequence
from uuid import UUID

from sqlmodel import func, null, select

from switchboard.foundation.database import Database, is_among, is_not_among
from switchboard.foundation.encryption.content import EncryptedColumn, list_encrypted_columns


async def count_values_by_key(database: Database) -> Counter[str]:
    """Count the encrypted values of the whole database by the fingerprint of their key."""
    counted: Counter[str] = Counter()
    async with database.system() as session:
        for encrypted in list_encrypted_columns():
            keys = select(encrypted.fingerprint.label("key")).where(encrypted.column.is_not(None)).subquery()
            rows = select(keys.c.key, func.count()).group_by(keys.c.key)
            counted.update(dict((await session.exec(rows)).all()))
    return counted


async def find_missing_keys(database: Database, fingerprints: Sequence[str]) -> list[str]:
    """Return the fingerprints of keys under which values are encrypted, other than these."""
    missing: set[str] = set()
    async with database.system() as session:
        for encrypted in list_encrypted_columns():
            others = is_not_among(encrypted.fingerprint, fingerprints)
            missing.update((await session.exec(select(encrypted.fingerprint).where(others).distinct())).all())
    return sorted(missing)


async def list_owners_to_rotate(
    database: Database, encrypted: EncryptedColumn, fingerprints: Sequence[str]
) -> list[UUID | None]:
    """Return the organizations with values of the column under one of these keys; None stands for users."""
    owner = encrypted.column.table.c.organization_id if encrypted.is_tenants else null()
    rows = select(owner).where(is_among(encrypted.fingerprint, fingerprints)).distinct()
    async with database.system() as session:
        return list((await session.exec(rows)).all())
