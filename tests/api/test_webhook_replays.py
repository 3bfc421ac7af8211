"""Replays of all failed deliveries of a period, to a receiver on a real socket."""

import asyncio
import json

import pytest
from switchboard.resources.webhooks import deliveries

from tests.fixtures.app import Caller, Organizations
from tests.fixtures.json_access import Json
from tests.fixtures.receiver import Receiver
from tests.fixtures.webhooks import create_endpoint, list_items, send_test, wait_for_status

pytestmark = pytest.mark.local_receivers


async def fail_deliveries(caller: Caller, receiver: Receiver, count: int) -> tuple[Json, list[Json]]:
    """Create an endpoint with failed deliveries, whose receiver works again; return it and them in order."""
    endpoint = await create_endpoint(caller, f"{receiver.url}/hook")
    receiver.statuses["/hook"] = [410]
    sent = [await send_test(caller, endpoint) for _ in range(count)]
    failed = [await wait_for_status(caller, delivery, status="failed") for delivery in sent]
    receiver.statuses["/hook"] = [200]
    receiver.received.clear()
    return endpoint, failed


async def test_failed_deliveries_of_a_period_are_replayed_once(
    caller: Caller, receiver: Receiver, running_worker: None
) -> None:
    endpoint, failed = await fail_deliveries(caller, receiver, 4)
    path = f"/v1/webhook-endpoints/{endpoint['id']}/replay-failed"
    period = {"since": failed[1]["created_at"], "until": failed[3]["created_at"]}
    answers = await asyncio.gather(*(caller.post(path, period) for _ in range(3)))
    assert sorted((answer.status, answer.json["replayed"], answer.json["has_more"]) for answer in answers) == [
        (200, 0, False),
        (200, 0, False),
        (200, 2, False),
    ]
    requests = await receiver.first("/hook", 2)
    assert sorted(request.body for request in requests) == sorted(
        json.dumps(delivery["payload"], separators=(",", ":")).encode() for delivery in failed[1:3]
    )
    replays = [
        delivery
        for delivery in list_items(await caller.get(f"/v1/webhook-endpoints/{endpoint['id']}/deliveries"))
        if delivery["replayed_from_id"]
    ]
    assert [delivery["replayed_from_id"] for delivery in reversed(replays)] == [failed[1]["id"], failed[2]["id"]]
    assert {request.delivery_id for request in requests} == {delivery["id"] for delivery in replays}
    rest = await caller.post(path, {"since": "2020-01-01T00:00:00Z"})
    assert rest.json == {"replayed": 2, "has_more": False}
    await receiver.first("/hook", 4)


async def test_a_replay_that_failed_is_replayed_and_not_its_original(
    caller: Caller, receiver: Receiver, running_worker: None
) -> None:
    endpoint, (first,) = await fail_deliveries(caller, receiver, 1)
    receiver.statuses["/hook"] = [410]
    replay = (await caller.post(f"/v1/webhook-deliveries/{first['id']}/replay")).json
    await wait_for_status(caller, replay, status="failed")
    path = f"/v1/webhook-endpoints/{endpoint['id']}/replay-failed"
    assert (await caller.post(path, {"since": "2020-01-01T00:00:00Z"})).json["replayed"] == 1
    latest, *_ = list_items(await caller.get(f"/v1/webhook-endpoints/{endpoint['id']}/deliveries"))
    assert latest["replayed_from_id"] == replay["id"]


async def test_a_large_replay_takes_several_requests(
    caller: Caller, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, running_worker: None
) -> None:
    monkeypatch.setattr(deliveries, "MOST_REPLAYED", 2)
    endpoint, failed = await fail_deliveries(caller, receiver, 3)
    path = f"/v1/webhook-endpoints/{endpoint['id']}/replay-failed"
    for expected in ((2, True), (1, False), (0, False)):
        answer = await caller.post(path, {"since": failed[0]["created_at"]})
        assert (answer.json["replayed"], answer.json["has_more"]) == expected


async def test_a_replay_of_a_period_is_refused(
    caller: Caller, stranger: Caller, organizations: Organizations, receiver: Receiver
) -> None:
    endpoint = await create_endpoint(caller, f"{receiver.url}/hook")
    path = f"/v1/webhook-endpoints/{endpoint['id']}/replay-failed"
    ever = {"since": "2020-01-01T00:00:00Z"}
    assert (await stranger.post(path, ever)).status == 404
    reader = await organizations.create_key(caller.organization_id, scopes=["webhooks:read"])
    assert (await reader.post(path, ever)).status == 403
    for period in ({}, {"since": "yesterday"}, {"since": "2020-01-01T00:00:00"}, {**ever, "until": ever["since"]}):
        assert (await caller.post(path, period)).status == 422
    await caller.send("PATCH", f"/v1/webhook-endpoints/{endpoint['id']}", {"enabled": False})
    assert (await caller.post(path, ever)).status == 409
