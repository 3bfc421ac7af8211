"""Argon2id password hashes with the library's parameters.

A hash takes a twentieth of a second and 64 MiB, so it is computed in a thread.
"""

import asyncio
import hashlib
import secrets
from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

HASHER = PasswordHasher()


async def verify_password(password_hash: str, password: str) -> bool:
    """Return whether a password matches a hash. No password matches an empty hash, and the check takes just as long."""
    return await asyncio.to_thread(_matches, password_hash or _unmatched_hash(), password)


def fingerprint(password_hash: str) -> str:
    """Return 16 hexadecimal digits that change with the password, for signed texts."""
    return hashlib.sha256(password_hash.encode()).hexdigest()[:16]


def _matches(password_hash: str, password: str) -> bool:
    try:
        return HASHER.verify(password_hash, password)
    except (VerificationError, InvalidHashError):
        return False


@cache
def _unmatched_hash() -> str:
    return HASHER.hash(secrets.token_hex())
