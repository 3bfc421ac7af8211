"""API keys as text: `svc_live_`, 32 random bytes in base62, a checksum. Kept as SHA-256, shown once.

The checksum (CRC-32, as GitHub's tokens carry) lets scanners and us refuse a mistyped key without a look-up; it protects nothing.
"""

import hashlib
import secrets
import string
import zlib

PREFIX = "svc_live_"
_DIGITS = string.digits + string.ascii_uppercase + string.ascii_lowercase
_RANDOM_LENGTH, _CHECK_LENGTH = 43, 6


def _base62(number: int, length: int) -> str:
    digits = []
    for _ in range(length):
        number, digit = divmod(number, 62)
        digits.append(_DIGITS[digit])
    return "".join(reversed(digits))


def _checksum(text: str) -> str:
    return _base62(zlib.crc32(text.encode()), _CHECK_LENGTH)


def new_api_key() -> str:
    """A fresh key of 256 random bits."""
    secret = PREFIX + _base62(int.from_bytes(secrets.token_bytes(32)), _RANDOM_LENGTH)
    return secret + _checksum(secret)


def is_well_formed(key: str) -> bool:
    """Whether it can be one of our keys at all."""
    body, check = key[:-_CHECK_LENGTH], key[-_CHECK_LENGTH:]
    return key.startswith(PREFIX) and len(key) == len(PREFIX) + _RANDOM_LENGTH + _CHECK_LENGTH and check == _checksum(body)


def digest(credential: str) -> bytes:
    """What is kept of a credential. No salt and no stretching: 256 random bits cannot be guessed."""
    return hashlib.sha256(credential.encode()).digest()
