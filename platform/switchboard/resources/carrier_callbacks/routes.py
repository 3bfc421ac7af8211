"""Carrier callbacks under `/carriers/<carrier>/<organization>`: `/events…`, `/calls/<call>…`, `/texts/<message>…`.

The provider verifies and translates a callback; each event goes to the resource that it concerns.
"""

from dataclasses import dataclass
from typing import Final
from uuid import UUID

import structlog
from quart import Blueprint, Response, request

from switchboard.engine.providers.instances import Providers
from switchboard.foundation.database import Database
from switchboard.foundation.settings import Settings
from switchboard.foundation.web.errors import Forbidden, NotFound, ProviderFailed
from switchboard.foundation.web.pipeline import inject
from switchboard.foundation.web.schemas import parse_id
from switchboard.plugin_sdk import (
    BrowserCall,
    CarrierEvent,
    CarrierReply,
    CarrierRequest,
    IncomingCall,
    InvalidCallback,
    ProviderError,
    ProviderSettings,
    TelephonyProvider,
    TextMessageReceived,
    TextMessageStatus,
    TransferTargetGone,
    TransferTargetReady,
)
from switchboard.plugin_sdk.registry import Registry
from switchboard.resources.calls import browser as browser_calls
from switchboard.resources.calls import inbound as inbound_calls
from switchboard.resources.calls.callbacks import CarrierEventHandler
from switchboard.resources.phone_numbers.purchases import build_callback_urls
from switchboard.resources.sms import callbacks as text_callbacks
from switchboard.resources.sms import inbound as inbound_texts
from switchboard.resources.widgets.visitor_calls import answer_visitor_call, is_visitor_call

logger = structlog.get_logger()
CARRIER: Final = "/carriers/<provider:carrier>/<organization_id>"
blueprint = Blueprint("carriers", __name__)


@dataclass(frozen=True, slots=True)
class CallbackReceiver:
    """Receives carriers' callbacks for the organizations."""

    settings: Settings
    registry: Registry
    database: Database
    providers: Providers
    router: inbound_calls.InboundCallRouter
    events: CarrierEventHandler

    async def receive(self, carrier: str, organization_id: UUID | None, path: str, subject_id: UUID | None) -> Response:
        if organization_id is None:
            raise NotFound
        structlog.contextvars.bind_contextvars(organization_id=str(organization_id), carrier=carrier)
        query = request.query_string.decode("latin-1")
        callback = CarrierRequest(
            method=request.method,
            url=f"{self.settings.base_url}{request.path}{'?' + query if query else ''}",
            path=path,
            headers={name.lower(): value for name, value in request.headers.items()},
            body=await request.get_data(as_text=False, cache=False, parse_form_data=False),
        )
        try:
            async with self.providers.use(organization_id, TelephonyProvider, carrier) as provider:
                return _response(await self._translate(organization_id, provider, callback, subject_id))
        except InvalidCallback as error:
            logger.warning("callback refused", carrier=carrier, reason=str(error))
            raise Forbidden("The callback's signature is not valid.") from None
        except ProviderError as error:
            raise ProviderFailed(error.message) from error

    async def _translate(
        self,
        organization_id: UUID,
        provider: TelephonyProvider[ProviderSettings],
        callback: CarrierRequest,
        subject_id: UUID | None,
    ) -> CarrierReply:
        received = await provider.receive(callback)
        reply = received.reply
        for event in received.events:
            if isinstance(event, IncomingCall):
                if isinstance(event, BrowserCall):
                    answer = answer_visitor_call if is_visitor_call(event) else browser_calls.answer_browser_call
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
            await text_callbacks.apply_message_event(
                self.database, organization_id, carrier, event, message_id=subject_id
            )
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


def _response(reply: CarrierReply) -> Response:
    return Response(reply.body, reply.status, content_type=reply.content_type)
