"""Verification of `X-Twilio-Signature` (https://www.twilio.com/docs/usage/security#validating-requests).

The signature is HMAC-SHA1 of the address and the sorted form fields under the account's auth token. A JSON body is
covered by its SHA-256 in the address. There is no timestamp: a callback can be replayed, which changes nothing, but
only at its own address.
"""

import hashlib
import hmac
from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl, urlsplit

import msgspec
from multidict import MultiDict
from switchboard.plugin_sdk import CarrierRequest, InvalidCallback
from switchboard.plugin_sdk.callback_forms import parse_callback_form
from twilio.request_validator import RequestValidator

HEADER: Final = "x-twilio-signature"
BODY_HASH: Final = "bodySHA256"

Fields = Mapping[str, str]
"""Fields by name; of a repeated one, its first value."""


def verify_twilio_signature(request: CarrierRequest, auth_token: str) -> Fields:
    """Return the fields of a signed callback, from its form or, without one, from its query string.

    Raises `InvalidCallback`.
    """
    signature = request.headers.get(HEADER)
    if not signature:
        raise InvalidCallback("the signature is missing")
    if not signature.isascii():
        raise InvalidCallback("the signature is garbled")
    query = MultiDict(parse_qsl(urlsplit(request.url).query, keep_blank_values=True))
    # The SDK's validator takes repeated fields from `getall`.
    covered = MultiDict[str]()
    if BODY_HASH in query:
        if not hmac.compare_digest(hashlib.sha256(request.body).hexdigest(), query[BODY_HASH].lower()):
            raise InvalidCallback("the body is not the one that was signed")
    else:
        covered = MultiDict(parse_callback_form(request.body))
    if not RequestValidator(auth_token).validate(request.url, covered, signature):
        raise InvalidCallback("the signature does not match")
    return (_parse_json(request.body) if BODY_HASH in query else covered) or query


def _parse_json(body: bytes) -> Fields:
    """Return the strings and integers of a JSON object. Raises `InvalidCallback`."""
    try:
        values = msgspec.json.decode(body, type=dict[str, object])
    except ValueError:
        raise InvalidCallback("the body is not a JSON object") from None
    return {name: str(value) for name, value in values.items() if isinstance(value, str | int)}
