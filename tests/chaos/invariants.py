"""Checks of what must hold when the traffic is over, whatever happened meanwhile."""

import json
from collections import defaultdict

from sqlmodel import col, func, select
from switchboard.foundation.events.models import Delivery
from switchboard.resources.billing.models import LedgerEntry
from switchboard.resources.calls.models import Call
from switchboard.resources.contacts.models import Contact

from tests.chaos.cluster import Cluster
from tests.chaos.traffic import Traffic
from tests.fixtures.eventually import eventually
from tests.fixtures.json_access import at
from tests.fixtures.receiver import Receiver

SETTLE_SECONDS = 120.0


LOST_WITH_THEIR_SERVER = "The server that ran the call stopped."


async def read_calls(traffic: Traffic) -> dict[str, Call]:
    """Wait until every call is over, and return them by the carrier's id."""

    async def read() -> list[Call]:
        async with traffic.runtime.database.write(traffic.organization_id) as session:
            return list((await session.exec(select(Call))).all())

    calls = await eventually(read, lambda found: all(call.ended_at for call in found), seconds=SETTLE_SECONDS)
    by_id = {str(call.carrier_call_id): call for call in calls}
    assert len(by_id) == len(calls), "a call was recorded twice"
    assert by_id.keys() >= set(traffic.outcome.carrier_calls), "a call that was answered is not recorded"
    return by_id


def check_endings(traffic: Traffic, calls: dict[str, Call]) -> None:
    """Check that each call that began was completed, unless it was lost with its server."""
    allowed = {("completed", None), ("failed", LOST_WITH_THEIR_SERVER)}
    others = []
    for carrier_call_id, call in calls.items():
        refused = traffic.outcome.refused.get(carrier_call_id, "the carrier was refused nothing")
        if call.started_at is not None and (call.status, call.error_message) not in allowed:
            others.append(f"{call.created_at} {call.id} {call.status} {call.error_message}: {refused}")
    assert not others, "\n".join(others)


async def check_costs(traffic: Traffic) -> None:
    """Check that each call costs what the ledger has."""
    async with traffic.runtime.database.write(traffic.organization_id) as session:
        entries = select(LedgerEntry.reference, func.sum(LedgerEntry.amount)).where(col(LedgerEntry.kind) == "call")
        charged = dict((await session.exec(entries.group_by(col(LedgerEntry.reference)))).all())
        calls = (await session.exec(select(Call))).all()
    assert {call.id: -charged.get(call.id, 0) for call in calls} == {call.id: call.cost_total for call in calls}


async def check_deliveries(traffic: Traffic, receiver: Receiver, calls: dict[str, Call]) -> None:
    """Check that the end of each call was delivered, with the same bytes each time, and that nothing is left."""

    async def count_pending() -> int:
        async with traffic.runtime.database.write(traffic.organization_id) as session:
            pending = select(func.count()).select_from(Delivery).where(col(Delivery.status) == "pending")
            return (await session.exec(pending)).one()

    await eventually(count_pending, lambda count: count == 0, seconds=SETTLE_SECONDS)
    bodies: dict[str, set[bytes]] = defaultdict(set)
    for request in receiver.received:
        bodies[request.delivery_id].add(request.body)
    assert all(len(sent) == 1 for sent in bodies.values()), "a repeat carries the same bytes"
    events = [json.loads(body) for (body,) in bodies.values()]
    ended = [at(event, "data", "call_id") for event in events if event["event"] in ("call.completed", "call.failed")]
    assert sorted(map(str, ended)) == sorted(str(call.id) for call in calls.values())


async def check_contacts(traffic: Traffic) -> None:
    """Check that each accepted contact exists once."""
    async with traffic.runtime.database.write(traffic.organization_id) as session:
        numbers = list((await session.exec(select(Contact.phone_number))).all())
    assert len(numbers) == len(set(numbers))
    assert set(numbers) >= traffic.outcome.contacts


def check_answers(traffic: Traffic, cluster: Cluster) -> None:
    """Check that no request failed for a reason of ours: 500 says that nobody expected what happened."""
    assert traffic.outcome.statuses[500] == 0, traffic.outcome.statuses
    assert [line for line in cluster.read_logs().splitlines() if '"status": 500' in line] == []
