"""Carriers' events, applied to our calls. Callbacks may arrive late, twice, or in any order."""

from dataclasses import asdict, dataclass
from uuid import UUID

import structlog
from redis.asyncio import Redis
from sqlmodel import col

from switchboard.engine.conversation.call import EndedReason, MachineEvent, TransferTargetEvent
from switchboard.engine.providers.instances import Providers
from switchboard.foundation.database import Database, TenantSession
from switchboard.foundation.observability import metrics
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
from switchboard.plugin_sdk.telephony_events import CallEvent, CallQuality, TransferEvent
from switchboard.resources.calls import service as calls
from switchboard.resources.calls.admission import CallAdmission
from switchboard.resources.calls.dialing import hang_up_leg, map_error_code
from switchboard.resources.calls.live.channel import LiveMessage, send_live_message
from switchboard.resources.calls.models import Call
from switchboard.resources.calls.states import finish_call, is_over, mark_accepted, mark_ringing, start_call

logger = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class CarrierEventHandler:
    """Applies carriers' events to calls."""

    database: Database
    redis: Redis
    providers: Providers
    admission: CallAdmission

    async def apply_call_event(
        self,
        organization_id: UUID,
        carrier: str,
        event: CallEvent,
        *,
        call_id: UUID | None,
    ) -> None:
        """Apply one event. `call_id` is our id, if the callback's URL contained it."""
        async with self.database.tenant(organization_id) as session:
            call = await _find_call(session, carrier, event.carrier_call_id, call_id)
            if call is None:
                logger.warning("callback for an unknown call", carrier=carrier)
                return
            unwanted = _is_unwanted(call, carrier, event)
            holder = call.holder
            if call.carrier == carrier:
                call.carrier_call_id = call.carrier_call_id or event.carrier_call_id
                await _update_call(session, call, event)
            machine = call.answered_by == "machine" and isinstance(event, CallAnswered | MachineDetected)
        if isinstance(event, CallEnded):
            await self.admission.release_place(call.id)
        if unwanted:
            await hang_up_leg(self.providers, organization_id, carrier, event.carrier_call_id)
        elif machine and holder is not None:
            report = MachineEvent(greeting_over=isinstance(event, MachineDetected) and event.beep)
            await send_live_message(self.redis, holder, LiveMessage(call_id=call.id, machine=report))

    async def apply_transfer_event(
        self,
        organization_id: UUID,
        carrier: str,
        event: TransferEvent,
        *,
        call_id: UUID | None,
    ) -> None:
        """Pass an event about a transfer's target on to the call.

        A target that waits for a call whose process died is hung up: here, or by the reconciler that ends the call.
        """
        async with self.database.tenant(organization_id) as session:
            call = (
                await session.exec(calls.list_calls(session).where(col(Call.id) == call_id).with_for_update())
            ).one_or_none()
            if call is not None and isinstance(event, TransferTargetReady):
                call.transfer_target = event.target_call_id
        abandoned = call is None or (is_over(call) and call.ended_reason != EndedReason.TRANSFERRED)
        if abandoned and isinstance(event, TransferTargetReady):
            await hang_up_leg(self.providers, organization_id, carrier, event.target_call_id)
        elif call is not None and call.holder is not None:
            target = TransferTargetEvent(
                event.target_call_id, event.outcome if isinstance(event, TransferTargetGone) else None
            )
            await send_live_message(self.redis, call.holder, LiveMessage(call_id=call.id, target=target))


def _is_unwanted(call: Call, carrier: str, event: CallEvent) -> bool:
    """Return whether the carrier dials for a call that was handed to another carrier or given up.

    After a late event of a call that nobody answered the carrier is asked to end a finished call, which is harmless.
    """
    given_up = is_over(call) and call.started_at is None
    return (call.carrier != carrier or given_up) and isinstance(event, CallAccepted | CalleeRinging | CallAnswered)


async def _update_call(session: TenantSession, call: Call, event: CallEvent) -> None:
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
    else:
        if event.quality is not None and call.quality is None:
            call.quality = asdict(event.quality)
            _observe_quality(call.carrier, event.quality)
        if not is_over(call):
            await _finish_abandoned_call(session, call, event)


def _observe_quality(carrier: str, quality: CallQuality) -> None:
    metrics.line_mos.labels(carrier).observe(quality.mos)
    metrics.line_loss.labels(carrier).observe(quality.loss_share)
    metrics.line_jitter.labels(carrier).observe(quality.jitter_ms / 1000)


async def _finish_abandoned_call(session: TenantSession, call: Call, event: CallEnded) -> None:
    """End a call that no process runs. A process that runs a call ends it itself, and knows the reason."""
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


async def _find_call(session: TenantSession, carrier: str, carrier_call_id: str, call_id: UUID | None) -> Call | None:
    if call_id is not None:
        rows = calls.list_calls(session).where(col(Call.id) == call_id)
    else:
        rows = calls.list_calls(session).where(
            col(Call.carrier) == carrier, col(Call.carrier_call_id) == carrier_call_id
        )
    return (await session.exec(rows.with_for_update())).one_or_none()
