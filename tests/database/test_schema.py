"""Processes and the schema: they wait for one that is older, work on one that is a version ahead, and refuse others."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from time import perf_counter

import asyncpg
import pytest
from aiohttp import ClientSession
from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy import Connection
from switchboard.apps.embedded import DataDirectory
from switchboard.foundation.database import create_engine
from switchboard.migrations import MigrationError, upgrade, wait_for_schema
from switchboard.migrations.operations import create_index_concurrently

from tests.fixtures.command_line import Operator, start_command
from tests.fixtures.eventually import eventually, wait_for_port
from tests.fixtures.free_ports import find_free_port
from tests.fixtures.next_version import REVISION, become_next_version

ADD_NICKNAME = 'op.execute("alter table call add column nickname text")'
INDEX_DATES = 'create_index_concurrently("ix_call_dates", "call", ["organization_id", "started_at"])'


async def run_statements(url: str, *statements: str) -> None:
    connection = await asyncpg.connect(url)
    for statement in statements:
        await connection.execute(statement)
    await connection.close()


@asynccontextmanager
async def read_calls(url: str) -> AsyncIterator[asyncpg.Connection]:
    """Hold the lock of a transaction that reads calls."""
    reader = await asyncpg.connect(url)
    try:
        async with reader.transaction():
            await reader.execute("select from call")
            yield reader
    finally:
        await reader.close()


@dataclass(frozen=True, slots=True)
class Server:
    """A server, and the file of its standard error."""

    process: ForkServerProcess
    printed: Path

    async def wait_until_it_prints(self, text: str) -> str:
        """Wait for a text, and return all that was printed."""

        async def look() -> str:
            return self.printed.read_text()

        return await eventually(look, lambda printed: text in printed)

    async def stop(self) -> int | None:
        """Stop the server and return its exit status."""
        self.process.terminate()
        await asyncio.to_thread(self.process.join)
        return self.process.exitcode


@asynccontextmanager
async def run_serve(operator: Operator, folder: Path) -> AsyncIterator[Server]:
    printed = folder / "printed"
    printed.touch()
    server = Server(await asyncio.to_thread(start_command, ["serve"], operator.environment, error=printed), printed)
    try:
        yield server
    finally:
        await server.stop()


def build_operator(servers: DataDirectory, url: str, folder: Path, port: int) -> Operator:
    return Operator(
        SWITCHBOARD_DATA_DIR=str(folder),
        SWITCHBOARD_DATABASE_URL=url,
        SWITCHBOARD_REDIS_URL=servers.redis_url,
        SWITCHBOARD_PORT=str(port),
        SWITCHBOARD_DRAIN_SECONDS="0",
    )


async def test_a_server_waits_for_its_schema(servers: DataDirectory, own_database: str, tmp_path: Path) -> None:
    port = find_free_port()
    async with run_serve(build_operator(servers, own_database, tmp_path, port), tmp_path) as server:
        await server.wait_until_it_prints("run `switchboard migrate`")
        await upgrade(own_database)
        await wait_for_port("127.0.0.1", port)


async def test_a_waiting_server_stops_at_once(servers: DataDirectory, own_database: str, tmp_path: Path) -> None:
    async with run_serve(build_operator(servers, own_database, tmp_path, find_free_port()), tmp_path) as server:
        assert "not started yet" in (await server.wait_until_it_prints("\n")).splitlines()[0]
        assert await server.stop() == 0


async def test_a_program_works_on_the_schema_of_the_next_version(
    servers: DataDirectory, own_database: str, tmp_path: Path
) -> None:
    await upgrade(own_database)
    with become_next_version(tmp_path, 'op.execute("alter table contact add column nickname text")'):
        await upgrade(own_database)
    port = find_free_port()
    operator = build_operator(servers, own_database, tmp_path, port)
    created = operator.ask("orgs", "create", "--name", "Old program, new schema")
    credential = {"Authorization": f"Bearer {created['api_key']}"}
    async with run_serve(operator, tmp_path), ClientSession(headers=credential) as http:
        await wait_for_port("127.0.0.1", port)
        url = f"http://127.0.0.1:{port}/v1/contacts"
        async with http.post(url, json={"phone_number": "+15550100001"}) as response:
            assert response.status == 201
        async with http.get(url) as response:
            assert (await response.json())["total"] == 1


async def test_a_schema_that_only_newer_programs_can_use_is_refused(
    servers: DataDirectory, own_database: str, tmp_path: Path
) -> None:
    with become_next_version(tmp_path, ADD_NICKNAME, oldest_program=REVISION):
        await upgrade(own_database)
    operator = build_operator(servers, own_database, tmp_path, find_free_port())
    for role in ("serve", "worker"):
        result = operator.run(role)
        assert result.returncode == 1
        assert result.stderr.startswith("switchboard: the database has schema 9999, which this version"), role
    result = operator.run("migrate")
    assert result.returncode == 1
    assert "schema 9999, which this version of Switchboard does not know" in result.stderr


def test_a_database_that_does_not_run_is_one_clear_line(tmp_path: Path) -> None:
    result = Operator(SWITCHBOARD_DATA_DIR=str(tmp_path)).run("migrate")
    assert result.returncode == 1
    assert result.stderr.startswith("switchboard: the database cannot be reached (")
    assert result.stderr.count("\n") == 1


async def test_a_migration_waits_for_locks_without_holding_others_up(own_database: str, tmp_path: Path) -> None:
    await upgrade(own_database)
    with become_next_version(tmp_path, ADD_NICKNAME):
        async with read_calls(own_database):
            migrating = asyncio.create_task(upgrade(own_database, lock_timeout="100ms"))
            began = perf_counter()  # PostgreSQL waits for locks in real time.
            for _ in range(20):
                await run_statements(own_database, "select from call")
            assert perf_counter() - began < 60
            assert not migrating.done()
        await migrating
    await run_statements(own_database, "select nickname from call")


async def test_a_lock_that_stays_is_an_error_and_changes_nothing(own_database: str, tmp_path: Path) -> None:
    await upgrade(own_database)
    async with read_calls(own_database) as reader:
        before = await reader.fetchval("select version_num from alembic_version")
        with (
            become_next_version(tmp_path, ADD_NICKNAME),
            pytest.raises(MigrationError, match="again later"),
        ):
            await upgrade(own_database, lock_timeout="50ms")
        assert await reader.fetchval("select version_num from alembic_version") == before
        assert before != REVISION


async def test_two_upgrades_at_once_build_an_index(own_database: str, tmp_path: Path) -> None:
    await asyncio.gather(upgrade(own_database), upgrade(own_database))
    with become_next_version(tmp_path, INDEX_DATES):
        await asyncio.gather(upgrade(own_database), upgrade(own_database))
    connection = await asyncpg.connect(own_database)
    assert await connection.fetchval("select indisvalid from pg_index where indexrelid = 'ix_call_dates'::regclass")
    assert await connection.fetchval("select version_num from alembic_version") == REVISION
    await connection.close()


@pytest.mark.parametrize("revision", ["0001", "0052"])
async def test_a_schema_of_a_development_version_is_refused(own_database: str, revision: str) -> None:
    """Before the first release there were migrations with these names, which are none of this version."""
    await run_statements(
        own_database,
        "create table alembic_version (version_num varchar(32) primary key)",
        f"insert into alembic_version values ('{revision}')",  # noqa: S608 - ours
        "create table schema_compatibility (oldest_program text not null)",
        "insert into schema_compatibility values ('0001')",
    )
    with pytest.raises(MigrationError, match=f"schema {revision}, which this version of Switchboard does not know"):
        await upgrade(own_database)
    with pytest.raises(MigrationError, match=f"schema {revision}, which this version of Switchboard cannot use"):
        await wait_for_schema(own_database, asyncio.Event())


async def test_an_index_is_built_while_rows_are_written(own_database: str) -> None:
    await run_statements(own_database, "create table berry (id int)", "create index berry_id on berry (id) where false")
    writer = await asyncpg.connect(own_database)
    engine = create_engine(own_database)
    async with engine.connect() as connection:
        building = asyncio.create_task(connection.run_sync(build_index))
        for number in range(50):
            await writer.execute("insert into berry values ($1)", number)
        await building
    assert await writer.fetchval(
        "select indisvalid and indpred is null from pg_index where indrelid = 'berry'::regclass"
    )
    await writer.close()
    await engine.dispose()


def build_index(connection: Connection) -> None:
    context = MigrationContext.configure(connection, opts={"transaction_per_migration": True})
    with Operations.context(context), context.begin_transaction(_per_migration=True):
        create_index_concurrently("berry_id", "berry", ["id"])
