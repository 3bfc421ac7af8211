"""Signatures of outgoing requests."""

import hashlib
import hmac
import time
from collections.abc import Sequence


def signature_headers(body: bytes, *secrets: str, timestamp: int | None = None) -> dict[str, str]:
    """Return the headers of a request signed now, or at another Unix time. Without a secret, the signature has a time
    and no `v1`.
    """
    moment = int(time.time()) if timestamp is None else timestamp
    return {
        "Content-Type": "application/json",
        "X-Webhook-Timestamp": str(moment),
        "X-Webhook-Signature": _signature(body, secrets, moment),
    }


def _signature(body: bytes, secrets: Sequence[str], timestamp: int) -> str:
    """Return `t=<timestamp>,v1=<hex HMAC-SHA256 of "<timestamp>.<body>">`, with one `v1` per secret, keyed with the
    whole secret.
    """
    signed = str(timestamp).encode() + b"." + body
    return ",".join(
        [
            f"t={timestamp}",
            *(f"v1={hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()}" for secret in secrets),
        ]
    )
