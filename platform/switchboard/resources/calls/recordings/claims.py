"""Claims of a call's recording: the process with the whole recording on its disk, and the workers that assemble one
from its segments, never store it at the same time.

`Call.recording_due_at` is both the time of the next attempt in the store and the claim of the process that works on it
now.
"""

from datetime import timedelta
from uuid import UUID

import structlog

from switchboard.foundation.database import Database, now
from switchboard.foundation.object_store import ObjectNotFound, ObjectStoreAway
from switchboard.resources.calls.models import Call
from switchboard.resources.calls.recordings.archive import RecordingArchive
from switchboard.resources.calls.recordings.queries import ASSEMBLY_TIME, mark_stored
from switchboard.resources.stored_files import FileDamaged

logger = structlog.get_logger()
RETRY_AFTER = timedelta(minutes=1)


async def recover_recording(
    database: Database, archive: RecordingArchive, *, organization_id: UUID, call_id: UUID
) -> None:
    """Assemble a recording that its process has not reported from its segments in the store, or delete the segments of
    one that was dropped: any worker does.

    If the store cannot be reached, a worker tries again later.
    """
    async with database.write(organization_id) as session:
        call = await session.lock(Call, call_id)
        if call is None or call.recording_due_at is None or call.recording_due_at > now():
            return
        call.recording_due_at = now() + ASSEMBLY_TIME
    is_done = False
    try:
        dropped = call.recording_error is not None
        found = None if dropped else await archive.assemble(organization_id, call_id)
        await archive.delete_segments(organization_id, call_id)
        async with database.write(organization_id) as session:
            await mark_stored(session, call_id, found)
        is_done = True
    except (ObjectStoreAway, ObjectNotFound, FileDamaged, OSError) as error:
        logger.warning("a recording is not recovered yet", call_id=str(call_id), error=str(error))
    finally:
        if not is_done:  # also if the worker stops
            async with database.write(organization_id) as session:
                call = await session.lock(Call, call_id)
                if call is not None and call.recording_due_at is not None:
                    call.recording_due_at = now() + RETRY_AFTER
