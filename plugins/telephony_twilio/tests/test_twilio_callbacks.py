"""Translation of Twilio's callbacks and media messages."""

import json
from urllib.parse import urlencode

import pytest
from pydantic import SecretStr
from switchboard.plugin_sdk import (
    BrowserCall,
    CallAccepted,
    CallAnswered,
    CallbackRequest,
    CalleeRinging,
    CallEnded,
    CarrierEvent,
    IncomingCall,
    InvalidCallback,
    MachineDetected,
    RecordingReady,
    TextMessageReceived,
    TextMessageStatus,
    TransferTargetReady,
)
from switchboard.plugin_sdk.json_media import derive_stream_token
from switchboard_telephony_twilio.provider import TwilioTelephony
from switchboard_telephony_twilio.settings import TwilioSettings

from tests.carriers.twilio.samples import MEDIA, OTHER_SID, SID, TEXT_SID
from tests.carriers.twilio.server import TwilioServer
from tests.carriers.twilio.wire import compute_signature
from tests.carriers.vendor import OURS

pytest_plugins = ["tests.carriers.twilio.fixtures"]
pytestmark = pytest.mark.usefixtures("short_pauses")


def failed_call(code: str, message: str) -> CallEnded:
    return CallEnded(SID, "failed", error_message=message, error_code=code)


TRANSLATIONS: dict[str, tuple[str, dict[str, str], CarrierEvent | None]] = {
    "a call that comes in": (
        "call",
        {"CallSid": SID, "From": "+15550100001", "To": OURS},
        IncomingCall(SID, "+15550100001", OURS),
    ),
    "a call whose number was attested": (
        "call",
        {"CallSid": SID, "From": "+15550100001", "To": OURS, "StirVerstat": "TN-Validation-Passed-B"},
        IncomingCall(SID, "+15550100001", OURS, metadata={"stir_shaken": "B"}),
    ),
    "a call whose number is not the caller's": (
        "call",
        {"CallSid": SID, "From": "+15550100001", "To": OURS, "StirVerstat": "TN-Validation-Failed-A"},
        IncomingCall(SID, "+15550100001", OURS, metadata={"stir_shaken": "failed"}),
    ),
    "a call from nobody": (
        "call",
        {"CallSid": SID, "From": "+266696687", "To": OURS},
        IncomingCall(SID, "anonymous", OURS),
    ),
    "a call from somebody restricted": (
        "call",
        {"CallSid": SID, "From": "+7378742833", "To": OURS},
        IncomingCall(SID, "anonymous", OURS),
    ),
    "a stream that began": ("stream", {"CallSid": SID, "StreamEvent": "stream-started"}, None),
    "a stream that could not": (
        "stream",
        {"CallSid": SID, "StreamEvent": "stream-error"},
        CallEnded(SID, "failed", error_message="Twilio could not stream the call's audio: no reason"),
    ),
    "queued": ("status", {"CallStatus": "queued"}, CallAccepted(SID)),
    "initiated": ("status", {"CallStatus": "initiated"}, CallAccepted(SID)),
    "ringing": ("status", {"CallStatus": "ringing"}, CalleeRinging(SID)),
    "answered": ("status", {"CallStatus": "in-progress"}, CallAnswered(SID)),
    "completed": ("status", {"CallStatus": "completed", "CallDuration": "17"}, CallEnded(SID, "completed", 17)),
    "busy": ("status", {"CallStatus": "busy"}, CallEnded(SID, "busy")),
    "no answer": ("status", {"CallStatus": "no-answer"}, CallEnded(SID, "no-answer")),
    "canceled": ("status", {"CallStatus": "canceled"}, CallEnded(SID, "canceled")),
    "failed": (
        "status",
        {"CallStatus": "failed", "SipResponseCode": "404"},
        failed_call("404", "the number is not in service"),
    ),
    "failed, strangely": (
        "status",
        {"CallStatus": "failed", "SipResponseCode": "699"},
        failed_call("699", "the destination's network answered with SIP code 699"),
    ),
    "failed, with Twilio's words": (
        "status",
        {"CallStatus": "failed", "ErrorCode": "13223", "ErrorMessage": "Invalid number"},
        failed_call("invalid_number", "Invalid number"),
    ),
    "failed, because no carrier of Twilio's delivers it": (
        "status",
        {"CallStatus": "failed", "ErrorCode": "13224", "ErrorMessage": "Not supported"},
        failed_call("13224", "Not supported"),
    ),
    "a state of the future": ("status", {"CallStatus": "levitating"}, None),
    "a human": ("machine", {"AnsweredBy": "human"}, CallAnswered(SID, "human")),
    "unknown": ("machine", {"AnsweredBy": "unknown"}, CallAnswered(SID)),
    "a machine": ("machine", {"AnsweredBy": "machine_start"}, MachineDetected(SID)),
    "a fax": ("machine", {"AnsweredBy": "fax"}, MachineDetected(SID)),
    "a greeting that ends in silence": (
        "machine",
        {"AnsweredBy": "machine_end_silence"},
        MachineDetected(SID, beep=True),
    ),
    "a beep": ("machine", {"AnsweredBy": "machine_end_beep"}, MachineDetected(SID, beep=True)),
    "a recording": (
        "recording",
        {"RecordingSid": OTHER_SID, "RecordingStatus": "completed"},
        RecordingReady(SID, OTHER_SID),
    ),
    "no recording": ("recording", {"RecordingSid": OTHER_SID, "RecordingStatus": "absent"}, None),
    "an incoming call": ("call", {"From": "+1555", "To": OURS}, IncomingCall(SID, "+1555", OURS)),
    "a browser's call": (
        "browser",
        {"From": "client:ada", "To": "+15550100001", "CallerId": OURS},
        BrowserCall(SID, OURS, "+15550100001", identity="ada"),
    ),
    "a text's acceptance": ("text", {"MessageStatus": "accepted"}, TextMessageStatus(TEXT_SID, "sending")),
    "a text that was sent": ("text", {"MessageStatus": "sent"}, TextMessageStatus(TEXT_SID, "sent")),
    "a text that was delivered": ("text", {"MessageStatus": "delivered"}, TextMessageStatus(TEXT_SID, "delivered")),
    "a text that was read": ("text", {"MessageStatus": "read"}, TextMessageStatus(TEXT_SID, "delivered")),
    "a text that was not delivered": (
        "text",
        {"MessageStatus": "undelivered", "ErrorCode": "30003"},
        TextMessageStatus(TEXT_SID, "undelivered", "the recipient's phone cannot be reached (error 30003)", "30003"),
    ),
    "a text that failed": (
        "text",
        {"MessageStatus": "failed", "ErrorCode": "39999"},
        TextMessageStatus(
            TEXT_SID, "failed", "Twilio error 39999, see https://www.twilio.com/docs/errors/39999", "39999"
        ),
    ),
    "a text to somebody who has opted out": (
        "text",
        {"MessageStatus": "failed", "ErrorCode": "21610"},
        TextMessageStatus(
            TEXT_SID,
            "failed",
            "the recipient has opted out of text messages from this number (error 21610)",
            "21610",
            opted_out=True,
        ),
    ),
    "a text that is scheduled": ("text", {"MessageStatus": "scheduled"}, None),
    "an incoming text with pictures": (
        "text",
        {
            "From": "+1555",
            "To": OURS,
            "Body": "Look",
            "NumMedia": "2",
            "MediaUrl0": "https://a/0",
            "MediaUrl1": "https://a/1",
        },
        TextMessageReceived(TEXT_SID, "+1555", OURS, "Look", ("https://a/0", "https://a/1")),
    ),
    "STOP": (
        "text",
        {"From": "+1555", "To": OURS, "Body": " Stop ", "NumMedia": "0"},
        TextMessageReceived(TEXT_SID, "+1555", OURS, " Stop ", (), "stop"),
    ),
    "another word for it": (
        "text",
        {"From": "+1555", "To": OURS, "Body": "Basta", "OptOutType": "STOP"},
        TextMessageReceived(TEXT_SID, "+1555", OURS, "Basta", (), "stop"),
    ),
}


def sign_request(twilio: TwilioServer, path: str, form: dict[str, str]) -> CallbackRequest:
    url = f"https://voice.example/carriers/twilio/org/events/{path}"
    return CallbackRequest(
        "POST",
        url,
        path,
        {"x-twilio-signature": compute_signature(twilio.auth_token, url, form)},
        urlencode(form).encode(),
    )


@pytest.mark.parametrize(("path", "form", "event"), TRANSLATIONS.values(), ids=TRANSLATIONS.keys())
async def test_callbacks_are_translated(
    carrier: TwilioTelephony, twilio: TwilioServer, path: str, form: dict[str, str], event: CarrierEvent | None
) -> None:
    received = await carrier.receive(sign_request(twilio, path, {"CallSid": SID, "MessageSid": TEXT_SID, **form}))
    assert received.events == (() if event is None else (event,))
    if isinstance(event, TextMessageReceived):
        assert received.reply.body.endswith(b"<Response />")


@pytest.mark.parametrize(
    ("path", "form"),
    [("status", {"CallSid": "x"}), ("", {"CallSid": SID}), ("elsewhere", {}), ("browser", {"From": "+1"})],
)
async def test_callbacks_that_twilio_would_not_send_are_refused(
    carrier: TwilioTelephony, twilio: TwilioServer, path: str, form: dict[str, str]
) -> None:
    with pytest.raises(InvalidCallback):
        await carrier.receive(sign_request(twilio, path, {"MessageSid": "x", **form}))


@pytest.mark.parametrize(
    "parameters",
    [{}, {"token": ""}, {"token": "x" * 64}, {"token": derive_stream_token("t", "wss://voice.example/media/another")}],
)
def test_a_stream_without_its_calls_token_never_starts(parameters: dict[str, str]) -> None:
    settings = TwilioSettings(account_sid="AC" + "a" * 32, auth_token=SecretStr("t"))
    codec = TwilioTelephony(settings).create_media_codec(MEDIA)
    start = {
        "accountSid": settings.account_sid, "streamSid": "MZ", "callSid": SID, "tracks": ["inbound"],
        "mediaFormat": {"encoding": "audio/x-mulaw", "sampleRate": 8000, "channels": 1}, "customParameters": parameters,
    }  # fmt: skip
    with pytest.raises(ValueError, match="token"):
        codec.decode(json.dumps({"event": "start", "start": start, "streamSid": "MZ"}))


@pytest.mark.parametrize(("key", "accepts"), [("1", True), ("2", False), ("#", False), ("", False)])
async def test_only_one_key_accepts_a_transfer(
    carrier: TwilioTelephony, twilio: TwilioServer, key: str, accepts: bool
) -> None:
    received = await carrier.receive(sign_request(twilio, "introduced", {"CallSid": SID, "Digits": key}))
    assert received.events == ((TransferTargetReady(SID),) if accepts else ())
    assert (b"<Conference" if accepts else b"<Response><Hangup /></Response>") in received.reply.body
