"""Jobs that workers run for calls, and the reconciler of calls whose job or process was lost: each is resumed, or ended
with a reason.
"""

from datetime import datetime
from functools import partial
from uuid import UUID

import structlog

from switchboard.engine.conversation.call import EndedReason
from switchboard.engine.providers.instances import Providers
from switchboard.foundation.database import Database, now
from switchboard.foundation.jobs import BeatWatch, work_on_each
from switchboard.resources.calls import analysis, dialing, queries
from switchboard.resources.calls import service as calls
from switchboard.resources.calls.chats import finish_chat
from switchboard.resources.calls.dialing import CallDialer, hang_up
from switchboard.resources.calls.models import CHAT, Call
from switchboard.resources.calls.recordings.archive import RecordingArchive
from switchboard.resources.calls.recordings.claims import recover_recording
from switchboard.resources.calls.recordings.queries import list_missing_recordings
from switchboard.resources.calls.states import LEASE, finish_call

logger = structlog.get_logger()


async def reconcile_calls(database: Database, providers: Providers, dialer: CallDialer, call_beats: BeatWatch) -> int:
    """Recover every call whose job was lost or whose process died, and analyze finished ones whose analysis is due;
    return how many.
    """

    async def recover(call: Call) -> None:
        if call.status == "queued" and call.dialing_at is None:
            await dialer.place_with_carrier(call.organization_id, call.id)
        elif call.status == "queued" and call.carrier_call_id is None:
            await dialer.reconcile_placement(call.organization_id, call.id)
        else:
            await _end(database, providers, call)

    async with database.system() as session:
        overdue = await queries.list_overdue_calls(session, call_beats.silent)
        to_analyze = await queries.list_calls_to_analyze(session)
    # Both are worked on if one fails: a model of one organization must not end the recovery of another's calls.
    work = [partial(recover, call) for call in overdue]
    work += [
        partial(analysis.analyze_call, database, providers, organization_id=organization_id, call_id=call_id)
        for organization_id, call_id in to_analyze
    ]
    return await work_on_each(work, lambda start: start())


async def _end(database: Database, providers: Providers, overdue: Call) -> None:
    async with database.write(overdue.organization_id) as session:
        call = await calls.get_call(session, overdue.id, lock=True)
        if call.watch_at != overdue.watch_at:
            return
        if call.carrier == CHAT:
            await finish_chat(session, call)
            return
        if call.holder is not None:
            # The process extended its lease last, or claimed the call, at this beat: nobody talked for long after.
            beat = (call.watch_at or now()) - LEASE
            call.ended_at = max(beat, call.started_at or beat)
            await finish_call(
                session, call, "failed", reason=EndedReason.ERROR, error="The server that ran the call stopped."
            )
            call.recording_due_at = call.analysis_due_at = now()
        elif call.transferred_to is not None:
            await finish_call(session, call, "completed", reason=EndedReason.TRANSFERRED)
        elif call.status == "in-progress" and call.agent_id is None:
            await finish_call(session, call, "completed")
        elif call.status == "in-progress":
            silent = "The carrier never connected the call's audio."
            await finish_call(session, call, "failed", reason=EndedReason.ERROR, error=silent)
        else:
            await finish_call(session, call, "no-answer", error="The carrier never reported the call's outcome.")
    logger.warning("call ended by the reconciler", call_id=str(call.id), status=call.status)
    await dialing.hang_up(providers, call)
    if call.transfer_target is not None:
        await dialing.hang_up_leg(providers, call.organization_id, call.carrier, call.transfer_target)


async def dial_call(dialer: CallDialer, *, organization_id: UUID, call_id: UUID) -> None:
    """Place a call that was just created."""
    await dialer.place_with_carrier(organization_id, call_id)


async def hang_up_call(database: Database, providers: Providers, *, organization_id: UUID, call_id: UUID) -> None:
    """Hang up a canceled call at its carrier."""
    await hang_up(providers, await calls.read_call(database, organization_id, call_id))


async def watch_leases(database: Database, call_beats: BeatWatch) -> None:
    """Look which processes that run calls still extend their leases."""

    async def read() -> dict[str | UUID, datetime]:
        async with database.system() as session:
            return await queries.read_beats(session)

    await call_beats.look(read())


async def recover_recordings(database: Database, archive: RecordingArchive) -> int:
    """Look in the store for recordings that their process has not reported; return for how many calls."""
    async with database.system() as session:
        missing = await list_missing_recordings(session)
    return await work_on_each(missing, lambda found: recover_recording(database, archive, *found))
