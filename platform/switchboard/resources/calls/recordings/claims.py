"""Claims of a call's recording: the process with the whole recording on its disk, and the workers that assemble one
from its segments, never store it at the same time.

`Call.recording_due_at` is both the time of the next attempt in the store and the claim of the process that works on it
now.
"""

from datetime import timedelta
from uuid import UUID

import structlog
from sqlalchemy import and_, bindparam, exists, or_, select, update

from switchboard.foundation.database import Database, WriteSession, now
from switchboard.foundation.encryption.content import get_table
from switchboard.foundation.object_store import UPLOAD_SECONDS, ObjectNotFound, ObjectStoreAway
from switchboard.resources.calls.models import ORDER, Call
from switchboard.resources.calls.recordings.archive import RecordingArchive
from switchboard.resources.stored_files import FileDamaged

logger = structlog.get_logger()
SPOOL_TIME = timedelta(hours=1)
"""Time that the process with the whole recording has to upload it, before workers assemble one from its segments."""
ASSEMBLY_TIME = timedelta(seconds=1.5 * UPLOAD_SECONDS)
RETRY_AFTER = timedelta(minutes=1)
# Built once, because every recording needs them.
_calls = get_table(Call)
_IS_CALL = and_(_calls.c.organization_id == bindparam("owner_id"), _calls.c.id == bindparam("call_id"))
_ASSEMBLED = and_(
    _calls.c.recording_due_at > bindparam("moment"), _calls.c.recording_due_at <= bindparam("assembled_at")
)
_CLAIM = (
    update(_calls)
    .where(
        _IS_CALL,
        *(_calls.c.status != status for status in ORDER),
        or_(_calls.c.recording_due_at.is_(None), ~_ASSEMBLED),
    )
    .values(recording_due_at=bindparam("due_at"))
    .returning(_calls.c.id)
    .cte("claim")
)
_MARK_MISSING = update(_calls).where(_IS_CALL).values(recording_due_at=None)
_MARK_STORED = _MARK_MISSING.values(has_recording=True, recording_format=bindparam("audio_format"))
_CLAIM_UPLOAD = select(
    exists(select(_CLAIM.c.id)).label("is_claimed"), exists(select(_calls.c.id).where(_IS_CALL)).label("is_kept")
)


def expect_upload(call: Call) -> None:
    """Expect the recording of an ended call from the process that has it."""
    call.recording_due_at = now() + SPOOL_TIME


async def claim_upload(session: WriteSession, call_id: UUID) -> bool | None:
    """Claim a call's recording for its upload; False while the call goes on, or a worker assembles it. None if the call
    was deleted.
    """
    moment = now()
    values = {
        "owner_id": session.organization_id,
        "call_id": call_id,
        "moment": moment,
        "assembled_at": moment + ASSEMBLY_TIME,
        "due_at": moment + SPOOL_TIME,
    }
    (found,) = await session.fetch(_CLAIM_UPLOAD, values)
    return bool(found.is_claimed) if found.is_kept else None


async def mark_stored(database: Database, organization_id: UUID, call_id: UUID, audio_format: str | None) -> None:
    """Record that the store has a call's recording, or with None, that none is expected."""
    values: dict[str, object] = {"owner_id": organization_id, "call_id": call_id}
    statement = _MARK_MISSING
    if audio_format is not None:
        statement, values = _MARK_STORED, {**values, "audio_format": audio_format}
    async with database.write(organization_id) as session:
        await session.exec(statement, params=values)


async def recover_recording(
    database: Database, archive: RecordingArchive, organization_id: UUID, call_id: UUID
) -> None:
    """Assemble a recording that its process has not reported from its segments in the store, or delete the segments of
    one that was dropped: any worker does.

    If the store cannot be reached, a worker tries again later.
    """
    async with database.write(organization_id) as session:
        call = await session.find(Call, call_id, lock=True)
        if call is None or call.recording_due_at is None or call.recording_due_at > now():
            return
        call.recording_due_at = now() + ASSEMBLY_TIME
    is_done = False
    try:
        dropped = call.recording_error is not None
        found = None if dropped else await archive.assemble(organization_id, call_id)
        await archive.delete_segments(organization_id, call_id)
        await mark_stored(database, organization_id, call_id, found)
        is_done = True
    except (ObjectStoreAway, ObjectNotFound, FileDamaged, OSError) as error:
        logger.warning("a recording is not recovered yet", call_id=str(call_id), error=str(error))
    finally:
        if not is_done:  # also if the worker stops
            async with database.write(organization_id) as session:
                call = await session.find(Call, call_id, lock=True)
                if call is not None and call.recording_due_at is not None:
                    call.recording_due_at = now() + RETRY_AFTER
