"""Deliveries through the API and to a receiver on a real socket: each of the specification's delivery and retry
rules.
"""

import asyncio
from itertools import pairwise
from uuid import UUID

import pytest
from switchboard.foundation.database import new_id, now
from switchboard.foundation.events.models import EventTarget
from switchboard.foundation.events.outbox import enqueue
from switchboard.foundation.settings import Settings
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller, LivePlatform
from tests.fixtures.json_access import at
from tests.fixtures.receiver import Receiver
from tests.fixtures.webhooks import (
    create_endpoint,
    get_endpoint,
    list_items,
    parse_time,
    send_test,
    wait_for_delivery,
    wait_for_status,
)

pytestmark = pytest.mark.local_receivers
DELAYS = [0.1, 0.2, 0.3, 0.4, 0.5]


@pytest.fixture
def delays() -> list[float]:
    return DELAYS


@pytest.fixture
def settings(settings: Settings, delays: list[float]) -> Settings:
    """Settings with a shortened retry schedule."""
    return settings.model_copy(update={"webhook_retry_delays": delays, "webhook_timeout": 1.0})


async def test_a_delivery_arrives_as_specified(caller: Caller, receiver: Receiver, running_worker: None) -> None:
    endpoint = await create_endpoint(caller, f"{receiver.url}/hook")
    test_delivery = await send_test(caller, endpoint)
    (request,) = await receiver.first("/hook")
    assert request.headers["Content-Type"] == "application/json"
    assert request.headers["X-Webhook-Event"] == "call.completed"
    assert request.delivery_id == test_delivery["id"]
    assert request.signed_by(str(endpoint["secret"]))
    assert request.json == test_delivery["payload"]
    assert set(request.json) == {"event", "data", "timestamp"}
    delivery = await wait_for_status(caller, test_delivery, status="delivered")
    assert (delivery["endpoint_id"], delivery["target_kind"], delivery["event_type"]) == (
        endpoint["id"],
        "endpoint",
        "call.completed",
    )
    assert (delivery["attempts"], delivery["last_status_code"], delivery["last_error"]) == (1, 200, None)
    assert delivery["next_attempt_at"] is None
    assert delivery["delivered_at"] is not None
    assert list_items(await caller.get(f"/v1/webhook-endpoints/{endpoint['id']}/deliveries")) == [delivery]
    assert list_items(await caller.get("/v1/webhook-deliveries")) == [delivery]
    (attempt,) = list_items(await caller.get(f"/v1/webhook-deliveries/{test_delivery['id']}/attempts"))
    assert (attempt["number"], attempt["status_code"], attempt["error"]) == (1, 200, None)


async def test_call_events_reach_every_subscribed_target(live: LivePlatform, receiver: Receiver) -> None:
    """Endpoints by their subscriptions, the agent's own webhook, the integration's; each call event with its exact
    data.
    """
    caller = live.caller
    await create_endpoint(caller, f"{receiver.url}/all")
    await create_endpoint(caller, f"{receiver.url}/failed", events=["call.failed"])
    await create_endpoint(caller, f"{receiver.url}/texts", events=["sms.received"])
    disabled = await create_endpoint(caller, f"{receiver.url}/disabled")
    await caller.send("PATCH", f"/v1/webhook-endpoints/{disabled['id']}", {"enabled": False})
    await caller.send(
        "PUT", f"/v1/agents/{live.agent_id}", {"webhook_url": f"{receiver.url}/agent", "webhook_secret": "agent secret"}
    )
    await caller.post("/v1/agents", {"name": "Another", "webhook_url": f"{receiver.url}/other"})
    await caller.send(
        "PUT", "/v1/integrations", {"webhook_url": f"{receiver.url}/integration", "webhook_secret": "partner secret"}
    )
    call = await live.wait_for_end(
        (await live.place_call("+15550100040", metadata={"order": "17"}))["id"], analyzed=True
    )
    event_names = ["call.ringing", "call.started", "call.completed", "call.transcript.ready"]
    for path in ("/all", "/agent", "/integration"):
        requests = {str(request.json["event"]): request for request in await receiver.first(path, 4)}
        assert sorted(requests) == sorted(event_names)
        data = requests["call.completed"].json["data"]
        fields = [
            "agent_id",
            "call_id",
            "cost_total",
            "created_at",
            "direction",
            "duration_seconds",
            "ended_at",
            "error_message",
            "from_number",
            "interventions",
            "metadata",
            "started_at",
            "status",
            "to_number",
            "variables",
        ]
        assert isinstance(data, dict)
        assert sorted(data) == fields
        assert data == {**{name: call[name] for name in fields if name in call}, "call_id": call["id"]}
    assert receiver.at("/agent")[0].signed_by("agent secret")
    assert receiver.at("/integration")[0].signed_by("partner secret")
    refused = await live.wait_for_end((await live.place_call("+15550100024"))["id"])
    (failed,) = await receiver.first("/failed")
    assert at(failed.json, "data", "call_id") == at(refused, "id")
    await receiver.first("/all", 5)
    assert not any(receiver.at(path) for path in ("/texts", "/disabled", "/other"))
    kinds = {delivery["target_kind"] for delivery in list_items(await caller.get("/v1/webhook-deliveries"))}
    assert kinds == {"endpoint", "agent", "integration"}
    agents = list_items(await caller.get("/v1/webhook-deliveries?target_kind=agent"))
    assert agents
    assert {delivery["endpoint_id"] for delivery in agents} == {None}


async def test_deliveries_of_an_agent_without_a_secret_are_unsigned(live: LivePlatform, receiver: Receiver) -> None:
    await live.caller.send("PUT", f"/v1/agents/{live.agent_id}", {"webhook_url": f"{receiver.url}/agent"})
    await live.wait_for_end((await live.place_call("+15550100024"))["id"])
    (request, *_) = await receiver.first("/agent")
    assert request.signed_by()


async def test_retries_follow_the_schedule_and_the_sixth_failure_is_final(
    caller: Caller, receiver: Receiver, running_worker: None
) -> None:
    endpoint = await create_endpoint(caller, f"{receiver.url}/hook")
    receiver.statuses["/hook"] = [500, 302, 404, 503, 429, 500]
    test_delivery = await send_test(caller, endpoint)
    requests = await receiver.first("/hook", 6)
    delivery = await wait_for_status(caller, test_delivery, status="failed")
    assert (delivery["attempts"], delivery["last_status_code"], delivery["last_error"]) == (
        6,
        500,
        "the receiver returned status 500",
    )
    assert delivery["next_attempt_at"] is None
    gaps = [later.at - earlier.at for earlier, later in pairwise(requests)]
    assert all(delay <= gap < delay + 5 for gap, delay in zip(gaps, DELAYS, strict=True)), gaps
    assert {request.delivery_id for request in requests} == {test_delivery["id"]}
    assert {request.body for request in requests} == {requests[0].body}
    assert all(request.signed_by(str(endpoint["secret"])) for request in requests)
    attempts = list_items(await caller.get(f"/v1/webhook-deliveries/{test_delivery['id']}/attempts"))
    assert [(attempt["number"], attempt["status_code"]) for attempt in attempts] == list(
        enumerate([500, 302, 404, 503, 429, 500], start=1)
    )
    assert attempts[1]["error"] == "the receiver returned status 302; redirects are not followed"
    assert not receiver.at("/elsewhere")
    assert (await get_endpoint(caller, endpoint))["consecutive_failures"] == 1


@pytest.mark.parametrize("delays", [[60.0]])
async def test_the_next_attempt_is_shown_between_attempts(
    caller: Caller, receiver: Receiver, running_worker: None
) -> None:
    endpoint = await create_endpoint(caller, f"{receiver.url}/hook")
    receiver.statuses["/hook"] = [500]
    test_delivery = await send_test(caller, endpoint)
    (request,) = await receiver.first("/hook")
    delivery = await wait_for_delivery(caller, test_delivery, lambda endpoint_after: endpoint_after["attempts"] == 1)
    assert delivery["status"] == "pending"
    assert parse_time(delivery["next_attempt_at"]).timestamp() == pytest.approx(request.at + 60, abs=1)


async def test_a_receiver_that_times_out_is_retried(caller: Caller, receiver: Receiver, running_worker: None) -> None:
    endpoint = await create_endpoint(caller, f"{receiver.url}/slow")
    receiver.hangs.add("/slow")
    delivery = await send_test(caller, endpoint)
    await receiver.first("/slow")
    receiver.hangs.clear()
    await receiver.first("/slow", 2)
    await wait_for_status(caller, delivery, status="delivered")
    first, second = list_items(await caller.get(f"/v1/webhook-deliveries/{delivery['id']}/attempts"))
    assert (first["status_code"], first["error"]) == (None, "no response in time")
    assert 900 < int(str(first["duration_ms"])) < 9000
    assert second["status_code"] == 200


async def test_a_network_error_is_retried_and_reveals_no_details(caller: Caller, running_worker: None) -> None:
    endpoint = await create_endpoint(caller, "http://127.0.0.1:9/")
    delivery = await wait_for_status(caller, await send_test(caller, endpoint), status="failed")
    assert (delivery["attempts"], delivery["last_status_code"], delivery["last_error"]) == (
        6,
        None,
        "the connection failed",
    )


async def test_status_410_ends_a_delivery_at_once(caller: Caller, receiver: Receiver, running_worker: None) -> None:
    endpoint = await create_endpoint(caller, f"{receiver.url}/gone")
    receiver.statuses["/gone"] = [410]
    delivery = await wait_for_status(caller, await send_test(caller, endpoint), status="failed")
    assert (delivery["attempts"], delivery["last_status_code"], delivery["next_attempt_at"]) == (1, 410, None)
    endpoint_after = await get_endpoint(caller, endpoint)
    assert (endpoint_after["consecutive_failures"], endpoint_after["enabled"]) == (1, True)


async def test_twenty_failed_deliveries_in_a_row_disable_an_endpoint_and_a_success_resets_the_count(
    caller: Caller, receiver: Receiver, running_worker: None, runtime: Runtime
) -> None:
    endpoint = await create_endpoint(caller, f"{receiver.url}/hook")
    receiver.statuses["/hook"] = [410]
    for _ in range(3):
        await wait_for_status(caller, await send_test(caller, endpoint), status="failed")
    assert (await get_endpoint(caller, endpoint))["consecutive_failures"] == 3
    receiver.statuses["/hook"] = [200]
    await wait_for_status(caller, await send_test(caller, endpoint), status="delivered")
    assert (await get_endpoint(caller, endpoint))["consecutive_failures"] == 0
    receiver.statuses["/hook"] = [410]
    for _ in range(19):
        await wait_for_status(caller, await send_test(caller, endpoint), status="failed")
    endpoint_after = await get_endpoint(caller, endpoint)
    assert (endpoint_after["enabled"], endpoint_after["consecutive_failures"]) == (True, 19)
    last = await send_test(caller, endpoint)
    await wait_for_status(caller, last, status="failed")
    endpoint_after = await get_endpoint(caller, endpoint)
    assert (endpoint_after["enabled"], endpoint_after["consecutive_failures"]) == (False, 20)
    assert (await caller.post(f"/v1/webhook-endpoints/{endpoint['id']}/test")).status == 409
    assert (await caller.post(f"/v1/webhook-deliveries/{last['id']}/replay")).status == 409
    async with runtime.database.write(caller.organization_id) as session:
        actions = (
            await (await session.connection()).exec_driver_sql(
                "select actor, action from audit_entry order by created_at"
            )
        ).all()
    assert ("system", "webhook_endpoint.disabled") in actions
    receiver.statuses["/hook"] = [200]
    enabled = await caller.send("PATCH", f"/v1/webhook-endpoints/{endpoint['id']}", {"enabled": True})
    assert (enabled.json["enabled"], enabled.json["consecutive_failures"]) == (True, 0)
    await wait_for_status(caller, await send_test(caller, endpoint), status="delivered")


async def test_deliveries_of_a_disabled_endpoint_resume_when_it_is_enabled(
    caller: Caller, receiver: Receiver, running_worker: None, runtime: Runtime
) -> None:
    endpoint = await create_endpoint(caller, f"{receiver.url}/old")
    receiver.hangs.add("/old")
    delivery = await send_test(caller, endpoint)
    await receiver.first("/old")
    path = f"/v1/webhook-endpoints/{endpoint['id']}"
    await caller.send("PATCH", path, {"enabled": False})
    await wait_for_delivery(caller, delivery, lambda endpoint_after: endpoint_after["attempts"] == 1)
    receiver.hangs.clear()
    await asyncio.sleep(3 * DELAYS[0])  # the retry that must not come
    assert len(receiver.at("/old")) == 1
    await caller.send("PATCH", path, {"enabled": True, "url": f"{receiver.url}/new"})
    (request,) = await receiver.first("/new")
    assert request.delivery_id == delivery["id"]
    assert (await wait_for_status(caller, delivery, status="delivered"))["attempts"] == 2


async def test_a_late_success_resets_the_failure_count_of_a_disabled_endpoint(
    caller: Caller, receiver: Receiver, running_worker: None
) -> None:
    endpoint = await create_endpoint(caller, f"{receiver.url}/hook")
    receiver.statuses["/hook"] = [410, 200]
    await wait_for_status(caller, await send_test(caller, endpoint), status="failed")
    receiver.hangs.add("/hook")
    late = await send_test(caller, endpoint)
    await receiver.first("/hook", 2)
    await caller.send("PATCH", f"/v1/webhook-endpoints/{endpoint['id']}", {"enabled": False})
    receiver.release()
    await wait_for_status(caller, late, status="delivered")
    endpoint_after = await get_endpoint(caller, endpoint)
    assert (endpoint_after["enabled"], endpoint_after["consecutive_failures"]) == (False, 0)


async def test_a_replay_is_a_new_delivery_of_the_same_bytes(
    caller: Caller, receiver: Receiver, running_worker: None
) -> None:
    endpoint = await create_endpoint(caller, f"{receiver.url}/hook")
    original = await wait_for_status(caller, await send_test(caller, endpoint), status="delivered")
    replayed = await caller.post(f"/v1/webhook-deliveries/{original['id']}/replay")
    assert replayed.status == 201
    assert (replayed.json["replayed_from_id"], replayed.json["endpoint_id"], replayed.json["status"]) == (
        original["id"],
        endpoint["id"],
        "pending",
    )
    assert replayed.json["id"] != original["id"]
    first, second = await receiver.first("/hook", 2)
    assert (second.delivery_id, second.body) == (replayed.json["id"], first.body)
    await wait_for_status(caller, replayed.json, status="delivered")


async def test_deliveries_to_a_deleted_endpoint_fail_and_cannot_be_replayed(
    caller: Caller, receiver: Receiver, running_worker: None
) -> None:
    endpoint = await create_endpoint(caller, f"{receiver.url}/hook")
    receiver.hangs.add("/hook")
    test_delivery = await send_test(caller, endpoint)
    await receiver.first("/hook")
    assert (await caller.send("DELETE", f"/v1/webhook-endpoints/{endpoint['id']}")).status == 204
    receiver.release()
    delivery = await wait_for_status(caller, test_delivery, status="failed")
    assert delivery["last_error"] == "the receiver was deleted"
    assert (await caller.post(f"/v1/webhook-deliveries/{test_delivery['id']}/replay")).status == 409
    assert (await caller.get(f"/v1/webhook-endpoints/{endpoint['id']}/deliveries")).status == 404


async def test_the_list_is_filtered_by_status_newest_first_and_paged(
    caller: Caller, receiver: Receiver, running_worker: None
) -> None:
    endpoint = await create_endpoint(caller, f"{receiver.url}/hook")
    receiver.statuses["/hook"] = [410, 200]
    failed = await wait_for_status(caller, await send_test(caller, endpoint), status="failed")
    delivered = [await wait_for_status(caller, await send_test(caller, endpoint), status="delivered") for _ in range(2)]
    path = f"/v1/webhook-endpoints/{endpoint['id']}/deliveries"
    response = await caller.get(path)
    assert {name: response.json[name] for name in ("total", "limit", "offset")} == {
        "total": 3,
        "limit": 50,
        "offset": 0,
    }
    assert list_items(response) == [*reversed(delivered), failed]
    assert list_items(await caller.get(f"{path}?status=failed")) == [failed]
    assert list_items(await caller.get(f"{path}?limit=1&offset=1")) == [delivered[0]]
    for query in ("limit=0", "limit=101", "offset=-1", "state=failed"):
        assert (await caller.get(f"{path}?{query}")).status == 422


async def test_a_hanging_endpoint_delays_no_other_organization(
    caller: Caller, stranger: Caller, receiver: Receiver, running_worker: None, runtime: Runtime
) -> None:
    """While 10,000 deliveries wait for a hanging receiver, another organization's arrives in under a second."""
    stuck = await create_endpoint(caller, f"{receiver.url}/stuck")
    receiver.hangs.add("/stuck")
    async with runtime.database.write(caller.organization_id) as session:
        target = await session.get_one(EventTarget, UUID(str(stuck["id"])))
        for _ in range(10_000):
            await enqueue(session, target, "call.completed", "{}", subject_id=new_id())
    await receiver.first("/stuck", 4)
    fast_endpoint = await create_endpoint(stranger, f"{receiver.url}/swift")
    before = now().timestamp()
    await send_test(stranger, fast_endpoint)
    (request,) = await receiver.first("/swift", seconds=1)
    assert request.at - before < 1
    assert len(receiver.at("/stuck")) <= 8
    await caller.send("DELETE", f"/v1/webhook-endpoints/{stuck['id']}")
