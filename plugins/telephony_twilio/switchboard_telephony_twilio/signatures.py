"""Verification of `X-Twilio-Signature` (https://www.twilio.com/docs/usage/security#validating-requests).

The signature is HMAC-SHA1 of the address and the sorted form fields under the account's auth token. A JSON body is
covered by its SHA-256 in the address. There is no timestamp: a callback can be replayed, which changes nothing, but
only at its own address.
"""

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import parse_qs, urlsplit

import msgspec
from switchboard.plugin_sdk import CarrierRequest, InvalidCallback
from switchboard.plugin_sdk.callback_forms import parse_callback_form
from twilio.request_validator import RequestValidator

HEADER: Final = "x-twilio-signature"
BODY_HASH: Final = "bodySHA256"

Fields = Mapping[str, Sequence[str]]


class _Form:
    """A form with repeated fields, as the SDK's validator expects it."""

    def __init__(self, fields: Fields) -> None:
        self._fields = fields

    def __iter__(self) -> object:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def getall(self, name: str) -> Sequence[str]:
        return self._fields[name]


def verify_twilio_signature(request: CarrierRequest, auth_token: str) -> Fields:
    """Return the fields of a signed callback, from its form or, without one, from its query string.

    Raises `InvalidCallback`.
    """
    signature = request.headers.get(HEADER)
    if not signature:
        raise InvalidCallback("the signature is missing")
    if not signature.isascii():
        raise InvalidCallback("the signature is garbled")
    query = parse_qs(urlsplit(request.url).query, keep_blank_values=True)
    covered: Fields = {}
    if BODY_HASH in query:
        if not hmac.compare_digest(hashlib.sha256(request.body).hexdigest(), query[BODY_HASH][0].lower()):
            raise InvalidCallback("the body is not the one that was signed")
    else:
        covered = _parse_form(request.body)
    if not RequestValidator(auth_token).validate(request.url, _Form(covered), signature):
        raise InvalidCallback("the signature does not match")
    return (_parse_json(request.body) if BODY_HASH in query else covered) or query


def _parse_json(body: bytes) -> Fields:
    """Return the strings and integers of a JSON object. Raises `InvalidCallback`."""
    try:
        values = msgspec.json.decode(body, type=dict[str, object])
    except ValueError:
        raise InvalidCallback("the body is not a JSON object") from None
    return {name: [str(value)] for name, value in values.items() if isinstance(value, str | int)}


def _parse_form(body: bytes) -> Fields:
    """Return the fields of a form. Raises `InvalidCallback` for other bytes."""
    fields: dict[str, list[str]] = {}
    for name, value in parse_callback_form(body):
        fields.setdefault(name, []).append(value)
    return fields
