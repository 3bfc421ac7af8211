"""Signatures of callbacks: those of Twilio are accepted; altered, redirected, and forged ones are refused."""

import hashlib
import hmac
import json
from base64 import b64encode
from collections.abc import Callable
from dataclasses import replace
from urllib.parse import urlencode

import pytest
from pydantic import SecretStr
from switchboard.plugin_sdk import CallAnswered, CallbackRequest, InvalidCallback
from switchboard_telephony_twilio.provider import TwilioTelephony
from switchboard_telephony_twilio.settings import TwilioSettings

from tests.carriers.twilio.server import new_sid
from tests.carriers.twilio.wire import Form, compute_signature

TOKEN = "0123456789abcdef0123456789abcdef"
URL = "https://voice.example/carriers/twilio/019a/calls/019b/status"
SID = new_sid("CA")
FORM: Form = {
    "CallSid": SID,
    "CallStatus": "in-progress",
    "From": "+15550100001",
    "To": "+12125550100",
    "FromCity": "",
    "CallerName": "Zoë & Söhne",
}


@pytest.fixture
def carrier() -> TwilioTelephony:
    return TwilioTelephony(TwilioSettings(account_sid="AC" + "a" * 32, auth_token=SecretStr(TOKEN)))


def sign_request(
    form: Form = FORM, *, url: str = URL, signed_url: str | None = None, token: str = TOKEN
) -> CallbackRequest:
    headers = {
        "x-twilio-signature": compute_signature(token, signed_url or url, form),
        "content-type": "application/x-www-form-urlencoded",
    }
    return CallbackRequest("POST", url, "status", headers, urlencode(form).encode())


def sign_json_request(document: dict[str, object], *, url: str = URL) -> CallbackRequest:
    body = json.dumps(document).encode()
    url = f"{url}{'&' if '?' in url else '?'}bodySHA256={hashlib.sha256(body).hexdigest()}"
    return CallbackRequest("POST", url, "status", {"x-twilio-signature": compute_signature(TOKEN, url, {})}, body)


def replace_signature(request: CallbackRequest, value: str) -> CallbackRequest:
    return replace(request, headers={**request.headers, "x-twilio-signature": value})


GENUINE: dict[str, Callable[[], CallbackRequest]] = {
    "as it is": sign_request,
    "with a query": lambda: sign_request(url=f"{URL}?attempt=1&empty="),
    "signed with the standard port": lambda: sign_request(signed_url=URL.replace("voice.example", "voice.example:443")),
    "on a port of our own": lambda: sign_request(url=URL.replace("voice.example", "voice.example:8443")),
    "on a port of our own, signed without": lambda: sign_request(
        url=URL.replace("voice.example", "voice.example:8443"), signed_url=URL
    ),
    "as JSON": lambda: sign_json_request({"CallSid": SID, "CallStatus": "in-progress"}),
    "as JSON, with a query": lambda: sign_json_request({"CallSid": SID, "CallStatus": "in-progress"}, url=f"{URL}?a=b"),
    "as GET": lambda: replace(sign_request({}, url=f"{URL}?{urlencode(FORM)}"), method="GET"),
}


@pytest.mark.parametrize("request_made", GENUINE.values(), ids=GENUINE.keys())
async def test_genuine_callbacks_are_accepted(
    carrier: TwilioTelephony, request_made: Callable[[], CallbackRequest]
) -> None:
    assert (await carrier.receive(request_made())).events == (CallAnswered(SID),)


def alter_request(**fields: str) -> CallbackRequest:
    """Return a genuine callback with changed fields."""
    return replace(sign_request(), body=urlencode({**FORM, **fields}).encode())


def remove_field(name: str) -> CallbackRequest:
    return replace(sign_request(), body=urlencode({key: value for key, value in FORM.items() if key != name}).encode())


def sign_with_sha256() -> CallbackRequest:
    text = URL + "".join(f"{name}{FORM[name]}" for name in sorted(FORM))
    digest = b64encode(hmac.new(b"a key of the attacker's", text.encode(), hashlib.sha256).digest()).decode()
    request = replace_signature(sign_request(), digest)
    return replace(
        request, headers={**request.headers, "x-twilio-webhooks-signature-settings": "key=x,algorithm=HMAC_SHA256"}
    )


GOOD = compute_signature(TOKEN, URL, FORM)
JSON = sign_json_request({"CallSid": SID, "CallStatus": "in-progress"})
ATTACKS: dict[str, CallbackRequest] = {
    "unsigned": replace(sign_request(), headers={}),
    "an empty signature": replace_signature(sign_request(), ""),
    "a malformed signature": replace_signature(sign_request(), "not base64 é"),
    "a truncated signature": replace_signature(sign_request(), GOOD[:-2]),
    "a signature in another case": replace_signature(sign_request(), GOOD.swapcase()),
    "a signature in hexadecimal": replace_signature(
        sign_request(), hmac.new(TOKEN.encode(), URL.encode(), hashlib.sha1).hexdigest()
    ),
    "the signature of the address alone": replace_signature(sign_request(), compute_signature(TOKEN, URL, {})),
    "signed with another account's token": sign_request(token="f" * 32),
    "stale: signed with the token that was replaced": sign_request(token=TOKEN[::-1]),
    "signed with another algorithm": sign_with_sha256(),
    "another call": alter_request(CallSid=new_sid("CA")),
    "another state": alter_request(CallStatus="completed"),
    "another caller": alter_request(From="+15550100002"),
    "a field more": alter_request(AnsweredBy="human"),
    "a field twice": replace(sign_request(), body=sign_request().body + b"&CallStatus=completed"),
    "a field less": remove_field("To"),
    "an empty field that is filled": alter_request(FromCity="Berlin"),
    "a field in another case": replace(sign_request(), body=sign_request().body.replace(b"CallStatus", b"callstatus")),
    "no body": replace(sign_request(), body=b""),
    "a body that is no form": replace(sign_request(), body=b"\xff\xfe\x00"),
    "replayed at another call's address": replace(sign_request(), url=URL.replace("019b", "019c")),
    "replayed at another organization's address": replace(sign_request(), url=URL.replace("019a", "019d")),
    "replayed at another kind's address": replace(sign_request(), url=URL.replace("status", "machine"), path="machine"),
    "replayed at another host": replace(sign_request(), url=URL.replace("voice.example", "voice.example.org")),
    "replayed without TLS": replace(sign_request(), url=URL.replace("https", "http")),
    "a query that was added": replace(sign_request(), url=f"{URL}?CallStatus=completed"),
    "a query that was altered": replace(sign_request(url=f"{URL}?attempt=1"), url=f"{URL}?attempt=2"),
    "JSON that was altered": replace(JSON, body=JSON.body.replace(b"in-progress", b"completed")),
    "JSON that was emptied": replace(JSON, body=b""),
    "JSON whose hash was altered": replace(JSON, url=JSON.url[:-1] + ("0" if JSON.url[-1] != "0" else "1")),
    "JSON whose hash was taken away": replace(JSON, url=URL),
    "a form in the place of JSON": replace(JSON, body=sign_request().body),
    "JSON that is not an object": sign_json_request([]),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("request_made", ATTACKS.values(), ids=ATTACKS.keys())
async def test_forged_callbacks_are_refused(carrier: TwilioTelephony, request_made: CallbackRequest) -> None:
    with pytest.raises(InvalidCallback) as refusal:
        await carrier.receive(request_made)
    assert TOKEN not in str(refusal.value)
