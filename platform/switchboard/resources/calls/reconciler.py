"""Reconciler of calls whose job or process was lost: each is resumed, or ended with a reason."""

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
    """Recover every call that is overdue, and analyze finished ones whose analysis is due."""
    async with runtime.database.system() as session:
        overdue = await system_queries.list_overdue_calls(session)
        to_analyze = await system_queries.list_calls_to_analyze(session)
    for call in overdue:
        await _recover(runtime, call)
    for organization_id, call_id in to_analyze:
        await analysis.run_analysis(runtime, organization_id, call_id)


async def _recover(runtime: Runtime, call: Call) -> None:
    if call.status == "queued" and call.dialing_at is None:
        await dialing.place_with_carrier(runtime, call.organization_id, call.id)
    elif call.status == "queued" and call.carrier_call_id is None:
        await dialing.reconcile_placement(runtime, call.organization_id, call.id)
    else:
        await _end(runtime, call)


async def _end(runtime: Runtime, overdue: Call) -> None:
    async with runtime.database.tenant(overdue.organization_id) as session:
        call = await calls.get_call(session, overdue.id, lock=True)
        if call.watch_at is None or call.watch_at >= now():
            return
        if call.holder is not None:
            await finish_call(
                session, call, "failed", reason=EndedReason.ERROR, error="The server that ran the call stopped."
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
            await finish_call(session, call, "no-answer", error="The carrier never reported the call's outcome.")
    logger.warning("call ended by the reconciler", call_id=str(call.id), status=call.status)
    await dialing.hang_up(runtime.providers, call)
    if call.transfer_target is not None:
        await dialing.hang_up_leg(runtime.providers, call.organization_id, call.carrier, call.transfer_target)
