"""Connections to PostgreSQL: by a URL as libpq takes it (PostgreSQL manual, section 34.1.1), their pool, and the share
of it that an organization may have.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit
from uuid import UUID
from weakref import WeakValueDictionary

import asyncpg
from sqlalchemy import Dialect, PoolResetState
from sqlalchemy.engine import AdaptedConnection
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.event import listen
from sqlalchemy.exc import DBAPIError, InvalidatePoolError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry

from switchboard.foundation.database.moves import FROZEN_STATE, OrganizationFrozen
from switchboard.foundation.settings import PREFIX, OperatorError

WITHOUT_EFFECT = frozenset(
    {
        "fallback_application_name",
        "gssencmode",
        "keepalives",
        "keepalives_count",
        "keepalives_idle",
        "keepalives_interval",
        "load_balance_hosts",
        "sslcompression",
        "sslsni",
        "tcp_user_timeout",
    }
)
"""Parameters of libpq without a counterpart in asyncpg, which change nothing but timing."""
DRIVER_ERRORS: Final = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)
"""asyncpg's errors, where SQLAlchemy does not translate them. The last one is also that of a statement for a connection
whose end the server, or a pooler, has reported before it closes it.
"""


class DatabaseUrlError(OperatorError, ValueError):
    """A parameter of the database's URL cannot be honored."""

    def __str__(self) -> str:
        return f"{PREFIX}DATABASE_URL: {super().__str__()}"


def create_engine(url: str, *, reply_timeout: float = 0, **options: Any) -> AsyncEngine:
    """Create an engine, without connecting, with these options of SQLAlchemy's `create_async_engine`.

    Of the URL's parameters asyncpg reads `sslmode` and the other `ssl…` ones, `host`, `service`, `passfile`, and
    `target_session_attrs`, and sends every other one to the server as a setting (`application_name`, `options`). This
    function reads `connect_timeout`, which each of several hosts has, and `statement_cache_size`, which is asyncpg's
    name: with 0, statements are prepared without a name and for one transaction only, as a pooler in transaction mode
    needs it. A reply may take `reply_timeout` seconds; 0: any time. Raises `DatabaseUrlError`.
    """
    arguments, dsn = _read_parameters(url)
    arguments["command_timeout"] = reply_timeout or None
    dsns = split_hosts(dsn)
    if len(dsns) > 1:
        arguments.setdefault("timeout", HOST_SECONDS)
    engine = create_async_engine("postgresql+asyncpg://", connect_args=arguments, **options)
    listen(engine.sync_engine, "do_connect", partial(_connect_to_host, deque(dsns)))
    return engine


def _connect_to_host(
    dsns: deque[str], dialect: Dialect, _entry: ConnectionPoolEntry, arguments: list[Any], options: dict[str, Any]
) -> DBAPIConnection:
    """Connect to the first host that can be used, beginning with the one that was used last, as libpq does it. `dsns`
    is a URL for each. asyncpg has one time limit for all of them, so that a host that does not answer, such as a frozen
    primary, would keep it from the next one.

    Raises the last host's error; `ConnectionError` if it has not the role that `target_session_attrs` demands.
    """
    problem: Exception = ConnectionError("the database's URL has no host")
    for dsn in tuple(dsns):
        try:
            return dialect.connect(*arguments, **options, dsn=dsn)
        except BaseException as error:  # also a cancellation: a heartbeat has less time than a connection
            if dsns[0] == dsn:
                dsns.rotate(-1)
            if isinstance(error.__cause__, asyncpg.TargetServerAttributeNotMatched):
                problem = ConnectionError("no host of the database has the role of target_session_attrs")
            elif isinstance(error, OSError | asyncpg.PostgresError | dialect.loaded_dbapi.Error):
                problem = error
            else:
                raise
    raise problem


def split_hosts(dsn: str) -> list[str]:
    """Return a URL for each of the hosts of a URL, in their order. asyncpg chooses a standby among all of them."""
    parts = urlsplit(dsn)
    parameters = dict(parse_qsl(parts.query))
    login, at, hosts = parts.netloc.rpartition("@")
    if parameters.get("target_session_attrs") == "prefer-standby":
        return [dsn]
    if hosts:
        return [urlunsplit(parts._replace(netloc=f"{login}{at}{host}")) for host in hosts.split(",")]
    names, ports = (parameters.get(name, "").split(",") for name in ("host", "port"))
    split = []
    for name, port in zip(names, ports if len(ports) == len(names) else ports * len(names), strict=False):
        own = {key: value for key, value in {**parameters, "host": name, "port": port}.items() if value}
        split.append(urlunsplit(parts._replace(query=urlencode(own))))
    return split


def _read_parameters(url: str) -> tuple[dict[str, Any], str]:
    """Return the arguments for asyncpg that the URL's parameters mean, and the URL with the rest of them."""
    parts = urlsplit(url)
    parameters = {name: value for name, value in parse_qsl(parts.query) if name not in WITHOUT_EFFECT}
    if parameters.pop("channel_binding", "prefer") == "require":
        raise DatabaseUrlError("channel_binding=require is not supported; use sslmode=verify-full")
    arguments: dict[str, Any] = {}
    if (seconds := _pop_number(parameters, "connect_timeout")) is not None:
        arguments["timeout"] = seconds or None
    if (size := _pop_number(parameters, "statement_cache_size")) is not None:
        arguments |= {"statement_cache_size": size, "prepared_statement_cache_size": size}
        if size == 0:
            arguments["prepared_statement_name_func"] = str
    return arguments, urlunsplit(parts._replace(query=urlencode(parameters)))


def _pop_number(parameters: dict[str, str], name: str) -> int | None:
    value = parameters.pop(name, None)
    if value is not None and not value.isdecimal():
        raise DatabaseUrlError(f"{name} must be a whole number, not {value!r}")
    return None if value is None else int(value)


HOST_SECONDS: Final = 5.0
"""Time that each of several hosts has to answer, unless the URL has a `connect_timeout`."""
TRUSTED_SECONDS: Final = 1.0
"""Time for which a connection is used again without being tried. A server that closes it is noticed in this time too;
one that vanishes without closing it, such as in a failover, is not.
"""
TRIAL_SECONDS: Final = 2.0
"""Time that a server has to answer when a connection is tried. One that is frozen or cut off closes nothing."""
STATEMENTS: Final = 2_000
"""Statements whose text SQLAlchemy keeps: more than the platform has."""
_IDLE_SINCE: Final = "idle_since"


def create_autocommit_engine(url: str, *, pool_size: int, reply_timeout: float = 0) -> AsyncEngine:
    """Create an engine whose connections begin no transaction by themselves, and return to the pool without one.

    A connection that was idle is tried before it is used again. See `create_engine`.
    """
    engine = create_engine(
        url,
        reply_timeout=reply_timeout,
        isolation_level="AUTOCOMMIT",
        pool_size=pool_size,
        max_overflow=0,
        query_cache_size=STATEMENTS,
        pool_timeout=10,
        pool_reset_on_return=None,  # `_roll_back` resets it
        hide_parameters=True,  # they hold personal data, and errors are logged
    )
    listen(engine.sync_engine, "reset", _roll_back)
    listen(engine.sync_engine, "checkin", _note_time)
    listen(engine.sync_engine, "checkout", _try)
    return engine


def _roll_back(connection: AdaptedConnection, _entry: ConnectionPoolEntry, state: PoolResetState) -> None:
    driver = connection.driver_connection
    if not state.terminate_only and not driver.is_closed() and driver.is_in_transaction():
        connection.run_async(lambda driver: driver.execute("rollback"))


def _note_time(_connection: AdaptedConnection | None, entry: ConnectionPoolEntry) -> None:
    entry.info[_IDLE_SINCE] = time.monotonic()


def _try(connection: AdaptedConnection, entry: ConnectionPoolEntry, _proxy: object) -> None:
    """Raise `InvalidatePoolError`, after which the pool opens another connection, if the connection cannot be used."""
    idle_since: float | None = entry.info.get(_IDLE_SINCE)
    if connection.driver_connection.is_closed():
        raise InvalidatePoolError
    if idle_since is not None and time.monotonic() - idle_since > TRUSTED_SECONDS:
        try:
            connection.run_async(lambda driver: driver.execute("select 1", timeout=TRIAL_SECONDS))
        except (*DRIVER_ERRORS, OSError) as error:
            raise InvalidatePoolError from error


async def get_driver(connection: AsyncConnection) -> Any:
    """Return asyncpg's connection (SQLAlchemy, Asyncio, "AsyncConnection.get_raw_connection")."""
    return (await connection.get_raw_connection()).driver_connection


async def run_script(connection: AsyncConnection, driver: Any, script: str) -> str:
    """Run statements without parameters in one message: they succeed together, or the transaction has failed
    (PostgreSQL manual, section 54.2.2.1). Return the last one's command tag.

    Raises `SQLAlchemyError`, and `OSError`; the connection is not used again then, except after `OrganizationFrozen`.
    """
    try:
        return str(await driver.execute(script))
    except BaseException as error:  # also a cancellation, after which nobody knows what was run
        if isinstance(error, asyncpg.PostgresError) and error.sqlstate == FROZEN_STATE:
            raise OrganizationFrozen from error
        is_lost = driver.is_closed()
        await connection.invalidate(error)
        if isinstance(error, DRIVER_ERRORS):
            raise DBAPIError(script, None, error, hide_parameters=True, connection_invalidated=is_lost) from error
        raise


WAIT_SECONDS: Final = 10.0
"""Time that a transaction waits for its organization's share, as long as for a connection of the pool."""


@dataclass(slots=True, eq=False)
class _Place:
    """A transaction's place in the share of an organization."""

    share: asyncio.Semaphore
    is_held: bool = True


_PLACE: Final[ContextVar[_Place | None]] = ContextVar("place", default=None)
"""The place that the running task has, or had."""


class ConnectionShares:
    """Lets each organization have half of a pool's connections at once. Its other transactions wait in their order,
    without a connection: what one organization waits for takes no connection that others need.
    """

    def __init__(self, pool_size: int) -> None:
        self._most = max(1, pool_size // 2)
        self._shares: WeakValueDictionary[UUID, asyncio.Semaphore] = WeakValueDictionary()
        self._turns: WeakValueDictionary[tuple[UUID, str], asyncio.Semaphore] = WeakValueDictionary()

    def take_turn(self, organization_id: UUID, name: str) -> AbstractAsyncContextManager[None]:
        """Hold the organization's turn of this name for the block. Other blocks of the process wait in order; they must
        not be nested.

        Raises SQLAlchemy's `TimeoutError` after `WAIT_SECONDS`.
        """
        turn = self._turns.setdefault((organization_id, name), asyncio.Semaphore(1))
        return _hold(turn, f"the organization's turn of {name} has not come within {WAIT_SECONDS:g} s")

    @asynccontextmanager
    async def take_place(self, organization_id: UUID) -> AsyncIterator[None]:
        """Take a place in the organization's share for the block. A block within a block of the same share needs none:
        it could wait for itself.

        Raises SQLAlchemy's `TimeoutError`, as the pool does, after `WAIT_SECONDS`.
        """
        share = self._shares.setdefault(organization_id, asyncio.Semaphore(self._most))
        outer = _PLACE.get()
        if outer is not None and outer.is_held and outer.share is share:
            yield
            return
        async with _hold(share, f"the organization has had {self._most} transactions for {WAIT_SECONDS:g} s"):
            place = _Place(share)
            _PLACE.set(place)
            try:
                yield
            finally:
                place.is_held = False
                _PLACE.set(outer)


@asynccontextmanager
async def _hold(semaphore: asyncio.Semaphore, reason: str) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(WAIT_SECONDS):
            await semaphore.acquire()
    except TimeoutError as error:
        raise PoolTimeout(reason) from error
    try:
        yield
    finally:
        semaphore.release()
