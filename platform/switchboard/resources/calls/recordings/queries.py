"""Statements about the recordings of calls."""

from datetime import timedelta
from typing import Final
from uuid import UUID

from sqlalchemy import and_, bindparam, exists, or_, select, update

from switchboard.foundation.database import WriteSession, now
from switchboard.foundation.encryption.content import get_table
from switchboard.foundation.object_store import UPLOAD_SECONDS
from switchboard.foundation.work import DueRows
from switchboard.resources.calls.models import ORDER, Call

SPOOL_TIME: Final = timedelta(hours=1)
"""Time that the process with the whole recording has to upload it, before workers assemble one from its segments."""
ASSEMBLY_TIME: Final = timedelta(seconds=1.5 * UPLOAD_SECONDS)
# Built once, because every recording needs them.
_calls = get_table(Call)
_IS_CALL: Final = and_(_calls.c.organization_id == bindparam("owner_id"), _calls.c.id == bindparam("call_id"))
_ASSEMBLED: Final = and_(
    _calls.c.recording_due_at > bindparam("moment"), _calls.c.recording_due_at <= bindparam("assembled_at")
)
_CLAIM: Final = (
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
_MARK_MISSING: Final = update(_calls).where(_IS_CALL).values(recording_due_at=None)
_MARK_STORED: Final = _MARK_MISSING.values(has_recording=True, recording_format=bindparam("audio_format"))
_CLAIM_UPLOAD: Final = select(
    exists(select(_CLAIM.c.id)).label("is_claimed"), exists(select(_calls.c.id).where(_IS_CALL)).label("is_kept")
)


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


async def mark_stored(session: WriteSession, call_id: UUID, audio_format: str | None) -> None:
    """Record that the store has a call's recording, or with None, that none is expected."""
    values: dict[str, object] = {"owner_id": session.organization_id, "call_id": call_id}
    if audio_format is None:
        await session.exec(_MARK_MISSING, params=values)
    else:
        await session.exec(_MARK_STORED, params={**values, "audio_format": audio_format})


MISSING_RECORDINGS: Final = DueRows(Call, "recording_due_at")
"""Calls whose recordings are due, and have not been reported."""
