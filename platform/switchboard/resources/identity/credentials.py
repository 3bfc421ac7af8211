"""Credentials as text: a prefix that names the kind, 32 random bytes in base62, a checksum. Stored as SHA-256 and
shown once.

The checksum (CRC-32, as in GitHub's tokens) lets scanners and this server reject a mistyped credential without a
look-up; it protects nothing.
"""

import hashlib
import secrets
import string
import zlib

API_KEY, ACCESS_TOKEN, REFRESH_TOKEN = "svc_live_", "svca_", "svcr_"
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


def new_credential(prefix: str) -> str:
    """Create a credential of 256 random bits."""
    secret = prefix + _base62(int.from_bytes(secrets.token_bytes(32)), _RANDOM_LENGTH)
    return secret + _checksum(secret)


def get_prefix(credential: str) -> str | None:
    """Return the prefix of a well-formed credential; None for any other text."""
    rest, check = credential[:-_CHECK_LENGTH], credential[-_CHECK_LENGTH:]
    prefix = rest[:-_RANDOM_LENGTH]
    return prefix if prefix in (API_KEY, ACCESS_TOKEN, REFRESH_TOKEN) and check == _checksum(rest) else None


def digest(credential: str) -> bytes:
    """Hash a credential for storage. No salt and no stretching: 256 random bits cannot be guessed."""
    return hashlib.sha256(credential.encode()).digest()
