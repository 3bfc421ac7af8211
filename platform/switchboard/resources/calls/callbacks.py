"""Carrier callbacks under `/carriers/<carrier>/<organization>`: `/events…`, `/calls/<call>…`, `/texts/<message>…`.

The provider verifies and translates a callback; each event goes to the resource that it concerns. Callbacks may arrive
late, twice, or in any order.
"""

from dataclasses import asdict, dataclass
from typing import Final
from uuid import UUID

import structlog
from quart import Blueprint, Response
from redis.asyncio import Redis

from switchboard.engine.conversation.call import EndedReason, MachineEvent, TransferTargetEvent
from switchboard.engine.providers.instances import Providers
from switchboard.foundation.database import Database, WriteSession
from switchboard.foundation.observability import metrics
from switchboard.foundation.settings import Settings
from switchboard.foundation.web.callbacks import serve_callback
from switchboard.foundation.web.errors import NotFound
from switchboard.foundation.web.pipeline import inject
from switchboard.foundation.web.schemas import parse_id
from switchboard.plugin_sdk import (
    BrowserCall,
    CallAccepted,
    CallAnswered,
    CallbackReply,
    CallbackRequest,
    CalleeRinging,
    CallEnded,
    CarrierEvent,
    IncomingCall,
    MachineDetected,
    ProviderSettings,
    RecordingReady,
    TelephonyProvider,
    TextMessageReceived,
    TextMessageStatus,
    TransferTargetGone,
    TransferTargetReady,
)
from switchboard.plugin_sdk.telephony_events import CallEvent, TransferEvent
from switchboard.resources.calls import browser
from switchboard.resources.calls.dialing import hang_up_leg, map_error_code
from switchboard.resources.calls.inbound import InboundCallRouter
from switchboard.resources.calls.live.channel import LiveMessage, send_live_message
from switchboard.resources.calls.media_servers import MediaServers
from switchboard.resources.calls.models import Call
from switchboard.resources.calls.queries import lock_call_by_carrier_id
from switchboard.resources.calls.states import finish_call, is_over, mark_accepted, mark_ringing, start_call
from switchboard.resources.phone_numbers.purchases import build_callback_urls
from switchboard.resources.sms import inbound as inbound_texts
from switchboard.resources.sms.sender import apply_message_event

logger = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class CarrierEventHandler:
    database: Database
    redis: Redis
    providers: Providers
    media_servers: MediaServers

    async def apply_call_event(
        self,
        organization_id: UUID,
        carrier: str,
        event: CallEvent,
        *,
        call_id: UUID | None,
    ) -> None:
        """Apply one event. `call_id` is our id, if the callback's URL contained it."""
        async with self.database.write(organization_id) as session:
            if call_id is not None:
                call = await session.lock(Call, call_id)
            else:
                call = await lock_call_by_carrier_id(session, carrier, event.carrier_call_id)
            if call is None:
                logger.warning("callback for an unknown call", carrier=carrier)
                return
            # The carrier dials for a call that was handed to another carrier or given up. After a late event of a call
            # that nobody answered it is asked to end a finished call, which is harmless.
            given_up = is_over(call) and call.started_at is None
            is_dialing = isinstance(event, CallAccepted | CalleeRinging | CallAnswered)
            unwanted = is_dialing and (call.carrier != carrier or given_up)
            holder = call.holder
            if call.carrier == carrier:
                call.carrier_call_id = call.carrier_call_id or event.carrier_call_id
                await _update_call(session, call, event)
            machine = call.answered_by == "machine" and isinstance(event, CallAnswered | MachineDetected)
        if isinstance(event, CallEnded):
            await self.media_servers.release_place(call.id)
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
        async with self.database.write(organization_id) as session:
            call = await session.lock(Call, call_id)
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


async def _update_call(session: WriteSession, call: Call, event: CallEvent) -> None:
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
        if (quality := event.quality) is not None and call.quality is None:
            call.quality = asdict(quality)
            metrics.line_mos.labels(call.carrier).observe(quality.mos)
            metrics.line_loss.labels(call.carrier).observe(quality.loss_share)
            metrics.line_jitter.labels(call.carrier).observe(quality.jitter_ms / 1000)
        if not is_over(call):
            await _finish_abandoned_call(session, call, event)


async def _finish_abandoned_call(session: WriteSession, call: Call, event: CallEnded) -> None:
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


CARRIER: Final = "/carriers/<provider:carrier>/<organization_id>"
blueprint = Blueprint("carriers", __name__)


@dataclass(frozen=True, slots=True)
class CallbackReceiver:
    settings: Settings
    database: Database
    providers: Providers
    router: InboundCallRouter
    events: CarrierEventHandler

    async def receive(self, carrier: str, organization_id: UUID | None, path: str, subject_id: UUID | None) -> Response:
        if organization_id is None:
            raise NotFound
        structlog.contextvars.bind_contextvars(organization_id=str(organization_id), carrier=carrier)

        async def answer(callback: CallbackRequest) -> CallbackReply:
            async with self.providers.use(organization_id, TelephonyProvider, carrier) as provider:
                return await self._translate(organization_id, provider, callback, subject_id)

        return await serve_callback(self.settings.base_url, answer, path=path)

    async def _translate(
        self,
        organization_id: UUID,
        provider: TelephonyProvider[ProviderSettings],
        callback: CallbackRequest,
        subject_id: UUID | None,
    ) -> CallbackReply:
        received = await provider.receive(callback)
        reply = received.reply
        for event in received.events:
            if isinstance(event, IncomingCall):
                if isinstance(event, BrowserCall):
                    # Other resources have the first word of their identities.
                    prefix = event.identity.partition("_")[0]
                    answer = browser.ANSWERERS.get(prefix, browser.answer_browser_call)
                    instruction = await answer(self.database, self.router, organization_id, provider.name, event)
                else:
                    instruction = await self.router.answer_inbound_call(organization_id, provider.name, event)
                reply = await provider.instruct(
                    event, instruction, build_callback_urls(self.settings.base_url, organization_id, provider.name)
                )
            else:
                await self._apply(organization_id, provider.name, event, subject_id)
        return reply

    async def _apply(self, organization_id: UUID, carrier: str, event: CarrierEvent, subject_id: UUID | None) -> None:
        """Apply an event. `subject_id` is the call or message in the callback's address; the event may concern another
        one.
        """
        if isinstance(event, TextMessageReceived):
            await inbound_texts.receive_message(
                self.database, organization_id, carrier, event, base_url=self.settings.base_url
            )
        elif isinstance(event, TextMessageStatus):
            await apply_message_event(self.database, organization_id, carrier, event, message_id=subject_id)
        elif isinstance(event, TransferTargetReady | TransferTargetGone):
            await self.events.apply_transfer_event(organization_id, carrier, event, call_id=subject_id)
        elif not isinstance(event, IncomingCall):
            await self.events.apply_call_event(organization_id, carrier, event, call_id=subject_id)


@blueprint.route(f"{CARRIER}/events", methods=["GET", "POST"], defaults={"path": ""})
@blueprint.route(f"{CARRIER}/events/<path:path>", methods=["GET", "POST"])
@inject
async def carrier_event(carrier: str, organization_id: str, path: str, receiver: CallbackReceiver) -> Response:
    """Receive a callback about the organization's phone numbers."""
    return await receiver.receive(carrier, parse_id(organization_id), path, None)


@blueprint.route(f"{CARRIER}/calls/<call_id>", methods=["GET", "POST"], defaults={"path": ""})
@blueprint.route(f"{CARRIER}/calls/<call_id>/<path:path>", methods=["GET", "POST"])
@inject
async def carrier_call_event(
    carrier: str, organization_id: str, call_id: str, path: str, receiver: CallbackReceiver
) -> Response:
    """Receive a callback about an outbound call."""
    return await receiver.receive(carrier, parse_id(organization_id), path, parse_id(call_id))


@blueprint.route(f"{CARRIER}/texts/<message_id>", methods=["GET", "POST"], defaults={"path": ""})
@blueprint.route(f"{CARRIER}/texts/<message_id>/<path:path>", methods=["GET", "POST"])
@inject
async def carrier_text_event(
    carrier: str, organization_id: str, message_id: str, path: str, receiver: CallbackReceiver
) -> Response:
    """Receive a callback about an outbound text message."""
    return await receiver.receive(carrier, parse_id(organization_id), path, parse_id(message_id))
