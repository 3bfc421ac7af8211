"""Redis with deadlines: one server, a primary behind Sentinels, or a cluster. An unreachable server delays nothing for
long.

Redis holds only what may be lost (docs/decisions/0022-redis-is-optional.md), so its users go on without it.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Literal, TypeAlias, cast
from urllib.parse import SplitResult, unquote, urlsplit

import structlog
from redis.asyncio import Connection, ConnectionPool, Redis, RedisCluster, SSLConnection, UnixDomainSocketConnection
from redis.asyncio.client import PubSub
from redis.asyncio.cluster import ClusterNode
from redis.asyncio.connection import AbstractConnection, parse_url
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.crc import key_slot
from redis.driver_info import DriverInfo
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import MovedError, ReadOnlyError, RedisClusterException, RedisError
from redis.exceptions import TimeoutError as RedisTimeoutError

logger = structlog.get_logger()

# Addresses of Redis: one server, Sentinels, or the nodes of a cluster.

SENTINEL_PORT = 26_379
REDIS_PORT = 6379


class InvalidRedisUrl(ValueError):
    """The URL names no Redis, or has a parameter that does not exist; the message is one line for the operator."""


@dataclass(frozen=True, slots=True)
class RedisAddress:
    """Servers of one Redis, and redis-py's options of a connection to them.

    `hosts` are the Sentinels, or some nodes of the cluster, as host and port; empty for one server, whose address is
    among the options. `service` is the name by which Sentinels know the primary; `sentinel_login` has `username` and
    `password` of the Sentinels themselves, or nothing.
    """

    kind: Literal["server", "sentinel", "cluster"]
    connection_class: type[AbstractConnection]
    options: dict[str, Any]
    hosts: tuple[tuple[str, int], ...] = ()
    service: str = ""
    sentinel_login: dict[str, Any] = field(default_factory=dict)


def parse_redis_url(url: str) -> RedisAddress:
    """Parse `redis://`, `rediss://` (TLS), and `unix://` as redis-py has them, and two forms for several servers.

    `redis+sentinel://user:password@host:port,host:port/service/database` names Sentinels, and
    `redis+cluster://host:port,host:port` nodes of a cluster; `rediss+…` is the same with TLS. Raises `InvalidRedisUrl`.
    """
    try:
        parts = urlsplit(url)
        scheme, _, kind = parts.scheme.partition("+")
        if not kind:
            options: dict[str, Any] = dict(parse_url(url))
            return RedisAddress("server", options.pop("connection_class", Connection), options)
        if scheme not in ("redis", "rediss") or kind not in ("sentinel", "cluster"):
            raise InvalidRedisUrl(f"{parts.scheme}:// is not a scheme of Redis")
        return _parse_hosts(parts._replace(scheme=scheme), sentinel=kind == "sentinel")
    except InvalidRedisUrl:
        raise
    except ValueError as error:
        # `urlsplit` quotes what it takes for a port, which may be a part of a password.
        wrong_port = str(error).startswith("Port")
        advice = "a port is not a number; special characters of a password must be percent-encoded"
        raise InvalidRedisUrl(advice if wrong_port else str(error)) from None


def _parse_hosts(parts: SplitResult, *, sentinel: bool) -> RedisAddress:
    login, at, hosts = parts.netloc.rpartition("@")
    service, _, database = parts.path.strip("/").partition("/") if sentinel else ("", "", parts.path.strip("/"))
    if sentinel and not service:
        raise InvalidRedisUrl("the name that the Sentinels know the primary by is missing: redis+sentinel://host/name")
    if database and not database.isdecimal():
        raise InvalidRedisUrl("the database is not a number; special characters of a password must be percent-encoded")
    if not sentinel and int(database or 0):
        raise InvalidRedisUrl("a cluster has database 0 only")
    each: list[dict[str, Any]] = [
        dict(parse_url(parts._replace(netloc=f"{login}{at}{host}", path=f"/{database}").geturl()))
        for host in hosts.split(",")
    ]
    if not all(options.get("host") for options in each):
        raise InvalidRedisUrl("a host is missing")
    options = {name: value for name, value in each[0].items() if name not in ("host", "port", "connection_class")}
    sentinel_login = {}
    if sentinel:
        names = {name for name in ("username", "password") if f"sentinel_{name}" in options}
        sentinel_login = {name: options.pop(f"sentinel_{name}") for name in names}
    return RedisAddress(
        "sentinel" if sentinel else "cluster",
        each[0].get("connection_class", Connection),
        options,
        tuple((one["host"], one.get("port", SENTINEL_PORT if sentinel else REDIS_PORT)) for one in each),
        unquote(service),
        sentinel_login,
    )


# Sentinels, and nodes of a cluster, as sources of the address of the current primary.

HASH_TAG = "{switchboard}"
"""Part of each key of `RedisClients.commands` and `blocking`: in a cluster one server has them all (Redis Cluster
specification, hash tags)."""


async def locate_server(
    locators: Sequence[Redis], find: Callable[[Redis], Awaitable[tuple[str, int] | None]]
) -> tuple[str, int]:
    """Return the address that the first locator finds. Raises `RedisError`, which names the problem of each."""
    problems: list[str] = []
    for locator in locators:
        try:
            if (address := await find(locator)) is not None:
                return address
        except (RedisError, OSError) as error:
            problems.append(str(error))
            logger.info("a Sentinel or node of the cluster does not answer", error=type(error).__name__)
    found = "; ".join(dict.fromkeys(problems)) or "unknown to all that were asked"
    raise RedisConnectionError(f"the primary cannot be located: {found}")


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


# Connections to Redis with a deadline for each command, which follow a failover.

STEPS: Final = 5
"""Steps of a deadline."""

Locate: TypeAlias = Callable[[], Awaitable[tuple[str, int]]]
"""Return host and port of the current primary. Raises `RedisError`."""


class DeadlineConnection(AbstractConnection):
    """A connection on which each command and each response has a deadline.

    redis-py's own `socket_timeout` writes with `asyncio.wait_for`, which before Python 3.12 swallows a cancellation
    that meets the end of the write: the canceled task goes on.

    With `locate` it connects to the server that is the primary at that moment. A server that is no longer the primary
    closes it: the next use locates the primary again.
    """

    host: str
    port: int

    def __init__(self, *, deadline_seconds: float, locate: Locate | None = None, **options: Any) -> None:
        super().__init__(**options)
        self._deadline_seconds = deadline_seconds
        self._locate = locate

    async def connect(self) -> None:
        """Connect, to the current primary if it is to be located. Raises `RedisError`."""
        if self._locate is not None and not self.is_connected:
            self.host, self.port = await self._locate()
        await super().connect()  # type: ignore[no-untyped-call]

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
        """Read a response; a `timeout` of the caller's replaces the deadline. Raises `RedisError`, and redis-py's
        `TimeoutError`.
        """
        try:
            async with _deadline(self._deadline_seconds if timeout is None else None):
                return await super().read_response(disable_decoding, timeout, **options)
        except (MovedError, ReadOnlyError) as error:
            if self._locate is None:
                raise
            await self.disconnect()
            raise RedisConnectionError("the server is no longer the primary") from error


class TcpConnection(DeadlineConnection, Connection):
    """A connection over TCP."""


class TlsConnection(DeadlineConnection, SSLConnection):
    """A connection over TLS."""


class UnixConnection(DeadlineConnection, UnixDomainSocketConnection):
    """A connection over a Unix socket."""


CONNECTION_CLASSES: dict[type[AbstractConnection], type[DeadlineConnection]] = {
    Connection: TcpConnection,
    SSLConnection: TlsConnection,
    UnixDomainSocketConnection: UnixConnection,
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


COMMAND_SECONDS = 0.5
BLOCKING_SECONDS = 5.0
"""Deadline of a connection on which a command waits at the server; longer than any such wait."""
AWAY_SECONDS = 1.0
"""Time for which commands fail at once after one has got no answer."""
PING_SECONDS = 5.0
DRIVER = DriverInfo()
"""Read once: otherwise each connection reads the package's metadata, for 2 ms."""
TLS_FILES = ("ssl_ca_certs", "ssl_ca_path", "ssl_certfile", "ssl_keyfile")


class _AwayCheck:
    """Fail commands at once for a while after a command got no answer, instead of waiting for the deadline of each."""

    _away_until = 0.0

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        """Execute a command. Raises `RedisError`."""
        if time.monotonic() < self._away_until:
            raise RedisTimeoutError("Redis did not answer a moment ago")
        try:
            return await super().execute_command(*args, **options)  # type: ignore[misc]
        except RedisTimeoutError:
            self._away_until = time.monotonic() + AWAY_SECONDS
            raise
        except RedisClusterException as error:  # which redis-py does not derive from `RedisError`
            raise RedisConnectionError(str(error)) from error


class DeadlineRedis(_AwayCheck, Redis):  # type: ignore[misc] # redis-py's own classes disagree
    """A client whose commands fail within `COMMAND_SECONDS`, and at once for a while after one got no answer."""


class _DeadlineCluster(_AwayCheck, RedisCluster):  # type: ignore[misc] # redis-py's own classes disagree
    """The same for keys that lie anywhere in a cluster."""

    async def initialize(self) -> "_DeadlineCluster":
        """Read the cluster's layout if it may have changed. redis-py leaves the nodes of the layout before open."""
        before = self._list_nodes()
        await super().initialize()
        present = {id(node) for node in self._list_nodes()}
        for node in before:
            if id(node) not in present:
                node.update_active_connections_for_reconnect()
                await node.disconnect_free_connections()
        return self

    async def aclose(self) -> None:
        """Close every connection."""
        await super().aclose()
        for node in self._list_nodes():
            await node.disconnect()

    def _list_nodes(self) -> list[ClusterNode]:
        manager = self.nodes_manager
        serving = (node for nodes in manager.slots_cache.values() for node in nodes)
        return list({id(node): node for node in (*manager.nodes_cache.values(), *serving)}.values())


LimitsRedis: TypeAlias = DeadlineRedis | _DeadlineCluster
"""Client for single keys and scripts, which has no transactions and no subscriptions."""


@dataclass(frozen=True, slots=True)
class RedisClients:
    """The clients of a process. They connect on first use.

    The commands of `blocking` wait at the server for up to a few seconds. `locators` are the Sentinels, or nodes of the
    cluster, that are asked for the primary. `limits` takes keys without `HASH_TAG`, which
    a cluster spreads over its servers. The other two follow one server: redis-py's asynchronous cluster client has
    no subscriptions, and blocks the event loop in transactions.
    """

    commands: DeadlineRedis
    blocking: Redis
    limits: LimitsRedis
    locators: tuple[Redis, ...] = ()

    async def close(self) -> None:
        """Close every connection."""
        for client in (self.commands, self.blocking, self.limits, *self.locators):
            await client.aclose()


def open_redis_clients(url: str) -> RedisClients:
    """Create the clients for a URL of `parse_redis_url`, without connecting. Raises `InvalidRedisUrl`."""
    address = parse_redis_url(url)
    try:
        locators = _create_locators(address)
        options = address.options
        limits: LimitsRedis | None = None
        if address.kind == "sentinel":
            find = partial(find_primary, service=address.service)
            options = {**options, "locate": partial(locate_server, locators, find)}
        elif address.kind == "cluster":
            options = {**options, "locate": partial(locate_server, locators, find_slot_owner)}
            limits = _create_cluster(address)
        commands = cast("DeadlineRedis", DeadlineRedis.from_pool(_create_pool(address, COMMAND_SECONDS, options)))
        blocking = Redis.from_pool(_create_pool(address, BLOCKING_SECONDS, options))
    except TypeError as error:
        name = str(error).rpartition("argument ")[2]
        advice = "; TLS needs rediss" if name.startswith("'ssl_") else ""
        raise InvalidRedisUrl(f"a parameter is not supported: {name}{advice}") from None
    except RedisError as error:
        raise InvalidRedisUrl(str(error)) from None
    return RedisClients(commands, blocking, limits or commands, locators)


async def receive_messages(subscription: PubSub) -> AsyncIterator[dict[str, Any]]:
    """Yield the messages of a subscription.

    Raises `RedisError` when the server closes the connection, or answers no ping for `PING_SECONDS`.
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


def _create_pool(address: RedisAddress, seconds: float, options: dict[str, Any]) -> ConnectionPool:
    pool = ConnectionPool(
        connection_class=CONNECTION_CLASSES[address.connection_class],
        deadline_seconds=seconds,
        socket_connect_timeout=seconds,
        driver_info=DRIVER,
        # A connection that the server closed while it was idle is opened again; a passed deadline is not extended.
        retry=Retry(NoBackoff(), 1, supported_errors=(RedisConnectionError,)),
        **options,
    )
    # The connection is not opened: the call raises `TypeError` or `RedisError` for options that redis-py does not take.
    connection = pool.make_connection()  # type: ignore[no-untyped-call]
    if isinstance(connection, SSLConnection):
        # Read the files of certificates, which otherwise the first connection does.
        try:
            connection.ssl_context.get()
        except OSError as error:  # such as `ssl.SSLError`; neither names the file
            files = " and ".join(f"{name}={options[name]}" for name in TLS_FILES if name in options)
            raise InvalidRedisUrl(f"{files} cannot be used: {error.strerror or error}") from None
    return pool


def _create_locators(address: RedisAddress) -> tuple[Redis, ...]:
    """Create a client for each host. Sentinels have logins of their own."""
    options = address.options
    if address.kind == "sentinel":
        options = {name: value for name, value in options.items() if name.startswith("ssl_")} | address.sentinel_login
    return tuple(
        Redis.from_pool(_create_pool(address, COMMAND_SECONDS, {**options, "host": host, "port": port}))
        for host, port in address.hosts
    )


def _create_cluster(address: RedisAddress) -> _DeadlineCluster:
    cluster = _DeadlineCluster(
        startup_nodes=[ClusterNode(host, port) for host, port in address.hosts],
        ssl=address.connection_class is SSLConnection,
        socket_connect_timeout=COMMAND_SECONDS,
        driver_info=DRIVER,
        retry=Retry(NoBackoff(), 1, supported_errors=(RedisConnectionError,)),
        **address.options,
    )
    # The constructor takes no class of connections; every node is created from these.
    options = cluster.connection_kwargs
    options["connection_class"] = CONNECTION_CLASSES[address.connection_class]
    options["deadline_seconds"] = COMMAND_SECONDS
    cluster.nodes_manager.startup_nodes = {
        name: ClusterNode(node.host, node.port, **options) for name, node in cluster.nodes_manager.startup_nodes.items()
    }
    return cluster
