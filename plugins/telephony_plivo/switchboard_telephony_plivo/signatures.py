"""Verification of Plivo's signatures: HMAC-SHA256 in base64, under the account's auth token.

Version 3 (https://www.plivo.com/docs/voice/concepts/signature-validation) signs the address, the form fields sorted by
name, and a nonce, as Plivo's SDKs compute it (`plivo/utils/signature_v3.py` of plivo-python 4.59). Every callback about
a call has it.

Version 2 (https://docs.plivo.com/docs/messaging/concepts/signature-validation) signs the address and a nonce
(`validate_signature` in `plivo/utils/__init__.py` of plivo-python). Plivo's pages promise it, and not version 3, for
callbacks about text messages, so it is accepted for these alone, and only where there is none of version 3: it does
not cover the fields.

Plivo gets addresses without a query string only, so one with a query string is refused. There is no timestamp: a
callback can be replayed, which changes nothing, but only at its own address.
"""

import hashlib
import hmac
from base64 import b64encode
from collections.abc import Mapping
from typing import Final, NamedTuple

from switchboard.plugin_sdk import CarrierRequest, InvalidCallback
from switchboard.plugin_sdk.callback_forms import parse_callback_form

Fields = Mapping[str, str]


class _Headers(NamedTuple):
    """Headers of a version: signatures with the token of the number's own account, and with that of the main account.

    Each has several, separated by commas, while the account has several tokens.
    """

    own: str
    main: str
    nonce: str


VERSION_3: Final = _Headers("x-plivo-signature-v3", "x-plivo-signature-ma-v3", "x-plivo-signature-v3-nonce")
VERSION_2: Final = _Headers("x-plivo-signature-v2", "x-plivo-signature-ma-v2", "x-plivo-signature-v2-nonce")


def verify_plivo_signature(request: CarrierRequest, auth_token: str, *, is_text_message: bool) -> Fields:
    """Return the fields of a signed callback. Raises `InvalidCallback`."""
    if "?" in request.url:
        raise InvalidCallback("the address has a query string")
    pairs = parse_callback_form(request.body)
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise InvalidCallback("a field is repeated")
    signatures, nonce = _read_signatures(request, VERSION_3)
    signed_text = request.url + ("?" if fields else "") + "".join(name + fields[name] for name in sorted(fields)) + "."
    if not signatures and is_text_message:
        signatures, nonce = _read_signatures(request, VERSION_2)
        signed_text = request.url
    if not signatures or not nonce:
        raise InvalidCallback("the signature is missing")
    expected = b64encode(hmac.new(auth_token.encode(), f"{signed_text}{nonce}".encode(), hashlib.sha256).digest())
    if not any(hmac.compare_digest(one.encode(), expected) for one in signatures):
        raise InvalidCallback("the signature does not match")
    return fields


def _read_signatures(request: CarrierRequest, headers: _Headers) -> tuple[list[str], str]:
    """Return the signatures of a version, and their nonce."""
    given = [request.headers.get(name, "") for name in (headers.own, headers.main)]
    return [one.strip() for value in given for one in value.split(",") if one.strip()], request.headers.get(
        headers.nonce, ""
    )
