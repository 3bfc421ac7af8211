"""Events and their deliveries: a server publishes, workers send, and whatever was accepted arrives."""

import asyncio
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from sqlalchemy.exc import SQLAlchemyError
from switchboard.foundation.database import new_id, now
from switchboard.foundation.events.catalog import SimulationCompleted
from switchboard.foundation.events.models import EventTarget
from switchboard.foundation.events.outbox import publish
from switchboard.resources.deliveries import jobs
from switchboard.resources.identity import service as identity

from tests.fixtures.virtual_clock import CLOCK
from tests.interleavings.counters import check_counter
from tests.interleavings.faults import Faults
from tests.interleavings.processes import Process, Worker
from tests.interleavings.receivers import SimulatedOutbound, WebhookEndpoint
from tests.interleavings.world import SERVERS, WORKERS, World

TIMEOUT: Final = 5.0
RETRY_DELAYS: Final = (20.0, 40.0, 60.0, 60.0, 60.0, 60.0)
FAILING_SECONDS: Final = 60.0
LOOK_SECONDS: Final = 2.0
SETTLED_LOOKS: Final = 300
"""Looks at the queue within which everything must have been delivered: ten minutes."""


@dataclass(eq=False)
class DeliveryStory:
    """A server that publishes events, and one or two workers."""

    world: World
    endpoint: WebhookEndpoint
    events: int
    accepted: list[UUID] = field(default_factory=list)
    is_published: bool = False
    pause: float = 3.0

    @classmethod
    def draw(cls, world: World) -> "DeliveryStory":
        """Draw a story: how many events there are, and how badly their receiver works."""
        choices = world.create_choices("receiver")
        failure_share, events = choices.choice((0.0, 0.3, 0.6)), choices.randint(1, 4)
        return cls(world, WebhookEndpoint(choices, failure_share, CLOCK.read() + FAILING_SECONDS), events)

    async def play(self) -> None:
        """Play the story, and check what is left at its end."""
        await self._prepare()
        choices = self.world.create_choices("story")
        self.pause = choices.uniform(4, 10)
        for name in WORKERS[: choices.randint(1, 2)]:
            self._start_worker(name)
        self._start_server()
        names = sorted(self.world.processes)
        faults = Faults(self.world, self._restart, names, [name for name in names if name in WORKERS])
        faults.plan(self.world.create_choices("faults"), last_step=150)
        for _ in range(SETTLED_LOOKS):
            if await self._is_settled():
                break
            await asyncio.sleep(LOOK_SECONDS)
        await asyncio.sleep(2 * TIMEOUT)  # in which late requests end
        await self._check()

    async def _prepare(self) -> None:
        outside = self.world.installation.outside
        with self.world.scheduler.stop_others():
            async with outside.system() as session:
                self.world.organization_id = identity.create_organization(session, name="Simulated").id
            async with outside.write(self.world.organization_id) as session:
                target = EventTarget(
                    id=new_id(), organization_id=self.world.organization_id, kind="endpoint", url="https://example.com/"
                )
                session.add(target)

    def _restart(self, name: str) -> None:
        if name in WORKERS:
            self._start_worker(name)
        else:
            self._start_server()

    def _start_server(self) -> None:
        installation, name = self.world.installation, SERVERS[0]
        server = self.world.processes[name] = Process(
            installation.gates[name], installation.databases[name], self.world.complain
        )
        server.start(self._publish())

    def _start_worker(self, name: str) -> None:
        installation = self.world.installation
        worker = self.world.processes[name] = Worker(
            installation.gates[name], installation.databases[name], self.world.complain
        )
        worker.bucket, worker.pause = self.world.bucket, self.pause
        outbound = SimulatedOutbound(worker.gate, self.endpoint)
        parts = {"database": worker.database, "keyring": installation.keyring, "outbound": outbound}
        settings = installation.settings.model_copy(
            update={"webhook_timeout": TIMEOUT, "webhook_retry_delays": list(RETRY_DELAYS)}
        )
        worker.start(worker.run(settings, parts, jobs.WORK, ()))

    async def _publish(self) -> None:
        choices = self.world.create_choices("publisher")
        while self.events:
            self.events -= 1
            await asyncio.sleep(choices.random() * 3)
            subject = new_id()
            event = SimulationCompleted.model_construct(
                simulation_id=subject,
                agent_id=None,
                name="simulated",
                status="passed",
                score=1.0,
                criteria=[],
                turns=1,
                duration_seconds=1,
                error_message=None,
                started_at=now(),
                completed_at=now(),
            )
            database = self.world.processes[SERVERS[0]].database
            try:
                async with database.write(self.world.organization_id) as session:
                    await publish(session, event)
            except (SQLAlchemyError, OSError):
                continue
            self.accepted.append(subject)
        self.is_published = True

    async def _is_settled(self) -> bool:
        return self.is_published and not await self.world.fetch("select 1 from delivery_due limit 1")

    async def _check(self) -> None:
        rows = await self.world.fetch("select id, subject_id, status, attempts from delivery order by id")
        subjects = {row["subject_id"] for row in rows}
        for subject in self.accepted:
            if subject not in subjects:
                self.world.complain(f"lost: the event about {subject} was accepted, and has no delivery")
        await check_counter(self.world, "delivery", len(rows))
        for process in self.world.processes.values():
            if isinstance(process, Worker) and not process.gate.is_dead and process.places_taken:
                self.world.complain(f"lost: {process.gate.name} keeps {process.places_taken} places for requests")
        recorded = await self.world.fetch("select delivery_id, number from delivery_attempt order by number")
        for row in rows:
            numbers = [each["number"] for each in recorded if each["delivery_id"] == row["id"]]
            if numbers != list(range(1, row["attempts"] + 1)):
                self.world.complain(
                    f"counters: delivery {row['id']} has {row['attempts']} attempts, and rows {numbers}"
                )
            self._check_receipts(row["id"], row["status"], row["attempts"])

    def _check_receipts(self, delivery_id: UUID, status: str, attempts: int) -> None:
        receipts = self.endpoint.receipts.get(delivery_id, [])
        statuses = [receipt.status for receipt in receipts]
        if status != "delivered" or 200 not in statuses:
            self.world.complain(f"lost: delivery {delivery_id} is {status}, and the receiver has answered {statuses}")
        if len(receipts) > attempts + self.world.lost:
            self.world.complain(f"twice: {len(receipts)} requests of delivery {delivery_id}, and {attempts} attempts")
