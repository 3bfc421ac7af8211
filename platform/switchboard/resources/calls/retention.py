"""Calls, recordings, and transcripts that retention deletes."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, cast
from uuid import UUID

from sqlalchemy import ColumnElement, literal
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import col, delete, or_, select, update

from switchboard.foundation.database import ReadSession, is_among, is_not_among
from switchboard.foundation.encryption.content import Content
from switchboard.resources.billing.deleted_usage import ADD_CALLS, keep_usage
from switchboard.resources.calls.models import Call, TranscriptLine
from switchboard.resources.calls.recordings.archive import RecordingArchive
from switchboard.resources.deliveries.retention import list_undelivered_subjects
from switchboard.resources.identity.retention import SETTLED_BEFORE, ExpiringRows, RetainedData, RetentionDeleter

BATCH: Final = 200
"""Calls in one transaction: their transcripts have some thousand lines."""
DELETIONS_AT_ONCE: Final = 16
SETTLED: Final[tuple[ColumnElement[bool], ...]] = (
    col(Call.ended_at) < SETTLED_BEFORE,
    col(Call.watch_at).is_(None),
    col(Call.analysis_due_at).is_(None),
    col(Call.recording_due_at).is_(None),
)
RECORDED: Final = or_(col(Call.has_recording), col(Call.carrier_recording_id).is_not(None))
SETTLED_CALLS: Final = ExpiringRows(Call, SETTLED)
RECORDED_CALLS: Final = ExpiringRows(Call, (*SETTLED, RECORDED))
TRANSCRIBED_CALLS: Final = ExpiringRows(Call, (*SETTLED, cast("ColumnElement[bool]", col(Call.has_transcript))))


@dataclass(frozen=True, slots=True, kw_only=True)
class CallDeleter(RetentionDeleter):
    """Deletes calls with their transcripts and recordings."""

    archive: RecordingArchive
    data: RetainedData = "calls"
    rows: ExpiringRows = SETTLED_CALLS
    most: int = BATCH

    async def delete_batch(self, organization_id: UUID, cutoff: datetime) -> int:
        """Delete a batch: the recordings first, so that a crash leaves none behind. Raises `ObjectStoreAway`."""
        async with self.database.read(organization_id) as session:
            ids = await _list_settled_calls(session, self.rows, cutoff, most=self.most)
            recorded = await session.exec(
                select(Call.id).where(session.owns(Call), is_among(col(Call.id), ids), RECORDED)
            )
            with_recording = recorded.all()
        await _delete_recordings(self.archive, organization_id, with_recording)
        async with self.database.write(organization_id) as session:
            # Locked and judged again: another worker may have deleted the batch, or a server that is back may have
            # begun to upload a recording.
            left = select(Call.id).where(session.owns(Call), is_among(col(Call.id), ids), *self.rows.conditions)
            ids = (await session.exec(left.order_by(col(Call.id)).with_for_update())).all()
            await keep_usage(session, ADD_CALLS, ids)
            await session.exec(delete(Call).where(session.owns(Call), is_among(col(Call.id), ids)))
        return len(ids)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingDeleter(RetentionDeleter):
    """Deletes recordings from the store. A recording at a carrier stays there; the call no longer refers to it."""

    archive: RecordingArchive
    data: RetainedData = "recordings"
    rows: ExpiringRows = RECORDED_CALLS
    most: int = BATCH

    async def delete_batch(self, organization_id: UUID, cutoff: datetime) -> int:
        """Delete the recordings of a batch of calls. Raises `ObjectStoreAway`."""
        async with self.database.read(organization_id) as session:
            ids = await _list_settled_calls(session, self.rows, cutoff, most=self.most)
        await _delete_recordings(self.archive, organization_id, ids)
        async with self.database.write(organization_id) as session:
            gone = update(Call).where(session.owns(Call), is_among(col(Call.id), ids))
            await session.exec(gone.values(has_recording=False, carrier_recording_id=None))
        return len(ids)


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptDeleter(RetentionDeleter):
    """Deletes transcripts, and what the analysis took from them."""

    data: RetainedData = "transcripts"
    rows: ExpiringRows = TRANSCRIBED_CALLS
    most: int = BATCH

    async def delete_batch(self, organization_id: UUID, cutoff: datetime) -> int:
        """Delete the transcripts of a batch of calls."""
        async with self.database.write(organization_id) as session:
            ids = await _list_settled_calls(session, self.rows, cutoff, most=self.most)
            await session.exec(
                delete(TranscriptLine).where(session.owns(TranscriptLine), is_among(col(TranscriptLine.call_id), ids))
            )
            gone = update(Call).where(session.owns(Call), is_among(col(Call.id), ids))
            await session.exec(
                gone.values(
                    has_transcript=False,
                    call_summary=None,
                    extracted_data=Content({}),
                    consent=col(Call.consent).op("||")(literal({"heard": None}, JSONB)),
                )
            )
        return len(ids)


async def _list_settled_calls(
    session: ReadSession, rows: ExpiringRows, cutoff: datetime, *, most: int
) -> Sequence[UUID]:
    """List calls with nothing left to do, and no webhook left to deliver. Nothing starts for them any more."""
    awaited = await list_undelivered_subjects(session)
    found = rows.select_ids(session, cutoff, most=most).where(is_not_among(col(Call.id), awaited))
    return (await session.exec(found)).all()


async def _delete_recordings(archive: RecordingArchive, organization_id: UUID, ids: Sequence[UUID]) -> None:
    for first in range(0, len(ids), DELETIONS_AT_ONCE):
        batch = ids[first : first + DELETIONS_AT_ONCE]
        await asyncio.gather(*(archive.delete_recording(organization_id, call_id) for call_id in batch))
