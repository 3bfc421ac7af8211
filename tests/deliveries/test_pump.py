"""The delivery worker under failures: the rows of the failure table in docs/decisions/0010-webhook-deliveries.md."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta
from unittest.mock import AsyncMock
from uuid import UUID

import pytest
import stripe
from redis.asyncio import Redis
from sqlalchemy import literal
from sqlalchemy.exc import DBAPIError
from sqlmodel import col, select, update
from switchboard.foundation.database import BUCKETS, SystemSession, new_id, now
from switchboard.foundation.encryption.content import Content, seal_content
from switchboard.foundation.events.models import Delivery, DeliveryAttempt, DueDelivery, EventTarget
from switchboard.foundation.events.outbox import enqueue, get_secret_label
from switchboard.foundation.jobs import Queue, run_beside
from switchboard.foundation.settings import Settings
from switchboard.foundation.work import WorkRunner
from switchboard.resources.deliveries import jobs, queries
from switchboard.resources.deliveries.delivery_worker import FIRST, DeliveryWorker
from switchboard.resources.deliveries.sender import AttemptResult, ClaimedDelivery
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller
from tests.fixtures.eventually import eventually
from tests.fixtures.receiver import Receiver

pytestmark = pytest.mark.local_receivers
BODY = '{"event": "call.completed", "data": {"name": "Zoë ☎"}, "timestamp": "2026-11-20T09:30:00.000Z"}'


@pytest.fixture
def delays() -> list[float]:
    return [0.1] * 5


@pytest.fixture
def settings(settings: Settings, delays: list[float]) -> Settings:
    return settings.model_copy(update={"webhook_retry_delays": delays, "webhook_timeout": 20.0})


class Pump:
    """The deliveries of a worker that has every bucket, and nothing else of it: no queue, no Redis."""

    def __init__(self, runtime: Runtime, sender: DeliveryWorker) -> None:
        self._runner = WorkRunner(runtime.database, jobs.WORK, {**runtime.parts, "delivery_worker": sender})

    async def look(self) -> None:
        """Look at the queue once, and begin to send."""
        for work in jobs.WORK:
            await self._runner.look(work.name, range(BUCKETS))
        await self._runner.finish()

    async def look_again_and_again(self) -> None:
        while True:
            await self.look()
            await asyncio.sleep(1)

    async def stop(self) -> None:
        await self._runner.stop(seconds=0)


@asynccontextmanager
async def run_pump(runtime: Runtime) -> AsyncIterator[Pump]:
    sender = DeliveryWorker(runtime.settings, runtime.database, runtime.keyring, runtime.outbound)
    async with sender:
        pump = Pump(runtime, sender)
        async with run_beside(pump.look_again_and_again()):
            yield pump
        await pump.stop()


async def make_target(runtime: Runtime, caller: Caller, url: str, *, secret: str | None = None) -> EventTarget:
    target = EventTarget(id=new_id(), organization_id=caller.organization_id, kind="endpoint", url=url)
    if secret is not None:
        target.secret = runtime.keyring.encrypt(secret, get_secret_label("endpoint", target.id, target.organization_id))
    async with runtime.database.write(caller.organization_id) as session:
        session.add(target)
    return target


async def add_delivery(runtime: Runtime, target: EventTarget, **fields: object) -> Delivery:
    """Add a delivery whose wake-up is lost."""
    async with runtime.database.write(target.organization_id) as session:
        delivery = await enqueue(session, target, "call.completed", BODY, subject_id=new_id())
        for name, value in fields.items():
            setattr(delivery, name, value)
        session.effects.clear()
    return delivery


async def add_deliveries(runtime: Runtime, target: EventTarget, due: Sequence[datetime]) -> list[str]:
    """Add deliveries that are due at these times; return their ids, in the same order."""
    deliveries = [
        Delivery(
            id=new_id(),
            organization_id=target.organization_id,
            target_id=target.id,
            target_kind=target.kind,
            event_type="call.completed",
            subject_id=new_id(),
            body=Content(BODY),
        )
        for _ in due
    ]
    entries = [
        DueDelivery(id=delivery.id, organization_id=target.organization_id, target_id=target.id, due_at=moment)
        for delivery, moment in zip(deliveries, due, strict=True)
    ]
    async with runtime.database.write(target.organization_id) as session:
        await seal_content(session, *deliveries)
        session.add_all([*deliveries, *entries])
    return [str(delivery.id) for delivery in deliveries]


async def wait_for_row(runtime: Runtime, delivery: Delivery, *, status: str | None = None) -> Delivery:
    """Wait until the delivery has this status, and return its row."""

    async def look() -> Delivery:
        async with runtime.database.write(delivery.organization_id) as session:
            return await session.get_one(Delivery, delivery.id)

    return await eventually(look, lambda stored: status is None or stored.status == status)


async def find_entry(runtime: Runtime, delivery: Delivery) -> DueDelivery:
    """Return the queue entry of a delivery."""
    async with runtime.database.write(delivery.organization_id) as session:
        return await session.get_one(DueDelivery, delivery.id)


async def count_leased(runtime: Runtime, caller: Caller) -> int:
    async with runtime.database.write(caller.organization_id) as session:
        held = select(DueDelivery.id).where(col(DueDelivery.lease_token).is_not(None))
        return len((await session.exec(held)).all())


async def lapse_lease(runtime: Runtime, delivery: Delivery) -> None:
    """End the lease, as if its holder had been suspended for longer."""
    async with runtime.database.write(delivery.organization_id) as session:
        await session.exec(update(DueDelivery).where(col(DueDelivery.id) == delivery.id).values(due_at=now()))


async def test_a_delivery_with_a_lost_wake_up_is_found(runtime: Runtime, caller: Caller, receiver: Receiver) -> None:
    target = await make_target(runtime, caller, f"{receiver.url}/hook")
    async with run_pump(runtime):
        await add_delivery(runtime, await make_target(runtime, caller, f"{receiver.url}/before"))
        await receiver.first("/before")
        delivery = await add_delivery(runtime, target)
        await receiver.first("/hook", seconds=3)
        await wait_for_row(runtime, delivery, status="delivered")


async def test_a_worker_without_redis_delivers_without_busy_waiting(
    runtime: Runtime, caller: Caller, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    target = await make_target(runtime, caller, f"{receiver.url}/hook")
    redis = Redis.from_url("redis://127.0.0.1:9/")
    worker = Queue(redis, redis).worker((), AsyncMock())
    running = asyncio.create_task(worker.start())
    async with run_pump(runtime):
        before = time.process_time()
        for number in range(2):
            await add_delivery(runtime, target)
            await receiver.first("/hook", number + 1, seconds=3)
        await asyncio.sleep(1)
        assert time.process_time() - before < 1
    assert not [record for record in caplog.records if record.name == "saq" and record.exc_info]
    await worker.stop()
    await running
    await redis.aclose()


async def test_a_result_after_its_lease_is_ignored(runtime: Runtime, caller: Caller, receiver: Receiver) -> None:
    """A suspended worker resumes after another one has delivered: the attempt is counted once."""
    target = await make_target(runtime, caller, f"{receiver.url}/hook")
    receiver.statuses["/hook"] = [200]
    receiver.hangs.add("/hook")
    delivery = await add_delivery(runtime, target)
    async with run_pump(runtime):
        await receiver.first("/hook")
        receiver.hangs.clear()
        await lapse_lease(runtime, delivery)
        async with run_pump(runtime):
            await receiver.first("/hook", 2)
            await wait_for_row(runtime, delivery, status="delivered")
        receiver.statuses["/hook"] = [500]
        receiver.release()
    stored = await wait_for_row(runtime, delivery)
    assert (stored.status, stored.attempts, stored.last_status_code) == ("delivered", 1, 200)
    async with runtime.database.write(caller.organization_id) as session:
        assert len((await session.exec(select(DeliveryAttempt))).all()) == 1
        assert (await session.get_one(EventTarget, target.id)).consecutive_failures == 0
    assert {request.delivery_id for request in receiver.received} == {str(delivery.id)}


async def test_a_result_outlives_an_outage_longer_than_its_lease(
    runtime: Runtime, caller: Caller, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody else claims a delivery while the database cannot be reached."""
    delivery = await add_delivery(runtime, await make_target(runtime, caller, f"{receiver.url}/hook"))
    record, tries, back_at = queries.record_attempts, list[float](), time.monotonic() + 60

    async def fail_for_a_minute(
        session: SystemSession, results: Sequence[AttemptResult]
    ) -> dict[UUID, tuple[UUID, str]]:
        tries.append(time.monotonic())
        if tries[-1] < back_at:
            raise OSError("the database cannot be reached")
        return await record(session, results)

    monkeypatch.setattr(queries, "record_attempts", fail_for_a_minute)
    async with DeliveryWorker(runtime.settings, runtime.database, runtime.keyring, runtime.outbound) as worker:
        await worker.deliver(caller.organization_id)
        stored = await wait_for_row(runtime, delivery, status="delivered")
    assert (stored.attempts, len(receiver.received)) == (1, 1)
    assert tries[-1] - tries[0] > 30


async def test_a_stopping_worker_returns_its_leases(runtime: Runtime, caller: Caller, receiver: Receiver) -> None:
    delivery = await add_delivery(runtime, await make_target(runtime, caller, f"{receiver.url}/hook"))
    receiver.hangs.add("/hook")
    async with run_pump(runtime):
        await receiver.first("/hook")
        assert (await find_entry(runtime, delivery)).lease_token is not None
    stored, entry = await wait_for_row(runtime, delivery), await find_entry(runtime, delivery)
    assert (stored.status, stored.attempts) == ("pending", 0)
    assert (entry.is_ready, entry.lease_token) == (True, None)
    assert entry.due_at <= now()


async def test_workers_together_keep_the_limit_of_an_endpoint(
    runtime: Runtime, caller: Caller, receiver: Receiver
) -> None:
    """Two workers that look at the same moment send as many requests to a slow endpoint as one would."""
    receiver.hangs.add("/slow")
    target = await make_target(runtime, caller, f"{receiver.url}/slow")
    await add_deliveries(runtime, target, [now()] * 40)

    async with run_pump(runtime) as one, run_pump(runtime) as other:
        await asyncio.gather(one.look(), other.look())
        await receiver.first("/slow", target.concurrency)
        assert await count_leased(runtime, caller) == target.concurrency
        receiver.release()
        await receiver.first("/slow", 40)


async def test_a_claim_of_another_worker_counts_from_its_beginning_to_the_end_of_its_lease(
    runtime: Runtime, caller: Caller, receiver: Receiver
) -> None:
    target = await make_target(runtime, caller, f"{receiver.url}/hook")
    async with run_pump(runtime) as pump:
        async with runtime.database.system() as session:
            await session.get_one(EventTarget, target.id, with_for_update=True)
            await add_deliveries(runtime, target, [now() - timedelta(minutes=1)] * 20)
            claimed, _ = await queries.claim_deliveries(session, caller.organization_id, most=20, lease=60)
            looking = asyncio.create_task(pump.look())
            await asyncio.sleep(0.2)
            assert await count_leased(runtime, caller) == 0
        await looking
        assert await count_leased(runtime, caller) == len(claimed) == target.concurrency
        async with runtime.database.write(caller.organization_id) as session:
            held = col(DueDelivery.id).in_([delivery.id for delivery in claimed])
            await session.exec(update(DueDelivery).where(held).values(due_at=now()))
        await receiver.first("/hook", 20)


async def test_a_claim_that_is_not_committed_keeps_no_places(
    runtime: Runtime, caller: Caller, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has claimed as many as the organization has places."""
    target = await make_target(runtime, caller, f"{receiver.url}/hook")
    async with runtime.database.write(caller.organization_id) as session:
        await session.exec(update(EventTarget).where(col(EventTarget.id) == target.id).values(concurrency=FIRST))
    await add_deliveries(runtime, target, [now()] * FIRST)
    claim, failed = queries.claim_deliveries, list[int]()

    async def fail_once(
        session: SystemSession, organization_id: UUID, *, most: int, lease: float
    ) -> tuple[list[ClaimedDelivery], bool]:
        claimed = await claim(session, organization_id, most=most, lease=lease)
        if not failed:
            failed.append(len(claimed[0]))
            with suppress(DBAPIError):
                await session.exec(select(literal(1) / 0))  # so that the commit is refused
        return claimed

    monkeypatch.setattr(queries, "claim_deliveries", fail_once)
    async with run_pump(runtime):
        await receiver.first("/hook", FIRST)
    assert failed == [FIRST]


async def test_the_limit_of_an_endpoint_is_learned_by_all_workers(
    runtime: Runtime, caller: Caller, receiver: Receiver
) -> None:
    """Successes raise it to 64 at most, and a failure that cost time halves it, whichever worker comes next."""
    target = await make_target(runtime, caller, f"{receiver.url}/hook")

    async def get_limit() -> int:
        async with runtime.database.write(caller.organization_id) as session:
            return (await session.get_one(EventTarget, target.id)).concurrency

    await add_deliveries(runtime, target, [now()] * 100)
    async with run_pump(runtime):
        await eventually(get_limit, (64).__eq__)
    receiver.statuses["/hook"] = [503]
    for limit in (32, 16):
        delivery = await add_delivery(runtime, target)
        async with run_pump(runtime):
            await eventually(get_limit, limit.__eq__)
        async with runtime.database.write(caller.organization_id) as session:
            await session.delete(await session.get_one(DueDelivery, delivery.id))


async def test_the_newest_and_the_oldest_deliveries_are_sent_in_turn(
    runtime: Runtime, caller: Caller, receiver: Receiver
) -> None:
    """A fresh event is among the first requests to an endpoint with a backlog, and so is the oldest."""
    target = await make_target(runtime, caller, f"{receiver.url}/hook")
    oldest_first = await add_deliveries(runtime, target, [now() - timedelta(seconds=400 - age) for age in range(400)])
    async with run_pump(runtime):
        requests = await receiver.first("/hook", len(oldest_first))
    order = [request.delivery_id for request in requests]
    assert {oldest_first[0], oldest_first[-1]} <= set(order[:20])
    # Single requests, as those of the slowest receivers, come from both ends too.
    for end in (oldest_first[:200], oldest_first[200:]):
        assert len(set(order[:100]) & set(end)) > 20


@pytest.mark.parametrize("delays", [[60.0]])
async def test_retries_are_spread_and_never_early(runtime: Runtime, caller: Caller, receiver: Receiver) -> None:
    """Deliveries that fail together are due again from the time of the schedule to a tenth of the delay later."""
    receiver.statuses["/away"] = [500]
    target = await make_target(runtime, caller, f"{receiver.url}/away")
    await add_deliveries(runtime, target, [now()] * 30)

    async def list_failed() -> Sequence[tuple[datetime, datetime | None]]:
        async with runtime.database.write(caller.organization_id) as session:
            entries = select(DueDelivery.due_at, Delivery.next_attempt_at).join(
                Delivery, col(Delivery.id) == col(DueDelivery.id)
            )
            return (await session.exec(entries.where(col(Delivery.attempts) == 1))).all()

    async with run_pump(runtime):
        failed = await eventually(list_failed, lambda rows: len(rows) == 30)
    late = [(due_at - scheduled).total_seconds() for due_at, scheduled in failed if scheduled is not None]
    assert len(late) == 30
    assert min(late) >= 0
    assert max(late) <= 6
    assert max(late) - min(late) > 1


async def test_a_wrong_worker_clock_affects_neither_signatures_nor_the_schedule(
    runtime: Runtime, caller: Caller, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + 600)
    receiver.statuses["/hook"] = [500, 200]
    delivery = await add_delivery(runtime, await make_target(runtime, caller, f"{receiver.url}/hook"))
    async with run_pump(runtime):
        first, second = await receiver.first("/hook", 2)
        await wait_for_row(runtime, delivery, status="delivered")
    for request in (first, second):
        assert abs(real() - int(request.headers["X-Webhook-Timestamp"])) < 10


async def test_an_independent_library_verifies_signatures(runtime: Runtime, caller: Caller, receiver: Receiver) -> None:
    """The scheme is Stripe's to the letter, and Stripe's library accepts good signatures and refuses altered,
    foreign, and old ones.
    """
    target = await make_target(runtime, caller, f"{receiver.url}/hook", secret="whsec_ours")
    await add_delivery(runtime, target)
    async with run_pump(runtime):
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


async def test_an_undecryptable_secret_costs_no_attempt(runtime: Runtime, caller: Caller, receiver: Receiver) -> None:
    target = await make_target(runtime, caller, f"{receiver.url}/hook")
    async with runtime.database.write(caller.organization_id) as session:
        await session.exec(
            update(EventTarget).where(col(EventTarget.id) == target.id).values(secret="v1.00000000.AAAA")
        )
    delivery = await add_delivery(runtime, target)
    other = await add_delivery(runtime, await make_target(runtime, caller, f"{receiver.url}/other"))
    async with run_pump(runtime):
        await wait_for_row(runtime, other, status="delivered")
    stored = await wait_for_row(runtime, delivery)
    assert (stored.status, stored.attempts) == ("pending", 0)
    assert not receiver.at("/hook")


@pytest.mark.parametrize(
    "reply", [b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nx", b"HTTP/1.1 204 No Content\r\n\r\n"]
)
async def test_the_response_status_decides_even_if_the_body_fails(
    runtime: Runtime, caller: Caller, reply: bytes
) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(reply)
            await writer.drain()
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    delivery = await add_delivery(runtime, await make_target(runtime, caller, url))
    async with run_pump(runtime):
        assert (await wait_for_row(runtime, delivery, status="delivered")).attempts == 1
    server.close()


async def test_an_idle_connection_closed_by_the_receiver_costs_no_attempt(runtime: Runtime, caller: Caller) -> None:
    """The receiver answers one request per connection, and closes the connection silently at the next."""
    connections: list[int] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(0)
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                lines = head.lower().split(b"\r\n")
                length = next(int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length:"))
                await reader.readexactly(length)
                if connections[-1]:
                    break
                connections[-1] += 1
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        except asyncio.IncompleteReadError:
            return  # the worker has closed the connection
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    target = await make_target(runtime, caller, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/")
    async with run_pump(runtime):
        for _ in range(2):
            assert (await wait_for_row(runtime, await add_delivery(runtime, target), status="delivered")).attempts == 1
    assert len(connections) == 2
    server.close()


async def test_deliveries_fail_after_seven_days_at_a_disabled_endpoint(runtime: Runtime, caller: Caller) -> None:
    target = await make_target(runtime, caller, "https://example.com/")
    old = await add_delivery(runtime, target)
    recent = await add_delivery(runtime, target)
    open_target = await make_target(runtime, caller, "https://example.com/open")
    enabled = await add_delivery(runtime, open_target)
    async with runtime.database.write(caller.organization_id) as session:
        await session.exec(update(EventTarget).where(col(EventTarget.id) == target.id).values(enabled=False))
        aged = col(DueDelivery.id).in_([old.id, enabled.id])
        began = now() - queries.WAIT
        await session.exec(update(DueDelivery).where(aged).values(created_at=began, due_at=began))
    await runtime.call(jobs.expire_deliveries)
    stored = await wait_for_row(runtime, old)
    assert (stored.status, stored.last_error, stored.next_attempt_at) == (
        "failed",
        "the endpoint stayed disabled",
        None,
    )
    for delivery in (recent, enabled):
        assert (await wait_for_row(runtime, delivery)).status == "pending"


async def test_what_is_left_of_a_deleted_endpoints_backlog_fails_later(runtime: Runtime, caller: Caller) -> None:
    """Deletion ends a batch at once. A delivery whose result was being written meanwhile is left, too."""
    target = await make_target(runtime, caller, "https://example.com/")
    delivery = await add_delivery(runtime, target)
    async with runtime.database.write(caller.organization_id) as session:
        await session.delete(await session.get_one(EventTarget, target.id))
    await runtime.call(jobs.expire_deliveries)
    stored = await wait_for_row(runtime, delivery)
    assert (stored.status, stored.last_error) == ("failed", "the receiver was deleted")
