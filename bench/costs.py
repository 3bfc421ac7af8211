"""Cost of one call, text message, delivery, and request to PostgreSQL, Redis, and the processes.

A `serve` and a `worker` process run over embedded servers with the offline providers. Each step counts what changed
while it ran, less what an idle platform uses in that time. The processor time of calls is not counted here, because the
offline speech providers and the simulated carrier would be in it: `bench/calls` has it.
"""

import asyncio
import json
import os
import socket
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import asyncpg
from aiohttp import web
from redis.asyncio import Redis
from switchboard.apps.cli.demo import seed
from switchboard.apps.embedded import DataDirectory, EmbeddedServers
from switchboard.apps.process_runtime import open_process_runtime
from switchboard.foundation.settings import Settings
from switchboard.migrations import upgrade

from bench._counters import cpu_seconds
from bench.embedded_server import build_serve_environment

SECRET_KEY = "the key of the benchmark of 32 or more characters"  # noqa: S105 - of nothing else
CALLS, MESSAGES, DELIVERIES, CONTACTS, LISTS = 12, 40, 200, 300, 300
IDLE_SECONDS = 20.0
SETTLE_SECONDS = 12.0
"""PostgreSQL's processes publish their counters after ten idle seconds (PostgreSQL, pgstat.c, PGSTAT_IDLE_INTERVAL)."""
COUNTS = """
select xact_commit + xact_rollback as transactions, tup_inserted + tup_updated + tup_deleted as rows,
  pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8 as wal
from pg_stat_database where datname = 'switchboard'
"""


@dataclass(frozen=True, slots=True)
class Counters:
    """Totals at one moment: processor seconds, and what the servers count."""

    moment: float
    transactions: float
    rows: float
    wal: float
    redis: float
    postgres_cpu: float
    serve_cpu: float
    worker_cpu: float
    deliveries: float


@dataclass(slots=True)
class Platform:
    """The running processes, a client of the demo organization, and a receiver of its events."""

    directory: DataDirectory
    http: aiohttp.ClientSession
    serve: int
    worker: int
    received: list[str]
    endpoint: str = ""

    async def send(self, method: str, path: str, body: object = None) -> dict[str, object]:
        async with self.http.request(method, path, json=body) as response:
            answer: dict[str, object] = await response.json()
            if response.status == 429:
                await asyncio.sleep(float(response.headers["Retry-After"]))
                return await self.send(method, path, body)
            if response.status >= 400:
                raise RuntimeError(f"{method} {path}: {answer}")
            return answer

    async def count(self) -> Counters:
        await asyncio.sleep(SETTLE_SECONDS)
        connection = await asyncpg.connect(self.directory.database_url)
        row = await connection.fetchrow(COUNTS)
        await connection.close()
        async with Redis.from_url(self.directory.redis_url) as redis:
            commands = (await redis.info("stats"))["total_commands_processed"]
        return Counters(
            time.monotonic(),
            *(float(row[name]) for name in ("transactions", "rows", "wal")),
            float(commands),
            sum(map(cpu_seconds, list_postgres(self.directory.path / "postgres"))),
            cpu_seconds(self.serve),
            cpu_seconds(self.worker),
            float(len(self.received)),
        )


def list_postgres(folder: Path) -> list[int]:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if (entry / "cwd").readlink() == folder:
                found.append(int(entry.name))
        except OSError:  # it has ended
            continue
    return found


def find_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@asynccontextmanager
async def start_receiver(received: list[str]) -> AsyncIterator[str]:
    async def receive(request: web.Request) -> web.Response:
        received.append(str(json.loads(await request.read()).get("type")))
        return web.Response()

    application = web.Application()
    application.router.add_post("/", receive)
    runner = web.AppRunner(application)
    await runner.setup()
    port = find_port()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    yield f"http://127.0.0.1:{port}/"
    await runner.cleanup()


@asynccontextmanager
async def start_platform(folder: Path) -> AsyncIterator[Platform]:
    directory, received = DataDirectory(folder), list[str]()
    directory.claim()
    settings = Settings(data_dir=folder, port=find_port(), secret_keys=[SECRET_KEY])  # type: ignore[list-item]
    environment = {
        **os.environ,
        **build_serve_environment(directory, settings.port),
        "SWITCHBOARD_SECRET_KEYS": SECRET_KEY,
        "SWITCHBOARD_WEBHOOK_ALLOWED_NETWORKS": "127.0.0.0/8",
        "SWITCHBOARD_LOG_LEVEL": "ERROR",
    }
    async with EmbeddedServers(directory), start_receiver(received) as receiver:
        await upgrade(directory.database_url)
        urls = {"database_url": directory.database_url, "redis_url": directory.redis_url}
        async with open_process_runtime(settings, **urls) as runtime:
            demo = await seed(runtime)
        processes = [
            await asyncio.create_subprocess_exec(sys.executable, "-m", "switchboard", role, env=environment)
            for role in ("serve", "worker")
        ]
        headers = {"Authorization": f"Bearer {demo.facts()['api_key']}"}
        try:
            async with aiohttp.ClientSession(settings.base_url, headers=headers) as http:
                platform = Platform(directory, http, processes[0].pid, processes[1].pid, received)
                await wait_until_ready(platform)
                endpoint = await platform.send("POST", "/v1/webhook-endpoints", {"url": receiver})
                platform.endpoint = str(endpoint["id"])
                yield platform
        finally:
            for process in processes:
                process.terminate()
                await process.wait()
    directory.release()


async def wait_until_ready(platform: Platform) -> None:
    while True:
        try:
            await platform.send("GET", "/readyz")
        except (aiohttp.ClientError, RuntimeError):
            await asyncio.sleep(0.2)
        else:
            return


async def place_calls(platform: Platform) -> float:
    """Run calls to their analysis, and return their minutes."""
    agent = await first_id(platform, "/v1/agents")
    number = await first_id(platform, "/v1/phone-numbers")
    body = {"agent_id": agent, "from_number_id": number, "to_number": "+15550100001"}
    ids = [(await platform.send("POST", "/v1/calls", body))["id"] for _ in range(CALLS)]
    seconds = 0.0
    for call_id in ids:
        # The summary is the last that a call gets.
        while (call := await platform.send("GET", f"/v1/calls/{call_id}"))["call_summary"] is None:
            if call["status"] not in ("queued", "ringing", "in-progress", "completed"):
                raise RuntimeError(f"the call ended as {call['status']}")
            await asyncio.sleep(2)
        seconds += float(str(call["duration_seconds"] or 0))
    return seconds / 60


async def send_messages(platform: Platform) -> None:
    number = await first_id(platform, "/v1/phone-numbers")
    for index in range(MESSAGES):
        body = {"from_number_id": number, "to_number": f"+1555020{index:04}", "body": "Your bread is ready."}
        await platform.send("POST", "/v1/sms", body)


async def send_test_events(platform: Platform) -> None:
    for _ in range(DELIVERIES):
        await platform.send("POST", f"/v1/webhook-endpoints/{platform.endpoint}/test")


async def first_id(platform: Platform, path: str) -> str:
    items = (await platform.send("GET", path))["items"]
    if not isinstance(items, list):
        raise TypeError(path)
    return str(items[0]["id"])


async def create_contacts(platform: Platform) -> None:
    for index in range(CONTACTS):
        await platform.send("POST", "/v1/contacts", {"phone_number": f"+1555030{index:04}"})


async def list_contacts(platform: Platform) -> None:
    for _ in range(LISTS):
        await platform.send("GET", "/v1/contacts")


async def measure() -> None:
    """Print one row for each kind of work, for one piece of it."""
    print(
        "one piece of | transactions | rows | WAL kB | Redis commands | deliveries | CPU ms PostgreSQL, serve, worker"
    )
    with tempfile.TemporaryDirectory() as folder:
        async with start_platform(Path(folder)) as platform:
            started = await platform.count()
            await asyncio.sleep(IDLE_SECONDS)
            idle_end = await platform.count()
            show("idle second", started, idle_end, idle_end.moment - started.moment)
            steps: list[tuple[str, int, Callable[[Platform], Awaitable[float | None]]]] = [
                ("call", CALLS, place_calls),
                ("text message", MESSAGES, send_messages),
                ("delivery, with the request for it", DELIVERIES, send_test_events),
                ("POST /v1/contacts", CONTACTS, create_contacts),
                ("GET /v1/contacts", LISTS, list_contacts),
            ]
            before = idle_end
            for name, pieces, work in steps:
                minutes = await work(platform)
                after = await platform.count()
                show(name, before, after, pieces, idle=(started, idle_end))
                if minutes is not None:
                    print(f"  {pieces} calls took {minutes:.1f} minutes of talk")
                before = after


def show(
    name: str, before: Counters, after: Counters, pieces: float, *, idle: tuple[Counters, Counters] | None = None
) -> None:
    def each(field: str) -> float:
        change: float = getattr(after, field) - getattr(before, field)
        if idle is not None:
            rate = (getattr(idle[1], field) - getattr(idle[0], field)) / (idle[1].moment - idle[0].moment)
            change -= rate * (after.moment - before.moment)
        return change / pieces

    print(
        f"{name} | {each('transactions'):.1f} | {each('rows'):.1f} | {each('wal') / 1000:.1f} | {each('redis'):.1f} | "
        f"{each('deliveries'):.1f} | {each('postgres_cpu') * 1000:.1f}, {each('serve_cpu') * 1000:.1f}, "
        f"{each('worker_cpu') * 1000:.1f}",
        flush=True,
    )


def run() -> None:
    """Print the table."""
    asyncio.run(measure())
