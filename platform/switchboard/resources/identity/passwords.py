"""Passwords: kept as argon2id hashes with the library's parameters, which take a twentieth of a second and 64 MiB each, so in a thread."""

import asyncio
import secrets
from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

HASHER = PasswordHasher()


async def hashed(password: str) -> str:
    """A password as it is kept."""
    return await asyncio.to_thread(HASHER.hash, password)


async def matches(password_hash: str, password: str) -> bool:
    """Whether it is that password. An empty hash is nobody's: no password matches, and finding that out takes as long."""
    return await asyncio.to_thread(_matches, password_hash or _nobodys(), password)


def _matches(password_hash: str, password: str) -> bool:
    try:
        return HASHER.verify(password_hash, password)
    except (VerificationError, InvalidHashError):
        return False


@cache
def _nobodys() -> str:
    return HASHER.hash(secrets.token_hex())
