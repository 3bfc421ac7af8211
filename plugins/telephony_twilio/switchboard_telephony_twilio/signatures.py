"""`X-Twilio-Signature`: who sent a callback (https://www.twilio.com/docs/usage/security#validating-requests).

HMAC-SHA1 of the address and of the form's fields, sorted, under the account's auth token. A JSON body is covered by its SHA-256, which Twilio puts
into the address. There is no time stamp: a callback can be told twice, which changes nothing, but never at another address.
"""

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import parse_qs, parse_qsl, urlsplit

import msgspec
from switchboard.plugin_sdk import CarrierRequest, InvalidCallback
from twilio.request_validator import RequestValidator

HEADER: Final = "x-twilio-signature"
BODY_HASH: Final = "bodySHA256"
MAX_FIELDS: Final = 500

Fields = Mapping[str, Sequence[str]]


class _Form:
    """A form as the SDK's validator reads one with repeated fields."""

    def __init__(self, fields: Fields) -> None:
        self._fields = fields

    def __iter__(self) -> object:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def getall(self, name: str) -> Sequence[str]:
        return self._fields[name]


def verify_twilio_signature(request: CarrierRequest, auth_token: str) -> Fields:
    """The fields of a callback that Twilio has signed: its form's, or its address's where it has none. Raises `InvalidCallback`."""
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
        covered = _form(request.body)
    if not RequestValidator(auth_token).validate(request.url, _Form(covered), signature):
        raise InvalidCallback("the signature does not match")
    return (_json(request.body) if BODY_HASH in query else covered) or query


def _json(body: bytes) -> Fields:
    """A JSON object's texts and numbers. Raises `InvalidCallback`."""
    try:
        told = msgspec.json.decode(body, type=dict[str, object])
    except ValueError:
        raise InvalidCallback("the body is no JSON object") from None
    return {name: [str(value)] for name, value in told.items() if isinstance(value, str | int)}


def _form(body: bytes) -> Fields:
    """A form's fields. Raises `InvalidCallback` for bytes that are none."""
    try:
        pairs = parse_qsl(
            body.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=bool(body),
            errors="strict",
            max_num_fields=MAX_FIELDS,
        )
    except ValueError:
        raise InvalidCallback("the body is no form") from None
    fields: dict[str, list[str]] = {}
    for name, value in pairs:
        fields.setdefault(name, []).append(value)
    return fields
