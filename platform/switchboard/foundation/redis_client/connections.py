"""Connections to Redis with a deadline for each command, and connections that follow a failover."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, TypeAlias

from redis.asyncio import Connection, SSLConnection, UnixDomainSocketConnection
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import MovedError, ReadOnlyError
from redis.exceptions import TimeoutError as RedisTimeoutError

STEPS: Final = 5
"""Steps of a deadline."""

Locate: TypeAlias = Callable[[], Awaitable[tuple[str, int]]]
"""Return host and port of the current primary. Raises `RedisError`."""


class DeadlineConnection(AbstractConnection):
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


class TcpConnection(DeadlineConnection, Connection):
    """A connection over TCP."""


class TlsConnection(DeadlineConnection, SSLConnection):
    """A connection over TLS."""


class UnixConnection(DeadlineConnection, UnixDomainSocketConnection):
    """A connection over a Unix socket."""


class _FollowingConnection(DeadlineConnection):
    """A connection to the server that is the primary at the moment it connects.

    A server that is no longer the primary closes it: the next use locates the primary again.
    """

    host: str
    port: int

    def __init__(self, *, locate: Locate, **options: Any) -> None:
        super().__init__(**options)
        self._locate = locate

    async def connect(self) -> None:
        """Connect to the current primary. Raises `RedisError`."""
        if not self.is_connected:
            self.host, self.port = await self._locate()
        await super().connect()  # type: ignore[no-untyped-call]

    async def read_response(self, *args: Any, **options: Any) -> Any:
        """Read a response. Raises `RedisError`."""
        try:
            return await super().read_response(*args, **options)
        except (MovedError, ReadOnlyError) as error:
            await self.disconnect()
            raise RedisConnectionError("the server is no longer the primary") from error


class FollowingTcpConnection(_FollowingConnection, Connection):
    """A connection over TCP that follows a failover."""


class FollowingTlsConnection(_FollowingConnection, SSLConnection):
    """A connection over TLS that follows a failover."""


CONNECTION_CLASSES: dict[type[AbstractConnection], type[DeadlineConnection]] = {
    Connection: TcpConnection,
    SSLConnection: TlsConnection,
    UnixDomainSocketConnection: UnixConnection,
}
FOLLOWING_CLASSES: dict[type[AbstractConnection], type[DeadlineConnection]] = {
    Connection: FollowingTcpConnection,
    SSLConnection: FollowingTlsConnection,
}


@asynccontextmanager
async def _deadline(seconds: float | None) -> AsyncIterator[None]:
    """Bound a block in steps, so that an event loop that stands still uses up one of them and not the whole time.

    An answer that has arrived meanwhile is read in the next step.
    """
    loop = asyncio.get_running_loop()
    timer: asyncio.TimerHandle | None = None

    def step(left: int) -> None:
        nonlocal timer
        if left:
            timer = loop.call_later(step_seconds, step, left - 1)
        else:
            deadline.reschedule(loop.time())

    step_seconds = (seconds or 0.0) / STEPS
    if seconds is not None:
        timer = loop.call_later(step_seconds, step, STEPS - 1)
    try:
        async with asyncio.timeout(None) as deadline:
            yield
    except TimeoutError:
        raise RedisTimeoutError("Redis did not answer in time") from None
    finally:
        if timer is not None:
            timer.cancel()
