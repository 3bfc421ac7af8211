"""Rate limits: GCRA, decided in one Lua call on Redis; per process while Redis is unreachable.

The same call checks whether the credential was revoked a moment ago, so that a cached credential is refused
immediately.
"""

import time
from dataclasses import dataclass

import structlog
from redis.exceptions import RedisError

from switchboard.foundation.redis_client import LimitsRedis
from switchboard.foundation.web.client_addresses import find_subscriber
from switchboard.foundation.web.principal import Limit

logger = structlog.get_logger()

# The theoretical arrival time moves one interval per request and may be at most `burst` intervals ahead of now.
_GCRA = """
if redis.call('EXISTS', KEYS[2]) == 1 then return {-1, 0, 0} end
local interval, burst = tonumber(ARGV[1]), tonumber(ARGV[2])
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + tonumber(time[2]) / 1000
local arrival = math.max(tonumber(redis.call('GET', KEYS[1]) or '0'), now) + interval
local ahead = arrival - now
if ahead > interval * burst then return {0, 0, math.ceil(ahead - interval * burst)} end
redis.call('SET', KEYS[1], string.format('%.3f', arrival), 'PX', math.ceil(ahead) + 1)
return {1, math.floor((interval * burst - ahead) / interval), math.ceil(ahead)}
"""

_RETURN = """
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + tonumber(time[2]) / 1000
local arrival = tonumber(redis.call('GET', KEYS[1]) or '0') - tonumber(ARGV[1])
if arrival <= now then redis.call('DEL', KEYS[1]) return end
redis.call('SET', KEYS[1], string.format('%.3f', arrival), 'PX', math.ceil(arrival - now) + 1)
"""

REVOKED_SECONDS = 60
"""The time for which a revocation is announced; longer than any process caches a credential."""


@dataclass(frozen=True, slots=True)
class RateLimitDecision:
    """Rate-limit decision: allowed, revoked, remaining burst, and seconds until reset."""

    allowed: bool
    revoked: bool
    remaining: int
    reset_seconds: float


class RateLimiter:
    """Rate limits by endpoint and credential."""

    def __init__(self, redis: LimitsRedis) -> None:
        self._redis = redis
        self._script = redis.register_script(_GCRA)  # type: ignore[misc] # declared for `Redis` only
        self._return_script = redis.register_script(_RETURN)  # type: ignore[misc] # declared for `Redis` only
        self._local: dict[str, float] = {}

    async def check(self, endpoint: str, credential: str, limit: Limit) -> RateLimitDecision:
        """Count one request."""
        key = _key("limit", credential, endpoint)
        try:
            allowed, remaining, wait = await self._script(
                keys=[key, _key("revoked", credential)], args=[1000 / limit.per_second, limit.burst]
            )
        except (RedisError, OSError) as error:
            logger.warning("rate limits are kept in this process: Redis cannot be reached", error=type(error).__name__)
            return self._check_here(key, limit)
        return RateLimitDecision(allowed == 1, allowed == -1, int(remaining), wait / 1000)

    async def check_address(self, endpoint: str, address: str, limit: Limit) -> RateLimitDecision:
        """Count one anonymous request of a client's address."""
        return await self.check(endpoint, f"address:{find_subscriber(address)}", limit)

    async def return_request(self, endpoint: str, credential: str, limit: Limit) -> None:
        """Take back what `check` has counted for one request."""
        key = _key("limit", credential, endpoint)
        try:
            await self._return_script(keys=[key], args=[1000 / limit.per_second])
        except (RedisError, OSError) as error:
            logger.warning("rate limits are kept in this process: Redis cannot be reached", error=type(error).__name__)
            self._local[key] = self._local.get(key, 0.0) - 1 / limit.per_second

    async def announce_revocation(self, credential: str) -> None:
        """Announce a revoked credential to every process, which may have it cached."""
        try:
            await self._redis.set(_key("revoked", credential), b"1", ex=REVOKED_SECONDS)
        except (RedisError, OSError) as error:
            logger.warning("revocation takes a few seconds: Redis cannot be reached", error=type(error).__name__)

    def _check_here(self, key: str, limit: Limit) -> RateLimitDecision:
        interval, moment = 1 / limit.per_second, time.monotonic()
        if len(self._local) > 10_000:
            self._local = {name: arrival for name, arrival in self._local.items() if arrival > moment}
        arrival = max(self._local.get(key, 0.0), moment) + interval
        ahead = arrival - moment
        if ahead > interval * limit.burst:
            return RateLimitDecision(False, False, 0, ahead - interval * limit.burst)
        self._local[key] = arrival
        return RateLimitDecision(True, False, int((interval * limit.burst - ahead) / interval), ahead)


def _key(kind: str, credential: str, *rest: str) -> str:
    """Return a key that a cluster stores on the same server as the credential's other keys."""
    return ":".join([kind, f"{{{credential}}}", *rest])


def build_rate_limit_headers(limit: Limit, verdict: RateLimitDecision) -> dict[str, str]:
    """Return `RateLimit` and `RateLimit-Policy` (draft-ietf-httpapi-ratelimit-headers), and `Retry-After` for a refused
    request.
    """
    window = max(1, round(limit.burst / limit.per_second))
    answer = {
        "RateLimit-Policy": f'"default";q={limit.burst};w={window}',
        "RateLimit": f'"default";r={verdict.remaining};t={max(0, round(verdict.reset_seconds))}',
    }
    if not verdict.allowed:
        answer["Retry-After"] = str(max(1, round(verdict.reset_seconds)))
    return answer
