"""Signatures of callbacks: those of Plivo are accepted; altered, redirected, and forged ones are refused."""

from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import urlencode
from uuid import uuid4

import pytest
from switchboard.plugin_sdk import (
    CallbackRequest,
    CalleeRinging,
    InvalidCallback,
    TextMessageReceived,
    TextMessageStatus,
)
from switchboard_telephony_plivo.provider import PlivoTelephony
from switchboard_telephony_plivo.settings import PlivoSettings

from tests.carriers.plivo.wire import compute_address_signature, compute_signature, sign_address, sign_form

TOKEN = "0123456789abcdef0123456789abcdef"
URL = "https://voice.example/carriers/plivo/019a/calls/019b/ringing"
CALL_ID = "4d04c52e-cea3-4458-bbdb-0bfc314ee7cd"
FORM = {
    "CallUUID": CALL_ID,
    "CallStatus": "ringing",
    "From": "15550100001",
    "To": "12125550100",
    "Event": "Ring",
    "CallerName": "Zoë & Söhne",
}
NONCE, SIGNATURE = "05429567804466091622", "g3FbEg0wwkiKeW22ekDGahXTgkf35vYupLCc17wtZjg="
"""What `get_signature_v3` of plivo-python 4.59.5 returns for the address, the form, and the token above."""


@pytest.fixture
def carrier() -> PlivoTelephony:
    return PlivoTelephony(
        PlivoSettings.model_validate({"auth_id": "MA" + "A" * 18, "auth_token": TOKEN, "application_id": "1"})
    )


def sign_request(form: Mapping[str, str] = FORM, *, url: str = URL, token: str = TOKEN) -> CallbackRequest:
    return CallbackRequest("POST", url, "ringing", sign_form(token, url, form), urlencode(form).encode())


def with_headers(**headers: str) -> CallbackRequest:
    return replace(sign_request(), headers={name.replace("_", "-"): value for name, value in headers.items()})


GENUINE: dict[str, CallbackRequest] = {
    "as Plivo's SDK signs it": with_headers(x_plivo_signature_v3=SIGNATURE, x_plivo_signature_v3_nonce=NONCE),
    "as the main account signs it": with_headers(x_plivo_signature_ma_v3=SIGNATURE, x_plivo_signature_v3_nonce=NONCE),
    "while the account has two tokens": with_headers(
        x_plivo_signature_v3=f"{'A' * 43}=, {SIGNATURE}", x_plivo_signature_v3_nonce=NONCE
    ),
    "on a port of our own": sign_request(url=URL.replace("voice.example", "voice.example:8443")),
    "with an empty field": sign_request({**FORM, "ForwardedFrom": ""}),
}


@pytest.mark.parametrize("request_made", GENUINE.values(), ids=GENUINE.keys())
async def test_genuine_callbacks_are_accepted(carrier: PlivoTelephony, request_made: CallbackRequest) -> None:
    assert (await carrier.receive(request_made)).events == (CalleeRinging(CALL_ID),)


def alter_request(**fields: str) -> CallbackRequest:
    """Return a genuine callback with changed fields."""
    return replace(sign_request(), body=urlencode({**FORM, **fields}).encode())


def remove_field(name: str) -> CallbackRequest:
    return replace(sign_request(), body=urlencode({key: value for key, value in FORM.items() if key != name}).encode())


EVENTS_URL = URL.rpartition("/")[0]
TEXT_FORM = {"MessageUUID": CALL_ID, "From": "15550100001", "To": "12125550100", "Text": "Hello", "Status": "delivered"}
ADDRESS_NONCE, ADDRESS_SIGNATURE = "05429567804466091622", "ghtCnkAii5BXYcH6pemNHGuUDEcVC63NQx3zcFCI7Ec="
"""The signature of the address `…/message` under the token above, by the algorithm of plivo-python's
`validate_signature`.
"""


def sign_text(path: str, **headers: str) -> CallbackRequest:
    url = f"{EVENTS_URL}/{path}"
    signed = {name.replace("_", "-"): value for name, value in headers.items()} or sign_address(TOKEN, url)
    return CallbackRequest("POST", url, path, signed, urlencode(TEXT_FORM).encode())


TEXTS: dict[str, CallbackRequest] = {
    "as Plivo's SDK signs it": sign_text(
        "message", x_plivo_signature_v2=ADDRESS_SIGNATURE, x_plivo_signature_v2_nonce=ADDRESS_NONCE
    ),
    "as the main account signs it": sign_text(
        "message", x_plivo_signature_ma_v2=ADDRESS_SIGNATURE, x_plivo_signature_v2_nonce=ADDRESS_NONCE
    ),
    "while the account has two tokens": sign_text(
        "message",
        x_plivo_signature_v2=f"{'A' * 43}=, {ADDRESS_SIGNATURE}",
        x_plivo_signature_v2_nonce=ADDRESS_NONCE,
    ),
    "a delivery report": sign_text("text"),
    "in version 3": sign_text("message", **sign_form(TOKEN, f"{EVENTS_URL}/message", TEXT_FORM)),
    "in both versions": sign_text(
        "text", **sign_address(TOKEN, f"{EVENTS_URL}/text"), **sign_form(TOKEN, f"{EVENTS_URL}/text", TEXT_FORM)
    ),
}


@pytest.mark.parametrize("request_made", TEXTS.values(), ids=TEXTS.keys())
async def test_callbacks_about_text_messages_are_accepted_in_both_versions(
    carrier: PlivoTelephony, request_made: CallbackRequest
) -> None:
    (event,) = (await carrier.receive(request_made)).events
    assert isinstance(event, TextMessageReceived | TextMessageStatus)


ATTACKS: dict[str, CallbackRequest] = {
    "unsigned": replace(sign_request(), headers={}),
    "without a nonce": with_headers(x_plivo_signature_v3=SIGNATURE),
    "with another nonce": with_headers(x_plivo_signature_v3=SIGNATURE, x_plivo_signature_v3_nonce="1"),
    "an empty signature": with_headers(x_plivo_signature_v3="", x_plivo_signature_v3_nonce=NONCE),
    "commas": with_headers(x_plivo_signature_v3=",,", x_plivo_signature_v3_nonce=NONCE),
    "a malformed signature": with_headers(x_plivo_signature_v3="no base64 é", x_plivo_signature_v3_nonce=NONCE),
    "a truncated signature": with_headers(x_plivo_signature_v3=SIGNATURE[:-2], x_plivo_signature_v3_nonce=NONCE),
    "a signature of version 2, of the address alone": with_headers(
        x_plivo_signature_v2=compute_address_signature(TOKEN, URL, NONCE), x_plivo_signature_v2_nonce=NONCE
    ),
    "a text message in version 2 with another nonce": sign_text(
        "message", x_plivo_signature_v2=ADDRESS_SIGNATURE, x_plivo_signature_v2_nonce="1"
    ),
    "a text message in version 2 without a nonce": sign_text("message", x_plivo_signature_v2=ADDRESS_SIGNATURE),
    "a text message in version 2 at another address": sign_text(
        "text", x_plivo_signature_v2=ADDRESS_SIGNATURE, x_plivo_signature_v2_nonce=ADDRESS_NONCE
    ),
    "a text message in version 2 with a query": replace(sign_text("message"), url=f"{EVENTS_URL}/message?Text=Goodbye"),
    "a text message in version 2 of another account": sign_text(
        "message", **sign_address("f" * 32, f"{EVENTS_URL}/message")
    ),
    "an altered text message in both versions": replace(
        sign_text(
            "message",
            **sign_address(TOKEN, f"{EVENTS_URL}/message"),
            **sign_form(TOKEN, f"{EVENTS_URL}/message", TEXT_FORM),
        ),
        body=urlencode({**TEXT_FORM, "Text": "Goodbye"}).encode(),
    ),
    "the signature of the address alone": with_headers(
        x_plivo_signature_v3=compute_signature(TOKEN, URL, {}, NONCE), x_plivo_signature_v3_nonce=NONCE
    ),
    "signed with another account's token": sign_request(token="f" * 32),
    "another call": alter_request(CallUUID=str(uuid4())),
    "another state": alter_request(CallStatus="completed"),
    "a field more": alter_request(Machine="true"),
    "a field twice": replace(sign_request(), body=sign_request().body + b"&CallStatus=completed"),
    "a field less": remove_field("To"),
    "no body": replace(sign_request(), body=b""),
    "a body that is no form": replace(sign_request(), body=b"\xff\xfe\x00"),
    "replayed at another call's address": replace(sign_request(), url=URL.replace("019b", "019c")),
    "replayed at another organization's address": replace(sign_request(), url=URL.replace("019a", "019d")),
    "replayed at another kind's address": replace(
        sign_request(), url=URL.replace("ringing", "machine"), path="machine"
    ),
    "replayed at another host": replace(sign_request(), url=URL.replace("voice.example", "voice.example.org")),
    "replayed without TLS": replace(sign_request(), url=URL.replace("https", "http")),
    "a query that was added": replace(sign_request(), url=f"{URL}?CallStatus=completed"),
    "the fields in the query": replace(sign_request(), url=f"{URL}?{urlencode(FORM)}", body=b""),
}


@pytest.mark.parametrize("request_made", ATTACKS.values(), ids=ATTACKS.keys())
async def test_forged_callbacks_are_refused(carrier: PlivoTelephony, request_made: CallbackRequest) -> None:
    with pytest.raises(InvalidCallback) as refusal:
        await carrier.receive(request_made)
    assert TOKEN not in str(refusal.value)
