"""Pool of connections to PostgreSQL that counts the tasks that wait, and tries connections that were idle."""

import time
from typing import Any, Final, TypeAlias

import asyncpg
from sqlalchemy import AsyncAdaptedQueuePool
from sqlalchemy.event import listen
from sqlalchemy.exc import InvalidatePoolError
from sqlalchemy.pool import ConnectionPoolEntry

from switchboard.foundation.database.connection import PreambleConnection

TRUSTED_SECONDS: Final = 1.0
"""Time for which a connection is used again without being tried. A server that closes it is noticed in this time too;
one that vanishes without closing it, such as in a failover, is not.
"""
_IDLE_SINCE: Final = "idle_since"
_Adapted: TypeAlias = Any
"""SQLAlchemy's adapter of a connection, whose class is private to its dialect."""


class CountingPool(AsyncAdaptedQueuePool):
    """SQLAlchemy's pool for asyncio. `waiting` is the number of tasks that wait for a connection."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.waiting = 0
        listen(self, "checkin", _release)
        listen(self, "checkout", _try)

    def _do_get(self) -> ConnectionPoolEntry:
        self.waiting += 1
        try:
            return super()._do_get()
        finally:
            self.waiting -= 1


def _release(connection: _Adapted, entry: ConnectionPoolEntry) -> None:
    entry.info[_IDLE_SINCE] = time.monotonic()
    if connection is not None:
        connection.driver_connection.preamble = ""


def _try(connection: _Adapted, entry: ConnectionPoolEntry, _proxy: object) -> None:
    """Raise `InvalidatePoolError`, after which the pool opens another connection, if the connection cannot be used."""
    driver: PreambleConnection = connection.driver_connection
    idle_since: float | None = entry.info.get(_IDLE_SINCE)
    if driver.is_closed():
        raise InvalidatePoolError
    if idle_since is not None and time.monotonic() - idle_since > TRUSTED_SECONDS:
        try:
            connection.run_async(_ask)
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as error:
            raise InvalidatePoolError from error


async def _ask(driver: PreambleConnection) -> None:
    await driver.execute("select 1")
