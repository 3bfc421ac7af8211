"""From a bearer credential to its principal, cached for a few seconds."""

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias
from uuid import UUID

from switchboard.foundation.database import Database, SystemSession
from switchboard.foundation.web.principal import Limit, Principal
from switchboard.resources.identity.credentials import digest, prefix_of
from switchboard.resources.identity.models import Organization
from switchboard.resources.identity.policy import Policy, RateLimit
from switchboard.resources.identity.system_queries import find_key

CACHE_SECONDS = 5.0
CACHE_SIZE = 10_000


Find: TypeAlias = Callable[[SystemSession, bytes], Awaitable[Principal | None]]
"""Whose credential has this hash? Asked under the system role."""


@dataclass(frozen=True, slots=True)
class _Cached:
    principal: Principal | None
    until: float


class Authenticator:
    """Resolves credentials by their prefix. A revoked one is refused at once all the same: every process hears `RateLimiter.tell_revoked`."""

    def __init__(self, database: Database, find: Mapping[str, Find]) -> None:
        self._database = database
        self._find = find
        self._cache: dict[bytes, _Cached] = {}

    async def __call__(self, credential: str) -> Principal | None:
        """The principal of a credential, None for one that is not valid."""
        find = self._find.get(prefix_of(credential) or "")
        if find is None:
            return None
        kept_hash = digest(credential)
        cached = self._cache.get(kept_hash)
        if cached is not None and cached.until > time.monotonic():
            return cached.principal
        async with self._database.system() as session:
            principal = await find(session, kept_hash)
        if len(self._cache) >= CACHE_SIZE:
            self._cache.clear()
        self._cache[kept_hash] = _Cached(principal, time.monotonic() + CACHE_SECONDS)
        return principal


async def find_api_key(session: SystemSession, key_hash: bytes) -> Principal | None:
    """The principal of an API key."""
    found = await find_key(session, key_hash)
    if found is None:
        return None
    key, organization = found
    return principal_of(organization, credential_id=key.id, actor=f"key:{key.id}", scopes=key.scopes)


def principal_of(organization: Organization, *, credential_id: UUID, actor: str, scopes: Iterable[str]) -> Principal:
    """A credential as the endpoints see it, with its organization's limits."""
    limits = Policy.model_validate(organization.policy).rate_limits
    return Principal(
        organization_id=organization.id,
        credential_id=credential_id,
        actor=actor,
        scopes=frozenset(scopes),
        read_limit=_limit(limits.read),
        write_limit=_limit(limits.write),
    )


def _limit(limit: RateLimit) -> Limit:
    return Limit(limit.per_second, limit.burst)
