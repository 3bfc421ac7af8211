"""Deliveries to one endpoint under any responses, dead and late workers, and user actions."""

from dataclasses import dataclass
from uuid import UUID

import pytest
from hypothesis import strategies
from hypothesis.stateful import invariant, precondition, rule
from sqlalchemy import text
from sqlmodel import select
from switchboard.apps.embedded import DataDirectory
from switchboard.foundation.database import new_id, now
from switchboard.foundation.events.models import Delivery, DeliveryAttempt, EventTarget
from switchboard.foundation.events.outbox import enqueue
from switchboard.foundation.web.errors import InvalidState
from switchboard.plugin_sdk.registry import Registry
from switchboard.resources.deliveries import queries
from switchboard.resources.deliveries.delivery_worker import record_results
from switchboard.resources.deliveries.sender import AttemptResult, ClaimedDelivery
from switchboard.resources.webhooks import deliveries

from tests.machines.machine import PlatformMachine, play

CAPACITY, LIMIT = 3, 5
ANSWERS = {"delivered": 200, "failed": 410, "pending": 500}


@dataclass(slots=True)
class Expected:
    """Expected state of a delivery."""

    status: str = "pending"
    attempts: int = 0
    token: UUID | None = None
    leased: bool = False


class DeliveryMachine(PlatformMachine):
    """One endpoint, with workers that claim, report, come too late, or die."""

    async def begin(self) -> None:
        self.endpoint = EventTarget(
            id=new_id(), organization_id=self.organization_id, kind="endpoint", url="https://example.com/"
        )
        self.endpoint.concurrency = LIMIT
        async with self.runtime.database.write(self.organization_id) as session:
            session.add(self.endpoint)
        self.expected: dict[UUID, Expected] = {}
        self.held: list[ClaimedDelivery] = []
        self.failures, self.enabled = 0, True

    @rule()
    def publish_event(self) -> None:
        async def publish() -> UUID:
            async with self.runtime.database.write(self.organization_id) as session:
                endpoint = await session.get_one(EventTarget, self.endpoint.id)
                return (await enqueue(session, endpoint, "call.completed", "{}", subject_id=new_id())).id

        if self.enabled:
            self.expected[self.run(publish())] = Expected()

    @rule()
    def claim_deliveries(self) -> None:
        async def claim() -> list[ClaimedDelivery]:
            async with self.runtime.database.write(self.organization_id) as session:
                await queries.make_ready(session)
            async with self.runtime.database.system() as session:
                claimed, _ = await queries.claim_deliveries(session, self.organization_id, most=CAPACITY, lease=60)
                return claimed

        claimed = self.run(claim())
        free = [key for key, delivery in self.expected.items() if delivery.status == "pending" and not delivery.leased]
        assert {each.id for each in claimed} <= set(free)
        of_others = sum(delivery.leased for delivery in self.expected.values())
        assert len(claimed) == (min(CAPACITY, LIMIT - of_others, len(free)) if self.enabled else 0)
        for each in claimed:
            assert each.attempts == self.expected[each.id].attempts
            self.expected[each.id].token, self.expected[each.id].leased = each.token, True
        self.held += claimed

    @precondition(lambda self: self.held)
    @rule(index=strategies.integers(0, 9), status=strategies.sampled_from(tuple(ANSWERS)))
    def record_response(self, index: int, status: str) -> None:
        claimed = self.held.pop(index % len(self.held))
        retry_in = 0.0 if status == "pending" else None
        code = ANSWERS[status]
        result = AttemptResult(claimed, status, retry_in, code, None, now(), 5, slow=False)  # type: ignore[arg-type]

        async def record() -> None:
            async with self.runtime.database.system() as session:
                await record_results(session, [result])

        self.run(record())
        delivery = self.expected[claimed.id]
        if delivery.token != claimed.token:
            return  # too late: the lease had lapsed, and another worker has or had the delivery
        delivery.status, delivery.token, delivery.leased = status, None, False
        delivery.attempts += 1
        if status == "delivered":
            self.failures = 0
        elif status == "failed" and self.enabled:
            self.failures += 1
            self.enabled = self.failures < queries.MAX_FAILURES

    @rule()
    def lapse_leases(self) -> None:
        async def lapse() -> None:
            async with self.runtime.database.write(self.organization_id) as session:
                await (await session.connection()).execute(
                    text("update delivery_due set due_at = :now where not is_ready"), {"now": now()}
                )

        self.run(lapse())
        # Until another worker claims it, the slow worker's result still counts.
        for delivery in self.expected.values():
            delivery.leased = False

    @precondition(lambda self: self.expected)
    @rule(index=strategies.integers(0, 9))
    def replay_delivery(self, index: int) -> None:
        original = list(self.expected)[index % len(self.expected)]

        async def replay() -> UUID:
            async with self.runtime.database.write(self.organization_id) as session:
                return (await deliveries.replay_delivery(session, original)).id

        if self.enabled:
            self.expected[self.run(replay())] = Expected()
        else:
            with pytest.raises(InvalidState):
                self.run(replay())

    @rule(enabled=strategies.booleans())
    def set_enabled(self, enabled: bool) -> None:
        async def switch() -> None:
            async with self.runtime.database.write(self.organization_id) as session:
                endpoint = await session.get_one(EventTarget, self.endpoint.id, with_for_update=True)
                if enabled and not endpoint.enabled:
                    endpoint.consecutive_failures = 0
                endpoint.enabled = enabled

        self.run(switch())
        self.failures = 0 if enabled and not self.enabled else self.failures
        self.enabled = enabled

    @invariant()
    def assert_invariants(self) -> None:
        self.run(self._check())

    async def _check(self) -> None:
        async with self.runtime.database.write(self.organization_id) as session:
            rows = {row.id: row for row in (await session.exec(select(Delivery))).all()}
            attempts = [row.delivery_id for row in (await session.exec(select(DeliveryAttempt))).all()]
            endpoint = await session.get_one(EventTarget, self.endpoint.id)
        assert rows.keys() == self.expected.keys()
        for key, delivery in self.expected.items():
            assert (rows[key].status, rows[key].attempts) == (delivery.status, delivery.attempts)
            assert attempts.count(key) == delivery.attempts
            assert (rows[key].delivered_at is not None) == (delivery.status == "delivered")
        assert (endpoint.enabled, endpoint.consecutive_failures) == (self.enabled, self.failures)


def test_delivery_state_machine(servers: DataDirectory, registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "MAX_FAILURES", 3)
    monkeypatch.setattr(queries, "MOST_AT_ONCE", LIMIT)  # as it is at the beginning: it learns nothing
    play(DeliveryMachine, servers, registry, examples=15)
