"""Rows that have outlived their organization's retention (docs/decisions/0029-retention.md)."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal
from uuid import UUID

from switchboard.foundation.database import Database
from switchboard.resources.identity.queries import ExpiringRows

RetainedData = Literal["calls", "recordings", "transcripts", "messages", "appointments", "events", "audit"]
"""Kinds of data: the keys of `[retention]` in a tenant file."""
BATCH: Final = 1000


@dataclass(frozen=True, slots=True)
class RetentionDeleter:
    """Deletes one kind of an organization's rows, `most` in one transaction: here, rows without further clean-up."""

    database: Database
    data: RetainedData
    rows: ExpiringRows
    most: int = BATCH

    async def delete_batch(self, organization_id: UUID, cutoff: datetime) -> int:
        """Delete the oldest rows from before `cutoff`; return how many. Fewer than `most` mean that none are left."""
        async with self.database.write(organization_id) as session:
            return await self.rows.delete_oldest(session, cutoff, most=self.most)
