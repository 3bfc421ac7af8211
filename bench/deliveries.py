"""Durable deliveries per second of one worker core, and their delay after the commit.

PostgreSQL and the receiver share the other core. The baseline sends the same requests without durability: the same
client posts as fast as possible. Deliveries with bodies that are encrypted at rest stand beside those without.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from ipaddress import ip_network
from pathlib import Path
from typing import cast
from uuid import UUID

import uvloop
from switchboard.apps.embedded import DataDirectory, EmbeddedServers
from switchboard.apps.process_runtime import open_process_runtime
from switchboard.foundation.database import new_id, now
from switchboard.foundation.events.catalog import CallCompleted
from switchboard.foundation.events.models import Delivery, EventTarget
from switchboard.foundation.events.outbox import enqueue, get_secret_label, publish, serialize_body
from switchboard.foundation.outbound import OutboundClient
from switchboard.foundation.settings import Settings
from switchboard.migrations import upgrade
from switchboard.plugin_sdk import NetworkPolicy
from switchboard.resources.identity import service as identity
from switchboard.resources.identity.policy import Encryption, Policy
from switchboard.runtime import Runtime

from bench._counters import cpu_seconds

WORKER_CORE, OTHER_CORE = 0, 1
DELIVERIES = 20_000
HANGING_SHARE = 10
ORGANIZATION_SIZE = 10
BARE_REQUESTS, BARE_AT_ONCE = 10_000, 64
PACED_SECONDS, PACED_RATE = 10, 100
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Scenario:
    """Number of endpoints; one in ten may hang, and the bodies may be encrypted at rest."""

    endpoints: int
    hanging: bool = False
    encrypted: bool = False

    def __str__(self) -> str:
        words = (str(self.endpoints), "1 in 10 hanging" * self.hanging, "encrypted" * self.encrypted)
        return ", ".join(filter(None, words))


SCENARIOS = (
    Scenario(1),
    Scenario(100),
    Scenario(100, encrypted=True),
    Scenario(1000),
    Scenario(1000, encrypted=True),
    Scenario(1000, hanging=True),
)


@dataclass(slots=True)
class Arrivals:
    """First arrival of each delivery by id; `first` and `enough` are set at the first and at the `wanted`th."""

    at: dict[bytes, float] = field(default_factory=dict)
    repeats: int = 0
    wanted: int = 0
    first: asyncio.Event = field(default_factory=asyncio.Event)
    enough: asyncio.Event = field(default_factory=asyncio.Event)

    def expect(self, count: int) -> None:
        self.at.clear()
        self.repeats, self.wanted = 0, count
        self.first.clear()
        self.enough.clear()

    def note(self, delivery_id: bytes) -> None:
        if delivery_id in self.at:
            self.repeats += 1
        self.at.setdefault(delivery_id, time.time())
        self.first.set()
        if len(self.at) >= self.wanted:
            self.enough.set()


class Receiver(asyncio.Protocol):
    """Answers 200 at once with an empty body; never on paths that start with `/hang`."""

    def __init__(self, arrivals: Arrivals) -> None:
        self._arrivals = arrivals
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head = self._buffer[:end]
            length = int(_header(head, b"content-length:"))
            if len(self._buffer) < end + 4 + length:
                return
            self._buffer = self._buffer[end + 4 + length :]
            if not head.startswith(b"POST /hang"):
                self._arrivals.note(_header(head, b"x-webhook-delivery-id:"))
                self._transport.write(ANSWER)


def _header(head: bytes, name: bytes) -> bytes:
    start = head.lower().find(name)
    return head[start + len(name) : head.find(b"\r\n", start)].strip() if start >= 0 else b""


def create_sample_event() -> CallCompleted:
    moment = now()
    return CallCompleted(
        call_id=new_id(),
        agent_id=new_id(),
        direction="inbound",
        status="completed",
        from_number="+15550100001",
        to_number="+15550100200",
        duration_seconds=63,
        cost_total=Decimal("0.041"),
        error_message=None,
        started_at=moment,
        ended_at=moment,
        created_at=moment,
        metadata={"order": "A-1001"},
    )


@asynccontextmanager
async def open_platform(folder: Path) -> AsyncIterator[tuple[Runtime, dict[str, str]]]:
    """Embedded servers, the parts of a process, and the environment of a worker."""
    directory = DataDirectory(folder)
    directory.claim()
    settings = Settings(data_dir=folder, port=18_110, webhook_allowed_networks=[ip_network("127.0.0.0/8")])
    environment = {
        "SWITCHBOARD_DATA_DIR": str(folder),
        "SWITCHBOARD_DATABASE_URL": directory.database_url,
        "SWITCHBOARD_REDIS_URL": directory.redis_url,
        "SWITCHBOARD_WEBHOOK_ALLOWED_NETWORKS": "127.0.0.0/8",
        "SWITCHBOARD_LOG_LEVEL": "WARNING",
    }
    async with EmbeddedServers(directory):
        await upgrade(directory.database_url)
        async with open_process_runtime(
            settings, database_url=directory.database_url, redis_url=directory.redis_url
        ) as parts:
            yield parts, environment


async def make_endpoints(parts: Runtime, url: str, scenario: Scenario) -> list[EventTarget]:
    """Create endpoints, ten per organization."""
    targets: list[EventTarget] = []
    policy = Policy(encryption=Encryption(texts=scenario.encrypted))
    while len(targets) < scenario.endpoints:
        async with parts.database.system() as session:
            organization = identity.create_organization(session, name="Bench")
            organization.policy = policy
        async with parts.database.write(organization.id) as session:
            for _ in range(min(ORGANIZATION_SIZE, scenario.endpoints - len(targets))):
                path = "hang" if scenario.hanging and len(targets) % HANGING_SHARE == 0 else "hook"
                target = EventTarget(
                    id=new_id(), organization_id=organization.id, kind="endpoint", url=f"{url}/{path}/{len(targets)}"
                )
                target.secret = parts.keyring.encrypt(
                    "whsec_bench", get_secret_label("endpoint", target.id, organization.id)
                )
                session.add(target)
                targets.append(target)
    return targets


async def enqueue_all(parts: Runtime, endpoints: list[EventTarget]) -> int:
    """Create deliveries for all of them, evenly, in one statement; return how many will arrive."""
    arriving = 0
    by_organization: dict[UUID, list[EventTarget]] = {}
    for target in endpoints:
        by_organization.setdefault(target.organization_id, []).append(target)
    body = serialize_body(create_sample_event(), now())
    each = DELIVERIES // len(endpoints)
    for organization_id, targets in by_organization.items():
        async with parts.database.write(organization_id) as session:
            for target in targets:
                for _ in range(each):
                    await enqueue(session, target, "call.completed", body, subject_id=new_id())
        arriving += each * sum("/hook/" in (target.url or "") for target in targets)
    return arriving


@asynccontextmanager
async def run_worker(environment: dict[str, str]) -> AsyncIterator[int]:
    """Run a worker on its own core; return its process id."""
    process = subprocess.Popen([sys.executable, "-m", "switchboard", "worker"], env={**os.environ, **environment})
    os.sched_setaffinity(process.pid, {WORKER_CORE})
    try:
        yield process.pid
    finally:
        process.terminate()
        process.wait()


async def drain(parts: Runtime, environment: dict[str, str], arrivals: Arrivals, endpoints: list[EventTarget]) -> str:
    """Let a worker empty a queue that exists when it starts."""
    arrivals.expect(await enqueue_all(parts, endpoints))
    async with run_worker(environment) as pid:
        await arrivals.first.wait()
        started_at, cpu = time.time(), cpu_seconds(pid)
        await arrivals.enough.wait()
        took, cpu = time.time() - started_at, cpu_seconds(pid) - cpu
    return (
        f"{len(arrivals.at) / took:>8.0f} {cpu / took * 100:>6.0f} {len(arrivals.at) / max(cpu, 0.01):>13.0f} "
        f"{cpu / len(arrivals.at) * 1000:>7.2f} "
        f"{arrivals.repeats:>8}"
    )


async def publish_paced(
    parts: Runtime, environment: dict[str, str], arrivals: Arrivals, endpoints: list[EventTarget]
) -> str:
    """Publish as calls do, each in its own transaction, and measure how long after its commit each arrives."""
    healthy = [target for target in endpoints if "/hook/" in (target.url or "")]
    committed: dict[bytes, float] = {}
    arrivals.expect(PACED_RATE * PACED_SECONDS)
    async with run_worker(environment):
        await asyncio.sleep(3)
        for number in range(PACED_RATE * PACED_SECONDS):
            due = time.time() + 1 / PACED_RATE
            target = healthy[number % len(healthy)]
            data = create_sample_event()
            async with parts.database.write(target.organization_id) as session:
                await publish(session, data)
                ids = [
                    str(row.id).encode()
                    for row in session.new
                    if isinstance(row, Delivery) and row.target_id == target.id
                ]
                await session.flush()
                before = time.time()
            committed.update(dict.fromkeys(ids, before))
            await asyncio.sleep(max(0.0, due - time.time()))
        async with asyncio.timeout(30):
            await arrivals.enough.wait()
    waits = sorted((arrivals.at[key] - moment) * 1000 for key, moment in committed.items() if key in arrivals.at)
    return f"{waits[len(waits) // 2]:>8.1f} {waits[len(waits) * 99 // 100]:>8.1f}"


async def measure_bare_client(url: str) -> float:
    """Measure the same client without durability, in requests per second."""
    client = OutboundClient(NetworkPolicy((ip_network("127.0.0.0/8"),)))
    remaining = iter(range(BARE_REQUESTS))
    body = serialize_body(create_sample_event(), now()).encode()

    async def post() -> None:
        for _ in remaining:
            headers = {"Content-Type": "application/json", "X-Webhook-Delivery-Id": str(new_id())}
            await client.post(f"{url}/hook/0", body, headers=headers, seconds=10, read_limit=0)

    started_at = time.time()
    await asyncio.gather(*(post() for _ in range(BARE_AT_ONCE)))
    await client.close()
    return BARE_REQUESTS / (time.time() - started_at)


async def measure() -> None:
    arrivals = Arrivals()
    server = await asyncio.get_running_loop().create_server(lambda: Receiver(arrivals), "127.0.0.1", 0, backlog=4096)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    program = [sys.executable, "-c", f"from bench.deliveries import report_bare; report_bare({url!r})"]
    client = await asyncio.create_subprocess_exec(*program, stdout=asyncio.subprocess.PIPE)
    os.sched_setaffinity(client.pid, {WORKER_CORE})
    output, _ = await client.communicate()
    print(f"the client alone, nothing durable: {float(output):.0f} requests a second on its core")
    print(
        (
            f"{'endpoints':<22} {'a second':>8} {'core %':>6} {'a core second':>13} {'core ms':>7} {'repeats':>8} "
            f"{'p50 ms':>8} {'p99 ms':>8}"
        ),
        flush=True,
    )
    for scenario in SCENARIOS:
        with tempfile.TemporaryDirectory() as folder:
            async with open_platform(Path(folder)) as (parts, environment):
                endpoints = await make_endpoints(parts, url, scenario)
                drained = await drain(parts, environment, arrivals, endpoints)
                latencies = await publish_paced(parts, environment, arrivals, endpoints)
                print(f"{scenario!s:<22} {drained} {latencies}", flush=True)
    server.close()


def report_bare(url: str) -> None:
    print(uvloop.run(measure_bare_client(url)))


def run() -> None:
    os.sched_setaffinity(0, {OTHER_CORE})
    uvloop.run(measure())
