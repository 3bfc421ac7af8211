"""Requests and ids that the plugin's tests share."""

from uuid import uuid4

from switchboard.plugin_sdk import CallbackUrls, OutboundCall, OutboundTextMessage

from tests.carriers.vendor import OURS

CALLBACKS = CallbackUrls("https://voice.example/carriers/plivo/org/calls/call")
MEDIA = "wss://voice.example/media/token"
CALL = OutboundCall("call", OURS, "+15550100021", MEDIA, CALLBACKS, ring_seconds=25, max_duration_seconds=600)
TEXT = OutboundTextMessage("text", OURS, "+15550100001", "Hello", CALLBACKS)
CALL_ID, MESSAGE_ID = str(uuid4()), str(uuid4())
