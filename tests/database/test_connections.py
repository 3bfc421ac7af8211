"""Connections to an operator's PostgreSQL: libpq's URL parameters, a pooler in transaction mode, and limits."""

import asyncio
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import asyncpg
import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from switchboard.apps.embedded import DataDirectory
from switchboard.apps.process_runtime import open_process_runtime
from switchboard.apps.server import app
from switchboard.foundation.database import Database, engine, is_database_away
from switchboard.foundation.settings import Settings
from switchboard.migrations import upgrade
from switchboard.plugin_sdk.registry import Registry

from tests.fixtures.app import Organizations
from tests.fixtures.command_line import Operator
from tests.fixtures.debian_tools import run_pgbouncer
from tests.fixtures.eventually import eventually
from tests.fixtures.virtual_clock import CLOCK

REQUESTS, ORGANIZATIONS = 60, 6
POOLED_CONNECTIONS = 5


async def read_setting(url: str, name: str) -> str:
    database = Database(url)
    async with database.system() as session:
        value = (await (await session.connection()).exec_driver_sql(f"show {name}")).scalar_one()
    await database.close()
    return str(value)


@pytest.mark.parametrize(
    ("parameters", "setting", "value"),
    [
        ("sslmode=disable", "ssl", "off"),
        ("options=-c%20work_mem%3D7MB", "work_mem", "7MB"),
        ("application_name=switchboard-1", "application_name", "switchboard-1"),
        ("connect_timeout=3&keepalives=1&keepalives_idle=30&channel_binding=prefer", "ssl", "off"),
        ("statement_cache_size=0", "ssl", "off"),
        ("statement_cache_size=50&target_session_attrs=read-write", "ssl", "off"),
    ],
)
async def test_parameters_of_libpq_are_understood(
    servers: DataDirectory, parameters: str, setting: str, value: str
) -> None:
    assert await read_setting(f"{servers.database_url}&{parameters}", setting) == value


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        ("statement_cache_size=many", "statement_cache_size must be a whole number, not 'many'"),
        ("channel_binding=require", "channel_binding=require is not supported; use sslmode=verify-full"),
    ],
)
def test_a_bad_parameter_is_one_clear_line(
    servers: DataDirectory, tmp_path: Path, parameters: str, problem: str
) -> None:
    operator = Operator(
        SWITCHBOARD_DATA_DIR=str(tmp_path), SWITCHBOARD_DATABASE_URL=f"{servers.database_url}&{parameters}"
    )
    result = operator.run("serve")
    assert (result.returncode, result.stderr) == (1, f"switchboard: SWITCHBOARD_DATABASE_URL: {problem}\n")


@pytest.mark.parametrize(
    ("url", "hosts"),
    [
        ("postgresql://ada:pw@one:1,[::1]:2/name?a=b", ["ada:pw@one:1/name?a=b", "ada:pw@[::1]:2/name?a=b"]),
        ("postgresql://ada@one/name", ["ada@one/name"]),
        ("postgresql://ada@/name?host=/a,/b", ["ada@/name?host=%2Fa", "ada@/name?host=%2Fb"]),
        ("postgresql://ada@/name?host=a,b&port=1,2", ["ada@/name?host=a&port=1", "ada@/name?host=b&port=2"]),
        ("postgresql://ada@/name?host=a,b&port=1", ["ada@/name?host=a&port=1", "ada@/name?host=b&port=1"]),
        ("postgresql://ada@a,b/?target_session_attrs=prefer-standby", ["ada@a,b/?target_session_attrs=prefer-standby"]),
    ],
)
def test_each_host_of_a_url_has_a_url(url: str, hosts: list[str]) -> None:
    assert engine.split_hosts(url) == [f"postgresql://{host}" for host in hosts]


@pytest.fixture
def silent_port() -> Iterator[int]:
    """The port of a host that takes connections and answers nothing, as a frozen one does."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


async def test_a_host_that_does_not_answer_keeps_nobody_from_the_next_one(
    servers: DataDirectory, tmp_path: Path, silent_port: int
) -> None:
    async with run_pgbouncer(servers, tmp_path, connections=POOLED_CONNECTIONS) as pooler_url:
        hosts = f"switchboard@127.0.0.1:{silent_port},{urlsplit(pooler_url).netloc.rpartition('@')[2]}"
        database = Database(f"postgresql://{hosts}/switchboard?statement_cache_size=0&connect_timeout=1")
        await database.ping()
        assert database.pool.checkedin() == 1
        await database.close()


async def test_a_canceled_connection_is_tried_at_the_next_host(
    servers: DataDirectory, tmp_path: Path, silent_port: int
) -> None:
    """As by a heartbeat, which has less time than a connection."""
    async with run_pgbouncer(servers, tmp_path, connections=POOLED_CONNECTIONS) as pooler_url:
        hosts = f"switchboard@127.0.0.1:{silent_port},{urlsplit(pooler_url).netloc.rpartition('@')[2]}"
        database = Database(f"postgresql://{hosts}/switchboard?statement_cache_size=0")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await database.ping()
        async with asyncio.timeout(engine.HOST_SECONDS / 2):
            await database.ping()
        await database.close()


async def test_hosts_without_a_primary_are_an_outage(servers: DataDirectory) -> None:
    database = Database(f"{servers.database_url}&target_session_attrs=standby")
    with pytest.raises(ConnectionError, match="target_session_attrs") as caught:
        await database.ping()
    assert is_database_away(caught.value)
    await database.close()


async def test_requests_at_once_through_a_pooler_in_transaction_mode(
    servers: DataDirectory, registry: Registry, tmp_path: Path
) -> None:
    async with run_pgbouncer(servers, tmp_path, connections=POOLED_CONNECTIONS) as pooler_url:
        url = f"{pooler_url}?statement_cache_size=0"
        await upgrade(url)
        async with open_process_runtime(
            Settings(data_dir=tmp_path), database_url=url, redis_url=servers.redis_url, registry=registry
        ) as runtime:
            organizations = Organizations(runtime, app.create_app(runtime).test_client())
            callers = [await organizations.create() for _ in range(ORGANIZATIONS)]
            created = await asyncio.gather(
                *(
                    caller.post("/v1/contacts", {"phone_number": f"+1555010{number:04}"})
                    for caller in callers
                    for number in range(REQUESTS // ORGANIZATIONS)
                )
            )
            assert {response.status for response in created} == {201}
            for caller in callers:
                assert (await caller.get("/v1/contacts")).json["total"] == REQUESTS // ORGANIZATIONS


async def test_a_connection_that_the_server_has_closed_is_replaced(servers: DataDirectory) -> None:
    database, operator = Database(servers.database_url, pool_size=1), Database(servers.database_url, pool_size=1)

    async def read_connection() -> tuple[int, asyncpg.Connection]:
        async with database.system() as session:
            raw = await (await session.connection()).get_raw_connection()
            driver = cast("asyncpg.Connection", raw.driver_connection)
            return driver.get_server_pid(), driver

    first, driver = await read_connection()
    assert (await read_connection())[0] == first
    async with operator.system() as session:
        # Both have the same login, which may end its own sessions.
        connection = await session.connection()
        await connection.exec_driver_sql("reset role")
        await connection.execute(text("select pg_terminate_backend(:pid, 5000)"), {"pid": first})

    async def is_closed() -> bool:
        return bool(driver.is_closed())

    await eventually(is_closed)
    assert (await read_connection())[0] != first
    await database.close()
    await operator.close()


async def test_a_new_connection_that_breaks_at_once_is_an_outage(
    servers: DataDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object, **_options: object) -> None:
        raise asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation")

    database = Database(servers.database_url, pool_size=1)
    with monkeypatch.context() as patch:
        patch.setattr(asyncpg.Connection, "set_type_codec", fail)
        with pytest.raises(DBAPIError) as raised:
            async with database.system():
                pass
    assert is_database_away(raised.value)
    await database.ping()
    await database.close()


LAST_WORDS = b"SFATAL\0C57P01\0Mserver is going away\0\0"
"""The fields of an `ErrorResponse` (PostgreSQL manual, section 54.8)."""


@dataclass(slots=True)
class Pooler:
    """Passes a connection on, and can report an error to its client, which has asked for nothing."""

    socket: str
    to_client: asyncio.StreamWriter | None = None

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_server, to_server = await asyncio.open_unix_connection(self.socket)
        self.to_client = writer
        await asyncio.gather(copy(reader, to_server), copy(from_server, writer))

    def report_error(self) -> None:
        assert self.to_client is not None
        self.to_client.write(b"E" + struct.pack("!i", 4 + len(LAST_WORDS)) + LAST_WORDS)


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65_536):
        writer.write(data)
    writer.close()


async def test_an_error_that_comes_before_its_connection_closes_is_an_outage(servers: DataDirectory) -> None:
    """As PgBouncer reports that it has no server any more: the driver has read that, and not yet that it closes."""
    pooler = Pooler(f"{servers.sockets}/.s.PGSQL.5432")
    async with await asyncio.start_server(pooler.serve, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        database = Database(f"postgresql://switchboard@127.0.0.1:{port}/switchboard", pool_size=1)
        await database.ping()
        pooler.report_error()
        await asyncio.sleep(0.1)
        with pytest.raises(DBAPIError) as raised:
            async with database.system():
                pass
        assert is_database_away(raised.value)
        await database.ping()
        await database.close()


async def test_a_connection_that_does_not_answer_after_a_pause_is_replaced(
    servers: DataDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = Database(servers.database_url, pool_size=1)
    await database.ping()
    asked, execute = 0, asyncpg.Connection.execute

    async def fail_if_asked(driver: asyncpg.Connection, query: str, *arguments: object, **options: float) -> Any:
        nonlocal asked
        if query == "select 1":
            asked += 1
            assert options == {"timeout": engine.TRIAL_SECONDS}
            raise ConnectionResetError
        return await execute(driver, query, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(asyncpg.Connection, "execute", fail_if_asked)
        await database.ping()
        assert asked == 0, "it was used a moment ago"
        CLOCK.advance(engine.TRUSTED_SECONDS + 0.1)
        await database.ping()
    assert asked == 1
    await database.ping()
    await database.close()


async def test_a_statement_that_takes_too_long_is_canceled(servers: DataDirectory) -> None:
    database = Database(servers.database_url, statement_timeout=0.05)
    with pytest.raises(DBAPIError) as caught:
        async with database.system() as session:
            await (await session.connection()).execute(text("select pg_sleep(30)"))
    assert is_database_away(caught.value)
    await database.close()


async def test_a_reply_that_does_not_come_is_an_outage(servers: DataDirectory) -> None:
    database = Database(servers.database_url, reply_timeout=5)
    with pytest.raises(TimeoutError) as caught:
        async with database.system() as session:
            await (await session.connection()).execute(text("select pg_sleep(30)"))
    assert is_database_away(caught.value)
    await database.ping()
    await database.close()
