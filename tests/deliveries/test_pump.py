"""The delivery worker under failures: the rows of the failure table in docs/decisions/0010-webhook-deliveries.md."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

import pytest
import stripe
from redis.asyncio import Redis
from sqlmodel import col, select, update
from switchboard.foundation.database import new_id, now
from switchboard.foundation.events.models import Delivery, DeliveryAttempt, EventTarget
from switchboard.foundation.events.outbox import enqueue
from switchboard.foundation.events.targets import get_secret_label
from switchboard.foundation.jobs import Queue
from switchboard.foundation.settings import Settings
from switchboard.resources.deliveries import delivery_worker
from switchboard.resources.deliveries.delivery_worker import DeliveryWorker
from switchboard.resources.deliveries.jobs import KEPT, WAIT, delete_old_deliveries, expire_deliveries
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller
from tests.fixtures.eventually import eventually
from tests.fixtures.receiver import Receiver

pytestmark = pytest.mark.local_receivers
BODY = '{"event": "call.completed", "data": {"name": "Zoë ☎"}, "timestamp": "2026-11-20T09:30:00.000Z"}'


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return settings.model_copy(update={"webhook_retry_delays": [0.1] * 5, "webhook_timeout": 20.0})


@asynccontextmanager
async def pumping(runtime: Runtime) -> AsyncIterator[asyncio.Event]:
    """Run a delivery worker and nothing else: no queue, no Redis."""
    stop = asyncio.Event()
    task = asyncio.create_task(DeliveryWorker(runtime).run(stop))
    try:
        yield stop
    finally:
        stop.set()
        await task


async def make_target(runtime: Runtime, caller: Caller, url: str, *, secret: str | None = None) -> EventTarget:
    target = EventTarget(id=new_id(), organization_id=caller.organization_id, kind="endpoint", url=url)
    if secret is not None:
        target.secret = runtime.keyring.encrypt(secret, get_secret_label("endpoint", target.id, target.organization_id))
    async with runtime.database.tenant(caller.organization_id) as session:
        session.add(target)
    return target


async def add(runtime: Runtime, target: EventTarget, **fields: object) -> Delivery:
    """Add a delivery whose wake-up is lost."""
    async with runtime.database.tenant(target.organization_id) as session:
        delivery = enqueue(session, target, "call.completed", BODY)
        for name, value in fields.items():
            setattr(delivery, name, value)
        session.info["after_commit"].clear()
    return delivery


async def row(runtime: Runtime, delivery: Delivery, *, status: str | None = None) -> Delivery:
    """Wait until the delivery has this status, and return its row."""

    async def look() -> Delivery:
        async with runtime.database.tenant(delivery.organization_id) as session:
            return await session.get_one(Delivery, delivery.id)

    return await eventually(look, lambda found: status is None or found.status == status)


async def lapse(runtime: Runtime, delivery: Delivery) -> None:
    """End the lease, as if its holder had been suspended for longer."""
    async with runtime.database.tenant(delivery.organization_id) as session:
        await session.exec(update(Delivery).where(col(Delivery.id) == delivery.id).values(due_at=now()))


async def test_a_delivery_whose_wake_up_is_lost_is_found(runtime: Runtime, caller: Caller, receiver: Receiver) -> None:
    target = await make_target(runtime, caller, f"{receiver.url}/hook")
    async with pumping(runtime):
        await add(runtime, await make_target(runtime, caller, f"{receiver.url}/before"))
        await receiver.first("/before")
        delivery = await add(runtime, target)
        await receiver.first("/hook", seconds=3)
        await row(runtime, delivery, status="delivered")


async def test_a_worker_without_redis_delivers_and_does_not_spin(
    runtime: Runtime, caller: Caller, receiver: Receiver
) -> None:
    target = await make_target(runtime, caller, f"{receiver.url}/hook")
    nowhere = Redis.from_url("redis://127.0.0.1:9/")
    worker = Queue(nowhere).worker(jobs=(), clock=(), context=None)
    running = asyncio.create_task(worker.start())
    async with pumping(runtime):
        before = time.process_time()
        for number in range(2):
            await add(runtime, target)
            await receiver.first("/hook", number + 1, seconds=3)
        await asyncio.sleep(1)
        assert time.process_time() - before < 1
    await worker.stop()
    await running
    await nowhere.aclose()


async def test_a_result_that_comes_after_its_lease_counts_for_nothing(
    runtime: Runtime, caller: Caller, receiver: Receiver
) -> None:
    """A suspended worker resumes after another one has delivered: the attempt is counted once."""
    target = await make_target(runtime, caller, f"{receiver.url}/hook")
    receiver.statuses["/hook"] = [200]
    receiver.hangs.add("/hook")
    delivery = await add(runtime, target)
    async with pumping(runtime):
        await receiver.first("/hook")
        receiver.hangs.clear()
        await lapse(runtime, delivery)
        async with pumping(runtime):
            await receiver.first("/hook", 2)
            await row(runtime, delivery, status="delivered")
        receiver.statuses["/hook"] = [500]
        receiver.release()
    found = await row(runtime, delivery)
    assert (found.status, found.attempts, found.last_status_code) == ("delivered", 1, 200)
    async with runtime.database.tenant(caller.organization_id) as session:
        assert len((await session.exec(select(DeliveryAttempt))).all()) == 1
        assert (await session.get_one(EventTarget, target.id)).consecutive_failures == 0
    assert {request.delivery_id for request in receiver.received} == {str(delivery.id)}


async def test_a_worker_that_stops_hands_its_leases_back(
    runtime: Runtime, caller: Caller, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery_worker, "STOP_SECONDS", 0.1)
    delivery = await add(runtime, await make_target(runtime, caller, f"{receiver.url}/hook"))
    receiver.hangs.add("/hook")
    async with pumping(runtime):
        await receiver.first("/hook")
        claimed = await row(runtime, delivery)
        assert claimed.lease_token is not None
    found = await row(runtime, delivery)
    assert (found.status, found.attempts, found.lease_token) == ("pending", 0, None)
    assert found.due_at is not None
    assert found.due_at <= now()


async def test_a_workers_wrong_clock_spoils_neither_signature_nor_schedule(
    runtime: Runtime, caller: Caller, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + 600)
    receiver.statuses["/hook"] = [500, 200]
    delivery = await add(runtime, await make_target(runtime, caller, f"{receiver.url}/hook"))
    async with pumping(runtime):
        first, second = await receiver.first("/hook", 2)
        await row(runtime, delivery, status="delivered")
    for request in (first, second):
        assert abs(real() - int(request.headers["X-Webhook-Timestamp"])) < 10


async def test_signatures_verify_with_somebody_elses_library(
    runtime: Runtime, caller: Caller, receiver: Receiver
) -> None:
    """The scheme is Stripe's to the letter, and Stripe's library accepts good signatures and refuses altered,
    foreign, and old ones.
    """
    target = await make_target(runtime, caller, f"{receiver.url}/hook", secret="whsec_ours")
    await add(runtime, target)
    async with pumping(runtime):
        (request,) = await receiver.first("/hook")
    verify = stripe.WebhookSignature.verify_header
    header, body = request.headers["X-Webhook-Signature"], request.body.decode()
    assert verify(body, header, "whsec_ours", 300)
    for altered in (
        (body + " ", header, "whsec_ours"),
        (body, header, "whsec_theirs"),
        (body, header.replace("t=1", "t=2"), "whsec_ours"),
    ):
        with pytest.raises(stripe.SignatureVerificationError):
            verify(*altered, 300)


async def test_a_secret_under_a_lost_key_costs_no_attempt(runtime: Runtime, caller: Caller, receiver: Receiver) -> None:
    target = await make_target(runtime, caller, f"{receiver.url}/hook")
    async with runtime.database.tenant(caller.organization_id) as session:
        await session.exec(
            update(EventTarget).where(col(EventTarget.id) == target.id).values(secret="v1.00000000.AAAA")
        )
    delivery = await add(runtime, target)
    other = await add(runtime, await make_target(runtime, caller, f"{receiver.url}/other"))
    async with pumping(runtime):
        await row(runtime, other, status="delivered")
    found = await row(runtime, delivery)
    assert (found.status, found.attempts) == ("pending", 0)
    assert not receiver.at("/hook")


@pytest.mark.parametrize(
    "answer", [b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nx", b"HTTP/1.1 204 No Content\r\n\r\n"]
)
async def test_a_status_decides_whatever_happens_to_the_body(runtime: Runtime, caller: Caller, answer: bytes) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    delivery = await add(runtime, await make_target(runtime, caller, url))
    async with pumping(runtime):
        assert (await row(runtime, delivery, status="delivered")).attempts == 1
    server.close()


async def test_a_connection_that_was_closed_while_idle_costs_no_attempt(runtime: Runtime, caller: Caller) -> None:
    """The receiver answers one request per connection, and closes the connection silently at the next."""
    connections: list[int] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(0)
        while head := await reader.readuntil(b"\r\n\r\n"):
            length = next(
                int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")
            )
            await reader.readexactly(length)
            if connections[-1]:
                break
            connections[-1] += 1
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    target = await make_target(runtime, caller, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/")
    async with pumping(runtime):
        for _ in range(2):
            assert (await row(runtime, await add(runtime, target), status="delivered")).attempts == 1
    assert len(connections) == 2
    server.close()


async def test_what_waited_seven_days_for_a_disabled_endpoint_fails(runtime: Runtime, caller: Caller) -> None:
    target = await make_target(runtime, caller, "https://example.com/")
    old = await add(runtime, target, created_at=now() - WAIT)
    young = await add(runtime, target)
    await expire_deliveries(runtime)
    found = await row(runtime, old)
    assert (found.status, found.last_error, found.next_attempt_at) == ("failed", "the endpoint stayed disabled", None)
    assert (await row(runtime, young)).status == "pending"


async def test_deliveries_are_kept_for_thirty_days(runtime: Runtime, caller: Caller) -> None:
    target = await make_target(runtime, caller, "https://example.com/")
    over = {"status": "delivered", "due_at": None}
    old, young = await add(runtime, target, created_at=now() - KEPT, **over), await add(runtime, target, **over)
    waiting = await add(runtime, target, created_at=now() - KEPT)
    await delete_old_deliveries(runtime)
    async with runtime.database.tenant(caller.organization_id) as session:
        left: set[UUID] = set((await session.exec(select(Delivery.id))).all())
    assert left == {young.id, waiting.id}
    assert old.id not in left
