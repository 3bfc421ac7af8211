"""Carrier callbacks under `/carriers/<carrier>/<organization>`: `/events…`, `/calls/<call>…`, `/texts/<message>…`.

The provider verifies and translates a callback; each event goes to the resource that it concerns.
"""

from uuid import UUID

import structlog
from quart import Blueprint, Response, request

from switchboard.foundation.web.errors import Forbidden, NotFound, ProviderFailed
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
from switchboard.resources.calls import browser as browser_calls
from switchboard.resources.calls import callbacks as call_callbacks
from switchboard.resources.calls import inbound as inbound_calls
from switchboard.resources.phone_numbers.purchases import build_callback_urls
from switchboard.resources.sms import callbacks as text_callbacks
from switchboard.resources.sms import inbound as inbound_texts
from switchboard.runtime import Runtime, current_runtime

logger = structlog.get_logger()
blueprint = Blueprint("carriers", __name__)


@blueprint.route("/carriers/<carrier>/<organization_id>/events", methods=["GET", "POST"], defaults={"path": ""})
@blueprint.route("/carriers/<carrier>/<organization_id>/events/<path:path>", methods=["GET", "POST"])
async def carrier_event(carrier: str, organization_id: str, path: str) -> Response:
    """Receive a callback about the organization's phone numbers."""
    return await _receive(carrier, parse_id(organization_id), path, None)


@blueprint.route(
    "/carriers/<carrier>/<organization_id>/calls/<call_id>", methods=["GET", "POST"], defaults={"path": ""}
)
@blueprint.route("/carriers/<carrier>/<organization_id>/calls/<call_id>/<path:path>", methods=["GET", "POST"])
async def carrier_call_event(carrier: str, organization_id: str, call_id: str, path: str) -> Response:
    """Receive a callback about an outbound call."""
    return await _receive(carrier, parse_id(organization_id), path, parse_id(call_id))


@blueprint.route(
    "/carriers/<carrier>/<organization_id>/texts/<message_id>", methods=["GET", "POST"], defaults={"path": ""}
)
@blueprint.route("/carriers/<carrier>/<organization_id>/texts/<message_id>/<path:path>", methods=["GET", "POST"])
async def carrier_text_event(carrier: str, organization_id: str, message_id: str, path: str) -> Response:
    """Receive a callback about an outbound text message."""
    return await _receive(carrier, parse_id(organization_id), path, parse_id(message_id))


async def _receive(carrier: str, organization_id: UUID | None, path: str, subject_id: UUID | None) -> Response:
    runtime = current_runtime()
    if organization_id is None:
        raise NotFound
    structlog.contextvars.bind_contextvars(organization_id=str(organization_id), carrier=carrier)
    query = request.query_string.decode("latin-1")
    callback = CarrierRequest(
        method=request.method,
        url=f"{runtime.settings.base_url}{request.path}{'?' + query if query else ''}",
        path=path,
        headers={name.lower(): value for name, value in request.headers.items()},
        body=await request.get_data(as_text=False, cache=False, parse_form_data=False),
    )
    try:
        async with runtime.providers.use(organization_id, TelephonyProvider, carrier) as provider:
            return _response(await _translate(runtime, organization_id, provider, callback, subject_id))
    except InvalidCallback as error:
        logger.warning("callback refused", carrier=carrier, reason=str(error))
        raise Forbidden("The callback's signature is not valid.") from None
    except ProviderError as error:
        raise ProviderFailed(error.message) from error


async def _translate(
    runtime: Runtime,
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
                instruction = await browser_calls.answer_browser_call(runtime, organization_id, provider.name, event)
            else:
                instruction = await inbound_calls.answer_inbound_call(runtime, organization_id, provider.name, event)
            reply = await provider.instruct(
                event, instruction, build_callback_urls(runtime.settings.base_url, organization_id, provider.name)
            )
        else:
            await _apply(runtime, organization_id, provider.name, event, subject_id)
    return reply


async def _apply(
    runtime: Runtime, organization_id: UUID, carrier: str, event: CarrierEvent, subject_id: UUID | None
) -> None:
    """Apply an event. `subject_id` is the call or message in the callback's address; the event may concern another
    one.
    """
    if isinstance(event, TextMessageReceived):
        await inbound_texts.receive_message(runtime.database, organization_id, carrier, event)
    elif isinstance(event, TextMessageStatus):
        await text_callbacks.apply_message_event(
            runtime.database, organization_id, carrier, event, message_id=subject_id
        )
    elif isinstance(event, TransferTargetReady | TransferTargetGone):
        await call_callbacks.apply_transfer_event(runtime, organization_id, carrier, event, call_id=subject_id)
    elif not isinstance(event, IncomingCall):
        await call_callbacks.apply_call_event(runtime, organization_id, carrier, event, call_id=subject_id)


def _response(reply: CarrierReply) -> Response:
    return Response(reply.body, reply.status, content_type=reply.content_type)
