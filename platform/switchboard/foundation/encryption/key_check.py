"""Check that the keyring has every key under which values are encrypted, for probes that come every second."""

import asyncio
from time import monotonic

from switchboard.foundation.database import Database
from switchboard.foundation.encryption.system_queries import find_missing_keys
from switchboard.foundation.keyring import KeyRing

VALID_SECONDS = 300.0


class KeyCheck:
    """The missing keys of this process, read from the database at the first question and every five minutes after."""

    def __init__(self, database: Database, keyring: KeyRing) -> None:
        self._database = database
        self._keyring = keyring
        self._lock = asyncio.Lock()
        self._missing: list[str] = []
        self._valid_until = 0.0

    async def list_missing_keys(self) -> list[str]:
        """Return the fingerprints of the missing keys.

        Raises `SQLAlchemyError` or `OSError` if the database does not answer.
        """
        async with self._lock:
            if monotonic() >= self._valid_until:
                self._missing = await find_missing_keys(self._database, self._keyring.fingerprints)
                self._valid_until = monotonic() + VALID_SECONDS
        return self._missing
