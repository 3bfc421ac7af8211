"""Signature of every callback and command.

`X-Loopback-Signature: t=<unix seconds>,v1=<hex>` with the HMAC-SHA256 of `<t>.<url>.<body>`.
"""

import hashlib
import hmac
import re
import time
from typing import Final

HEADER: Final = "X-Loopback-Signature"
TOLERANCE_SECONDS: Final = 300
_SHAPE: Final = re.compile(r"t=([0-9]{1,12}),v1=([0-9a-f]{64})")


def sign_request(secret: str, url: str, body: bytes) -> str:
    """Return the header's value for a request sent now."""
    stamp = str(int(time.time()))
    return f"t={stamp},v1={_digest(secret, stamp, url, body)}"


def find_signature_fault(secret: str, header: str | None, url: str, body: bytes) -> str | None:
    """Return the fault of a signature; None for a valid one."""
    if header is None:
        return "the signature is missing"
    shape = _SHAPE.fullmatch(header)
    if shape is None:
        return "the signature is garbled"
    stamp, digest = shape.groups()
    if abs(time.time() - int(stamp)) > TOLERANCE_SECONDS:
        return "the signature is too old or from the future"
    if not hmac.compare_digest(digest, _digest(secret, stamp, url, body)):
        return "the signature does not match"
    return None


def _digest(secret: str, stamp: str, url: str, body: bytes) -> str:
    message = f"{stamp}.{url}.".encode(errors="backslashreplace") + body
    return hmac.new(secret.encode(), message, hashlib.sha256).hexdigest()
