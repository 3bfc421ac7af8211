"""Nothing that was published is lost: real processes, killed and restarted while 5 000 events are published and delivered."""

import asyncio
import os
import random
import signal
import sys
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from ipaddress import ip_network
from pathlib import Path
from uuid import UUID

import pytest
from sqlalchemy.exc import SQLAlchemyError
from sqlmodel import col, select
from switchboard import app
from switchboard.database import new_id, now
from switchboard.embedded import DataDirectory, EmbeddedServers
from switchboard.events.catalog import CallCompleted
from switchboard.events.models import Delivery, DeliveryAttempt, EventTarget
from switchboard.events.outbox import publish
from switchboard.identity import service as identity
from switchboard.migrations import upgrade
from switchboard.runtime import Runtime
from switchboard.settings import Settings

from tests.fixtures.receiver import Receiver

EVENTS, TOGETHER = 5_000, 20
ORGANIZATIONS = 5
WORKERS = 2
KILL_SECONDS = 1.0
REDIS_FLUSHES, POSTGRES_RESTARTS = 5, 2


class Servers:
    """PostgreSQL and Redis of this test's own; PostgreSQL can be cut down and started again."""

    def __init__(self, folder: Path) -> None:
        self.directory = DataDirectory(folder)
        self._stack = AsyncExitStack()
        self._postgres = EmbeddedServers(self.directory, redis=False)

    async def start(self) -> None:
        self.directory.claim()
        await self._stack.enter_async_context(EmbeddedServers(self.directory, postgres=False))
        await self._postgres.__aenter__()
        await upgrade(self.directory.database_url)

    async def restart_postgres(self) -> None:
        """As after a power cut: every connection is lost, the log is replayed."""
        os.kill(int((self.directory.path / "postgres" / "postmaster.pid").read_text().split()[0]), signal.SIGQUIT)
        await self._postgres.stop()
        self._postgres = EmbeddedServers(self.directory, redis=False)
        await self._postgres.__aenter__()

    async def stop(self) -> None:
        await self._postgres.stop()
        await self._stack.aclose()
        self.directory.release()


class Workers:
    """Worker processes; one that is killed is started again."""

    def __init__(self, environment: dict[str, str], count: int) -> None:
        self._environment = {**os.environ, **environment}
        self._count = count
        self._processes: list[asyncio.subprocess.Process] = []
        self.kills = 0

    async def start(self) -> None:
        while len(self._processes) < self._count:
            command = [sys.executable, "-m", "switchboard", "worker"]
            process = await asyncio.create_subprocess_exec(*command, env=self._environment, stderr=asyncio.subprocess.DEVNULL)
            self._processes.append(process)

    async def kill_one(self) -> None:
        process = self._processes.pop(random.randrange(len(self._processes)))
        process.kill()
        await process.wait()
        self.kills += 1
        await self.start()

    async def stop(self) -> None:
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            assert await process.wait() == 0


@asynccontextmanager
async def platform(folder: Path) -> AsyncIterator[tuple[Runtime, Servers, Workers]]:
    servers = Servers(folder)
    await servers.start()
    settings = Settings(data_dir=folder, webhook_allowed_networks=[ip_network("127.0.0.0/8")])
    urls = {"database_url": servers.directory.database_url, "redis_url": servers.directory.redis_url}
    environment = {
        "SWITCHBOARD_DATA_DIR": str(folder), "SWITCHBOARD_DATABASE_URL": urls["database_url"], "SWITCHBOARD_REDIS_URL": urls["redis_url"],
        "SWITCHBOARD_WEBHOOK_ALLOWED_NETWORKS": "127.0.0.0/8", "SWITCHBOARD_WEBHOOK_TIMEOUT": "3", "SWITCHBOARD_WEBHOOK_RETRY_DELAYS": "1,1,1,1,1",
    }  # fmt: skip
    workers = Workers(environment, WORKERS)
    try:
        async with app.runtime(settings, database_url=urls["database_url"], redis_url=urls["redis_url"]) as parts:
            await workers.start()
            yield parts, servers, workers
            await workers.stop()
    finally:
        await servers.stop()


async def make_targets(runtime: Runtime, receiver: Receiver) -> list[UUID]:
    """Organizations with two endpoints each."""
    organizations = []
    for _ in range(ORGANIZATIONS):
        async with runtime.database.system() as session:
            organization = await identity.create_organization(session, name="Faults")
        async with runtime.database.tenant(organization.id) as session:
            for path in ("first", "second"):
                session.add(EventTarget(organization_id=organization.id, kind="endpoint", url=f"{receiver.url}/{path}"))
        organizations.append(organization.id)
    return organizations


def event(number: int) -> CallCompleted:
    return CallCompleted(
        call_id=new_id(), agent_id=None, direction="inbound", status="completed", from_number="+15550100001", to_number="+15550100200",
        duration_seconds=1, cost_total=0, error_message=None, started_at=now(), ended_at=now(), created_at=now(), metadata={"number": number},
    )  # fmt: skip


async def publish_all(runtime: Runtime, organizations: list[UUID], pause: float) -> None:
    """Publish every event, some in a transaction; one whose commit failed or is unknown is published again, as a caller would."""
    for start in range(0, EVENTS, TOGETHER):
        while True:
            try:
                async with runtime.database.tenant(organizations[start // TOGETHER % ORGANIZATIONS]) as session:
                    for number in range(start, start + TOGETHER):
                        await publish(session, event(number))
                break
            except (SQLAlchemyError, OSError):
                await asyncio.sleep(0.1)
        await asyncio.sleep(pause)


async def break_things(runtime: Runtime, servers: Servers, workers: Workers, seconds: int) -> None:
    """Kill a worker each second, and in between flush Redis and cut PostgreSQL down."""
    flushes = {round((n + 0.5) * seconds / REDIS_FLUSHES) for n in range(REDIS_FLUSHES)}
    restarts = {round((n + 0.5) * seconds / POSTGRES_RESTARTS) for n in range(POSTGRES_RESTARTS)}
    for second in range(seconds):
        await asyncio.sleep(KILL_SECONDS)
        await workers.kill_one()
        if second in flushes:
            await runtime.redis.flushall()
        if second in restarts:
            await servers.restart_postgres()


async def pending(runtime: Runtime, organizations: list[UUID]) -> int:
    count = 0
    for organization in organizations:
        async with runtime.database.tenant(organization) as session:
            count += len((await session.exec(select(Delivery.id).where(col(Delivery.status) == "pending"))).all())
    return count


@pytest.mark.timeout(240)
async def test_no_event_is_lost_when_workers_die_postgres_is_cut_down_and_redis_flushed(tmp_path: Path, receiver: Receiver) -> None:
    async with platform(tmp_path) as (runtime, servers, workers):
        organizations = await make_targets(runtime, receiver)
        seconds = 20
        await asyncio.gather(
            publish_all(runtime, organizations, pause=0.8 * seconds * TOGETHER / EVENTS), break_things(runtime, servers, workers, seconds)
        )
        async with asyncio.timeout(120):
            while await pending(runtime, organizations):  # noqa: ASYNC110 - other processes do the work
                await asyncio.sleep(0.5)
        assert workers.kills == seconds
        bodies: dict[str, set[bytes]] = defaultdict(set)
        for request in receiver.received:
            bodies[request.delivery_id].add(request.body)
        for path in ("/first", "/second"):
            assert {request.json["data"]["metadata"]["number"] for request in receiver.at(path)} == set(range(EVENTS))  # type: ignore[index,call-overload]
        assert all(len(sent) == 1 for sent in bodies.values()), "a repeat carries the same bytes"
        for organization in organizations:
            await check_rows(runtime, organization, bodies)


async def check_rows(runtime: Runtime, organization: UUID, bodies: dict[str, set[bytes]]) -> None:
    """Each delivery is over, was received as it stands there, and has one attempt counted for each that is written down."""
    async with runtime.database.tenant(organization) as session:
        deliveries = (await session.exec(select(Delivery))).all()
        attempts = [row.delivery_id for row in (await session.exec(select(DeliveryAttempt))).all()]
    assert len(deliveries) >= 2 * EVENTS // ORGANIZATIONS
    assert len(attempts) == sum(delivery.attempts for delivery in deliveries)
    for delivery in deliveries:
        assert (delivery.status, delivery.lease_token) == ("delivered", None)
        assert bodies[str(delivery.id)] == {delivery.body.encode()}
