"""Verification of `Telnyx-Signature-Ed25519`
(https://developers.telnyx.com/docs/messaging/messages/receiving-webhooks).

The signature is Ed25519 over `timestamp|body` with the account's key, valid for five minutes. It does not cover the
address. A replayed webhook changes nothing, and one sent to another call's address is recognized by the state that the
call was placed with.
"""

import time
from base64 import b64decode
from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from switchboard.plugin_sdk import CarrierRequest, InvalidCallback

HEADER: Final = "telnyx-signature-ed25519"
TIMESTAMP: Final = "telnyx-timestamp"
TOLERANCE_SECONDS: Final = 300


def verify_telnyx_signature(request: CarrierRequest, public_key: str) -> bytes:
    """Return the body of a webhook with a valid, recent signature. Raises `InvalidCallback`."""
    signature, timestamp = request.headers.get(HEADER), request.headers.get(TIMESTAMP)
    if not signature or not timestamp:
        raise InvalidCallback("the signature is missing")
    if not (timestamp.isascii() and timestamp.isdecimal() and len(timestamp) <= 12):
        raise InvalidCallback("the time of the signature is garbled")
    try:
        Ed25519PublicKey.from_public_bytes(b64decode(public_key)).verify(
            b64decode(signature, validate=True), timestamp.encode() + b"|" + request.body
        )
    except InvalidSignature:
        raise InvalidCallback("the signature does not match") from None
    except ValueError:
        raise InvalidCallback("the signature is garbled") from None
    if abs(time.time() - int(timestamp)) > TOLERANCE_SECONDS:
        raise InvalidCallback("the signature is too old or from the future")
    return request.body
