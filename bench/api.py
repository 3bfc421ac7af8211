"""Processor time of an API request in the serving process, beside FastAPI with SQLModel on uvicorn.

Both have the same rows in the same PostgreSQL, check the key of each request, and return the total with a page.
Switchboard's request also does what a platform needs: rate limits, row-level security, audit log, search index, row
counters, and request ids. The servers take turns, so that both suffer alike from the machine's other work.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from statistics import median

import aiohttp
import uvloop
from switchboard.apps.embedded import DataDirectory, EmbeddedServers
from switchboard.apps.process_runtime import open_process_runtime
from switchboard.foundation.database import WriteSession
from switchboard.foundation.settings import Settings
from switchboard.foundation.web.principal import SCOPES
from switchboard.migrations import upgrade
from switchboard.resources.contacts import service as contacts
from switchboard.resources.contacts.schemas import ContactCreate
from switchboard.resources.identity import service as identity
from switchboard.resources.identity.policy import Policy, RateLimit, RateLimits

from bench._counters import cpu_seconds
from bench.api_peer_server import build_contact
from bench.costs import find_port
from bench.embedded_server import build_serve_environment

ROWS, PAGE = 1_000, 50
REQUESTS, AT_ONCE, ROUNDS, WARM = 200, 4, 7, 100
UNLIMITED = RateLimit(per_second=100_000, burst=1_000_000)


@dataclass(frozen=True, slots=True)
class Server:
    """A running server: its process, and a client with a key."""

    name: str
    pid: int
    http: aiohttp.ClientSession


Request = Callable[[Server, int], Awaitable[None]]


async def send(server: Server, method: str, path: str, body: object = None) -> dict[str, object]:
    async with server.http.request(method, path, json=body) as response:
        answer: dict[str, object] = await response.json()
        if not response.ok:
            raise RuntimeError(f"{server.name}: {method} {path}: {answer}")
        return answer


async def list_page(server: Server, _number: int) -> None:
    page = await send(server, "GET", f"/v1/contacts?limit={PAGE}")
    items = page["items"]
    if not isinstance(items, list) or len(items) != PAGE or page["total"] == 0:
        raise RuntimeError(f"{server.name}: not the page that was asked for")


async def create_one(server: Server, number: int) -> None:
    await send(server, "POST", "/v1/contacts", build_contact(number))


async def build_list(_server: Server) -> Request:
    return list_page


async def build_create(_server: Server) -> Request:
    return create_one


async def build_get(server: Server) -> Request:
    page = await send(server, "GET", "/v1/contacts?limit=1")
    items = page["items"]
    contact_id = items[0]["id"] if isinstance(items, list) else ""

    async def get_one(server: Server, _number: int) -> None:
        await send(server, "GET", f"/v1/contacts/{contact_id}")

    return get_one


OPERATIONS = {f"list of {PAGE}": build_list, "get": build_get, "create": build_create}


async def measure(server: Server, request: Request, numbers: Iterator[int], requests: int) -> float:
    """Send requests, a few at once, and return the milliseconds of processor time of one."""
    remaining = iter(range(requests))

    async def work() -> None:
        for _ in remaining:
            await request(server, next(numbers))

    before = cpu_seconds(server.pid)
    await asyncio.gather(*(work() for _ in range(AT_ONCE)))
    return (cpu_seconds(server.pid) - before) * 1000 / requests


async def fill_platform(settings: Settings, directory: DataDirectory) -> str:
    """Create the organization with its contacts, and return its key. Its rate limits are counted and never reached."""
    urls = {"database_url": directory.database_url, "redis_url": directory.redis_url}
    async with open_process_runtime(settings, **urls) as runtime:
        async with runtime.database.system() as session:
            policy = Policy(rate_limits=RateLimits(read=UNLIMITED, write=UNLIMITED))
            organization = identity.create_organization(session, name="Bench", policy=policy)
        async with runtime.database.write(organization.id) as session:
            _, key = await identity.create_api_key(session, name="bench", scopes=list(SCOPES))
            await fill_contacts(session)
    return key


async def fill_contacts(session: WriteSession) -> None:
    bodies = (build_contact(number) for number in range(ROWS))
    await contacts.import_contacts(session, [ContactCreate.model_validate(body) for body in bodies])


@asynccontextmanager
async def run_server(name: str, port: int, key: str, *command: str, **environment: str) -> AsyncIterator[Server]:
    """Start a server, and wait until it answers."""
    process = subprocess.Popen(
        [sys.executable, "-m", *command],
        env={**os.environ, **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    headers = {"Authorization": f"Bearer {key}"}
    try:
        async with aiohttp.ClientSession(f"http://127.0.0.1:{port}", headers=headers) as http:
            server = Server(name, process.pid, http)
            while process.poll() is None:
                try:
                    await list_page(server, 0)
                except (aiohttp.ClientError, RuntimeError):
                    await asyncio.sleep(0.2)
                else:
                    break
            yield server
    finally:
        process.terminate()
        process.wait()


@asynccontextmanager
async def run_both(folder: Path) -> AsyncIterator[tuple[Server, Server]]:
    """Start Switchboard's `serve` and its peer over the same PostgreSQL."""
    directory = DataDirectory(folder)
    directory.claim()
    settings = Settings(data_dir=folder, port=find_port())
    environment = build_serve_environment(directory, settings.port)
    async with EmbeddedServers(directory):
        await upgrade(directory.database_url)
        key, port = await fill_platform(settings, directory), find_port()
        peer = ("bench.api_peer_server", str(port), directory.database_url, key, str(ROWS))
        async with (
            run_server("Switchboard", settings.port, key, "switchboard", "serve", **environment) as own,
            run_server("FastAPI", port, key, *peer) as other,
        ):
            yield own, other
    directory.release()


async def compare() -> None:
    numbers = count(ROWS)
    print(f"CPU ms of a request    | {'Switchboard':>11} | {'FastAPI':>8} | ratio, median of {ROUNDS} rounds")
    with tempfile.TemporaryDirectory() as folder:
        async with run_both(Path(folder)) as servers:
            for name, create_request in OPERATIONS.items():
                requests = [await create_request(server) for server in servers]
                rounds = []
                for number in range(ROUNDS + 1):
                    took = [
                        await measure(server, request, numbers, REQUESTS if number else WARM)
                        for server, request in zip(servers, requests, strict=True)
                    ]
                    rounds.append(took)
                own, other = (median(took) for took in zip(*rounds[1:], strict=True))
                ratio = median(own / other for own, other in rounds[1:])
                print(f"{name:22} | {own:11.2f} | {other:8.2f} | {ratio:5.2f}", flush=True)


def run() -> None:
    """Print the table."""
    uvloop.run(compare())
