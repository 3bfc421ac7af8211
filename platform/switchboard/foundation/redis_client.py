"""Redis with deadlines: a server that is gone or frozen delays nobody for long.

Redis holds only what may be lost (docs/decisions/0022-redis-is-optional.md), so whoever uses it goes on without it.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

from redis.asyncio import Connection, ConnectionPool, Redis, SSLConnection, UnixDomainSocketConnection
from redis.asyncio.client import PubSub
from redis.asyncio.connection import AbstractConnection, parse_url
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.driver_info import DriverInfo
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

COMMAND_SECONDS = 0.5
BLOCKING_SECONDS = 5.0
"""Deadline of a connection on which a command waits at the server; longer than any such wait."""
AWAY_SECONDS = 1.0
"""Time for which commands fail at once after one has got no answer."""
PING_SECONDS = 5.0


class _WithDeadline(AbstractConnection):
    """A connection on which each command and each response has a deadline.

    redis-py's own `socket_timeout` writes with `asyncio.wait_for`, which before Python 3.12 swallows a cancellation
    that meets the end of the write: the canceled task goes on.
    """

    def __init__(self, *, deadline_seconds: float, **options: Any) -> None:
        super().__init__(**options)
        self._deadline_seconds = deadline_seconds

    async def send_packed_command(self, *args: Any, **options: Any) -> None:
        """Send a command. Raises redis-py's `TimeoutError`."""
        async with _deadline(self._deadline_seconds):
            await super().send_packed_command(*args, **options)

    async def read_response(
        self,
        disable_decoding: bool = False,
        timeout: float | None = None,  # noqa: ASYNC109 - redis-py's signature
        **options: Any,
    ) -> Any:
        """Read a response; a `timeout` of the caller's replaces the deadline. Raises redis-py's `TimeoutError`."""
        async with _deadline(self._deadline_seconds if timeout is None else None):
            return await super().read_response(disable_decoding, timeout, **options)


class _TcpConnection(_WithDeadline, Connection):
    pass


class _TlsConnection(_WithDeadline, SSLConnection):
    pass


class _UnixConnection(_WithDeadline, UnixDomainSocketConnection):
    pass


CONNECTION_CLASSES: dict[type[AbstractConnection], type[_WithDeadline]] = {
    Connection: _TcpConnection,
    SSLConnection: _TlsConnection,
    UnixDomainSocketConnection: _UnixConnection,
}


class DeadlineRedis(Redis):
    """A client whose commands fail within `COMMAND_SECONDS`, and at once for a while after one got no answer.

    Otherwise each request to a frozen server would wait for its own deadline.
    """

    _away_until = 0.0

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        """Execute a command. Raises `RedisError`."""
        if time.monotonic() < self._away_until:
            raise RedisTimeoutError("Redis did not answer a moment ago")
        try:
            return await super().execute_command(*args, **options)  # type: ignore[no-untyped-call]
        except RedisTimeoutError:
            self._away_until = time.monotonic() + AWAY_SECONDS
            raise


def connect_redis(url: str) -> DeadlineRedis:
    """Create a client for commands that the server answers at once. It connects on first use."""
    return cast("DeadlineRedis", DeadlineRedis.from_pool(_create_pool(url, COMMAND_SECONDS)))


def connect_blocking_redis(url: str) -> Redis:
    """Create a client for commands that wait at the server for up to a few seconds. It connects on first use."""
    return Redis.from_pool(_create_pool(url, BLOCKING_SECONDS))


async def receive_messages(subscription: PubSub) -> AsyncIterator[dict[str, Any]]:
    """Yield the messages of a subscription.

    Raises `RedisError` when the server goes away, or answers no ping for `PING_SECONDS`.
    """
    pinged = False
    while True:
        message = await subscription.get_message(timeout=PING_SECONDS)
        if message is None:
            if pinged:
                raise RedisTimeoutError("Redis does not answer the subscription")
            await subscription.ping()
        pinged = message is None
        if message is not None and message["type"] == "message":
            yield message


def _create_pool(url: str, seconds: float) -> ConnectionPool:
    options: dict[str, Any] = dict(parse_url(url))
    return ConnectionPool(
        connection_class=CONNECTION_CLASSES[options.pop("connection_class", Connection)],
        deadline_seconds=seconds,
        socket_connect_timeout=seconds,
        driver_info=DriverInfo(),  # otherwise each connection reads the package's metadata, for 2 ms
        # A connection that the server closed while it was idle is opened again; a passed deadline is not extended.
        retry=Retry(NoBackoff(), 1, supported_errors=(RedisConnectionError,)),
        **options,
    )


@asynccontextmanager
async def _deadline(seconds: float | None) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise RedisTimeoutError("Redis did not answer in time") from None
