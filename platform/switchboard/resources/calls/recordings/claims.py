"""Claims of a call's recording: the process with the whole recording on its disk, and the workers that assemble one
from its segments, never store it at the same time.

`Call.recording_due_at` is both the time of the next attempt in the store and the claim of whoever works on it now.
"""

from datetime import timedelta
from uuid import UUID

from switchboard.foundation.database import Database, now
from switchboard.foundation.object_store import UPLOAD_SECONDS
from switchboard.resources.calls.models import Call
from switchboard.resources.calls.recordings.file_formats import RecordingFormat
from switchboard.resources.calls.service import find_call
from switchboard.resources.calls.states import is_over

SPOOL_TIME = timedelta(hours=1)
"""Time that the process with the whole recording has to upload it, before workers assemble one from its segments."""
ASSEMBLY_TIME = timedelta(seconds=1.5 * UPLOAD_SECONDS)
RETRY_AFTER = timedelta(minutes=1)


def expect_upload(call: Call) -> None:
    """Expect the recording of an ended call from the process that has it."""
    call.recording_due_at = now() + SPOOL_TIME


def claim_upload(call: Call) -> bool:
    """Claim a (locked) call's recording for its upload; False while the call goes on, or a worker assembles it."""
    if not is_over(call):
        return False
    if call.recording_due_at is not None and now() < call.recording_due_at <= now() + ASSEMBLY_TIME:
        return False
    expect_upload(call)
    return True


def claim_assembly(call: Call) -> bool:
    """Claim a (locked) call's recording for a worker; False if another process has it."""
    if call.recording_due_at is None or call.recording_due_at > now():
        return False
    call.recording_due_at = now() + ASSEMBLY_TIME
    return True


async def retry_assembly(database: Database, organization_id: UUID, call_id: UUID) -> None:
    """Release a claim whose work failed: a worker tries again soon."""
    async with database.tenant(organization_id) as session:
        call = await find_call(session, call_id, lock=True)
        if call is not None and call.recording_due_at is not None:
            call.recording_due_at = now() + RETRY_AFTER


async def mark_stored(
    database: Database, organization_id: UUID, call_id: UUID, audio_format: RecordingFormat | None
) -> None:
    """Record that the store has a call's recording, or with None, that none is expected."""
    async with database.tenant(organization_id) as session:
        call = await find_call(session, call_id, lock=True)
        if call is None:
            return
        call.recording_due_at = None
        if audio_format is not None:
            call.has_recording, call.recording_format = True, audio_format
