"""Deletion of rows that mention a number, and its replacement in others, a batch in each transaction."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from sqlalchemy import Table
from sqlmodel import delete, func, select, update

from switchboard.foundation.database import Database, TenantSession, are_among
from switchboard.foundation.encryption.content import encrypt_values
from switchboard.resources.knowledge_bases import service as knowledge
from switchboard.resources.privacy.number_pattern import NumberPattern
from switchboard.resources.privacy.subject_rows import (
    Row,
    get_key,
    list_text_columns,
    match_owner,
    read_mentions,
)

Follow = Callable[[TenantSession, Sequence[UUID]], Awaitable[None]]
AFTER_REDACTION: Final[dict[str, Follow]] = {"knowledge_text": knowledge.reindex_documents}
"""What follows the replacement in the rows of these ids, in the same transaction."""


@dataclass(frozen=True, slots=True)
class MentionRemover:
    """Removes the mentions of one number from the tables of an organization."""

    database: Database
    organization_id: UUID
    pattern: NumberPattern

    async def delete_rows(self, table: Table) -> int:
        """Delete the rows of a table that mention the number; return how many."""
        deleted, after, is_over = 0, None, False
        while not is_over:
            async with self.database.tenant(self.organization_id) as session:
                rows, after = await read_mentions(session, table, self.pattern, after=after)
                same = are_among(list(table.primary_key), [get_key(table, row) for row in rows])
                await (await session.connection()).execute(delete(table).where(match_owner(session, table), same))
            deleted += len(rows)
            is_over = after is None
        return deleted

    async def redact_rows(self, table: Table) -> int:
        """Replace the number in the texts of a table; return the number of rows."""
        redacted, after, is_over = 0, None, False
        while not is_over:
            async with self.database.tenant(self.organization_id) as session:
                # The policies of the audit log and of the ledger let nothing else change their entries.
                await session.exec(select(func.set_config("app.erasure", "on", True)))
                rows, after = await read_mentions(session, table, self.pattern, after=after, lock=True)
                for row in rows:
                    await self._redact_row(session, table, row)
                if rows and (follow := AFTER_REDACTION.get(table.name)):
                    await follow(session, [row["id"] for row in rows])
            redacted += len(rows)
            is_over = after is None
        return redacted

    async def _redact_row(self, session: TenantSession, table: Table, row: Row) -> None:
        fresh = {column.name: self.pattern.redact(row[column.name]) for column in list_text_columns(table)}
        changed = {name: value for name, value in fresh.items() if value != row[name]}
        sealed = await session.run_sync(encrypt_values, table, row, changed)
        same_row = [column == row[column.name] for column in table.primary_key]
        await (await session.connection()).execute(update(table).where(*same_row).values(sealed))
