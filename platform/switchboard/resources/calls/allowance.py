"""Calls that may start now: those of an organization, read by one statement under the lock of its calls, and those for
which the servers have capacity.
"""

import asyncio
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final, cast
from uuid import UUID

import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError

from switchboard.engine.conversation.engine import CallEngine
from switchboard.foundation.database import WriteSession, lock_name, try_lock_name
from switchboard.foundation.observability import metrics
from switchboard.foundation.redis_client.clients import HASH_TAG
from switchboard.foundation.web.errors import ApiError, OrganizationMoving, TooManyCalls
from switchboard.resources.calls import queries
from switchboard.resources.destinations.service import PauseState, pause_at_limit
from switchboard.resources.identity.service import get_policy

REQUESTS_TURN: Final = "calls"
ANNOUNCEMENTS_TURN: Final = "announced calls"
"""Turns of an organization's requests and of its carriers' announcements: of each kind, one transaction of a process
waits for the lock of calls with a connection. A carrier, which waits for seconds only, does not wait for the requests.
"""


async def pause_at_call_limits(session: WriteSession) -> None:
    """Pause outbound work if the organization has reached its calls or minutes per hour."""
    await pause_at_limit(session, "calls_per_hour", partial(_read_begun_calls, session))
    await pause_at_limit(session, "minutes_per_hour", partial(queries.read_minutes_talked, session))


async def _read_begun_calls(session: WriteSession) -> int:
    """Return the calls of the last hour, without waiting for the lock of calls."""
    found, _ = await queries.read_call_usage(session, limits_calls=True)
    # When many calls end and none begins, no admission merges their changes.
    if found.rows > queries.MANY_CHANGES and await try_lock_name(session, _name_lock(session)):
        await queries.merge_call_changes(session, limits_calls=True)
    return int(found.begun)


@dataclass(slots=True)
class CallAllowance:
    """Calls that an organization may start. Its transaction holds the lock of calls, so no other changes the numbers.

    `calls_left` is how many more concurrent calls the policy allows, without chats. `begun` and `talked` are the
    outbound calls and minutes of the last hour; 0 without a limit of them.
    """

    calls_left: int
    pauses: PauseState
    begun: int
    talked: float

    def find_refusal(self) -> ApiError | None:
        """Return why no outbound call may start now: `OrganizationSuspended`, `OutboundPaused`, or `TooManyCalls`; None
        if one may.
        """
        return self.pauses.find_refusal() or self.find_capacity_refusal()

    def find_capacity_refusal(self) -> ApiError | None:
        """Return why no call at all may start now, not even an inbound one: `OrganizationMoving`, or `TooManyCalls`.
        None if one may.
        """
        if self.pauses.is_moving:
            return OrganizationMoving()
        return None if self.calls_left > 0 else TooManyCalls()

    async def count_outbound_call(self, session: WriteSession) -> None:
        """Count a call that has been added, and pause outbound work if the organization has reached a limit."""
        self.calls_left -= 1
        self.begun += 1
        await self.pauses.pause_at_limit(session, "calls_per_hour", self.begun)
        await self.pauses.pause_at_limit(session, "minutes_per_hour", self.talked)


async def acquire_call_allowance(session: WriteSession) -> CallAllowance:
    """Return which calls the organization may start. Others that ask wait until this transaction ends."""
    policy = await get_policy(session, session.organization_id)  # read before the lock is taken
    limits = policy.outbound_limits
    limits_calls = limits.calls_per_hour is not None
    # Others need not wait for it: a new call has no minutes, and one that ends looks at the limit itself.
    talked = await queries.read_minutes_talked(session) if limits.minutes_per_hour is not None else 0
    await lock_calls(session)
    found, pause = await queries.read_call_usage(session, limits_calls=limits_calls)
    if found.rows > queries.MANY_CHANGES:
        await queries.merge_call_changes(session, limits_calls=limits_calls)
    return CallAllowance(
        calls_left=policy.max_concurrent_calls - found.running,
        pauses=PauseState(limits, pause, is_suspended=found.is_suspended, is_moving=found.is_moving),
        begun=found.begun,
        talked=talked,
    )


async def lock_calls(session: WriteSession) -> None:
    """Let no other transaction start a call of the organization, or dial for its campaigns, until this one ends."""
    await lock_name(session, _name_lock(session))


def _name_lock(session: WriteSession) -> str:
    return f"calls of {session.organization_id}"


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
        with tolerate_outage("a call's place is kept for a minute"):
            await self.redis.zrem(_RESERVATIONS, str(call_id))

    async def has_capacity(self) -> bool:
        """Return whether a server has capacity for another call."""
        return await self._count(f"{_COUNT_FREE} return free", LIFETIME_SECONDS) != 0

    async def list_capacities(self) -> dict[str, tuple[int, int]]:
        """Return the calls that each server can hold and holds, by its node; nothing while Redis cannot be reached."""
        try:
            reports = await cast("Awaitable[dict[bytes, bytes]]", self.redis.hgetall(_SERVERS))
        except (RedisError, OSError):
            return {}
        counts = {node.decode(): report.split() for node, report in reports.items()}
        return {node: (int(limit), int(live)) for node, (limit, live, _) in counts.items()}

    async def _count(self, script: str, *arguments: str | int) -> int:
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
