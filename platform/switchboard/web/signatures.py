"""How requests that we send are signed (specification, "Signature")."""

import hashlib
import hmac
import time
from collections.abc import Sequence


def signature(body: bytes, secrets: Sequence[str], *, timestamp: int) -> str:
    """`t=<timestamp>,v1=<hex HMAC-SHA256 of "<timestamp>.<body>">`, one `v1` for each secret, keyed with the whole secret."""
    signed = str(timestamp).encode() + b"." + body
    return ",".join([f"t={timestamp}", *(f"v1={hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()}" for secret in secrets)])


def signature_headers(body: bytes, *secrets: str) -> dict[str, str]:
    """The headers of a request signed now."""
    timestamp = int(time.time())
    return {
        "Content-Type": "application/json",
        "X-Webhook-Timestamp": str(timestamp),
        "X-Webhook-Signature": signature(body, secrets, timestamp=timestamp),
    }
