"""From a bearer credential to its principal, cached for a few seconds."""

import time
from dataclasses import dataclass

from switchboard.database import Database
from switchboard.identity.credentials import digest, is_well_formed
from switchboard.identity.crossing import find_key
from switchboard.identity.models import ApiKey, Organization
from switchboard.identity.policy import Policy, RateLimit
from switchboard.web.principal import Limit, Principal

CACHE_SECONDS = 5.0
CACHE_SIZE = 10_000


@dataclass(frozen=True, slots=True)
class _Cached:
    principal: Principal | None
    until: float


class Authenticator:
    """Resolves credentials. A revoked key is refused at once all the same: `RateLimiter.tell_revoked` is heard by every process."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._cache: dict[bytes, _Cached] = {}

    async def __call__(self, credential: str) -> Principal | None:
        """The principal of a credential, None for one that is not valid."""
        if not is_well_formed(credential):
            return None
        key_hash = digest(credential)
        cached = self._cache.get(key_hash)
        if cached is not None and cached.until > time.monotonic():
            return cached.principal
        async with self._database.system() as session:
            found = await find_key(session, key_hash)
        principal = _principal(*found) if found else None
        if len(self._cache) >= CACHE_SIZE:
            self._cache.clear()
        self._cache[key_hash] = _Cached(principal, time.monotonic() + CACHE_SECONDS)
        return principal


def _principal(key: ApiKey, organization: Organization) -> Principal:
    limits = Policy.model_validate(organization.policy).rate_limits
    return Principal(
        organization_id=organization.id,
        credential_id=key.id,
        actor=f"key:{key.id}",
        scopes=frozenset(key.scopes),
        read_limit=_limit(limits.read),
        write_limit=_limit(limits.write),
    )


def _limit(limit: RateLimit) -> Limit:
    return Limit(limit.per_second, limit.burst)
