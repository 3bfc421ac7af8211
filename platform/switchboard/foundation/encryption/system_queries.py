"""Queries about encrypted values that cross organizations. They read fingerprints of keys, and no value."""

import asyncio
from collections import Counter
from time import monotonic
from typing import Final

from sqlmodel import func, select

from switchboard.foundation.database import Database, is_not_among
from switchboard.foundation.encryption.content import list_encrypted_columns
from switchboard.foundation.keyring import KeyRing

VALID_SECONDS: Final = 300.0


async def count_values_by_key(database: Database) -> Counter[str]:
    """Count the encrypted values of the whole database by the fingerprint of their key."""
    counted: Counter[str] = Counter()
    async with database.system() as session:
        for encrypted in list_encrypted_columns():
            keys = select(encrypted.fingerprint.label("key")).where(encrypted.column.is_not(None)).subquery()
            rows = select(keys.c.key, func.count()).group_by(keys.c.key)
            counted.update(dict((await session.exec(rows)).all()))
    return counted


class KeyCheck:
    """The keys that this process lacks, read from the database at the first question and every five minutes after,
    because probes come every second.
    """

    def __init__(self, database: Database, keyring: KeyRing) -> None:
        self._database = database
        self._keyring = keyring
        self._lock = asyncio.Lock()
        self._missing: set[str] = set()
        self._valid_until = 0.0

    async def list_missing_keys(self) -> list[str]:
        """Return the fingerprints of the keys under which values are encrypted, and which the keyring lacks.

        Raises `SQLAlchemyError` or `OSError` if the database does not answer.
        """
        async with self._lock:
            if monotonic() >= self._valid_until:
                missing: set[str] = set()
                async with self._database.system() as session:
                    for key in (encrypted.fingerprint for encrypted in list_encrypted_columns()):
                        rows = select(key).where(is_not_among(key, self._keyring.fingerprints)).distinct()
                        missing.update((await session.exec(rows)).all())
                self._missing, self._valid_until = missing, monotonic() + VALID_SECONDS
        return sorted(self._missing)
