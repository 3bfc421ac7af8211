"""The embedded servers: data stays, directories are not shared, and everything recovers after kill -9."""

import asyncio
import contextlib
import os
import signal
import sys
from pathlib import Path

import asyncpg
import pytest
from redis.asyncio import Redis
from switchboard.apps.embedded import DataDirectory, DirectoryInUse, EmbeddedServers


async def execute(directory: DataDirectory, statement: str) -> object:
    connection = await asyncpg.connect(host=str(directory.sockets), user="switchboard", database="switchboard")
    try:
        return await connection.fetchval(statement)
    finally:
        await connection.close()


async def test_a_second_start_keeps_the_data(tmp_path: Path) -> None:
    directory = DataDirectory(tmp_path / "data")
    directory.claim()
    async with EmbeddedServers(directory):
        await execute(directory, "create table kept as select 42 as answer")
        redis = Redis.from_url(directory.redis_url)
        assert await redis.set("a", "b")
        await redis.aclose()
    async with EmbeddedServers(directory):
        assert await execute(directory, "select answer from kept") == 42
    directory.release()


async def test_a_machine_without_a_server_of_its_own_runs_the_one_of_the_wheel(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    directory = DataDirectory(tmp_path / "data")
    async with EmbeddedServers(directory, postgres=False):
        redis = Redis.from_url(directory.redis_url)
        info = await redis.info("server")
        await redis.aclose()
    assert info["server_name"] == "valkey"


async def test_two_instances_run_side_by_side(tmp_path: Path) -> None:
    one, two = DataDirectory(tmp_path / "one"), DataDirectory(tmp_path / "two")
    async with EmbeddedServers(one), EmbeddedServers(two):
        await execute(one, "create table only_here (x int)")
        assert await execute(two, "select count(*) from pg_class where relname = 'only_here'") == 0


def test_a_directory_in_use_is_refused_and_its_holder_named(tmp_path: Path) -> None:
    first, second = DataDirectory(tmp_path), DataDirectory(tmp_path)
    first.claim()
    with pytest.raises(DirectoryInUse, match=str(os.getpid())):
        second.claim()
    first.release()
    second.claim()
    second.release()


def test_a_long_path_has_its_sockets_elsewhere(tmp_path: Path) -> None:
    directory = DataDirectory(tmp_path / ("x" * 100) / "data")
    assert len(str(directory.sockets / ".s.PGSQL.5432")) <= 107


HOLD = """
import asyncio, sys
from pathlib import Path
from switchboard.apps.embedded import DataDirectory, EmbeddedServers

async def hold():
    directory = DataDirectory(Path(sys.argv[1]))
    directory.claim()
    async with EmbeddedServers(directory):
        print("up", flush=True)
        await asyncio.Event().wait()

asyncio.run(hold())
"""


async def test_the_next_start_recovers_after_kill_9(tmp_path: Path) -> None:
    directory = DataDirectory(tmp_path / "data")
    holder = await asyncio.create_subprocess_exec(
        sys.executable, "-c", HOLD, str(directory.path), stdout=asyncio.subprocess.PIPE
    )
    assert holder.stdout is not None
    assert await holder.stdout.readline() == b"up\n"
    await execute(directory, "create table kept as select 42 as answer")
    postmaster = int((directory.path / "postgres" / "postmaster.pid").read_text().split()[0])
    holder.kill()
    await holder.wait()
    with contextlib.suppress(ProcessLookupError):  # it may have died with its supervisor already, as intended
        os.kill(postmaster, signal.SIGKILL)
    directory.claim()
    async with EmbeddedServers(directory):
        assert await execute(directory, "select answer from kept") == 42
    directory.release()
