"""Admission of calls: the capacity of all servers together, in Redis (docs/decisions/0070-admission.md).

Each server reports every second how many calls it can hold and how many it holds. A call that is answered or dialed
reserves a place until its media socket is open, on whichever server that is. Without Redis every call is admitted.
"""

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Final, cast
from uuid import UUID

import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError

from switchboard.engine.conversation.engine import CallEngine
from switchboard.foundation.observability import metrics
from switchboard.foundation.redis_client import HASH_TAG

logger = structlog.get_logger()
REPORT_SECONDS: Final = 1.0
LIFETIME_SECONDS: Final = 5
"""Time after which a server that reports nothing more has no capacity."""
RESERVED_SECONDS: Final = 60
"""Time for which a call reserves a place: longer than a phone rings."""
_SERVERS: Final = f"{HASH_TAG}:call_capacity"
"""Hash of the servers' limit, live calls, and time of the report, by node."""
_RESERVATIONS: Final = f"{HASH_TAG}:call_reservations"
"""Sorted set of calls without a media socket; the score is the end of the reservation, by Redis' clock."""
_KEYS: Final = (_SERVERS, _RESERVATIONS)

_REPORT = """
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2] .. ' ' .. #ARGV - 2 .. ' ' .. redis.call('TIME')[1])
for index = 3, #ARGV do redis.call('ZREM', KEYS[2], ARGV[index]) end
"""
_COUNT_FREE = """
local now = tonumber(redis.call('TIME')[1])
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
local servers, free, known = redis.call('HGETALL', KEYS[1]), 0, false
for index = 2, #servers, 2 do
  local limit, live, at = string.match(servers[index], '(%d+) (%d+) (%d+)')
  if now - at > tonumber(ARGV[1]) then redis.call('HDEL', KEYS[1], servers[index - 1])
  else known, free = true, free + math.max(limit - live, 0) end
end
if not known then return -1 end
free = math.max(free - redis.call('ZCARD', KEYS[2]), 0)
"""
_RESERVE = f"""{_COUNT_FREE}
if redis.call('ZSCORE', KEYS[2], ARGV[2]) then return 1 end
if free > 0 then redis.call('ZADD', KEYS[2], now + ARGV[3], ARGV[2]) end
return free
"""


@dataclass(frozen=True, slots=True)
class CallAdmission:
    """Admits calls while the servers have capacity for them."""

    node: str
    redis: Redis
    engine: CallEngine

    async def reserve_place(self, call_id: UUID) -> bool:
        """Reserve a place for a call for a minute; return False if no server has one."""
        return await self._count(_RESERVE, LIFETIME_SECONDS, str(call_id), RESERVED_SECONDS) != 0

    async def release_place(self, call_id: UUID) -> None:
        """Release the place of a call that will not have a media socket."""
        try:
            await self.redis.zrem(_RESERVATIONS, str(call_id))
        except (RedisError, OSError) as error:
            logger.warning("a call's place is kept for a minute: Redis cannot be reached", error=type(error).__name__)

    async def has_capacity(self) -> bool:
        """Return whether a server has capacity for another call."""
        return await self._count(f"{_COUNT_FREE} return free", LIFETIME_SECONDS) != 0

    async def list_capacities(self) -> dict[str, tuple[int, int]]:
        """Return the calls that each server can hold and holds, by its node; nothing while Redis cannot be reached."""
        try:
            reports = await cast("Awaitable[dict[str | bytes, str | bytes]]", self.redis.hgetall(_SERVERS))
        except (RedisError, OSError):
            return {}
        capacities = {}
        for node, report in reports.items():
            limit, live, _ = _decode(report).split()
            capacities[_decode(node)] = int(limit), int(live)
        return capacities

    async def _count(self, script: str, *arguments: str | int) -> int:
        """Return the places that a script counts: -1 if it is not known."""
        try:
            return await cast("Awaitable[int]", self.redis.eval(script, len(_KEYS), *_KEYS, *arguments))
        except (RedisError, OSError) as error:
            logger.warning("calls are admitted without a limit: Redis cannot be reached", error=type(error).__name__)
            return -1

    async def run_reports(self) -> None:
        """Adapt this server's limit and report it every second, until canceled; then report that it has no capacity."""
        try:
            while True:
                live = self.engine.live_call_ids
                self.engine.capacity.update_limit(len(live))
                limit = 0 if self.engine.draining else self.engine.capacity.limit
                metrics.call_capacity.set(limit)
                metrics.call_utilization.set(len(live) / self.engine.capacity.limit)
                await self._report(limit, live)
                await asyncio.sleep(REPORT_SECONDS)
        finally:
            await self._withdraw()

    async def _report(self, limit: int, live: list[UUID]) -> None:
        try:
            report = self.redis.eval(_REPORT, len(_KEYS), *_KEYS, self.node, limit, *map(str, live))
            await cast("Awaitable[None]", report)
        except (RedisError, OSError) as error:
            logger.warning("server capacity not reported: Redis cannot be reached", error=type(error).__name__)

    async def _withdraw(self) -> None:
        try:
            await cast("Awaitable[int]", self.redis.hdel(_SERVERS, self.node))
        except (RedisError, OSError) as error:
            logger.warning(
                "server capacity not withdrawn: Redis cannot be reached",
                error=type(error).__name__,
            )


def _decode(text: str | bytes) -> str:
    return text.decode() if isinstance(text, bytes) else text
