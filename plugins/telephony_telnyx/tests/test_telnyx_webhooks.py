"""Translation of Telnyx's webhooks and media messages."""

import json
from base64 import b64encode

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from G722 import G722
from pydantic import SecretStr
from switchboard.plugin_sdk import (
    BrowserCall,
    CallAnswered,
    CallbackRequest,
    CalleeRinging,
    CallEnded,
    CarrierEvent,
    IncomingCall,
    InvalidCallback,
    MachineDetected,
    MediaStarted,
    RecordingReady,
    TextMessageReceived,
    TextMessageStatus,
    UnsupportedAudio,
)
from switchboard.plugin_sdk.audio import decode_audio, encode_audio
from switchboard_telephony_telnyx.codec import TelnyxCodec
from switchboard_telephony_telnyx.provider import TelnyxTelephony
from switchboard_telephony_telnyx.settings import TelnyxSettings
from switchboard_telephony_telnyx.state import CallState, digest_media_url, write_state

from tests.carriers.telnyx.wire import encode_webhook, sign_headers
from tests.carriers.vendor import OURS, JsonBody

KEY, API_KEY, APPLICATION, BROWSERS = Ed25519PrivateKey.generate(), "KEY0123456789", "1", "2"
REFERENCE = "01a1fed0-0000-7000-8000-000000000001"
URL = f"https://voice.example/carriers/telnyx/org/calls/{REFERENCE}"
MEDIA = "wss://voice.example/media/token"
ID, LEG, TEXT_ID = "v3:call", "a-leg", "a-text"


@pytest.fixture
def carrier() -> TelnyxTelephony:
    public_key = b64encode(KEY.public_key().public_bytes_raw()).decode()
    settings = TelnyxSettings(
        api_key=SecretStr(API_KEY), public_key=public_key, connection_id=APPLICATION, credential_connection_id=BROWSERS
    )
    return TelnyxTelephony(settings)


def fail_message(code: str, message: str) -> CallEnded:
    return CallEnded(ID, "failed", error_message=message, error_code=code)


def end_call(cause: str, sip_code: str = "unspecified") -> tuple[str, JsonBody]:
    return "call.hangup", {
        "hangup_cause": cause,
        "sip_hangup_cause": sip_code,
        "hangup_source": "callee",
        "state": "hangup",
    }


def build_text_event(status: str, **more: object) -> tuple[str, JsonBody]:
    return "message.finalized", {"id": TEXT_ID, "to": [{"phone_number": "+1555", "status": status}], **more}


def build_problem(code: str, title: str, detail: str | None = None) -> JsonBody:
    return {"errors": [{"code": code, "title": title, **({"detail": detail} if detail else {})}]}


def build_incoming_call(**more: object) -> tuple[str, JsonBody]:
    return "message.received", {
        "id": TEXT_ID,
        "from": {"phone_number": "+1555"},
        "to": [{"phone_number": OURS}],
        "text": "Hi",
        **more,
    }


WEBHOOKS: dict[str, tuple[tuple[str, JsonBody], CarrierEvent | None]] = {
    "dialed": (("call.initiated", {"direction": "outgoing", "state": "bridging"}), CalleeRinging(ID)),
    "answered": (("call.answered", {"state": "answered"}), CallAnswered(ID)),
    "normal clearing": (end_call("normal_clearing"), CallEnded(ID, "completed")),
    "the time limit": (end_call("time_limit"), CallEnded(ID, "completed")),
    "an end of which little is known": (
        (
            "call.hangup",
            {
                "hangup_cause": "user_busy",
                **dict.fromkeys(("from", "to", "state", "sip_hangup_cause", "custom_headers")),
            },
        ),
        CallEnded(ID, "busy"),
    ),
    "busy": (end_call("user_busy", "486"), CallEnded(ID, "busy")),
    "busy everywhere": (end_call("unspecified", "600"), CallEnded(ID, "busy")),
    "a timeout": (end_call("timeout"), CallEnded(ID, "no-answer")),
    "no answer": (end_call("no_answer", "480"), CallEnded(ID, "no-answer")),
    "canceled": (end_call("originator_cancel", "487"), CallEnded(ID, "canceled")),
    "rejected": (end_call("call_rejected", "603"), fail_message("603", "the person declined the call")),
    "rejected without a code": (
        end_call("call_rejected"),
        fail_message("call_rejected", "the destination rejected the call"),
    ),
    "not found": (end_call("not_found", "404"), fail_message("404", "the number is not in service")),
    "unspecified": (end_call("unspecified"), fail_message("unspecified", "Telnyx did not say why the call failed")),
    "a strange code": (
        end_call("unspecified", "699"),
        fail_message("699", "the destination's network answered with SIP code 699"),
    ),
    "a cause of the future": (end_call("boredom"), fail_message("boredom", "Telnyx ended the call: boredom")),
    "a human": (("call.machine.detection.ended", {"result": "human"}), CallAnswered(ID, "human")),
    "a machine": (("call.machine.detection.ended", {"result": "machine"}), MachineDetected(ID)),
    "who knows": (("call.machine.detection.ended", {"result": "not_sure"}), CallAnswered(ID)),
    "a household": (("call.machine.premium.detection.ended", {"result": "human_residence"}), CallAnswered(ID, "human")),
    "a company": (("call.machine.premium.detection.ended", {"result": "human_business"}), CallAnswered(ID, "human")),
    "silence": (("call.machine.premium.detection.ended", {"result": "silence"}), CallAnswered(ID)),
    "a fax": (("call.machine.premium.detection.ended", {"result": "fax_detected"}), MachineDetected(ID)),
    "a beep": (("call.machine.greeting.ended", {"result": "beep_detected"}), MachineDetected(ID, beep=True)),
    "a premium beep": (
        ("call.machine.premium.greeting.ended", {"result": "beep_detected"}),
        MachineDetected(ID, beep=True),
    ),
    "no beep": (("call.machine.greeting.ended", {"result": "ended"}), MachineDetected(ID, beep=True)),
    "perhaps an end": (("call.machine.greeting.ended", {"result": "not_sure"}), None),
    "a recording": (("call.recording.saved", {"call_leg_id": LEG, "channels": "dual"}), RecordingReady(ID, LEG)),
    "a key, which the stream tells": (("call.dtmf.received", {"digit": "5"}), None),
    "an event of the future": (("call.levitated", {}), None),
    "a text in a queue": (build_text_event("queued"), TextMessageStatus(TEXT_ID, "sending")),
    "a text on its way": (build_text_event("sending"), TextMessageStatus(TEXT_ID, "sending")),
    "a text that was sent": (
        build_text_event("sent", parts=2, cost={"amount": "0.0051", "currency": "USD"}),
        TextMessageStatus(TEXT_ID, "sent", segments=2, cost=0.0051),
    ),
    "a text of which little is known": (
        build_text_event(
            "delivered",
            cost={"amount": None, "currency": "USD"},
            **dict.fromkeys(("from", "media", "errors", "parts", "text")),
        ),
        TextMessageStatus(TEXT_ID, "delivered"),
    ),
    "a text whose cost is a number": (
        build_text_event("sent", cost={"amount": 0.0051, "currency": "USD"}),
        TextMessageStatus(TEXT_ID, "sent", cost=0.0051),
    ),
    "a text that was delivered": (build_text_event("delivered"), TextMessageStatus(TEXT_ID, "delivered")),
    "a text of which nothing is heard": (build_text_event("delivery_unconfirmed"), TextMessageStatus(TEXT_ID, "sent")),
    "a text that was not delivered": (
        build_text_event("delivery_failed", **build_problem("40008", "Undeliverable", "Not accepted.")),
        TextMessageStatus(TEXT_ID, "undelivered", "Undeliverable: Not accepted.", "40008"),
    ),
    "a text that came too late": (
        build_text_event("expired"),
        TextMessageStatus(TEXT_ID, "undelivered", "Telnyx did not say why"),
    ),
    "a text that failed": (
        build_text_event("sending_failed", **build_problem("40010", "Not 10DLC registered")),
        TextMessageStatus(TEXT_ID, "failed", "Not 10DLC registered", "40010"),
    ),
    "a text to somebody who has opted out": (
        build_text_event("sending_failed", **build_problem("40300", "Blocked due to STOP message")),
        TextMessageStatus(TEXT_ID, "failed", "Blocked due to STOP message", "40300", opted_out=True),
    ),
    "a text that was blocked otherwise": (
        build_text_event("sending_failed", **build_problem("40300", "Not allowed")),
        TextMessageStatus(TEXT_ID, "failed", "Not allowed", "40300"),
    ),
    "a text in a state of the future": (build_text_event("pondering"), None),
    "an incoming text with pictures": (
        build_incoming_call(
            media=[{"url": "https://a/0", "content_type": "image/jpeg"}, {"url": "https://a/1"}], type="MMS"
        ),
        TextMessageReceived(TEXT_ID, "+1555", OURS, "Hi", ("https://a/0", "https://a/1")),
    ),
    "an incoming text without words": (build_incoming_call(text=None), TextMessageReceived(TEXT_ID, "+1555", OURS, "")),
    "STOP": (
        build_incoming_call(autoresponse_type="STOP"),
        TextMessageReceived(TEXT_ID, "+1555", OURS, "Hi", (), "stop"),
    ),
    "START": (
        build_incoming_call(autoresponse_type="START"),
        TextMessageReceived(TEXT_ID, "+1555", OURS, "Hi", (), "start"),
    ),
    "HELP": (
        build_incoming_call(autoresponse_type="HELP"),
        TextMessageReceived(TEXT_ID, "+1555", OURS, "Hi", (), "help"),
    ),
}


def sign_request(event_type: str, payload: JsonBody) -> CallbackRequest:
    body = encode_webhook(event_type, payload)
    return CallbackRequest(
        "POST", URL, "", {name.lower(): value for name, value in sign_headers(KEY, body).items()}, body
    )


@pytest.mark.parametrize(("webhook", "event"), WEBHOOKS.values(), ids=WEBHOOKS.keys())
async def test_webhooks_are_translated(
    carrier: TelnyxTelephony, webhook: tuple[str, JsonBody], event: CarrierEvent | None
) -> None:
    name, payload = webhook
    if not name.startswith("message."):
        state = write_state(API_KEY, CallState(reference=REFERENCE, media=digest_media_url(MEDIA)))
        payload = {"call_control_id": ID, "client_state": state, **payload}
    assert (await carrier.receive(sign_request(name, payload))).events == (() if event is None else (event,))


async def test_inbound_calls_are_classified(carrier: TelnyxTelephony) -> None:
    call: JsonBody = {
        "call_control_id": ID,
        "connection_id": APPLICATION,
        "from": "+1555",
        "to": OURS,
        "direction": "incoming",
        "state": "parked",
    }
    assert (await carrier.receive(sign_request("call.initiated", call))).events == (IncomingCall(ID, "+1555", OURS),)
    for validated, verdict in ((True, "A"), (False, "failed")):
        signed = {**call, "shaken_stir_attestation": "A", "shaken_stir_validated": validated}
        (announced,) = (await carrier.receive(sign_request("call.initiated", signed))).events
        assert announced == IncomingCall(ID, "+1555", OURS, metadata={"stir_shaken": verdict})
    from_page = {
        **call,
        "connection_id": BROWSERS,
        "from": OURS,
        "to": "+1555",
        "direction": "outgoing",
        "caller_id_name": "ada",
    }
    assert (await carrier.receive(sign_request("call.initiated", from_page))).events == (
        BrowserCall(ID, OURS, "+1555", identity="ada"),
    )
    for rung in ({"state": "bridging", "direction": "incoming"}, {"state": "parked", "direction": "incoming"}):
        assert (await carrier.receive(sign_request("call.initiated", {**from_page, **rung}))).events == ()
    dialed_by_telnyx = {**from_page, "state": "bridging"}
    assert (await carrier.receive(sign_request("call.initiated", dialed_by_telnyx))).events == ()


async def test_a_recording_of_an_inbound_call_is_identified_by_its_state(carrier: TelnyxTelephony) -> None:
    saved: JsonBody = {"call_leg_id": LEG, "client_state": write_state(API_KEY, CallState(call_id=ID))}
    assert (await carrier.receive(sign_request("call.recording.saved", saved))).events == (RecordingReady(ID, LEG),)
    with pytest.raises(InvalidCallback):
        await carrier.receive(sign_request("call.recording.saved", {}))


# --- media ---


def build_start_message(state: CallState | None, **media_format: object) -> str:
    message = {
        "call_control_id": ID, "client_state": write_state(API_KEY, state) if state else None,
        "media_format": {"encoding": "PCMU", "sample_rate": 8000, "channels": 1, **media_format},
    }  # fmt: skip
    return json.dumps({"event": "start", "start": message, "stream_id": "s"})


@pytest.mark.parametrize(
    "state",
    [None, CallState(), CallState(media="x"), CallState(media=digest_media_url("wss://voice.example/media/another"))],
)
def test_a_stream_without_its_calls_state_never_starts(state: CallState | None) -> None:
    with pytest.raises(ValueError, match="state"):
        TelnyxCodec(API_KEY, MEDIA).decode(build_start_message(state))


@pytest.mark.parametrize(
    "media_format", [{"encoding": "OPUS"}, {"encoding": "PCMU", "sample_rate": 16000}, {"channels": 2}]
)
def test_a_stream_that_cannot_be_decoded_is_refused_at_its_start(media_format: dict[str, object]) -> None:
    state = CallState(media=digest_media_url(MEDIA))
    with pytest.raises(UnsupportedAudio, match="cannot be decoded"):
        TelnyxCodec(API_KEY, MEDIA).decode(build_start_message(state, **media_format))


@pytest.mark.parametrize(("encoding", "sample_rate"), [("PCMU", 8000), ("PCMA", 8000), ("G722", 8000), ("G722", 16000)])
def test_a_callers_own_codec_is_decoded(encoding: str, sample_rate: int) -> None:
    tone = (8000 * np.sin(np.arange(8000) * 2 * np.pi * 440 / 8000)).astype(np.int16)
    sent = {
        "PCMU": encode_audio(tone, "mulaw"),
        "PCMA": encode_audio(tone, "alaw"),
        "G722": bytes(G722(8000, 64000).encode(tone.tolist())),
    }[encoding]
    codec = TelnyxCodec(API_KEY, MEDIA)
    state = CallState(media=digest_media_url(MEDIA))
    start = build_start_message(state, encoding=encoding, sample_rate=sample_rate)
    assert codec.decode(start) == MediaStarted(ID, "s", "mulaw")
    heard = b""
    for place in range(0, len(sent), 160):
        chunk = {"track": "inbound", "payload": b64encode(sent[place : place + 160]).decode()}
        audio = codec.decode(json.dumps({"event": "media", "media": chunk, "stream_id": "s"}))
        assert isinstance(audio, bytes)
        heard += audio
    # G.722's filter delays by some samples.
    samples = decode_audio(heard, "mulaw").astype(np.float64)
    assert len(samples) == len(tone)
    best = max(np.corrcoef(samples[delay:], tone[: len(tone) - delay])[0, 1] for delay in range(30))
    assert best > 0.99


ORDERS: dict[str, tuple[list[int], list[int]]] = {
    "as they were sent": ([1, 2, 3], [1, 2, 3]),
    "from the middle": ([7, 8], [7, 8]),
    "one overtaken": ([1, 3, 2, 4], [1, 2, 3, 4]),
    "backwards": ([1, 4, 3, 2, 5], [1, 2, 3, 4, 5]),
    "one lost": ([1, 3, 4, 5, 6, 7], [1, 3, 4, 5, 6, 7]),
    "one much too late": ([1, 3, 4, 5, 6, 2, 7], [1, 3, 4, 5, 6, 7]),
    "one twice": ([1, 2, 2, 3], [1, 2, 3]),
    "counted from the beginning again": ([100, 101, 1, 2, 3], [100, 101, 1, 2, 3]),
}


@pytest.mark.parametrize(("sent", "received"), ORDERS.values(), ids=ORDERS.keys())
def test_reordered_frames_are_sorted(sent: list[int], received: list[int]) -> None:
    codec, audio = TelnyxCodec("", MEDIA), b""
    for number in sent:
        chunk = {"track": "inbound", "chunk": str(number), "payload": b64encode(bytes([number])).decode()}
        message = codec.decode(json.dumps({"event": "media", "media": chunk, "stream_id": "s"}))
        assert message is None or isinstance(message, bytes)
        audio += message or b""
    assert list(audio) == received


def test_a_restarted_stream_is_heard_from_its_first_frame() -> None:
    codec, state = TelnyxCodec(API_KEY, MEDIA), CallState(media=digest_media_url(MEDIA))
    for _ in range(2):
        codec.decode(build_start_message(state))
        for number in (1, 2, 3):
            chunk = {"track": "inbound", "chunk": number, "payload": b64encode(bytes([number])).decode()}
            message = json.dumps({"event": "media", "media": chunk, "stream_id": "s"})
            assert codec.decode(message) == bytes([number]), "a count may be a number"


def test_own_audio_and_errors_are_not_the_callers_audio() -> None:
    codec = TelnyxCodec("", MEDIA)
    assert (
        codec.decode('{"event":"media","media":{"track":"outbound","chunk":"1","payload":"AAAA"},"stream_id":"s"}')
        is None
    )
    assert (
        codec.decode(
            '{"event":"error","payload":{"code":100005,"title":"rate_limit_reached","detail":"x"},"stream_id":"s"}'
        )
        is None
    )
