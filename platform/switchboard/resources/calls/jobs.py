"""Jobs that workers run for calls, and the reconcilers of calls whose job or process was lost: each is resumed, or
ended with a reason.
"""

import random
from datetime import timedelta
from uuid import UUID

import structlog

from switchboard.engine.conversation.call import EndedReason
from switchboard.engine.providers.instances import Providers
from switchboard.foundation.database import Database, WriteSession, now
from switchboard.foundation.jobs import work_on_each
from switchboard.foundation.leases import LeaseWatch
from switchboard.resources.calls import analysis, queries
from switchboard.resources.calls.chats import finish_chat
from switchboard.resources.calls.dialing import CallDialer, hang_up, hang_up_leg
from switchboard.resources.calls.models import CHAT, Call
from switchboard.resources.calls.recordings.archive import RecordingArchive
from switchboard.resources.calls.recordings.claims import recover_recording
from switchboard.resources.calls.recordings.queries import list_missing_recordings
from switchboard.resources.calls.states import expect_hang_up, finish_call, is_over

logger = structlog.get_logger()
DEAD_LEASE = timedelta(hours=1)
"""Time after its last beat at which the lease of a process is deleted."""


async def watch_leases(database: Database, lease_watch: LeaseWatch) -> None:
    """Look which processes still extend their leases, and delete the leases of those that ended long ago."""
    await lease_watch.look(database)
    if old := [node for node, beat in lease_watch.silent.items() if beat < now() - DEAD_LEASE]:
        async with database.system() as session:
            await queries.delete_leases(session, old, before=now() - DEAD_LEASE)


async def end_calls(database: Database, lease_watch: LeaseWatch) -> int:
    """End every call whose process is dead or has lost it, and every call that its carrier did not report on in time;
    return how many. No carrier is asked meanwhile.
    """
    async with database.system() as session:
        abandoned = await queries.list_calls_to_end(session, lease_watch.silent)
    # In any order, because other workers end the same calls.
    return await work_on_each(
        random.sample(abandoned, len(abandoned)), lambda call: _end_call(database, lease_watch, *call)
    )


async def _end_call(database: Database, lease_watch: LeaseWatch, organization_id: UUID, call_id: UUID) -> None:
    async with database.write(organization_id) as session:
        call = await session.lock(Call, call_id)
        if call is None or is_over(call):
            return
        beat = lease_watch.silent.get(call.holder or "")
        if beat is None and (call.watch_at is None or call.watch_at > now()):
            return
        if call.carrier == CHAT:
            await finish_chat(session, call)
            return
        if call.holder is not None:
            # Nobody talked for long after the process's last beat, or after it gave the call up.
            noticed = beat or call.watch_at or now()
            call.ended_at = max(noticed, call.started_at or noticed)
        await _finish(session, call)
        expect_hang_up(session, call)
    logger.warning("call ended by the reconciler", call_id=str(call.id), status=call.status)


async def _finish(session: WriteSession, call: Call) -> None:
    if call.holder is not None:
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


async def recover_calls(database: Database, providers: Providers, dialer: CallDialer) -> int:
    """Place every call whose job was lost, ask carriers about those that they did not confirm, and hang up what is left
    of calls that are over; return how many.
    """

    async def recover(call: Call) -> None:
        if is_over(call):
            await hang_up_call(database, providers, organization_id=call.organization_id, call_id=call.id)
        elif call.dialing_at is None:
            await dialer.place_with_carrier(call.organization_id, call.id)
        else:
            await dialer.reconcile_placement(call.organization_id, call.id)

    async with database.system() as session:
        overdue = await queries.list_calls_to_recover(session)
    return await work_on_each(overdue, recover)


async def analyze_calls(database: Database, providers: Providers) -> int:
    """Analyze the calls whose analysis is due; return how many."""
    async with database.system() as session:
        due = await queries.list_calls_to_analyze(session)
    return await work_on_each(
        due,
        lambda call: analysis.analyze_call(database, providers, organization_id=call[0], call_id=call[1]),
    )


async def dial_call(dialer: CallDialer, *, organization_id: UUID, call_id: UUID) -> None:
    """Place a call that was just created."""
    await dialer.place_with_carrier(organization_id, call_id)


async def hang_up_call(database: Database, providers: Providers, *, organization_id: UUID, call_id: UUID) -> None:
    """Hang up what the carrier still has of a call that is over, once."""
    async with database.write(organization_id) as session:
        call = await session.lock(Call, call_id)
        if call is None or not is_over(call) or call.watch_at is None:
            return
        call.watch_at = None
    await hang_up(providers, call)
    if call.transfer_target is not None:
        await hang_up_leg(providers, call.organization_id, call.carrier, call.transfer_target)


async def recover_recordings(database: Database, archive: RecordingArchive) -> int:
    """Look in the store for recordings that their process has not reported; return for how many calls."""
    async with database.system() as session:
        missing = await list_missing_recordings(session)
    return await work_on_each(missing, lambda found: recover_recording(database, archive, *found))
