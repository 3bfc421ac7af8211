"""Jobs that workers run for calls, and the reconcilers of calls whose job or process was lost: each is resumed, or
ended with a reason.
"""

from datetime import timedelta
from typing import Final
from uuid import UUID

import structlog

from switchboard.engine.conversation.call import EndedReason
from switchboard.engine.providers.instances import Providers
from switchboard.foundation.database import Database, WriteSession, get_bucket, now
from switchboard.foundation.jobs import work_on_each
from switchboard.foundation.leases import LeaseKeeper, LeaseWatch
from switchboard.foundation.work import Work, share_buckets
from switchboard.resources.calls import queries
from switchboard.resources.calls.analysis import analyze_call
from switchboard.resources.calls.chats import finish_chat
from switchboard.resources.calls.dialing import CARRIER_TIMEOUT, CallDialer, hang_up, hang_up_leg
from switchboard.resources.calls.models import CHAT, Call
from switchboard.resources.calls.recordings.claims import recover_recording
from switchboard.resources.calls.recordings.queries import MISSING_RECORDINGS
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


async def end_abandoned_calls(database: Database, lease: LeaseKeeper, lease_watch: LeaseWatch) -> int:
    """End the calls of dead processes, as far as their buckets are this worker's; return how many. No carrier is asked
    meanwhile.
    """
    if not lease_watch.silent:
        return 0
    async with database.system() as session:
        held = await queries.list_calls_held_by(session, lease_watch.silent)
    buckets = set(share_buckets(lease.node, lease_watch.workers))
    return await work_on_each(
        [call for call in held if get_bucket(call[0]) in buckets],
        lambda call: end_abandoned_call(database, lease_watch, organization_id=call[0], call_id=call[1]),
    )


async def end_abandoned_call(
    database: Database, lease_watch: LeaseWatch, *, organization_id: UUID, call_id: UUID
) -> None:
    """End a call whose process is dead or has lost it, or that its carrier did not report on in time."""
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


async def dial_call(dialer: CallDialer, *, organization_id: UUID, call_id: UUID) -> None:
    """Place a call."""
    await dialer.place_with_carrier(organization_id, call_id)


async def confirm_call(dialer: CallDialer, *, organization_id: UUID, call_id: UUID) -> None:
    """Ask a carrier about a call that it did not confirm in time."""
    await dialer.reconcile_placement(organization_id, call_id)


async def hang_up_call(database: Database, providers: Providers, *, organization_id: UUID, call_id: UUID) -> None:
    """Hang up what the carrier still has of a call that is over; again if the worker dies meanwhile."""
    async with database.write(organization_id) as session:
        call = await session.lock(Call, call_id)
        if call is None or not is_over(call) or call.watch_at is None or call.watch_at > now():
            return
        call.watch_at = now() + CARRIER_TIMEOUT
    await hang_up(providers, call)
    if call.transfer_target is not None:
        await hang_up_leg(providers, call.organization_id, call.carrier, call.transfer_target)
    async with database.write(organization_id) as session:
        ended = await session.lock(Call, call_id)
        if ended is not None:
            ended.watch_at = None


WORK: Final = (
    Work(dial_call, queries.CALLS_TO_DIAL, at_once=32),
    Work(confirm_call, queries.UNCONFIRMED_CALLS),
    Work(end_abandoned_call, queries.CALLS_TO_END),
    Work(hang_up_call, queries.CALLS_TO_HANG_UP),
    Work(analyze_call, queries.CALLS_TO_ANALYZE, at_once=8),
    Work(recover_recording, MISSING_RECORDINGS, seconds=5, at_once=4),
)
