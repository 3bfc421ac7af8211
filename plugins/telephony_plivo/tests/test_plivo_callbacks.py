"""Translation of Plivo's callbacks and media messages."""

import json
from urllib.parse import urlencode
from xml.etree import ElementTree

import pytest
from switchboard.plugin_sdk import (
    CallAnswered,
    CallbackRequest,
    CalleeRinging,
    CallEnded,
    CarrierEvent,
    DigitPressed,
    IncomingCall,
    InvalidCallback,
    MachineDetected,
    MediaStarted,
    TextMessageReceived,
    TextMessageStatus,
    TransferTargetGone,
    TransferTargetReady,
    UnsupportedAudio,
)
from switchboard.plugin_sdk.json_media import derive_stream_token
from switchboard_telephony_plivo.codec import PlivoCodec
from switchboard_telephony_plivo.provider import PlivoTelephony

from tests.carriers.plivo.samples import CALL_ID, MEDIA, MESSAGE_ID
from tests.carriers.plivo.server import PlivoServer
from tests.carriers.plivo.wire import sign_form
from tests.carriers.vendor import OURS

pytest_plugins = ["tests.carriers.plivo.fixtures"]

EVENTS = "https://voice.example/carriers/plivo/org/calls/call"
TRANSLATIONS: dict[str, tuple[str, dict[str, str], CarrierEvent | None]] = {
    "a call that comes in": (
        "call",
        {"From": "15550100001", "To": "12125550100"},
        IncomingCall(CALL_ID, "+15550100001", OURS),
    ),
    "a call with a plus": ("call", {"From": "+15550100001", "To": OURS}, IncomingCall(CALL_ID, "+15550100001", OURS)),
    "a call from nobody": ("call", {"From": "", "To": "12125550100"}, IncomingCall(CALL_ID, "anonymous", OURS)),
    "a call over SIP": (
        "call",
        {"From": "sip:ada@phone.plivo.com", "To": "12125550100"},
        IncomingCall(CALL_ID, "sip:ada@phone.plivo.com", OURS),
    ),
    "ringing": ("ringing", {"CallStatus": "ringing", "Event": "Ring"}, CalleeRinging(CALL_ID)),
    "completed": (
        "status",
        {"CallStatus": "completed", "HangupCauseCode": "4000", "Duration": "17", "TotalCost": "0.00850"},
        CallEnded(CALL_ID, "completed", 17, cost=0.0085),
    ),
    "completed at the end of the instructions": (
        "status",
        {"CallStatus": "completed", "HangupCauseCode": "4010", "Duration": "17"},
        CallEnded(CALL_ID, "completed", 17),
    ),
    "busy": ("status", {"CallStatus": "busy", "HangupCauseCode": "3010"}, CallEnded(CALL_ID, "busy")),
    "busy everywhere": ("status", {"CallStatus": "failed", "HangupCauseCode": "3100"}, CallEnded(CALL_ID, "busy")),
    "no answer": ("status", {"CallStatus": "no-answer"}, CallEnded(CALL_ID, "no-answer")),
    "rung for too long": ("status", {"CallStatus": "timeout"}, CallEnded(CALL_ID, "no-answer")),
    "not reached": ("status", {"CallStatus": "failed", "HangupCauseCode": "3000"}, CallEnded(CALL_ID, "no-answer")),
    "canceled": ("status", {"CallStatus": "cancel", "HangupCauseCode": "1000"}, CallEnded(CALL_ID, "canceled")),
    "failed": (
        "status",
        {
            "CallStatus": "failed",
            "HangupCauseCode": "2030",
            "HangupCauseName": "Destination Country Barred",
            "Duration": "0",
        },
        CallEnded(CALL_ID, "failed", 0, "Plivo: Destination Country Barred (cause 2030)", "2030"),
    ),
    "failed, without a number": (
        "status",
        {"CallStatus": "failed", "HangupCauseCode": "3050", "HangupCauseName": "Unallocated number"},
        CallEnded(CALL_ID, "failed", None, "Plivo: Unallocated number (cause 3050)", "invalid_number"),
    ),
    "failed, without a reason": (
        "status",
        {"CallStatus": "failed"},
        CallEnded(CALL_ID, "failed", error_message="Plivo did not say why the call failed"),
    ),
    "completed without our instructions": (
        "status",
        {"CallStatus": "completed", "HangupCauseCode": "7011", "HangupCauseName": "Error Reaching Answer URL"},
        CallEnded(CALL_ID, "failed", None, "Plivo: Error Reaching Answer URL (cause 7011)", "7011"),
    ),
    "a state of the future": (
        "status",
        {"CallStatus": "levitating", "HangupCauseCode": "1"},
        CallEnded(CALL_ID, "failed", error_message="Plivo ended the call with cause 1", error_code="1"),
    ),
    "a stream that began": ("stream", {"Event": "StartStream"}, None),
    "a stream that is slow": ("stream", {"Event": "DegradedStream"}, None),
    "a stream that could not": (
        "stream",
        {"Event": "DroppedStream"},
        CallEnded(CALL_ID, "failed", error_message="Plivo could not stream the call's audio: no reason"),
    ),
    "a stream that failed, in the words of the guide": (
        "stream",
        {"Event": "failed", "StatusReason": "connection_failed"},
        CallEnded(CALL_ID, "failed", error_message="Plivo could not stream the call's audio: connection_failed"),
    ),
    "a machine": ("machine", {"Machine": "true", "Event": "MachineDetection"}, MachineDetected(CALL_ID)),
    "a human": ("machine", {"Machine": "False"}, CallAnswered(CALL_ID, "human")),
    "a target that did not answer": ("target", {"CallStatus": "busy"}, TransferTargetGone(CALL_ID, "busy")),
    "a text message that is queued": (
        "text",
        {"Status": "queued", "Units": "2", "TotalAmount": "0.01100"},
        TextMessageStatus(MESSAGE_ID, "sending", segments=2, cost=0.011),
    ),
    "a text message that was sent": ("text", {"Status": "sent"}, TextMessageStatus(MESSAGE_ID, "sent")),
    "a text message that was delivered": ("text", {"Status": "delivered"}, TextMessageStatus(MESSAGE_ID, "delivered")),
    "a text message that was not delivered": (
        "text",
        {"Status": "undelivered", "ErrorCode": "80"},
        TextMessageStatus(
            MESSAGE_ID, "undelivered", "the recipient's phone cannot be reached at the moment (error 80)", "80"
        ),
    ),
    "a text message that was rejected": (
        "text",
        {"Status": "rejected", "ErrorCode": "777"},
        TextMessageStatus(MESSAGE_ID, "failed", "Plivo error 777", "777"),
    ),
    "a text message to somebody who has opted out": (
        "text",
        {"Status": "failed", "ErrorCode": "200"},
        TextMessageStatus(
            MESSAGE_ID,
            "failed",
            "the recipient has opted out of text messages from this number (error 200)",
            "200",
            opted_out=True,
        ),
    ),
    "a state of text messages of the future": ("text", {"Status": "levitating"}, None),
    "an incoming text message": (
        "message",
        {"From": "15550100001", "To": "12125550100", "Text": "Hi", "Type": "sms", "MessageIntent": ""},
        TextMessageReceived(MESSAGE_ID, "+15550100001", OURS, "Hi"),
    ),
    "an incoming text message with pictures": (
        "message",
        {
            "From": "15550100001",
            "To": "12125550100",
            "Body": "Look",
            "Type": "mms",
            "MediaCount": "2",
            "Media1": "https://a/1",
            "Media2": "https://a/2",
        },
        TextMessageReceived(MESSAGE_ID, "+15550100001", OURS, "Look", ("https://a/1", "https://a/2")),
    ),
    "STOP": (
        "message",
        {"From": "15550100001", "To": "12125550100", "Text": "Unsubscribe", "MessageIntent": "optout"},
        TextMessageReceived(MESSAGE_ID, "+15550100001", OURS, "Unsubscribe", (), "stop"),
    ),
}


def sign_request(plivo: PlivoServer, path: str, form: dict[str, str]) -> CallbackRequest:
    url = f"{EVENTS}/{path}"
    return CallbackRequest("POST", url, path, sign_form(plivo.auth_token, url, form), urlencode(form).encode())


@pytest.mark.parametrize(("path", "form", "event"), TRANSLATIONS.values(), ids=TRANSLATIONS.keys())
async def test_callbacks_are_translated(
    carrier: PlivoTelephony, plivo: PlivoServer, path: str, form: dict[str, str], event: CarrierEvent | None
) -> None:
    received = await carrier.receive(
        sign_request(plivo, path, {"CallUUID": CALL_ID, "MessageUUID": MESSAGE_ID, **form})
    )
    assert received.events == (() if event is None else (event,))
    if not isinstance(event, IncomingCall):
        assert received.reply.body.endswith(b"<Response />"), "no instruction, and no reply to a text message"


@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("status", {"CallUUID": "x"}),
        ("", {"CallUUID": CALL_ID}),
        ("elsewhere", {"CallUUID": CALL_ID}),
        ("text", {"MessageUUID": "../1", "Status": "sent"}),
        ("answer/garbled", {"CallUUID": CALL_ID}),
        ("answer/eNq", {"CallUUID": CALL_ID}),
        ("introduce/", {"CallUUID": CALL_ID}),
        ("dial/15550100001", {"CallUUID": CALL_ID}),
        ("dial/15550100001/sip:ada", {"CallUUID": CALL_ID}),
    ],
)
async def test_callbacks_that_plivo_would_not_send_are_refused(
    carrier: PlivoTelephony, plivo: PlivoServer, path: str, form: dict[str, str]
) -> None:
    with pytest.raises(InvalidCallback):
        await carrier.receive(sign_request(plivo, path, form))


@pytest.mark.parametrize(("key", "accepts"), [("1", True), ("2", False), ("#", False), ("", False)])
async def test_only_one_key_accepts_a_transfer(
    carrier: PlivoTelephony, plivo: PlivoServer, key: str, accepts: bool
) -> None:
    received = await carrier.receive(sign_request(plivo, "introduced", {"CallUUID": CALL_ID, "Digits": key}))
    assert received.events == ((TransferTargetReady(CALL_ID),) if accepts else ())
    (element,) = ElementTree.fromstring(received.reply.body)  # noqa: S314  our own
    assert (element.tag, element.text) == (("MultiPartyCall", CALL_ID) if accepts else ("Hangup", None))


def create_start(extra_headers: object, encoding: str = "audio/x-mulaw") -> str:
    start = {
        "accountId": "MA",
        "streamId": "a-stream",
        "callId": CALL_ID,
        "tracks": ["inbound"],
        "mediaFormat": {"encoding": encoding, "sampleRate": 8000},
    }
    return json.dumps({"event": "start", "sequenceNumber": 1, "start": start, "extra_headers": extra_headers})


TOKEN = derive_stream_token("t", MEDIA)


@pytest.mark.parametrize(
    "headers",
    [f"token={TOKEN}", f"{{token={TOKEN}}}", f'{{"token":"{TOKEN}"}}', f"a=1;token={TOKEN}", {"token": TOKEN}],
)
def test_a_streams_token_is_read_in_each_of_plivos_notations(headers: object) -> None:
    assert PlivoCodec(TOKEN).decode(create_start(headers)) == MediaStarted(CALL_ID, "a-stream", "mulaw")


@pytest.mark.parametrize("headers", ["", "{}", "token=", f"token={'0' * 64}", f"token={TOKEN[:-1]}"])
def test_a_stream_without_its_calls_token_never_starts(headers: str) -> None:
    with pytest.raises(ValueError, match="token"):
        PlivoCodec(TOKEN).decode(create_start(headers))


def test_a_stream_in_another_encoding_never_starts() -> None:
    with pytest.raises(UnsupportedAudio, match="audio/x-l16"):
        PlivoCodec(TOKEN).decode(create_start(f"token={TOKEN}", "audio/x-l16"))


def test_our_messages_name_their_stream() -> None:
    codec = PlivoCodec(TOKEN)
    codec.decode(create_start(f"token={TOKEN}"))
    assert json.loads(codec.clear()) == {"event": "clearAudio", "streamId": "a-stream"}
    assert json.loads(codec.mark('a "mark"')) == {"event": "checkpoint", "streamId": "a-stream", "name": 'a "mark"'}
    assert codec.decode('{"event":"clearedAudio","sequenceNumber":7,"streamId":"a-stream"}') is None
    assert codec.decode('{"event":"media","media":{"track":"outbound","chunk":1,"payload":"AAAA"}}') is None
    assert codec.decode('{"event":"dtmf","dtmf":{"track":"inbound","digit":"#"}}') == DigitPressed("#")
