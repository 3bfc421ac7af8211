"""Sentinels, and nodes of a cluster, as sources of the address of the current primary."""

from collections.abc import Awaitable, Callable, Sequence

import structlog
from redis.asyncio import Redis
from redis.crc import key_slot
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError

logger = structlog.get_logger()
HASH_TAG = "{switchboard}"
"""Part of each key of `RedisClients.commands` and `blocking`: in a cluster one server has them all (Redis Cluster
specification, hash tags)."""


async def locate_server(
    locators: Sequence[Redis], find: Callable[[Redis], Awaitable[tuple[str, int] | None]]
) -> tuple[str, int]:
    """Return the address that the first locator finds. Raises `RedisError`."""
    problem = "unknown to all that were asked"
    for locator in locators:
        try:
            if (address := await find(locator)) is not None:
                return address
        except (RedisError, OSError) as error:
            problem = str(error)
            logger.info("a Sentinel or node of the cluster does not answer", error=type(error).__name__)
    raise RedisConnectionError(f"the primary cannot be located: {problem}")


async def find_primary(sentinel: Redis, *, service: str) -> tuple[str, int] | None:
    """Return the primary that a Sentinel knows by this name (Redis, Sentinel clients, step 2)."""
    found = await sentinel.execute_command("SENTINEL GET-MASTER-ADDR-BY-NAME", service)  # type: ignore[no-untyped-call]
    return (found[0].decode(), int(found[1])) if found else None


async def find_slot_owner(node: Redis) -> tuple[str, int] | None:
    """Return the server of a cluster that has the keys with `HASH_TAG`."""
    slot = key_slot(HASH_TAG.encode())
    ranges = await node.execute_command("CLUSTER SLOTS")  # type: ignore[no-untyped-call]
    for first, last, (host, port, *_), *_ in ranges:
        if first <= slot <= last:
            # A node that was given no name of its own leaves it out (Redis, CLUSTER SLOTS).
            return (host or b"").decode() or node.connection_pool.connection_kwargs["host"], port
    return None
