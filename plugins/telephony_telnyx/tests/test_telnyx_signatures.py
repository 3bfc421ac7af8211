"""Signatures of webhooks: recent ones of Telnyx are accepted; altered, replayed, and forged ones are refused."""

import json
import time
from base64 import b64decode, b64encode, urlsafe_b64encode
from collections.abc import Callable
from dataclasses import replace

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pydantic import SecretStr
from switchboard.plugin_sdk import CallAnswered, CallbackRequest, InvalidCallback
from switchboard_telephony_telnyx.provider import TelnyxTelephony
from switchboard_telephony_telnyx.settings import TelnyxSettings
from switchboard_telephony_telnyx.state import CallState, write_state

from tests.carriers.telnyx.wire import encode_webhook, sign_headers
from tests.carriers.vendor import JsonBody

KEY, OTHER_KEY = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
API_KEY = "KEY0123456789"
CALL = "01a1fed0-0000-7000-8000-000000000001"
OTHER_CALL = CALL[:-1] + "2"
URL = f"https://voice.example/carriers/telnyx/019a/calls/{CALL}"
ID = "v3:call"
PAYLOAD: JsonBody = {
    "call_control_id": ID,
    "client_state": write_state(API_KEY, CallState(reference=CALL)),
    "state": "answered",
}
BODY = encode_webhook("call.answered", PAYLOAD)
TEXT: JsonBody = {
    "id": "text",
    "to": [{"phone_number": "+15550100001", "status": "sent"}],
    "webhook_url": URL.replace("calls", "texts"),
}


@pytest.fixture
def carrier() -> TelnyxTelephony:
    public_key = b64encode(KEY.public_key().public_bytes_raw()).decode()
    return TelnyxTelephony(TelnyxSettings(api_key=SecretStr(API_KEY), public_key=public_key, connection_id="1"))


def sign_request(
    body: bytes = BODY, *, url: str = URL, key: Ed25519PrivateKey = KEY, age: float = 0
) -> CallbackRequest:
    headers = {name.lower(): value for name, value in sign_headers(key, body, at=time.time() - age).items()}
    return CallbackRequest("POST", url, "", headers, body)


def replace_header(name: str, value: str | None) -> CallbackRequest:
    request = sign_request()
    headers = {**request.headers, f"telnyx-{name}": value or ""}
    if value is None:
        del headers[f"telnyx-{name}"]
    return replace(request, headers=headers)


def change_request(change: Callable[[str], str], name: str = "signature-ed25519") -> CallbackRequest:
    return replace_header(name, change(sign_request().headers[f"telnyx-{name}"]))


def alter_body(old: bytes, new: bytes) -> CallbackRequest:
    assert old in BODY
    return replace(sign_request(), body=BODY.replace(old, new))


def urlsafe(signature: str) -> str:
    return urlsafe_b64encode(b"\xff" * 3 + b64decode(signature)[3:]).decode()


GENUINE: dict[str, Callable[[], CallbackRequest]] = {
    "as it is": sign_request,
    "some minutes ago": lambda: sign_request(age=290),
    "by a clock that is ahead": lambda: sign_request(age=-290),
    "written otherwise": lambda: sign_request(json.dumps(json.loads(BODY), indent=2).encode()),
    "with fields of the future": lambda: sign_request(
        encode_webhook("call.answered", {**PAYLOAD, "mood": {"good": True}})
    ),
    "behind a proxy": lambda: sign_request(url=URL.replace("voice.example", "voice.example:8443")),
}


@pytest.mark.parametrize("request_made", GENUINE.values(), ids=GENUINE.keys())
async def test_genuine_webhooks_are_accepted(
    carrier: TelnyxTelephony, request_made: Callable[[], CallbackRequest]
) -> None:
    assert (await carrier.receive(request_made())).events == (CallAnswered(ID),)


ATTACKS: dict[str, Callable[[], CallbackRequest]] = {
    "unsigned": lambda: replace(sign_request(), headers={}),
    "without a signature": lambda: replace_header("signature-ed25519", None),
    "without a time": lambda: replace_header("timestamp", None),
    "an empty signature": lambda: replace_header("signature-ed25519", ""),
    "a malformed signature": lambda: replace_header("signature-ed25519", "not base64 é"),
    "a truncated signature": lambda: change_request(lambda signature: signature[:-4]),
    "a signature in another case": lambda: change_request(str.swapcase),
    "a signature in hexadecimal": lambda: change_request(lambda signature: b64decode(signature).hex()),
    "a signature for addresses": lambda: change_request(urlsafe),
    "the signature of nothing": lambda: change_request(lambda _: b64encode(bytes(64)).decode()),
    "the body's signature without its time": lambda: change_request(lambda _: b64encode(KEY.sign(BODY)).decode()),
    "signed with another account's key": lambda: sign_request(key=OTHER_KEY),
    "stale": lambda: sign_request(age=310),
    "of the future": lambda: sign_request(age=-310),
    "stale, with a new time": lambda: replace(
        sign_request(age=900), headers={**sign_request(age=900).headers, "telnyx-timestamp": str(int(time.time()))}
    ),
    "a malformed time": lambda: replace_header("timestamp", "yesterday"),
    "a time with a sign": lambda: change_request(lambda timestamp: f"+{timestamp}", "timestamp"),
    "a time in other digits": lambda: change_request(
        lambda timestamp: timestamp.translate({ord("1"): "١"}), "timestamp"
    ),
    "an endless time": lambda: replace_header("timestamp", "9" * 5000),
    "another call": lambda: alter_body(b"v3:call", b"v3:cale"),
    "another event": lambda: alter_body(b"call.answered", b"call.hangup"),
    "a space more": lambda: replace(sign_request(), body=BODY + b" "),
    "a byte less": lambda: replace(sign_request(), body=BODY[:-1]),
    "no body": lambda: replace(sign_request(), body=b""),
    "the time moved into the body": lambda: replace(
        sign_request(), body=sign_request().headers["telnyx-timestamp"].encode() + b"|" + BODY
    ),
    "replayed at another call's address": lambda: sign_request(url=URL.replace(CALL, OTHER_CALL)),
    "replayed at another text's address": lambda: sign_request(
        encode_webhook("message.sent", TEXT), url=URL.replace(f"calls/{CALL}", f"texts/{OTHER_CALL}")
    ),
    "signed, and no JSON": lambda: sign_request(b"hello=world"),
    "signed, and no webhook": lambda: sign_request(b"[]"),
    "signed, and about no call": lambda: sign_request(encode_webhook("call.hangup", {})),
    "signed, and about no text": lambda: sign_request(encode_webhook("message.received", {"id": "x"})),
}


@pytest.mark.parametrize("request_made", ATTACKS.values(), ids=ATTACKS.keys())
async def test_forged_webhooks_are_refused(
    carrier: TelnyxTelephony, request_made: Callable[[], CallbackRequest]
) -> None:
    with pytest.raises(InvalidCallback) as refusal:
        await carrier.receive(request_made())
    assert API_KEY not in str(refusal.value)


FORGED = [
    None,
    "",
    "x",
    "e30=",
    b64encode(b"\x00" * 32 + b'{"forward_to":"+15550100001"}').decode(),
    write_state("another key", CallState(reference=CALL)),
]


@pytest.mark.parametrize("state", FORGED)
async def test_a_foreign_state_causes_no_command(carrier: TelnyxTelephony, state: str | None) -> None:
    """A browser may send any state with its call: it neither forwards nor ends another call, nor poses as a call of
    ours.
    """
    body = encode_webhook("call.answered", {"call_control_id": ID, "client_state": state})
    assert (await carrier.receive(sign_request(body))).events == ()
