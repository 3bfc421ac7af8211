"""Calls, recordings, and transcripts that retention deletes."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from switchboard.resources.billing.queries import ADD_CALLS, keep_usage
from switchboard.resources.calls import queries
from switchboard.resources.calls.recordings.archive import RecordingArchive
from switchboard.resources.identity.queries import ExpiringRows
from switchboard.resources.identity.retention import RetainedData, RetentionDeleter

BATCH: Final = 200
"""Calls in one transaction: their transcripts have some thousand lines."""
DELETIONS_AT_ONCE: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class CallDeleter(RetentionDeleter):
    """Deletes calls with their transcripts and recordings."""

    archive: RecordingArchive
    data: RetainedData = "calls"
    rows: ExpiringRows = queries.SETTLED_CALLS
    most: int = BATCH

    async def delete_batch(self, organization_id: UUID, cutoff: datetime) -> int:
        """Delete a batch: the recordings first, so that a crash leaves none behind. Raises `ObjectStoreAway`."""
        async with self.database.read(organization_id) as session:
            ids = await queries.list_settled_calls(session, self.rows, cutoff, most=self.most)
            with_recording = await queries.list_calls_with_recording(session, ids)
        await _delete_recordings(self.archive, organization_id, with_recording)
        async with self.database.write(organization_id) as session:
            # Locked and judged again: another worker may have deleted the batch, or a server that is back may have
            # begun to upload a recording.
            ids = await queries.lock_settled_calls(session, self.rows, ids)
            await keep_usage(session, ADD_CALLS, ids)
            await queries.delete_calls(session, ids)
        return len(ids)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingDeleter(RetentionDeleter):
    """Deletes recordings from the store. A recording at a carrier stays there; the call no longer refers to it."""

    archive: RecordingArchive
    data: RetainedData = "recordings"
    rows: ExpiringRows = queries.RECORDED_CALLS
    most: int = BATCH

    async def delete_batch(self, organization_id: UUID, cutoff: datetime) -> int:
        """Delete the recordings of a batch of calls. Raises `ObjectStoreAway`."""
        async with self.database.read(organization_id) as session:
            ids = await queries.list_settled_calls(session, self.rows, cutoff, most=self.most)
        await _delete_recordings(self.archive, organization_id, ids)
        async with self.database.write(organization_id) as session:
            await queries.mark_recordings_deleted(session, ids)
        return len(ids)


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptDeleter(RetentionDeleter):
    """Deletes transcripts, and what the analysis took from them."""

    data: RetainedData = "transcripts"
    rows: ExpiringRows = queries.TRANSCRIBED_CALLS
    most: int = BATCH

    async def delete_batch(self, organization_id: UUID, cutoff: datetime) -> int:
        """Delete the transcripts of a batch of calls."""
        async with self.database.write(organization_id) as session:
            ids = await queries.list_settled_calls(session, self.rows, cutoff, most=self.most)
            await queries.delete_transcripts(session, ids)
        return len(ids)


async def _delete_recordings(archive: RecordingArchive, organization_id: UUID, ids: Sequence[UUID]) -> None:
    for first in range(0, len(ids), DELETIONS_AT_ONCE):
        batch = ids[first : first + DELETIONS_AT_ONCE]
        await asyncio.gather(*(archive.delete_recording(organization_id, call_id) for call_id in batch))
