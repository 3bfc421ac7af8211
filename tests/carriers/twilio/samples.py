"""Requests and ids that the plugin's tests share."""

from switchboard.plugin_sdk import (
    CallbackUrls,
    OutboundCall,
    OutboundTextMessage,
)

from tests.carriers.twilio.server import new_sid
from tests.carriers.vendor import OURS

CALLBACKS = CallbackUrls("https://voice.example/carriers/twilio/org/calls/call")
MEDIA = "wss://voice.example/media/token"
CALL = OutboundCall("call", OURS, "+15550100021", MEDIA, CALLBACKS, ring_seconds=25, max_duration_seconds=600)
TEXT = OutboundTextMessage("text", OURS, "+15550100001", "Hello", CALLBACKS)
SID, OTHER_SID = new_sid("CA"), new_sid("RE")
TEXT_SID = new_sid("SM")
