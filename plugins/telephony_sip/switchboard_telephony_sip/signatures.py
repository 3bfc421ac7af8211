"""Signature of everything that the platform and a gateway send each other.

`X-Switchboard-Signature: t=<unix seconds>,n=<nonce>,v1=<hex>` with the HMAC-SHA256 of `<t>.<nonce>.<url>.<body>` under
the account's signing secret. `url` is the path for commands, because a gateway may be behind a proxy, and the whole
address for callbacks. A gateway knows each nonce for as long as its time is accepted, so that no command is replayed.
"""

import hashlib
import hmac
import re
import secrets
import time
from typing import Final

SIGNATURE_HEADER: Final = "X-Switchboard-Signature"
ACCOUNT_HEADER: Final = "X-Switchboard-Account"
TOLERANCE_SECONDS: Final = 300
_SHAPE: Final = re.compile(r"t=([0-9]{1,12}),n=([0-9a-f]{32}),v1=([0-9a-f]{64})")


def derive_account_key(secret: str) -> str:
    """Return the name of an account in commands, which does not show its secret."""
    return hmac.new(secret.encode(), b"account", hashlib.sha256).hexdigest()[:32]


def digest_settings(secret: str, settings: bytes) -> str:
    """Return a digest by which a gateway knows an account's settings."""
    return hmac.new(secret.encode(), b"settings" + settings, hashlib.sha256).hexdigest()


def sign_message(secret: str, url: str, body: bytes) -> str:
    """Return the header's value for a request that is sent now."""
    stamp, nonce = str(int(time.time())), secrets.token_hex(16)
    return f"t={stamp},n={nonce},v1={_digest(secret, f'{stamp}.{nonce}.{url}.', body)}"


def find_fault_of_signature(secret: str, header: str | None, url: str, body: bytes) -> str | None:
    """Return the fault of a signature; None for a valid one."""
    if header is None:
        return "the signature is missing"
    shape = _SHAPE.fullmatch(header)
    if shape is None:
        return "the signature is garbled"
    stamp, nonce, digest = shape.groups()
    if abs(time.time() - int(stamp)) > TOLERANCE_SECONDS:
        return "the signature is too old or from the future"
    if not hmac.compare_digest(digest, _digest(secret, f"{stamp}.{nonce}.{url}.", body)):
        return "the signature does not match"
    return None


def _digest(secret: str, prefix: str, body: bytes) -> str:
    return hmac.new(secret.encode(), prefix.encode(errors="backslashreplace") + body, hashlib.sha256).hexdigest()


class UsedNonces:
    """Nonces of the commands that were accepted lately."""

    def __init__(self) -> None:
        self._expiries: dict[str, float] = {}

    def claim(self, header: str) -> bool:
        """Record the nonce of a valid signature; return whether it is new."""
        shape, moment = _SHAPE.fullmatch(header), time.time()
        if shape is None or shape[2] in self._expiries:
            return False
        self._expiries[shape[2]] = moment + 2 * TOLERANCE_SECONDS
        while self._expiries and (oldest := next(iter(self._expiries))) and self._expiries[oldest] < moment:
            del self._expiries[oldest]
        return True
