"""Credentials: their text, and the principal of a bearer credential, with a cache of a few seconds."""

import hashlib
import secrets
import string
import time
import zlib
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import timedelta
from typing import TypeAlias
from uuid import UUID

from switchboard.foundation.database import Database, SystemSession, now
from switchboard.foundation.web.principal import Limit, Principal
from switchboard.resources.identity.models import Organization
from switchboard.resources.identity.queries import find_api_key

CACHE_SECONDS = 5.0
CACHE_SIZE = 10_000
LAST_USE_PRECISION = timedelta(minutes=1)


FindPrincipal: TypeAlias = Callable[[SystemSession, bytes], Awaitable[Principal | None]]
"""Returns the principal of the credential with this SHA-256 hash; None for an unknown credential, and for one that is
no longer valid.
"""


class Authenticator:
    """Resolves credentials by their prefix.

    A revoked credential is refused at once in spite of the cache, because every process hears
    `RateLimiter.announce_revocation`.
    """

    def __init__(self, database: Database, finders: Mapping[str, FindPrincipal]) -> None:
        self._database = database
        self._finders = finders
        self._cache: dict[bytes, tuple[Principal | None, float]] = {}
        """Principals by the hash of their credential, with the end of their validity."""

    async def __call__(self, credential: str) -> Principal | None:
        """Return the principal of a credential; None for one that is not valid."""
        find = self._finders.get(get_prefix(credential) or "")
        if find is None:
            return None
        credential_hash = digest(credential)
        principal, expires_at = self._cache.get(credential_hash, (None, 0.0))
        if expires_at > time.monotonic():
            return principal
        async with self._database.system() as session:
            principal = await find(session, credential_hash)
        if len(self._cache) >= CACHE_SIZE:
            self._cache.clear()
        self._cache[credential_hash] = principal, time.monotonic() + CACHE_SECONDS
        return principal


async def authenticate_key(session: SystemSession, key_hash: bytes) -> Principal | None:
    """Return the principal of the API key with this hash, and record its use to the minute.

    None for an unknown, expired, or revoked key. Nothing is recorded while the organization is being moved.
    """
    found = await find_api_key(session, key_hash)
    if found is None:
        return None
    key, organization = found
    is_recorded = key.last_used_at is not None and key.last_used_at >= now() - LAST_USE_PRECISION
    if not is_recorded and organization.moving_since is None:
        key.last_used_at = now()
    return build_principal(organization, credential_id=key.id, actor=f"key:{key.id}", scopes=key.scopes)


def build_principal(organization: Organization, *, credential_id: UUID, actor: str, scopes: Iterable[str]) -> Principal:
    """Build the principal of a credential, with the rate limits of its organization."""
    limits = organization.policy.rate_limits
    return Principal(
        organization_id=organization.id,
        credential_id=credential_id,
        actor=actor,
        scopes=frozenset(scopes),
        read_limit=Limit(limits.read.per_second, limits.read.burst),
        write_limit=Limit(limits.write.per_second, limits.write.burst),
        is_suspended=organization.suspended_at is not None,
        is_moving=organization.moving_since is not None,
    )


# Credentials as text: a prefix that names the kind, 32 random bytes in base62, a checksum. Stored as SHA-256 and shown
# once.
#
# The checksum (CRC-32, as in GitHub's tokens) lets scanners and this server reject a mistyped credential without a
# look-up; it protects nothing.

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
