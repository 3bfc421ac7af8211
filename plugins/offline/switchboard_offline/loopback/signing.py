"""Signed requests, both ways: `X-Loopback-Signature: t=<unix>,v1=<hex HMAC-SHA256 of "<t>.<url>.<body>">`, good for five minutes."""

import hashlib
import hmac
import re
import time

HEADER = "x-loopback-signature"
TOLERANCE_SECONDS = 300


def sign(secret: str, url: str, body: bytes, *, timestamp: int | None = None) -> str:
    """The header's value for a request sent now."""
    moment = int(time.time()) if timestamp is None else timestamp
    return f"t={moment},v1={_digest(secret, moment, url, body)}"


def is_valid(secret: str, url: str, body: bytes, header: str) -> bool:
    """Whether a header signs this request, and was made within five minutes."""
    match = re.fullmatch(r"t=(\d{1,12}),v1=([0-9a-f]{64})", header)
    if match is None:
        return False
    moment = int(match[1])
    return hmac.compare_digest(match[2], _digest(secret, moment, url, body)) and abs(time.time() - moment) <= TOLERANCE_SECONDS


def _digest(secret: str, moment: int, url: str, body: bytes) -> str:
    return hmac.new(secret.encode(), f"{moment}.{url}.".encode() + body, hashlib.sha256).hexdigest()
