"""Verification of `X-Plivo-Signature-V3` (https://www.plivo.com/docs/voice/concepts/signature-validation).

The signature is HMAC-SHA256, under the account's auth token, of the address, the form fields sorted by name, and a
nonce, as Plivo's SDKs compute it (`plivo/utils/signature_v3.py` of plivo-python 4.59). Plivo gets addresses without a
query string only, so one with a query string is refused. There is no timestamp: a callback can be replayed, which
changes nothing, but only at its own address.
"""

import hashlib
import hmac
from base64 import b64encode
from collections.abc import Mapping
from typing import Final

from switchboard.plugin_sdk import CarrierRequest, InvalidCallback
from switchboard.plugin_sdk.callback_forms import parse_callback_form

HEADERS: Final = ("x-plivo-signature-v3", "x-plivo-signature-ma-v3")
"""Signatures with the token of the number's own account, and with that of the main account. Each header has several,
separated by commas, while the account has several tokens.
"""
NONCE: Final = "x-plivo-signature-v3-nonce"

Fields = Mapping[str, str]


def verify_plivo_signature(request: CarrierRequest, auth_token: str) -> Fields:
    """Return the fields of a signed callback. Raises `InvalidCallback`."""
    given = [one.strip() for name in HEADERS for one in request.headers.get(name, "").split(",") if one.strip()]
    nonce = request.headers.get(NONCE, "")
    if not given or not nonce:
        raise InvalidCallback("the signature is missing")
    if "?" in request.url:
        raise InvalidCallback("the address has a query string")
    pairs = parse_callback_form(request.body)
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise InvalidCallback("a field is repeated")
    signed_text = request.url + ("?" if fields else "") + "".join(name + fields[name] for name in sorted(fields))
    digest = hmac.new(auth_token.encode(), f"{signed_text}.{nonce}".encode(), hashlib.sha256).digest()
    expected = b64encode(digest)
    if not any(hmac.compare_digest(one.encode(), expected) for one in given):
        raise InvalidCallback("the signature does not match")
    return fields
