"""Servers with a media address of their own (`SWITCHBOARD_MEDIA_URL`), and the places of calls on them
(docs/decisions/0097-media-servers.md).

Each process of such a server reports to Redis every second how many calls it can hold and how many it holds. A call
that is answered or dialed reserves a place on one server until its media socket is open there, and the carrier gets the
address of that server. Without such servers, calls have a place in the capacity of all servers together, and without
Redis every call is admitted.
"""

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, cast
from uuid import UUID

import structlog
from redis.asyncio import Redis

from switchboard.engine.conversation.engine import CallEngine
from switchboard.foundation.redis_client import HASH_TAG
from switchboard.foundation.settings import Settings
from switchboard.resources.calls.allowance import (
    COUNT_FREE,
    REPORT_SECONDS,
    RESERVED_SECONDS,
    CallAdmission,
    tolerate_outage,
)

logger = structlog.get_logger()
GONE_SECONDS: Final = 60
"""Time after which nothing is known any more about a server that reports nothing."""
_REGIONS: Final = f"{HASH_TAG}:media_regions"
"""Set of the names of regions."""
PUBLIC: Final = ""
"""Address of the calls whose media sockets go to the public address, behind which every server is."""

# KEYS: the server's processes (limit, live calls, and time of the report, by node), its reserved places (calls, scored
# by the end of the reservation), and the servers of its region (addresses, scored by the calls that they can take).
_COUNT_FREE: Final = f"local address = ARGV[1]{COUNT_FREE}"
_REPORT: Final = f"""
redis.call('HSET', KEYS[1], ARGV[2], ARGV[3] .. ' ' .. #ARGV - 4 .. ' ' .. redis.call('TIME')[1])
for index = 5, #ARGV do redis.call('ZREM', KEYS[2], ARGV[index]) end
{_COUNT_FREE}
redis.call('ZADD', KEYS[3], free, address)
redis.call('SADD', KEYS[4], ARGV[4])
for _, key in ipairs({{KEYS[1], KEYS[3], KEYS[4]}}) do redis.call('EXPIRE', key, {GONE_SECONDS}) end
return {{redis.call('ZCARD', KEYS[2]), redis.call('ZRANDMEMBER', KEYS[3])}}
"""
_WITHDRAW: Final = f"""
redis.call('HDEL', KEYS[1], ARGV[2])
{_COUNT_FREE}
if known then redis.call('ZADD', KEYS[3], free, address) else redis.call('ZREM', KEYS[3], address) end
"""
_RESERVE: Final = f"""{_COUNT_FREE}
if not known then redis.call('ZREM', KEYS[3], address) return -1 end
if redis.call('ZSCORE', KEYS[2], ARGV[2]) then return 1 end
if free > 0 then
  redis.call('ZADD', KEYS[2], now + {RESERVED_SECONDS}, ARGV[2])
  redis.call('EXPIRE', KEYS[2], {RESERVED_SECONDS})
  redis.call('SET', KEYS[4], address, 'EX', {RESERVED_SECONDS})
end
redis.call('ZADD', KEYS[3], 'XX', math.max(free - 1, 0), address)
return free
"""


@dataclass(frozen=True, slots=True)
class MediaServer:
    """A server that carriers reach directly. `address` begins with `wss://` or `ws://`, and has no path."""

    address: str
    region: str

    @property
    def keys(self) -> tuple[str, str, str]:
        """Keys of the server's processes and of its reserved places, and of the servers of its region."""
        return _processes(self.address), _places(self.address), _servers(self.region)


@dataclass(frozen=True, slots=True)
class MediaServers:
    """Reserves places for calls, and returns the addresses to which their media sockets go."""

    node: str
    settings: Settings
    redis: Redis
    engine: CallEngine
    admission: CallAdmission

    @property
    def address_here(self) -> str:
        """Address of media sockets to this server; the public one if it has no other, or is about to stop."""
        return PUBLIC if self._own is None or self.engine.draining else self._own.address

    @property
    def _own(self) -> MediaServer | None:
        if self.settings.media_url is None:
            return None
        return MediaServer(self.settings.media_url, self.settings.region)

    async def reserve_place_here(self, call_id: UUID) -> str | None:
        """Reserve a place for a call that this server has answered: here, or on another server if this one is full.

        Return the address of the call's media socket, or None if no server has capacity.
        """
        own = self._own
        if own is None:
            return PUBLIC if await self.admission.reserve_place(call_id) else None
        # The first report of this process may not be there yet, and without Redis there is none.
        if not self.engine.draining and await self._reserve(own, call_id) != 0:
            return own.address
        return await self.reserve_place(call_id)

    async def reserve_place(self, call_id: UUID) -> str | None:
        """Reserve a place for a call on the server of this region that can take most calls, or on one of another region
        if none of this one can take any.

        Return the address of the call's media socket, or None if no server has capacity.
        """
        while (found := await self._find_server()) is not None:
            server, free = found
            if free <= 0:
                return None
            if await self._reserve(server, call_id) > 0:
                return server.address
        return PUBLIC if await self.admission.reserve_place(call_id) else None

    async def release_place(self, call_id: UUID) -> None:
        """Release the place of a call that will not have a media socket."""
        with tolerate_outage("a call's place is kept for a minute"):
            address = await self.redis.getdel(_place(call_id))
            if address is not None:
                await self.redis.zrem(_places(address.decode()), str(call_id))
                return
        await self.admission.release_place(call_id)

    async def has_capacity(self) -> bool:
        """Return whether a server has capacity for another call."""
        found = await self._find_server()
        return await self.admission.has_capacity() if found is None else found[1] > 0

    async def _find_server(self) -> tuple[MediaServer, float] | None:
        """Return the server that is the first choice, and how many calls it can take; None if none is known."""
        best: tuple[MediaServer, float] | None = None
        with tolerate_outage("calls go to the public address"):
            names = await cast("Awaitable[set[bytes]]", self.redis.smembers(_REGIONS))
            for region in sorted((name.decode() for name in names), key=lambda name: name != self.settings.region):
                top = await self.redis.zrevrange(_servers(region), 0, 0, withscores=True)
                for address, free in top:
                    if best is None or free > best[1]:
                        best = MediaServer(address.decode(), region), free
                if best is not None and best[1] > 0 and region == self.settings.region:
                    return best
            return best
        return None

    async def _reserve(self, server: MediaServer, call_id: UUID) -> int:
        """Reserve a place on a server; return 0 if it has none, and -1 if nothing is known about it."""
        with tolerate_outage("calls are admitted without a limit"):
            keys = (*server.keys, _place(call_id))
            reserved = self.redis.eval(_RESERVE, len(keys), *keys, server.address, str(call_id))
            return await cast("Awaitable[int]", reserved)
        return -1

    async def run_reports(self) -> None:
        """Report this server every second until canceled, and let it stop once no call has a place on it; then report
        that this process has no capacity. A server without a media address reports nothing here.
        """
        own = self._own
        if own is None:
            return
        try:
            with self.engine.hold():
                while not self.engine.stopping.is_set() and (await self._report(own) or not self.engine.draining):
                    with suppress(TimeoutError):
                        async with asyncio.timeout(REPORT_SECONDS):
                            await self.engine.stopping.wait()
        finally:
            with tolerate_outage("server capacity not withdrawn"):
                withdrawn = self.redis.eval(_WITHDRAW, len(own.keys), *own.keys, own.address, self.node)
                await cast("Awaitable[None]", withdrawn)

    async def _report(self, own: MediaServer) -> int:
        """Report this server, and return how many calls have a place on it; forget another one that is gone."""
        limit = 0 if self.engine.draining else self.engine.capacity.limit
        keys, live = (*own.keys, _REGIONS), map(str, self.engine.live_call_ids)
        with tolerate_outage("server capacity not reported"):
            report = self.redis.eval(_REPORT, len(keys), *keys, own.address, self.node, limit, own.region, *live)
            places, other = await cast("Awaitable[tuple[int, bytes]]", report)
            if not await self.redis.exists(_processes(other.decode())):
                await self.redis.zrem(_servers(own.region), other)
            return places
        return 0


def _processes(address: str) -> str:
    return f"{HASH_TAG}:media_processes:{address}"


def _places(address: str) -> str:
    return f"{HASH_TAG}:media_places:{address}"


def _servers(region: str) -> str:
    return f"{HASH_TAG}:media_servers:{region}"


def _place(call_id: UUID) -> str:
    return f"{HASH_TAG}:media_place:{call_id}"
