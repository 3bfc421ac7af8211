"""Signatures of webhooks: recent ones of Telnyx are accepted; altered, replayed, and forged ones are refused."""

import json
import time
from base64 import b64decode, b64encode, urlsafe_b64encode
from collections.abc import Callable
from dataclasses import replace

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pydantic import SecretStr
from switchboard.plugin_sdk import CallAnswered, CarrierRequest, InvalidCallback
from switchboard_telephony_telnyx.provider import TelnyxTelephony
from switchboard_telephony_telnyx.settings import TelnyxSettings
from switchboard_telephony_telnyx.state import CallState, write_state

from tests.carriers.telnyx.wire import signed_headers, webhook
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
BODY = webhook("call.answered", PAYLOAD)
TEXT: JsonBody = {
    "id": "text",
    "to": [{"phone_number": "+15550100001", "status": "sent"}],
    "webhook_url": URL.replace("calls", "texts"),
}


@pytest.fixture
def carrier() -> TelnyxTelephony:
    public_key = b64encode(KEY.public_key().public_bytes_raw()).decode()
    return TelnyxTelephony(TelnyxSettings(api_key=SecretStr(API_KEY), public_key=public_key, connection_id="1"))


def signed(body: bytes = BODY, *, url: str = URL, key: Ed25519PrivateKey = KEY, ago: float = 0) -> CarrierRequest:
    headers = {name.lower(): value for name, value in signed_headers(key, body, at=time.time() - ago).items()}
    return CarrierRequest("POST", url, "", headers, body)


def with_header(name: str, value: str | None) -> CarrierRequest:
    request = signed()
    headers = {**request.headers, f"telnyx-{name}": value or ""}
    if value is None:
        del headers[f"telnyx-{name}"]
    return replace(request, headers=headers)


def changed(change: Callable[[str], str], name: str = "signature-ed25519") -> CarrierRequest:
    return with_header(name, change(signed().headers[f"telnyx-{name}"]))


def altered(old: bytes, new: bytes) -> CarrierRequest:
    assert old in BODY
    return replace(signed(), body=BODY.replace(old, new))


def urlsafe(signature: str) -> str:
    return urlsafe_b64encode(b"\xff" * 3 + b64decode(signature)[3:]).decode()


GENUINE: dict[str, Callable[[], CarrierRequest]] = {
    "as it is": signed,
    "some minutes ago": lambda: signed(ago=290),
    "by a clock that is ahead": lambda: signed(ago=-290),
    "written otherwise": lambda: signed(json.dumps(json.loads(BODY), indent=2).encode()),
    "with fields of the future": lambda: signed(webhook("call.answered", {**PAYLOAD, "mood": {"good": True}})),
    "behind a proxy": lambda: signed(url=URL.replace("voice.example", "voice.example:8443")),
}


@pytest.mark.parametrize("request_made", GENUINE.values(), ids=GENUINE.keys())
async def test_what_telnyx_tells_is_believed(
    carrier: TelnyxTelephony, request_made: Callable[[], CarrierRequest]
) -> None:
    assert (await carrier.receive(request_made())).events == (CallAnswered(ID),)


ATTACKS: dict[str, Callable[[], CarrierRequest]] = {
    "unsigned": lambda: replace(signed(), headers={}),
    "without a signature": lambda: with_header("signature-ed25519", None),
    "without a time": lambda: with_header("timestamp", None),
    "an empty signature": lambda: with_header("signature-ed25519", ""),
    "a signature that is none": lambda: with_header("signature-ed25519", "not base64 é"),
    "a truncated signature": lambda: changed(lambda signature: signature[:-4]),
    "a signature in another case": lambda: changed(str.swapcase),
    "a signature in hexadecimal": lambda: changed(lambda signature: b64decode(signature).hex()),
    "a signature for addresses": lambda: changed(urlsafe),
    "the signature of nothing": lambda: changed(lambda _: b64encode(bytes(64)).decode()),
    "the body's signature without its time": lambda: changed(lambda _: b64encode(KEY.sign(BODY)).decode()),
    "signed with another account's key": lambda: signed(key=OTHER_KEY),
    "stale": lambda: signed(ago=310),
    "of the future": lambda: signed(ago=-310),
    "stale, with a new time": lambda: replace(
        signed(ago=900), headers={**signed(ago=900).headers, "telnyx-timestamp": str(int(time.time()))}
    ),
    "a time that is none": lambda: with_header("timestamp", "yesterday"),
    "a time with a sign": lambda: changed(lambda timestamp: f"+{timestamp}", "timestamp"),
    "a time in other digits": lambda: changed(lambda timestamp: timestamp.translate({ord("1"): "١"}), "timestamp"),
    "an endless time": lambda: with_header("timestamp", "9" * 5000),
    "another call": lambda: altered(b"v3:call", b"v3:cale"),
    "another event": lambda: altered(b"call.answered", b"call.hangup"),
    "a space more": lambda: replace(signed(), body=BODY + b" "),
    "a byte less": lambda: replace(signed(), body=BODY[:-1]),
    "no body": lambda: replace(signed(), body=b""),
    "the time moved into the body": lambda: replace(
        signed(), body=signed().headers["telnyx-timestamp"].encode() + b"|" + BODY
    ),
    "replayed at another call's address": lambda: signed(url=URL.replace(CALL, OTHER_CALL)),
    "replayed at another text's address": lambda: signed(
        webhook("message.sent", TEXT), url=URL.replace(f"calls/{CALL}", f"texts/{OTHER_CALL}")
    ),
    "signed, and no JSON": lambda: signed(b"hello=world"),
    "signed, and no webhook": lambda: signed(b"[]"),
    "signed, and about no call": lambda: signed(webhook("call.hangup", {})),
    "signed, and about no text": lambda: signed(webhook("message.received", {"id": "x"})),
}


@pytest.mark.parametrize("request_made", ATTACKS.values(), ids=ATTACKS.keys())
async def test_nobody_else_is(carrier: TelnyxTelephony, request_made: Callable[[], CarrierRequest]) -> None:
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
async def test_a_state_that_is_not_ours_commands_nothing(carrier: TelnyxTelephony, state: str | None) -> None:
    """A browser may send any state with its call: it neither forwards nor ends another call, nor poses as a call of
    ours.
    """
    body = webhook("call.answered", {"call_control_id": ID, "client_state": state})
    assert (await carrier.receive(signed(body))).events == ()
