"""Events that are published at an even rate, and the proof that each one that was accepted has arrived."""

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field

from sqlalchemy.exc import SQLAlchemyError
from switchboard.foundation.database import new_id, now
from switchboard.foundation.events.catalog import CallRinging
from switchboard.foundation.events.outbox import publish
from switchboard.resources.contacts.models import Contact

from tests.chaos.traffic import Traffic
from tests.fixtures.json_access import at
from tests.fixtures.receiver import Receiver, WebhookRequest

A_SECOND, TOGETHER, ENDPOINTS = 10, 5, 5
"""Events a second, events of one transaction, and endpoints that each event is delivered to: 50 deliveries a second."""
NOBODY = "+15560000000"
"""The number that the calls of these events are to, and no other."""


@dataclass(slots=True)
class Publisher:
    """Publishes events until `traffic.stop` is set; `accepted` are the numbers of those that were committed."""

    traffic: Traffic
    receiver: Receiver
    accepted: set[int] = field(default_factory=set)

    async def subscribe(self) -> None:
        """Create the endpoints."""
        for number in range(ENDPOINTS):
            endpoint = {"url": f"{self.receiver.url}/events/{number}", "events": [CallRinging.event]}
            assert (await self.traffic.live.caller.post("/v1/webhook-endpoints", endpoint)).status == 201

    async def run(self) -> None:
        clock = asyncio.get_running_loop().time
        first = 0
        while not self.traffic.stop.is_set():
            due = clock() + TOGETHER / A_SECOND
            if await self._publish(range(first, first + TOGETHER)):
                self.accepted |= set(range(first, first + TOGETHER))
                first += TOGETHER
            await asyncio.sleep(max(0.0, due - clock()))

    async def _publish(self, numbers: range) -> bool:
        """Publish events unless an earlier try, whose reply was lost, has done so; return whether that is certain."""
        organization_id = self.traffic.organization_id
        proof = Contact(organization_id=organization_id, phone_number=f"+1556{numbers.start:07}")
        try:
            async with self.traffic.runtime.database.write(organization_id) as session:
                if await session.insert_if_new(proof):
                    for number in numbers:
                        await publish(session, _create_event(number))
        except (SQLAlchemyError, OSError):
            return False
        return True

    def check(self) -> None:
        """Check that each accepted event has arrived at each endpoint, as one delivery."""
        deliveries: dict[tuple[str, object], set[str]] = defaultdict(set)
        for request in self._list_requests():
            number = at(request.json, "data", "metadata", "number")
            deliveries[request.path, number].add(request.delivery_id)
        paths = [f"/events/{number}" for number in range(ENDPOINTS)]
        assert deliveries.keys() >= {(path, number) for path in paths for number in self.accepted}
        assert all(len(ids) == 1 for ids in deliveries.values()), "an event arrived as two deliveries"

    def count_repeats(self) -> int:
        """Count the requests that repeated a delivery, of which nobody knew that it had arrived."""
        requests = [request.delivery_id for request in self._list_requests()]
        return len(requests) - len(set(requests))

    def _list_requests(self) -> list[WebhookRequest]:
        """List the requests of the published events, without those of calls that ring."""
        return [
            request
            for request in self.receiver.received
            if request.path.startswith("/events/") and at(request.json, "data", "to_number") == NOBODY
        ]


def _create_event(number: int) -> CallRinging:
    return CallRinging(
        call_id=new_id(),
        agent_id=None,
        direction="outbound",
        status="ringing",
        from_number="+15550100001",
        to_number=NOBODY,
        duration_seconds=0,
        cost_total=0,
        error_message=None,
        started_at=None,
        ended_at=None,
        created_at=now(),
        metadata={"number": number},
    )
