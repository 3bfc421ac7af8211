"""The world of one seed: an organization, the processes that serve it, the faults that meet them, and what they have
promised.
"""

import asyncio
import random
import sys
import traceback
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, NoReturn
from uuid import UUID

import asyncpg
import pytest
import structlog
from sqlalchemy.ext.asyncio import AsyncEngine
from switchboard.apps.process_runtime import open_process_runtime
from switchboard.foundation.database import Database, SessionParts, columns, get_bucket, is_database_away
from switchboard.foundation.database import clock as clock_module
from switchboard.foundation.database import session as session_module
from switchboard.foundation.keyring import KeyRing
from switchboard.foundation.settings import Settings
from switchboard.foundation.web.errors import ApiError
from switchboard.plugin_sdk.registry import Registry
from switchboard.resources.campaigns.dialer import update_campaign_contact
from switchboard.resources.identity.service import encrypts_content
from switchboard.runtime import Runtime

from tests.fixtures.clocks import UnreadClock
from tests.fixtures.virtual_clock import CLOCK
from tests.interleavings.connections import Gate, gate_engines
from tests.interleavings.processes import CURRENT, Process, Worker
from tests.interleavings.scheduler import Scheduler, SimulationLoop

BEGIN: Final = datetime(2026, 3, 4, 15, 0, tzinfo=UTC)
"""The time at which each seed begins: a Wednesday, within everybody's calling hours."""
BEGIN_SECONDS: Final = 1000.0
WORKERS: Final = ("worker-a", "worker-b")
SERVERS: Final = ("server-a", "server-b")
NO_REDIS: Final = "redis://127.0.0.1:1"
"""Nobody listens there: what Redis is for is simulated, or does without."""
POOL_SIZE: Final = 4
SHARED: Final = (
    *("audit_entry", "carrier_reference", "delivery", "event", "ledger_entry", "transcript_line", "transcript_search"),
    *("row_count", "row_count_change", "limit_counter", "limit_counter_change", "process_lease"),
)
"""Tables whose rows do not go with their organization. Counts are the last, which the other deletions change."""


@dataclass(eq=False)
class WakeupQueue:
    """The queue of wake-ups in place of Redis, which loses them while it is frozen."""

    world: "World | None" = None

    async def wake(self, job: str, bucket: int) -> None:
        """Have a worker look for the due rows of a job in a bucket."""
        if self.world is not None:
            self.world.wake(job, bucket)


@dataclass(eq=False)
class Installation:
    """The parts that the seeds of a test process share: connections take longer to open than a seed to play."""

    loop: SimulationLoop
    runtime: Runtime
    gates: dict[str, Gate]
    databases: dict[str, Database]
    engines: list[AsyncEngine]
    queue: WakeupQueue
    outside: Database
    """The database without a gate, for what is prepared and checked between two statements of the others."""
    judge: asyncpg.Connection

    @property
    def settings(self) -> Settings:
        """The settings of every process."""
        return self.runtime.settings

    @property
    def keyring(self) -> KeyRing:
        """The keys of every process."""
        return self.runtime.keyring

    async def clear(self) -> None:
        """Delete what a seed has left."""
        for table in ("organization", *SHARED):
            await self.judge.execute(f"delete from {table}")  # noqa: S608 - ours

    async def close(self) -> None:
        """Close every connection."""
        await self.clear()
        for connection in (self.judge, *(each for gate in self.gates.values() for each in gate.spare)):
            await connection.close()
        for database in (self.outside, *self.databases.values()):
            await database.close()


@asynccontextmanager
async def open_installation(
    loop: SimulationLoop, url: str, registry: Registry, settings: Settings
) -> AsyncIterator[Installation]:
    """Open what the seeds of a test process share, on a migrated database."""
    async with open_process_runtime(settings, database_url=url, redis_url=NO_REDIS, registry=registry) as runtime:
        installation = await _build_installation(loop, url, runtime)
        yield installation
        await installation.close()


async def _build_installation(loop: SimulationLoop, url: str, runtime: Runtime) -> Installation:
    queue, listeners = WakeupQueue(), (update_campaign_contact,)
    parts = SessionParts(runtime.keyring, runtime.registry, queue.wake, listeners, encrypts_content)
    gates = {name: Gate(name) for name in (*WORKERS, *SERVERS)}
    with gate_engines(list(gates.values())) as engines:
        databases = {name: Database(url, pool_size=POOL_SIZE, parts=parts) for name in gates}
    for engine in engines:  # what SQLAlchemy asks once, with the first connection
        async with engine.connect():
            pass
        await engine.dispose(close=False)
    for gate in gates.values():
        await gate.close()
    outside, judge = Database(url, pool_size=1, parts=parts), await asyncpg.connect(url)
    return Installation(loop, runtime, gates, databases, engines, queue, outside, judge)


@dataclass(eq=False)
class World:
    """The processes and choices of one seed. Each kind of choice has a generator of its own: a change of one leaves the
    others as they are.
    """

    installation: Installation
    seed: int
    scheduler: Scheduler
    organization_id: UUID = field(default_factory=lambda: UUID(int=0))
    processes: dict[str, Process] = field(default_factory=dict)
    redis_frozen_until: float = 0.0
    longest_outage: float = 0.0
    """Seconds for which nobody could connect to the database, at most."""
    complaints: list[str] = field(default_factory=list)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)
    timers: list[asyncio.TimerHandle] = field(default_factory=list)
    lost: int = 0
    """Number of processes that have not told anybody what they have done, or too late."""

    @property
    def bucket(self) -> int:
        """The bucket of the organization."""
        return get_bucket(self.organization_id)

    def create_choices(self, purpose: str) -> random.Random:
        """Create the generator of a kind of choices."""
        return random.Random(f"{self.seed} {purpose}")

    async def fetch(self, query: str) -> list[asyncpg.Record]:
        """Return the rows that a query finds now; nobody else goes on meanwhile."""
        with self.scheduler.stop_others():
            rows: list[asyncpg.Record] = await self.installation.judge.fetch(query)
            return rows

    def complain(self, sentence: str) -> None:
        """Note that something is not as promised."""
        self.complaints.append(sentence)

    def wake(self, job: str, bucket: int) -> None:
        """Send a wake-up to a worker that lives, some time later."""
        workers = [each for each in self.processes.values() if isinstance(each, Worker) and not each.gate.is_dead]
        if CLOCK.read() < self.redis_frozen_until or not workers:
            return
        choices = self.scheduler.choices
        worker, delay = choices.choice(workers), choices.random() * 0.2

        async def follow() -> None:
            await asyncio.sleep(delay)
            await worker.follow_wakeup(job, bucket)

        worker.start(follow())

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine that belongs to no process, whoever starts it."""
        token = CURRENT.set(None)
        try:
            task = asyncio.get_running_loop().create_task(work)
        finally:
            CURRENT.reset(token)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def end(self) -> None:
        """End all processes, and what else is left."""
        for process in self.processes.values():
            process.end()
        for process in self.processes.values():
            await process.wait()
        for task in list(self.tasks):
            task.cancel()
        for timer in self.timers:
            timer.cancel()

    def judge_error(self, sentence: str, error: Exception) -> None:
        """Complain about an error that is none of an outage: what failed would be tried for ever."""
        if not is_database_away(error) and not isinstance(error, ApiError):
            self.complain(f"error: {sentence}: {error!r}")
            self.scheduler.trace += traceback.format_exception(error)

    def note_log(self, _logger: object, level: str, line: structlog.typing.EventDict) -> NoReturn:
        """Add a log line to the trace. An error of a job is a complaint: its row would be tried for ever."""
        sentence = " ".join(f"{name}={value}" for name, value in line.items() if name != "exc_info")
        self.scheduler.note("log", f"{level}: {sentence}")
        error = line.get("exc_info")
        error = sys.exc_info()[1] if error is True else error
        if isinstance(error, Exception):
            self.judge_error(sentence, error)
        raise structlog.DropEvent


@asynccontextmanager
async def enter_world(installation: Installation, seed: int) -> AsyncIterator[World]:
    """Make the world of a seed: ids, chances, and time are the seed's within the block."""
    scheduler = Scheduler(random.Random(f"{seed} order"), outside=1, began_at=BEGIN_SECONDS)
    installation.loop.selector.scheduler = scheduler
    world = World(installation, seed, scheduler)
    chances = world.create_choices("chances")
    random.seed(seed)
    await installation.clear()
    configured = structlog.get_config()
    CLOCK.begin(BEGIN_SECONDS, BEGIN.timestamp())
    moments = UnreadClock()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clock_module, "CLOCK", moments)
        patch.setattr(session_module, "CLOCK", moments)
        patch.setattr(columns, "uuid7", IdSource(world.create_choices("ids")).create)
        patch.setattr("secrets.randbelow", chances.randrange)
        structlog.configure(processors=[world.note_log])
        installation.queue.world = world
        for gate in installation.gates.values():
            gate.open(scheduler)
        scheduler.outside -= 1
        try:
            yield world
            await world.end()
        finally:
            scheduler.outside += 1
            installation.queue.world = None
            for gate in installation.gates.values():
                await gate.close()
            for engine in installation.engines:
                await engine.dispose(close=False)
            structlog.configure(**configured)


class IdSource:
    """Ids of version 7 from a seed."""

    def __init__(self, choices: random.Random) -> None:
        self._choices = choices
        self._last = 0

    def create(self) -> UUID:
        """Return a new id, higher than the last one."""
        self._last = max(self._last + 1, int(CLOCK.time() * 1000) << 12)
        high = (self._last >> 12 << 16) | (7 << 12) | (self._last & 0xFFF)
        return UUID(int=high << 64 | 2 << 62 | self._choices.getrandbits(62))
