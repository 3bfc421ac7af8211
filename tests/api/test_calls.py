"""Calls through the API. Calls over each carrier are in tests/carriers/test_scenarios.py."""

import asyncio
from uuid import uuid4

import aiohttp
import pytest
from switchboard.apps.server.http_server import GRACE_SECONDS
from switchboard.foundation.database import now
from switchboard.resources.calls import service as calls
from switchboard.resources.calls.callback_urls import build_media_url
from switchboard.runtime import Runtime

from tests.fixtures.app import UNKNOWN_ID, Caller, LivePlatform, Organizations, run_server
from tests.fixtures.calls import add_call
from tests.fixtures.json_access import Json, at, objects_at


async def get_only_call(live: LivePlatform) -> Json:
    items = (await live.caller.get("/v1/calls")).json["items"]
    assert isinstance(items, list)
    assert len(items) == 1
    return await live.wait_for_end(at(items, 0, "id"))


async def test_a_paused_agent_neither_takes_nor_places_calls(live: LivePlatform) -> None:
    await live.caller.send("PUT", f"/v1/agents/{live.agent_id}", {"status": "paused"})
    body = {"agent_id": live.agent_id, "to_number": "+15550100001", "from_number_id": live.number_id}
    assert (await live.caller.post("/v1/calls", body)).json["code"] == "invalid_state"
    assert not (await live.simulate_call("Hello")).answered
    assert (await get_only_call(live))["status"] == "failed"


@pytest.mark.parametrize("action", ["hangup", "forward", "voicemail", "webhook"])
@pytest.mark.timeout(90)
async def test_calls_outside_opening_hours_are_refused(live: LivePlatform, action: str) -> None:
    closed = {
        "enabled": True,
        "slots": [{"days": ["mon"], "start": "00:00", "end": "00:01"}],
        "holidays": [],
        "outside_action": action,
    }
    settings = {
        "schedule": closed,
        "forward_number": "+15550100001",
        "forward_webhook_url": "https://does-not-exist.example.com/",
    }
    assert (await live.caller.send("PUT", f"/v1/phone-numbers/{live.number_id}", settings)).status == 200
    inbound_call = await live.simulate_call("Thank you")
    call = await get_only_call(live)
    expected = {"hangup": "failed", "forward": "completed", "voicemail": "completed", "webhook": "failed"}
    assert call["status"] == expected[action]
    assert inbound_call.answered == (action in ("forward", "voicemail"))
    if action == "forward":
        assert (call["ended_reason"], call["transferred_to"]) == ("transferred", "+15550100001")


async def test_calls_are_filtered(live: LivePlatform) -> None:
    call = await live.wait_for_end((await live.place_call("+15550100020"))["id"])
    for query, total in (
        (f"agent_id={live.agent_id}", 1),
        (f"agent_id={uuid4()}", 0),
        ("agent_id=x", 0),
        ("direction=outbound", 1),
        ("direction=inbound", 0),
        ("status=busy", 1),
        ("status=completed", 0),
    ):
        assert (await live.caller.get(f"/v1/calls?{query}")).json["total"] == total, query
    assert (await live.caller.get("/v1/calls?status=nonsense")).status == 422
    assert (await live.caller.get(f"/v1/calls/{call['id']}/recording")).status == 404


async def test_calls_of_other_organizations_are_not_found(live: LivePlatform, organizations: Organizations) -> None:
    stranger = await organizations.create()
    call = await live.place_call("+15550100020")
    for path in ("", "/transcript", "/recording"):
        assert (await stranger.get(f"/v1/calls/{call['id']}{path}")).status == 404
    body = {"agent_id": live.agent_id, "to_number": "+15550100001", "from_number_id": live.number_id}
    foreign = await stranger.post("/v1/calls", body)
    assert (foreign.status, foreign.json["code"]) == (422, "validation_error")
    await live.wait_for_end(call["id"])


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("agent_id", 5),
        ("agent_id", "x"),
        ("agent_id", UNKNOWN_ID),
        ("to_number", "12"),
        ("to_number", 5),
        ("to_number", "+1555\0"),
        ("from_number_id", None),
        ("from_number_id", UNKNOWN_ID),
        ("metadata", []),
        ("metadata", {"a": "x" * 20_000}),
        ("metadata", {"a": "b\0"}),
        ("nonsense", 1),
    ],
)
async def test_a_bad_field_is_named(caller: Caller, field: str, value: object) -> None:
    agent = (await caller.post("/v1/agents", {"name": "Agent"})).json["id"]
    body = {"agent_id": agent, "to_number": "+15550100001", "from_number_id": str(uuid4()), field: value}
    response = await caller.post("/v1/calls", body)
    assert response.status == 422, response.body
    assert field in [error["field"] for error in objects_at(response.json, "errors")]


async def test_unsigned_callbacks_are_refused(live: LivePlatform) -> None:
    path = f"/carriers/loopback/{live.caller.organization_id}/events/call"
    forged = await live.caller.post(
        path, {"type": "incoming", "call_id": "x", "from_number": "+15550100001", "to_number": live.number}
    )
    assert (forged.status, forged.json["code"]) == (403, "forbidden")
    assert (await live.caller.get("/v1/calls")).json["total"] == 0


async def test_a_call_is_placed_despite_a_lost_wake_up(live: LivePlatform) -> None:
    await live.runtime.redis.flushall()
    call = await live.place_call("+15550100020")
    await live.runtime.redis.flushall()
    async with asyncio.timeout(20):
        assert (await live.wait_for_end(call["id"]))["status"] == "busy"


async def test_the_socket_of_an_ended_call_does_not_block_shutdown(runtime: Runtime, caller: Caller) -> None:
    await add_call(runtime, caller, now())
    async with runtime.database.tenant(caller.organization_id) as session:
        url = build_media_url(runtime.settings, runtime.keyring, (await session.exec(calls.list_calls(session))).one())
    async with aiohttp.ClientSession() as http:
        async with run_server(runtime):
            socket = await http.ws_connect(url, autoclose=False, autoping=False)
            for _ in range(50):  # more than the server buffers for a client that does not read
                await socket.send_str("{}")
            assert (await socket.receive()).type is aiohttp.WSMsgType.CLOSE
            stopping = asyncio.get_running_loop().time()
        assert asyncio.get_running_loop().time() - stopping < GRACE_SECONDS - 5
