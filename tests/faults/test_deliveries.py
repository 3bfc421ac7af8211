"""Nothing published is lost: processes are killed and restarted while events are published and delivered.

`make faults` runs it for longer.
"""

import asyncio
from collections import defaultdict
from pathlib import Path
from uuid import UUID

import pytest
from sqlalchemy.exc import SQLAlchemyError
from sqlmodel import col, select
from switchboard.foundation.database import new_id, now
from switchboard.foundation.encryption.content import open_content
from switchboard.foundation.events.catalog import CallCompleted
from switchboard.foundation.events.models import Delivery, DeliveryAttempt, DueDelivery, EventTarget
from switchboard.foundation.events.outbox import publish
from switchboard.resources.identity import service as identity
from switchboard.runtime import Runtime

from tests.fixtures.eventually import eventually
from tests.fixtures.json_access import at
from tests.fixtures.processes import SCALE, Servers, Workers, start_platform
from tests.fixtures.receiver import Receiver

pytestmark = pytest.mark.system

EVENTS, TOGETHER = 400 * SCALE, 20
ORGANIZATIONS = 5
PUBLISH_SECONDS = 2 * SCALE
"""Time to publish for, so that the faults meet events of every age."""
KILLS = 2 + SCALE


async def make_targets(runtime: Runtime, receiver: Receiver) -> list[UUID]:
    """Create organizations with two endpoints each."""
    organizations = []
    for _ in range(ORGANIZATIONS):
        async with runtime.database.system() as session:
            organization = identity.create_organization(session, name="Faults")
        async with runtime.database.write(organization.id) as session:
            for path in ("first", "second"):
                session.add(EventTarget(organization_id=organization.id, kind="endpoint", url=f"{receiver.url}/{path}"))
        organizations.append(organization.id)
    return organizations


def event(number: int) -> CallCompleted:
    return CallCompleted(
        call_id=new_id(),
        agent_id=None,
        direction="inbound",
        status="completed",
        from_number="+15550100001",
        to_number="+15550100200",
        duration_seconds=1,
        cost_total=0,
        error_message=None,
        started_at=now(),
        ended_at=now(),
        created_at=now(),
        metadata={"number": number},
    )


async def publish_all(runtime: Runtime, organizations: list[UUID], pause: float) -> None:
    """Publish every event; one whose commit failed or is unknown is published again, as a caller would."""
    for start in range(0, EVENTS, TOGETHER):
        while True:
            try:
                async with runtime.database.write(organizations[start // TOGETHER % ORGANIZATIONS]) as session:
                    for number in range(start, start + TOGETHER):
                        await publish(session, event(number))
                break
            except (SQLAlchemyError, OSError):
                await asyncio.sleep(0.1)
        await asyncio.sleep(pause)


async def break_things(runtime: Runtime, servers: Servers, workers: Workers, receiver: Receiver) -> None:
    """Kill a worker each time another part of the deliveries has arrived, and flush Redis or restart PostgreSQL in
    turn.
    """

    async def count_deliveries() -> int:
        return len(receiver.received)

    for kill in range(KILLS):
        arrived = 2 * EVENTS * (kill + 1) // (KILLS + 1)
        await eventually(count_deliveries, arrived.__le__)
        await workers.kill_one()
        if kill % 2:
            await servers.restart_postgres()
        else:
            await runtime.redis.flushall()


async def wait_for_deliveries(runtime: Runtime, organization: UUID) -> None:
    """Wait until no delivery of an organization is pending."""

    async def list_pending() -> list[UUID]:
        async with runtime.database.write(organization) as session:
            return list((await session.exec(select(Delivery.id).where(col(Delivery.status) == "pending"))).all())

    await eventually(list_pending, lambda ids: not ids, seconds=180)


@pytest.mark.timeout(360 * SCALE)
async def test_events_survive_killed_workers_postgres_restarts_and_redis_flushes(
    tmp_path: Path, receiver: Receiver
) -> None:
    async with start_platform(tmp_path) as (runtime, servers, workers):
        organizations = await make_targets(runtime, receiver)
        await asyncio.gather(
            publish_all(runtime, organizations, pause=PUBLISH_SECONDS * TOGETHER / EVENTS),
            break_things(runtime, servers, workers, receiver),
        )
        for organization in organizations:
            await wait_for_deliveries(runtime, organization)
        assert workers.kills == KILLS
        bodies: dict[str, set[bytes]] = defaultdict(set)
        for request in receiver.received:
            bodies[request.delivery_id].add(request.body)
        for path in ("/first", "/second"):
            assert {at(request.json, "data", "metadata", "number") for request in receiver.at(path)} == set(
                range(EVENTS)
            )
        assert all(len(sent) == 1 for sent in bodies.values()), "a repeat carries the same bytes"
        for organization in organizations:
            await check_rows(runtime, organization, bodies)


async def check_rows(runtime: Runtime, organization: UUID, bodies: dict[str, set[bytes]]) -> None:
    """Check that each delivery is over, was received with the stored bytes, and counts one attempt per stored
    attempt.
    """
    async with runtime.database.write(organization) as session:
        deliveries = (await session.exec(select(Delivery))).all()
        await open_content(session, *deliveries)
        attempts = [row.delivery_id for row in (await session.exec(select(DeliveryAttempt))).all()]
        assert not (await session.exec(select(DueDelivery.id))).all()
    assert len(deliveries) >= 2 * EVENTS // ORGANIZATIONS
    assert len(attempts) == sum(delivery.attempts for delivery in deliveries)
    for delivery in deliveries:
        assert delivery.status == "delivered"
        assert bodies[str(delivery.id)] == {delivery.body.value.encode()}
