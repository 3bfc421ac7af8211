"""Uploads of recordings from this process's disk: segments of live calls, and the whole recordings of ended ones."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from itertools import count

import structlog
from sqlalchemy.exc import SQLAlchemyError

from switchboard.engine.conversation.engine import CallEngine
from switchboard.foundation.database import Database
from switchboard.foundation.object_store import ObjectStoreAway
from switchboard.foundation.observability import traces
from switchboard.foundation.settings import Settings
from switchboard.resources.calls.models import Call
from switchboard.resources.calls.recordings.archive import RecordingArchive
from switchboard.resources.calls.recordings.queries import claim_upload, mark_stored
from switchboard.resources.calls.recordings.spool import SpooledRecording, build_spool_path, list_spooled, lock_spooled
from switchboard.resources.stored_files import FileDamaged, run_in_thread

logger = structlog.get_logger()
ROUND_SECONDS = 10.0
LAST_ROUND_SECONDS = 15.0
UPLOADS_AT_ONCE = 4


@dataclass(frozen=True, slots=True)
class RecordingUploader:
    settings: Settings
    database: Database
    archive: RecordingArchive
    engine: CallEngine
    recordings_due: asyncio.Event

    async def run(self) -> None:
        """Upload ended calls' recordings, at once when `recordings_due` is set, until canceled."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(ROUND_SECONDS):
                    await self.recordings_due.wait()
            self.recordings_due.clear()
            await self.upload_spooled()

    async def finish(self) -> None:
        """Upload what can be uploaded before this process stops: its disk may go with it."""
        try:
            async with asyncio.timeout(LAST_ROUND_SECONDS):
                await self.upload_spooled()
        except TimeoutError:
            logger.warning("recordings stay in the spool", spool=str(self.settings.data_dir))

    async def upload_spooled(self) -> None:
        """Upload the recordings of ended calls, those of an earlier process on this disk too, until the store or the
        database cannot be reached.
        """
        live = set(self.engine.live_call_ids)  # each would take a statement whenever another call ends
        spooled = [each for each in await run_in_thread(list_spooled, self.settings) if each.call_id not in live]
        for begin in range(0, len(spooled), UPLOADS_AT_ONCE):
            batch = spooled[begin : begin + UPLOADS_AT_ONCE]
            if not all(await asyncio.gather(*(self._try_upload(recording) for recording in batch))):
                return

    async def _try_upload(self, recording: SpooledRecording) -> bool:
        """Upload a recording if its call has ended. Return whether the next one is worth a try."""
        try:
            with traces.span("recording upload", context=traces.build_call_context(recording.call_id)):
                await self._upload(recording)
        except (ObjectStoreAway, SQLAlchemyError) as error:
            logger.warning("a recording stays in the spool", call_id=str(recording.call_id), error=str(error))
            return False
        except (FileDamaged, OSError) as error:
            logger.warning("a recording stays in the spool", call_id=str(recording.call_id), error=str(error))
        return True

    async def _upload(self, recording: SpooledRecording) -> None:
        organization_id, call_id = recording.organization_id, recording.call_id
        async with self.database.write(organization_id) as session:
            is_claimed = await claim_upload(session, call_id)
        if is_claimed is False:
            return
        with lock_spooled(recording.path) as file:
            if file is None:
                return
            if is_claimed is None:
                await self.archive.delete_recording(organization_id, call_id)
            else:
                stored = await self.archive.store_spooled(organization_id, call_id, file)
                async with self.database.write(organization_id) as session:
                    await mark_stored(session, call_id, stored)
                await self.archive.delete_segments(organization_id, call_id)
            recording.path.unlink(missing_ok=True)

    async def upload_segments(self, call: Call) -> None:
        """Upload what a live call has recorded at intervals, until canceled.

        An outage of the store changes nothing for the call: the next segment also contains this one's audio.
        """
        path = build_spool_path(self.settings, call.organization_id, call.id)
        first = 0
        for number in count():
            written = 0
            while not written:
                await asyncio.sleep(self.settings.recordings_interval)
                try:
                    written = await self.archive.store_segment(call.organization_id, call.id, number, path, first=first)
                except (ObjectStoreAway, FileDamaged, SQLAlchemyError, OSError) as error:
                    logger.warning("a segment of a recording waits", call_id=str(call.id), error=str(error))
            first += written
