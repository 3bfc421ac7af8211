"""Calls that may start now: those of an organization, read by one statement under the lock of its calls, and those for
which the servers have capacity.
"""

import asyncio
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, cast
from uuid import UUID

import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError

from switchboard.engine.conversation.engine import CallEngine
from switchboard.foundation.database import WriteSession
from switchboard.foundation.observability import metrics
from switchboard.foundation.redis_client import HASH_TAG
from switchboard.foundation.web.errors import ApiError, OrganizationMoving, TooManyCalls
from switchboard.resources.calls.queries import PARTS, lock_calls, lock_part_of_calls, release_part_of_calls
from switchboard.resources.destinations.service import LimitCounts, read_limit_counts
from switchboard.resources.identity.policy import Policy
from switchboard.resources.identity.service import get_policy

REQUESTS_TURN: Final = "calls"
ANNOUNCEMENTS_TURN: Final = "announced calls"
"""Turns of an organization's requests and of its carriers' announcements: of each kind, one transaction of a process
waits for the lock of calls with a connection. A carrier, which waits for seconds only, does not wait for the requests.
"""


@dataclass(slots=True)
class CallAllowance:
    """Calls that an organization may start. Its transaction holds the lock of calls, so no other changes the numbers;
    or a part of the lock, so that each of the others starts one call at most, and no limit is reached by that.

    `calls_left` is how many more concurrent calls the policy allows, without chats.
    """

    calls_left: int
    counts: LimitCounts

    def find_refusal(self) -> ApiError | None:
        """Return why no outbound call may start now: `OrganizationSuspended`, `OutboundPaused`, or `TooManyCalls`; None
        if one may.
        """
        return self.counts.pauses.find_refusal() or self.find_capacity_refusal()

    def find_capacity_refusal(self) -> ApiError | None:
        """Return why no call at all may start now, not even an inbound one: `OrganizationMoving`, or `TooManyCalls`.
        None if one may.
        """
        if self.counts.pauses.is_moving:
            return OrganizationMoving()
        return None if self.calls_left > 0 else TooManyCalls()

    def is_far_from_limits(self) -> bool:
        """Return whether a call more in each part of the lock of calls reaches no limit of calls."""
        most = self.counts.pauses.limits.calls_per_hour
        return self.calls_left > PARTS and (most is None or self.counts.used["calls_per_hour"] < most - PARTS)

    async def count_outbound_call(self, session: WriteSession) -> None:
        """Count a call that has been added, and pause outbound work if the organization has reached a limit."""
        self.calls_left -= 1
        self.counts.used["calls_per_hour"] += 1
        await self.counts.pause_at_reached(session, "calls_per_hour", "minutes_per_hour")


async def acquire_call_allowance(session: WriteSession, *, for_one: bool = False) -> CallAllowance:
    """Return which calls the organization may start. Others that ask wait until this transaction ends.

    With `for_one` in a transaction that asks once and starts one call at most: while no limit is near, it waits only
    for those that have the same part of the lock.
    """
    policy = await get_policy(session, session.organization_id)  # read before the lock is taken
    if for_one and policy.max_concurrent_calls > 2 * PARTS:
        await lock_part_of_calls(session)
        allowance = await _read_allowance(session, policy)
        if allowance.is_far_from_limits():
            return allowance
        await release_part_of_calls(session)
    await lock_calls(session)
    return await _read_allowance(session, policy)


async def _read_allowance(session: WriteSession, policy: Policy) -> CallAllowance:
    counts = await read_limit_counts(session)
    return CallAllowance(policy.max_concurrent_calls - counts.running, counts)


# Admission of calls: the capacity of all servers together, in Redis (docs/decisions/0070-admission.md).
#
# Each server reports every second how many calls it can hold and how many it holds. A call that is answered or dialed
# reserves a place until its media socket is open, on whichever server that is. Without Redis every call is admitted.

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
COUNT_FREE: Final = f"""
local now = tonumber(redis.call('TIME')[1])
local processes, free, known = redis.call('HGETALL', KEYS[1]), 0, false
for index = 2, #processes, 2 do
  local limit, live, at = string.match(processes[index], '(%d+) (%d+) (%d+)')
  if now - at > {LIFETIME_SECONDS} then redis.call('HDEL', KEYS[1], processes[index - 1])
  else known, free = true, free + math.max(limit - live, 0) end
end
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
free = math.max(free - redis.call('ZCARD', KEYS[2]), 0)
"""
"""Lua that counts the calls that processes (KEYS[1]) can still hold, without the reserved places (KEYS[2])."""
_RESERVE = f"""{COUNT_FREE}
if not known then return -1 end
if redis.call('ZSCORE', KEYS[2], ARGV[1]) then return 1 end
if free > 0 then redis.call('ZADD', KEYS[2], now + {RESERVED_SECONDS}, ARGV[1]) end
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
        return await self._count(_RESERVE, str(call_id)) != 0

    async def release_place(self, call_id: UUID) -> None:
        """Release the place of a call that will not have a media socket."""
        with tolerate_outage("a call's place is kept for a minute"):
            await self.redis.zrem(_RESERVATIONS, str(call_id))

    async def has_capacity(self) -> bool:
        """Return whether a server has capacity for another call."""
        return await self._count(f"{COUNT_FREE} return known and free or -1") != 0

    async def list_capacities(self) -> dict[str, tuple[int, int]]:
        """Return the calls that each server can hold and holds, by its node; nothing while Redis cannot be reached."""
        try:
            reports = await cast("Awaitable[dict[bytes, bytes]]", self.redis.hgetall(_SERVERS))
        except (RedisError, OSError):
            return {}
        counts = {node.decode(): report.split() for node, report in reports.items()}
        return {node: (int(limit), int(live)) for node, (limit, live, _) in counts.items()}

    async def _count(self, script: str, *arguments: str) -> int:
        """Return the places that a script counts: -1 if it is not known."""
        with tolerate_outage("calls are admitted without a limit"):
            return await cast("Awaitable[int]", self.redis.eval(script, len(_KEYS), *_KEYS, *arguments))
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
                with tolerate_outage("server capacity not reported"):
                    report = self.redis.eval(_REPORT, len(_KEYS), *_KEYS, self.node, limit, *map(str, live))
                    await cast("Awaitable[None]", report)
                await asyncio.sleep(REPORT_SECONDS)
        finally:
            with tolerate_outage("server capacity not withdrawn"):
                await cast("Awaitable[int]", self.redis.hdel(_SERVERS, self.node))


@contextmanager
def tolerate_outage(consequence: str) -> Iterator[None]:
    """Log an outage of Redis within the block, and what follows from it."""
    try:
        yield
    except (RedisError, OSError) as error:
        logger.warning(f"{consequence}: Redis cannot be reached", error=type(error).__name__)
