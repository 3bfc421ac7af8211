"""asyncpg's connection, whose transactions can begin with further statements in the same message."""

from typing import Any

import asyncpg
from asyncpg.transaction import Transaction


class PreambleConnection(asyncpg.Connection):  # type: ignore[misc] # asyncpg has no types
    """Connection that sends `preamble` together with the `BEGIN` of its next transaction, and only once.

    The statements of one message succeed together, or the transaction has failed and its other statements are refused
    (PostgreSQL manual, section 54.2.2.1).
    """

    preamble = ""

    async def begin_with(self, preamble: str) -> None:
        """Run statements at the start of the next transaction, or at once in one that is under way."""
        if self.is_in_transaction():
            await self.execute(preamble)
        else:
            self.preamble = preamble

    async def execute(self, query: str, *args: Any, **options: Any) -> str:
        """Execute a statement; a `BEGIN` with the preamble."""
        if self.preamble and query.startswith("BEGIN"):
            query, self.preamble = query + self.preamble, ""
        status: str = await super().execute(query, *args, **options)
        return status

    def transaction(
        self, *, isolation: str | None = None, readonly: bool = False, deferrable: bool = False
    ) -> Transaction:
        """Create a transaction that refuses to start without the preamble."""
        return _PreambleTransaction(self, isolation, readonly, deferrable)


class _PreambleTransaction(Transaction):  # type: ignore[misc] # asyncpg has no types
    async def start(self) -> None:
        await super().start()
        if self._connection.preamble:
            raise asyncpg.InterfaceError("the transaction has begun without its preamble")
