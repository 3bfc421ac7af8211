"""Calls that nobody looks after any more: each is carried on, or ended with a reason."""

import structlog

from switchboard.engine.conversation.call import EndedReason
from switchboard.foundation.database import now
from switchboard.resources.calls import dialing, system_queries
from switchboard.resources.calls import service as calls
from switchboard.resources.calls.after import analysis
from switchboard.resources.calls.media.call_runner import build_recording_path
from switchboard.resources.calls.models import Call
from switchboard.resources.calls.states import finish_call
from switchboard.runtime import Runtime

logger = structlog.get_logger()


async def reconcile_due_calls(runtime: Runtime) -> None:
    """Look after every call that is due."""
    async with runtime.database.system() as session:
        unattended = await system_queries.list_overdue_calls(session)
        unanalysed = await system_queries.list_calls_to_analyze(session)
    for call in unattended:
        await _look_after(runtime, call)
    for organization_id, call_id in unanalysed:
        await analysis.run_analysis(runtime, organization_id, call_id)


async def _look_after(runtime: Runtime, call: Call) -> None:
    if call.status == "queued" and call.dialing_at is None:
        await dialing.place_with_carrier(runtime, call.organization_id, call.id)
    elif call.status == "queued" and call.carrier_call_id is None:
        await dialing.reconcile_placement(runtime, call.organization_id, call.id)
    else:
        await _end(runtime, call)


async def _end(runtime: Runtime, unattended: Call) -> None:
    async with runtime.database.tenant(unattended.organization_id) as session:
        call = await calls.get_call(session, unattended.id, lock=True)
        if call.watch_at is None or call.watch_at >= now():
            return
        if call.holder is not None:
            await finish_call(
                session, call, "failed", reason=EndedReason.ERROR, error="The server that held the call stopped."
            )
            call.has_recording = build_recording_path(runtime.settings, call).exists()
            call.analysis_due_at = now()
        elif call.transferred_to is not None:
            await finish_call(session, call, "completed", reason=EndedReason.TRANSFERRED)
        elif call.status == "in-progress" and call.agent_id is None:
            await finish_call(session, call, "completed")
        elif call.status == "in-progress":
            await finish_call(
                session, call, "failed", reason=EndedReason.ERROR, error="The carrier never connected the call's audio."
            )
        else:
            await finish_call(session, call, "no-answer", error="The carrier never said what became of the call.")
    logger.warning("call ended by the sweep", call_id=str(call.id), status=call.status)
    await dialing.hang_up(runtime, call)
    if call.transfer_target is not None:
        await dialing.hang_up_leg(runtime, call.organization_id, call.carrier, call.transfer_target)
