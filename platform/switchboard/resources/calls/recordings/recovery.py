"""Recordings of calls whose process died: any worker finds them in the store."""

from dataclasses import dataclass
from uuid import UUID

import structlog

from switchboard.foundation.database import Database
from switchboard.foundation.object_store import ObjectNotFound, ObjectStoreAway
from switchboard.resources.calls.recordings.archive import RecordingArchive
from switchboard.resources.calls.recordings.claims import claim_assembly, mark_stored, retry_assembly
from switchboard.resources.calls.service import find_call
from switchboard.resources.stored_files import FileDamaged

logger = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class RecordingRecovery:
    """Looks in the store for recordings that their process has not reported."""

    database: Database
    archive: RecordingArchive

    async def recover_recording(self, organization_id: UUID, call_id: UUID) -> None:
        """Assemble a recording from its segments, or delete the segments of one that was dropped.

        If the store cannot be reached, a worker tries again later.
        """
        async with self.database.tenant(organization_id) as session:
            call = await find_call(session, call_id, lock=True)
            if call is None or not claim_assembly(call):
                return
            dropped = call.recording_error is not None
        is_done = False
        try:
            found = None if dropped else await self.archive.assemble(organization_id, call_id)
            await self.archive.delete_segments(organization_id, call_id)
            await mark_stored(self.database, organization_id, call_id, found)
            is_done = True
        except (ObjectStoreAway, ObjectNotFound, FileDamaged, OSError) as error:
            logger.warning("a recording is not recovered yet", call_id=str(call_id), error=str(error))
        finally:
            if not is_done:  # also if the worker stops
                await retry_assembly(self.database, organization_id, call_id)
