"""Requests, ids, and helpers that the plugin's tests share."""

from switchboard.plugin_sdk import (
    CallbackRequest,
    CallbackUrls,
    IncomingCall,
    OutboundCall,
    OutboundTextMessage,
)

from tests.carriers.telnyx.server import TelnyxServer
from tests.carriers.telnyx.wire import CallRecord, encode_webhook, sign_headers
from tests.carriers.vendor import OURS, JsonBody

REFERENCE = "01a1fed0-0000-7000-8000-000000000001"
CALLBACKS = CallbackUrls(f"https://voice.example/carriers/telnyx/org/calls/{REFERENCE}")
EVENTS = CallbackUrls("https://voice.example/carriers/telnyx/org/events")
MEDIA = "wss://voice.example/media/token"
CALL = OutboundCall(REFERENCE, OURS, "+15550100021", MEDIA, CALLBACKS, ring_seconds=25, max_duration_seconds=600)
TEXT = OutboundTextMessage("text", OURS, "+15550100001", "Hello", CALLBACKS)
INTRODUCTION = "Ann wants a table."
ID, LEG, TEXT_ID = "v3:call", "a-leg", "a-text"


def announce_call(telnyx: TelnyxServer) -> tuple[CallRecord, IncomingCall]:
    """Return an inbound call that waits at Telnyx."""
    record = CallRecord("incoming", "+15550100001", OURS, telnyx.connection_id, EVENTS.events)
    telnyx.hold(record)
    return record, IncomingCall(record.id, record.from_number, record.to_number)


def sign_webhook(
    telnyx: TelnyxServer, event_type: str, payload: JsonBody, url: str = CALLBACKS.events
) -> CallbackRequest:
    """Return a signed webhook."""
    body = encode_webhook(event_type, payload)
    return CallbackRequest(
        "POST", url, "", {name.lower(): value for name, value in sign_headers(telnyx.key, body).items()}, body
    )
