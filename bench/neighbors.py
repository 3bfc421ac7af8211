"""Requests of an organization beside another that starts calls as fast as one server lets it.

The other organization has a limit of calls per hour, two hundred calls that have not ended, and sixty clients that ask
at once, again and again. The neighbor asks for its agents at a steady rate: alone, then beside them. No worker runs, so
the calls stay queued.
"""

import asyncio
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles

import aiohttp
import uvloop
from pydantic import JsonValue
from switchboard.apps.cli.demo import seed
from switchboard.apps.embedded import DataDirectory, EmbeddedServers
from switchboard.apps.process_runtime import open_process_runtime
from switchboard.foundation.settings import Settings
from switchboard.migrations import upgrade
from switchboard.resources.identity.models import Organization
from switchboard.resources.identity.policy import OutboundLimits, Policy, RateLimits

from bench.api import UNLIMITED, fill_platform, run_server
from bench.costs import find_port
from bench.embedded_server import build_serve_environment

CLIENTS, SECONDS, ROUNDS, OPEN_CALLS = 60, 10.0, 3, 200
NEIGHBOR_SECONDS = 0.04
"""Time from one request of the neighbor to the next."""
LEAD_SECONDS = 1.0
"""Time that the calls begin before the neighbor's requests."""
POLICY = Policy(
    max_concurrent_calls=100_000,
    outbound_limits=OutboundLimits(calls_per_hour=1_000_000),
    rate_limits=RateLimits(read=UNLIMITED, write=UNLIMITED),
)


@dataclass(slots=True)
class Answers:
    """The answers to one kind of request: the seconds that each took, and how many had which status."""

    seconds: list[float] = field(default_factory=list)
    statuses: dict[int, int] = field(default_factory=dict)

    async def send(self, http: aiohttp.ClientSession, method: str, path: str, body: JsonValue = None) -> None:
        began = time.perf_counter()
        async with http.request(method, path, json=body) as response:
            await response.read()
        self.seconds.append(time.perf_counter() - began)
        self.statuses[response.status] = self.statuses.get(response.status, 0) + 1

    def get_p99(self) -> float:
        return quantiles(self.seconds, n=100)[98] * 1000


async def ask(http: aiohttp.ClientSession) -> Answers:
    """Ask for the neighbor's agents at a steady rate."""
    answers, until = Answers(), time.monotonic() + SECONDS
    async with asyncio.TaskGroup() as group:
        while time.monotonic() < until:
            group.create_task(answers.send(http, "GET", "/v1/agents"))
            await asyncio.sleep(NEIGHBOR_SECONDS)
    return answers


async def start_calls(http: aiohttp.ClientSession, call: dict[str, JsonValue], number: int) -> Answers:
    """Start a number of calls, or with none as many as can be started while the neighbor asks."""
    answers, until = Answers(), time.monotonic() + SECONDS

    async def work() -> None:
        while len(answers.seconds) < number if number else time.monotonic() < until:
            await answers.send(http, "POST", "/v1/calls", call)

    await asyncio.gather(*(work() for _ in range(CLIENTS)))
    return answers


async def add_busy_organization(settings: Settings, directory: DataDirectory) -> str:
    """Add the demo's organization, with limits that it does not reach, and return its key."""
    urls = {"database_url": directory.database_url, "redis_url": directory.redis_url}
    async with open_process_runtime(settings, **urls) as runtime:
        demo = await seed(runtime)
        async with runtime.database.system() as session:
            organization = await session.get_one(Organization, demo.organization_id)
            organization.policy = POLICY
    return demo.api_key


async def describe_call(http: aiohttp.ClientSession) -> dict[str, JsonValue]:
    """Return the body of a request for a call by the demo's agent, from its number."""
    found = []
    for path in ("/v1/agents", "/v1/phone-numbers"):
        async with http.get(path) as response:
            found.append((await response.json())["items"][0]["id"])
    return {"agent_id": found[0], "from_number_id": found[1], "to_number": "+15550100070"}


async def compare(folder: Path) -> None:
    directory = DataDirectory(folder)
    directory.claim()
    settings = Settings(data_dir=folder, port=find_port())
    environment = build_serve_environment(directory, settings.port) | {"SWITCHBOARD_LOG_LEVEL": "ERROR"}
    async with EmbeddedServers(directory):
        await upgrade(directory.database_url)
        key, busy_key = await fill_platform(settings, directory), await add_busy_organization(settings, directory)
        headers, busy_headers = ({"Authorization": f"Bearer {each}"} for each in (key, busy_key))
        url, patience = f"http://127.0.0.1:{settings.port}", aiohttp.ClientTimeout(120)
        async with (
            run_server("Switchboard", settings.port, key, "switchboard", "serve", **environment),
            aiohttp.ClientSession(url, headers=headers, timeout=patience) as neighbor,
            aiohttp.ClientSession(url, headers=busy_headers, timeout=patience) as busy,
        ):
            call = await describe_call(busy)
            await start_calls(busy, call, OPEN_CALLS)
            await measure(neighbor, busy, call)
    directory.release()


async def measure(neighbor: aiohttp.ClientSession, busy: aiohttp.ClientSession, call: dict[str, JsonValue]) -> None:
    """Print the rounds: the neighbor's p99 alone and beside calls, and the calls that were started each second."""
    print("neighbor's p99 in ms: alone | beside calls | ratio | calls a second | refused with 503")
    rounds = []
    for _ in range(ROUNDS):
        alone = await ask(neighbor)
        starting = asyncio.create_task(start_calls(busy, call, 0))
        await asyncio.sleep(LEAD_SECONDS)
        beside, calls = await asyncio.gather(ask(neighbor), starting)
        ratio, rate = beside.get_p99() / alone.get_p99(), calls.statuses.get(201, 0) / SECONDS
        refused = beside.statuses.get(503, 0), calls.statuses.get(503, 0)
        rounds.append((alone.get_p99(), beside.get_p99(), ratio, rate))
        print(
            f"{alone.get_p99():27.1f} | {beside.get_p99():12.1f} | {ratio:5.2f} | {rate:14.1f} | {refused}", flush=True
        )
    alone_p99, beside_p99, ratio, rate = (median(column) for column in zip(*rounds, strict=True))
    print(f"median {alone_p99:20.1f} | {beside_p99:12.1f} | {ratio:5.2f} | {rate:14.1f} |")


def run() -> None:
    """Print the rounds and the medians."""
    with tempfile.TemporaryDirectory() as folder:
        uvloop.run(compare(Path(folder)))
