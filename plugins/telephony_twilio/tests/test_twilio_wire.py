"""What the plugin sends and makes of the answers: retries only where nothing can happen twice, Twilio's own errors, numbers, recordings, tokens."""

import json
from base64 import urlsafe_b64decode
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

import pytest
from pydantic import HttpUrl, SecretStr, ValidationError
from switchboard.plugin_sdk import (
    BrowserCall,
    CallAccepted,
    CallAnswered,
    CallbackUrls,
    CalleeRinging,
    CallEnded,
    CarrierEvent,
    CarrierRequest,
    ConnectMedia,
    ForwardCall,
    IncomingCall,
    InvalidCallback,
    MachineDetected,
    OutboundCall,
    OutboundTextMessage,
    OutcomeUnknown,
    ProviderError,
    RecordingReady,
    RejectCall,
    TextMessageReceived,
    TextMessageStatus,
    UnsubscribedRecipient,
    WarmTransfer,
    retries,
)
from switchboard_telephony_twilio.codec import derive_stream_token
from switchboard_telephony_twilio.provider import TwilioTelephony
from switchboard_telephony_twilio.settings import TwilioSettings

from tests.carriers.twilio.server import TwilioServer, new_sid
from tests.carriers.twilio.wire import signature
from tests.carriers.vendor import BROKEN, GARBLED, NEVER, OURS

pytest_plugins = ["tests.carriers.twilio.fixtures"]

CALLBACKS = CallbackUrls("https://voice.example/carriers/twilio/org/calls/call")
MEDIA = "wss://voice.example/media/token"
CALL = OutboundCall("call", OURS, "+15550100021", MEDIA, CALLBACKS, ring_seconds=25, max_duration_seconds=600)
TEXT = OutboundTextMessage("text", OURS, "+15550100001", "Hello", CALLBACKS)
SID, OTHER_SID = new_sid("CA"), new_sid("RE")
TEXT_SID = new_sid("SM")


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "BACKOFF_SECONDS", 0.01)
    monkeypatch.setattr(retries, "ALL_SECONDS", 1.0)


# --- what is sent ---


async def test_a_call_is_ordered_whole(carrier: TwilioTelephony, twilio: TwilioServer) -> None:
    sid = await carrier.place_call(CALL)
    assert sid in twilio.legs
    ((method, path, form),) = twilio.requests
    assert (method, path) == ("POST", f"/2010-04-01/Accounts/{twilio.account_sid}/Calls.json")
    sent = dict(form)
    twiml = sent.pop("Twiml")
    assert twiml == (
        f'<?xml version="1.0" encoding="UTF-8"?><Response><Connect><Stream statusCallback="{CALLBACKS.events}/stream" url="{MEDIA}">'
        f'<Parameter name="token" value="{derive_stream_token(twilio.auth_token, MEDIA)}" /></Stream></Connect></Response>'
    )
    events = CALLBACKS.events
    assert sent == {
        "To": "+15550100021",
        "From": OURS,
        "Timeout": "25",
        "TimeLimit": "600",
        "MachineDetection": "Enable",
        "AsyncAmd": "true",
        "AsyncAmdStatusCallback": f"{events}/machine",
        "AsyncAmdStatusCallbackMethod": "POST",
        "StatusCallback": f"{events}/status",
        "StatusCallbackMethod": "POST",
        "StatusCallbackEvent": "completed",
    }
    assert [value for name, value in form if name == "StatusCallbackEvent"] == [
        "initiated",
        "ringing",
        "answered",
        "completed",
    ]


async def test_instructions_are_markup(carrier: TwilioTelephony) -> None:
    call = IncomingCall(SID, "+15550100001", OURS)
    forwarded = await carrier.instruct(call, ForwardCall("+15550100002", OURS), CALLBACKS)
    assert (
        b'<Dial answerOnBridge="true" callerId="+12125550100" timeout="30"><Number>+15550100002</Number></Dial>'
        in forwarded.body
    )
    assert forwarded.content_type.startswith("text/xml")
    assert b'<Reject reason="busy" />' in (await carrier.instruct(call, RejectCall("busy"), CALLBACKS)).body
    recording = TwilioTelephony(carrier.settings.model_copy(update={"record_calls": True}))
    connected = (await recording.instruct(call, ConnectMedia(MEDIA), CALLBACKS)).body
    assert connected.index(f'recordingStatusCallback="{CALLBACKS.events}/recording"'.encode()) < connected.index(
        b"<Connect>"
    )


@pytest.mark.parametrize(
    ("language", "spoken"), [("en-GB", "en-GB"), ("de", "de-DE"), ("nn-NO", "nb-NO"), ("mul", None)]
)
async def test_a_target_is_told_why_in_a_language_they_have(
    carrier: TwilioTelephony, twilio: TwilioServer, language: str, spoken: str | None
) -> None:
    await carrier.start_warm_transfer(SID, WarmTransfer("+15550100021", OURS, "Ann & Bob wait.", language), CALLBACKS)
    twiml = dict(twilio.requests[-1][2])["Twiml"]
    attribute = "" if spoken is None else f' language="{spoken}"'
    assert (
        f'<Say{attribute}>Ann &amp; Bob wait.</Say><Redirect method="POST">{CALLBACKS.events}/introduced</Redirect>'
        in twiml
    )


# --- retries ---


async def test_a_call_that_twilio_failed_to_place_is_not_asked_for_again_but_may_be_by_others(
    carrier: TwilioTelephony, twilio: TwilioServer
) -> None:
    twilio.failures["POST", "Calls"] = [500]
    with pytest.raises(ProviderError) as failure:
        await carrier.place_call(CALL)
    assert (failure.value.code, failure.value.retryable, isinstance(failure.value, OutcomeUnknown)) == (
        "20500",
        True,
        False,
    )
    assert len(twilio.requests) == 1


@pytest.mark.parametrize("failure", [BROKEN, NEVER, GARBLED])
@pytest.mark.parametrize("collection", ["Calls", "Messages"])
async def test_what_may_have_been_done_is_never_asked_for_again(
    carrier: TwilioTelephony, twilio: TwilioServer, collection: str, failure: int
) -> None:
    twilio.failures["POST", collection] = [failure]
    with pytest.raises(OutcomeUnknown):
        await (carrier.place_call(CALL) if collection == "Calls" else carrier.send_text_message(TEXT))
    assert len(twilio.requests) == 1


async def test_too_many_requests_are_sent_again_a_little_later(carrier: TwilioTelephony, twilio: TwilioServer) -> None:
    twilio.failures["POST", "Calls"] = [429, 429]
    assert await carrier.place_call(CALL) in twilio.legs
    assert (len(twilio.requests), len(twilio.legs)) == (3, 1)
    twilio.failures["POST", "Messages"] = [429] * 3
    with pytest.raises(ProviderError) as refusal:
        await carrier.send_text_message(TEXT)
    assert (refusal.value.code, refusal.value.retryable) == ("20429", True)


@pytest.mark.parametrize("failure", [500, 503, BROKEN])
async def test_what_does_no_harm_twice_is_asked_for_again(
    carrier: TwilioTelephony, twilio: TwilioServer, failure: int
) -> None:
    sid = await carrier.place_call(CALL)
    twilio.failures["POST", sid] = [failure]
    await carrier.hang_up(sid)
    assert [path.rpartition("/")[2] for _, path, _ in twilio.requests] == ["Calls.json", f"{sid}.json", f"{sid}.json"]


async def test_a_twilio_that_cannot_be_reached_has_placed_nothing(twilio: TwilioServer) -> None:
    settings = TwilioSettings(
        account_sid=twilio.account_sid, auth_token=SecretStr("x"), base_url=HttpUrl("http://127.0.0.1:9")
    )
    away = TwilioTelephony(settings)
    await away.open()
    with pytest.raises(ProviderError, match="cannot be reached") as failure:
        await away.place_call(CALL)
    assert (failure.value.retryable, isinstance(failure.value, OutcomeUnknown)) == (True, False)
    await away.close()


# --- errors ---


async def test_twilios_own_code_and_words_are_told(carrier: TwilioTelephony, twilio: TwilioServer) -> None:
    with pytest.raises(ProviderError) as refusal:
        await carrier.place_call(replace(CALL, to_number="+15550100024"))
    assert refusal.value.message == "Twilio: 'To' phone number cannot be reached (error 21214)"
    assert (refusal.value.code, refusal.value.retryable) == ("21214", False)
    with pytest.raises(ProviderError, match="error 21211") as no_number:
        await carrier.place_call(replace(CALL, to_number="+15550100025"))
    assert (no_number.value.code, no_number.value.retryable) == ("invalid_number", False)
    with pytest.raises(UnsubscribedRecipient) as opted_out:
        await carrier.send_text_message(replace(TEXT, to_number="+15550100083"))
    assert opted_out.value.code == "21610"


async def test_what_only_this_account_may_not_do_another_carrier_may(carrier: TwilioTelephony) -> None:
    with pytest.raises(ProviderError, match="not yet verified") as refusal:
        await carrier.place_call(replace(CALL, from_number="+15550100009"))
    assert (refusal.value.code, refusal.value.retryable) == ("21210", True)


async def test_a_wrong_credential_is_told_by_check(twilio: TwilioServer) -> None:
    settings = TwilioSettings(
        account_sid=twilio.account_sid, auth_token=SecretStr("wrong"), base_url=HttpUrl(twilio.address)
    )
    stranger = TwilioTelephony(settings)
    await stranger.open()
    with pytest.raises(ProviderError, match="Authenticate") as refusal:
        await stranger.check()
    assert (refusal.value.code, refusal.value.retryable) == ("20003", False)
    await stranger.close()


@pytest.mark.parametrize(
    "settings",
    [
        {"account_sid": "AC1"},
        {"api_sid": "SK" + "a" * 32},
        {"application_sid": "x"},
        {"base_url": "ftp://x"},
        {"nonsense": 1},
        {"auth_token": ""},
    ],
)
def test_settings_that_cannot_work_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        TwilioSettings.model_validate({"account_sid": "AC" + "a" * 32, "auth_token": "secret", **settings})


# --- callbacks ---


def failed(code: str, message: str) -> CallEnded:
    return CallEnded(SID, "failed", error_message=message, error_code=code)


TOLD: dict[str, tuple[str, dict[str, str], CarrierEvent | None]] = {
    "a call that comes in": (
        "call",
        {"CallSid": SID, "From": "+15550100001", "To": OURS},
        IncomingCall(SID, "+15550100001", OURS),
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
        failed("404", "the number is not in service"),
    ),
    "failed, strangely": (
        "status",
        {"CallStatus": "failed", "SipResponseCode": "699"},
        failed("699", "the destination's network answered with SIP code 699"),
    ),
    "failed, with Twilio's words": (
        "status",
        {"CallStatus": "failed", "ErrorCode": "13224", "ErrorMessage": "Invalid number"},
        failed("invalid_number", "Invalid number"),
    ),
    "a state of the future": ("status", {"CallStatus": "levitating"}, None),
    "a human": ("machine", {"AnsweredBy": "human"}, CallAnswered(SID, "human")),
    "unknown": ("machine", {"AnsweredBy": "unknown"}, CallAnswered(SID)),
    "a machine": ("machine", {"AnsweredBy": "machine_start"}, MachineDetected(SID)),
    "a fax": ("machine", {"AnsweredBy": "fax"}, MachineDetected(SID)),
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
            "the recipient has opted out of texts from this number (error 21610)",
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


def signed(twilio: TwilioServer, path: str, form: dict[str, str]) -> CarrierRequest:
    url = f"https://voice.example/carriers/twilio/org/events/{path}"
    return CarrierRequest(
        "POST", url, path, {"x-twilio-signature": signature(twilio.auth_token, url, form)}, urlencode(form).encode()
    )


@pytest.mark.parametrize(("path", "form", "event"), TOLD.values(), ids=TOLD.keys())
async def test_callbacks_are_translated(
    carrier: TwilioTelephony, twilio: TwilioServer, path: str, form: dict[str, str], event: CarrierEvent | None
) -> None:
    received = await carrier.receive(signed(twilio, path, {"CallSid": SID, "MessageSid": TEXT_SID, **form}))
    assert received.events == (() if event is None else (event,))
    if isinstance(event, TextMessageReceived):
        assert received.reply.body.endswith(b"<Response />")


@pytest.mark.parametrize(
    ("path", "form"),
    [("status", {"CallSid": "x"}), ("", {"CallSid": SID}), ("elsewhere", {}), ("browser", {"From": "+1"})],
)
async def test_what_twilio_would_not_tell_is_refused(
    carrier: TwilioTelephony, twilio: TwilioServer, path: str, form: dict[str, str]
) -> None:
    with pytest.raises(InvalidCallback):
        await carrier.receive(signed(twilio, path, {"MessageSid": "x", **form}))


# --- media ---


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


# --- numbers, recordings, tokens ---


async def test_numbers_are_searched_where_they_are(carrier: TwilioTelephony, twilio: TwilioServer) -> None:
    (british,) = await carrier.search_numbers(country="GB", area_code="020", limit=1)
    assert british.phone_number.startswith("+4420")
    assert (british.sms, british.mms, british.monthly_cost) == (True, False, 1.15)
    assert await carrier.search_numbers(country="FR", area_code=None, limit=5) == []
    queries = [dict(form) for _, path, form in twilio.requests if "AvailablePhoneNumbers/GB/Local" in path]
    assert queries == [{"Contains": "+4420%", "VoiceEnabled": "true", "PageSize": "1"}]


async def test_a_number_of_the_account_is_directed_to_us_and_not_bought(
    carrier: TwilioTelephony, twilio: TwilioServer
) -> None:
    number = twilio.numbers[OURS]
    number.elsewhere = {
        "VoiceApplicationSid": new_sid("AP"),
        "SmsApplicationSid": new_sid("AP"),
        "TrunkSid": new_sid("TK"),
    }
    bought = await carrier.buy_number(OURS, CALLBACKS)
    assert (bought.carrier_number_id, twilio.purchases) == (number.sid, 0)
    assert (number.voice_url, number.elsewhere) == (f"{CALLBACKS.events}/call", {})


async def test_a_purchase_whose_answer_was_lost_is_found_again(carrier: TwilioTelephony, twilio: TwilioServer) -> None:
    twilio.failures["POST", "IncomingPhoneNumbers"] = [BROKEN]
    with pytest.raises(ProviderError) as lost:
        await carrier.buy_number("+12125550103", CALLBACKS)
    assert lost.value.retryable
    bought = await carrier.buy_number("+12125550103", CALLBACKS)
    assert (bought.phone_number, twilio.purchases) == ("+12125550103", 1)


async def test_a_recording_is_streamed_in_parts_from_where_it_is_kept(
    carrier: TwilioTelephony, twilio: TwilioServer
) -> None:
    twilio.recordings[OTHER_SID] = bytes(range(256)) * 1000
    whole = await carrier.fetch_recording(OTHER_SID, None)
    assert (whole.status, whole.content_type, whole.content_length) == (200, "audio/x-wav", 256_000)
    assert b"".join([chunk async for chunk in whole.chunks]) == twilio.recordings[OTHER_SID]
    part = await carrier.fetch_recording(OTHER_SID, "bytes=256-511")
    assert (part.status, part.content_range, part.content_length) == (206, "bytes 256-511/256000", 256)
    assert b"".join([chunk async for chunk in part.chunks]) == bytes(range(256))
    with pytest.raises(ProviderError, match="does not have the recording") as gone:
        await carrier.fetch_recording(new_sid("RE"), None)
    assert not gone.value.retryable


def browser_carrier(**settings: object) -> TwilioTelephony:
    return TwilioTelephony(
        TwilioSettings.model_validate({"account_sid": "AC" + "a" * 32, "auth_token": "secret", **settings})
    )


@pytest.mark.parametrize(("platform", "push"), [("web", None), ("ios", "CR" + "1" * 32), ("android", "CR" + "2" * 32)])
async def test_a_browser_token_has_twilios_format_and_grants(platform: Any, push: str | None) -> None:
    carrier = browser_carrier(
        api_sid="SK" + "b" * 32, api_secret="c" * 32, application_sid="AP" + "d" * 32,
        ios_push_credential_sid="CR" + "1" * 32, android_push_credential_sid="CR" + "2" * 32,
    )  # fmt: skip
    token = await carrier.create_browser_token(identity="key_1", platform=platform)
    header, payload = (json.loads(urlsafe_b64decode(part + "==")) for part in token.token.split(".")[:2])
    assert header == {"typ": "JWT", "alg": "HS256", "cty": "twilio-fpa;v=1"}
    assert (payload["iss"], payload["sub"], payload["exp"] - payload["nbf"]) == (
        "SK" + "b" * 32,
        "AC" + "a" * 32,
        token.expires_in_seconds,
    )
    voice = {
        "incoming": {"allow": True},
        "outgoing": {"application_sid": "AP" + "d" * 32},
        **({"push_credential_sid": push} if push else {}),
    }
    assert payload["grants"] == {"identity": "key_1", "voice": voice}


async def test_a_token_needs_its_settings() -> None:
    with pytest.raises(ProviderError, match="api_sid") as refusal:
        await browser_carrier().create_browser_token(identity="x", platform="web")
    assert not refusal.value.retryable
