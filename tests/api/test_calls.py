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

from tests.fixtures.app import UNKNOWN_ID, Caller, LivePlatform, Organizations, listening
from tests.fixtures.calls import add_call
from tests.fixtures.json_access import Json, at, objects_at


async def only_call(live: LivePlatform) -> Json:
    items = (await live.caller.get("/v1/calls")).json["items"]
    assert isinstance(items, list)
    assert len(items) == 1
    return await live.ended(at(items, 0, "id"))


async def test_a_paused_agent_takes_and_places_no_calls(live: LivePlatform) -> None:
    await live.caller.send("PUT", f"/v1/agents/{live.agent_id}", {"status": "paused"})
    body = {"agent_id": live.agent_id, "to_number": "+15550100001", "from_number_id": live.number_id}
    assert (await live.caller.post("/v1/calls", body)).json["code"] == "invalid_state"
    assert not (await live.ring("Hello")).answered
    assert (await only_call(live))["status"] == "failed"


@pytest.mark.parametrize("action", ["hangup", "forward", "voicemail", "webhook"])
@pytest.mark.timeout(90)
async def test_outside_opening_hours(live: LivePlatform, action: str) -> None:
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
    heard = await live.ring("Thank you")
    call = await only_call(live)
    expected = {"hangup": "failed", "forward": "completed", "voicemail": "completed", "webhook": "failed"}
    assert call["status"] == expected[action]
    assert heard.answered == (action in ("forward", "voicemail"))
    if action == "forward":
        assert (call["ended_reason"], call["transferred_to"]) == ("transferred", "+15550100001")


async def test_filters(live: LivePlatform) -> None:
    call = await live.ended((await live.place("+15550100020"))["id"])
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


async def test_another_organizations_call_is_unknown(live: LivePlatform, organizations: Organizations) -> None:
    stranger = await organizations.make()
    call = await live.place("+15550100020")
    for path in ("", "/transcript", "/recording"):
        assert (await stranger.get(f"/v1/calls/{call['id']}{path}")).status == 404
    body = {"agent_id": live.agent_id, "to_number": "+15550100001", "from_number_id": live.number_id}
    foreign = await stranger.post("/v1/calls", body)
    assert (foreign.status, foreign.json["code"]) == (422, "validation_error")
    await live.ended(call["id"])


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
    answer = await caller.post("/v1/calls", body)
    assert answer.status == 422, answer.body
    assert field in [error["field"] for error in objects_at(answer.json, "errors")]


async def test_callbacks_that_are_not_signed_are_refused(live: LivePlatform) -> None:
    path = f"/carriers/loopback/{live.caller.organization_id}/events/call"
    forged = await live.caller.post(
        path, {"type": "incoming", "call_id": "x", "from_number": "+15550100001", "to_number": live.number}
    )
    assert (forged.status, forged.json["code"]) == (403, "forbidden")
    assert (await live.caller.get("/v1/calls")).json["total"] == 0


async def test_the_wake_up_may_be_lost(live: LivePlatform) -> None:
    await live.runtime.redis.flushall()
    call = await live.place("+15550100020")
    await live.runtime.redis.flushall()
    async with asyncio.timeout(20):
        assert (await live.ended(call["id"]))["status"] == "busy"


async def test_a_socket_for_a_call_that_is_over_keeps_no_server_from_stopping(runtime: Runtime, caller: Caller) -> None:
    await add_call(runtime, caller, now())
    async with runtime.database.tenant(caller.organization_id) as session:
        url = build_media_url(runtime.settings, runtime.keyring, (await session.exec(calls.list_calls(session))).one())
    async with aiohttp.ClientSession() as http:
        async with listening(runtime):
            socket = await http.ws_connect(url, autoclose=False, autoping=False)
            for _ in range(50):  # more than the server buffers for a client that does not read
                await socket.send_str("{}")
            assert (await socket.receive()).type is aiohttp.WSMsgType.CLOSE
            stopping = asyncio.get_running_loop().time()
        assert asyncio.get_running_loop().time() - stopping < GRACE_SECONDS - 5
