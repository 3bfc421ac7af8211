"""What carriers tell us, applied to our calls. Callbacks may come late, twice, or in any order."""

from uuid import UUID

import structlog
from sqlmodel import col

from switchboard.engine.conversation.call import EndedReason, TransferTargetEvent
from switchboard.foundation.database import TenantSession
from switchboard.plugin_sdk import (
    CallAccepted,
    CallAnswered,
    CalleeRinging,
    CallEnded,
    MachineDetected,
    RecordingReady,
    TransferTargetGone,
    TransferTargetReady,
)
from switchboard.plugin_sdk.telephony import CallEvent, TransferEvent
from switchboard.resources.calls import service as calls
from switchboard.resources.calls.dialing import hang_up_leg, map_error_code
from switchboard.resources.calls.live.channel import LiveMessage, send_live_message
from switchboard.resources.calls.models import Call
from switchboard.resources.calls.states import finish_call, is_over, mark_accepted, mark_ringing, start_call
from switchboard.runtime import Runtime

logger = structlog.get_logger()


async def apply_call_event(
    runtime: Runtime, organization_id: UUID, carrier: str, event: CallEvent, *, call_id: UUID | None
) -> None:
    """Apply one event. `call_id` is ours, where the callback's address named it."""
    async with runtime.database.tenant(organization_id) as session:
        call = await _find(session, carrier, event.carrier_call_id, call_id)
        if call is None:
            logger.warning("callback for a call that is not ours", carrier=carrier)
            return
        unwanted = _is_unwanted(call, carrier, event)
        holder = call.holder
        if call.carrier == carrier:
            call.carrier_call_id = call.carrier_call_id or event.carrier_call_id
            await _apply(session, call, event)
        machine = call.answered_by == "machine" and call.direction == "outbound"
    if unwanted:
        await hang_up_leg(runtime, organization_id, carrier, event.carrier_call_id)
    elif machine and holder is not None and not isinstance(event, CallEnded):
        await send_live_message(runtime.redis, holder, LiveMessage(call_id=call.id, hang_up=EndedReason.VOICEMAIL))


async def apply_transfer_event(
    runtime: Runtime, organization_id: UUID, carrier: str, event: TransferEvent, *, call_id: UUID | None
) -> None:
    """Tell the call that is to be transferred. Who waits for one that nobody holds any more, because its server died, is let go: here, or by the
    sweep that ends the call."""
    async with runtime.database.tenant(organization_id) as session:
        call = (
            await session.exec(calls.list_calls(session).where(col(Call.id) == call_id).with_for_update())
        ).one_or_none()
        if call is not None and isinstance(event, TransferTargetReady):
            call.transfer_target = event.target_call_id
    abandoned = call is None or (is_over(call) and call.ended_reason != EndedReason.TRANSFERRED)
    if abandoned and isinstance(event, TransferTargetReady):
        await hang_up_leg(runtime, organization_id, carrier, event.target_call_id)
    elif call is not None and call.holder is not None:
        told = TransferTargetEvent(
            event.target_call_id, event.outcome if isinstance(event, TransferTargetGone) else None
        )
        await send_live_message(runtime.redis, call.holder, LiveMessage(call_id=call.id, target=told))


def _is_unwanted(call: Call, carrier: str, event: CallEvent) -> bool:
    """Whether the carrier rings somebody for a call that it did not seem to have placed: it went to another carrier, or was given up.

    Told late of a call that nobody answered, the carrier is asked to end what is over, which is harmless.
    """
    given_up = is_over(call) and call.started_at is None
    return (call.carrier != carrier or given_up) and isinstance(event, CallAccepted | CalleeRinging | CallAnswered)


async def _apply(session: TenantSession, call: Call, event: CallEvent) -> None:
    if isinstance(event, CallAccepted):
        mark_accepted(call)
    elif isinstance(event, CalleeRinging):
        await mark_ringing(session, call)
    elif isinstance(event, CallAnswered):
        if event.answered_by != "unknown" or call.answered_by is None:
            call.answered_by = event.answered_by
        await start_call(session, call)
    elif isinstance(event, MachineDetected):
        call.answered_by = "machine"
    elif isinstance(event, RecordingReady):
        call.carrier_recording_id = event.recording_id
    elif not is_over(call):
        await _end(session, call, event)


async def _end(session: TenantSession, call: Call, event: CallEnded) -> None:
    """The holder of the media socket ends its own calls, and knows why; the carrier's word ends those that nobody holds."""
    if call.holder is not None:
        return
    if call.status == "in-progress" and event.outcome == "completed":
        reason = EndedReason(call.ended_reason) if call.ended_reason else EndedReason.CALLER_HUNG_UP
        await finish_call(session, call, "completed", reason=reason)
    elif event.outcome == "completed":
        await finish_call(session, call, "canceled" if call.direction == "inbound" else "no-answer")
    else:
        await finish_call(
            session, call, event.outcome, reason=map_error_code(event.error_code), error=event.error_message
        )


async def _find(session: TenantSession, carrier: str, carrier_call_id: str, call_id: UUID | None) -> Call | None:
    if call_id is not None:
        rows = calls.list_calls(session).where(col(Call.id) == call_id)
    else:
        rows = calls.list_calls(session).where(
            col(Call.carrier) == carrier, col(Call.carrier_call_id) == carrier_call_id
        )
    return (await session.exec(rows.with_for_update())).one_or_none()
