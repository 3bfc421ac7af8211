"""The do-not-call list through the API, and its effect on calls."""

import asyncio
from typing import Any
from uuid import UUID, uuid4

import pytest
from switchboard.plugin_sdk import SimulatedCall, SimulatedCarrier, SpokenLine, TelephonyProvider
from switchboard.resources.calls.dialing import CallDialer
from switchboard.resources.do_not_call import service as do_not_call
from switchboard.resources.phone_numbers.purchases import build_callback_urls
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller, LivePlatform, Organizations, fresh_number
from tests.fixtures.json_access import Json, at, objects_at

NUMBER, OTHER = "+15550100001", "+15550100002"


async def list_entries(caller: Caller, query: str = "") -> list[Json]:
    items = (await caller.get(f"/v1/do-not-call{query}")).json["items"]
    assert isinstance(items, list)
    return items  # type: ignore[return-value]


async def test_a_number_is_added_found_and_removed(caller: Caller) -> None:
    created = await caller.post("/v1/do-not-call", {"phone_number": NUMBER, "note": " Requested by letter. "})
    assert created.status == 201
    assert set(created.json) == {"id", "phone_number", "source", "note", "created_at"}
    assert (created.json["phone_number"], created.json["source"], created.json["note"]) == (
        NUMBER,
        "api",
        "Requested by letter.",
    )
    await caller.post("/v1/do-not-call", {"phone_number": OTHER})
    assert [entry["phone_number"] for entry in await list_entries(caller)] == [OTHER, NUMBER]
    assert (await caller.send("DELETE", f"/v1/do-not-call/{created.json['id']}")).status == 204
    assert (await caller.send("DELETE", f"/v1/do-not-call/{created.json['id']}")).status == 404
    assert [entry["phone_number"] for entry in await list_entries(caller)] == [OTHER]


async def test_adding_a_number_again_returns_the_existing_entry(caller: Caller) -> None:
    first = await caller.post("/v1/do-not-call", {"phone_number": NUMBER, "note": "first"})
    again = await caller.post("/v1/do-not-call", {"phone_number": NUMBER, "note": "second"})
    assert (again.status, again.json) == (201, first.json)
    assert len(await list_entries(caller)) == 1


async def test_concurrent_additions_create_one_entry(caller: Caller) -> None:
    responses = await asyncio.gather(*(caller.post("/v1/do-not-call", {"phone_number": NUMBER}) for _ in range(8)))
    assert {response.status for response in responses} == {201}
    assert len({response.json["id"] for response in responses}) == 1


@pytest.mark.parametrize("query", ["%2B15550100001", "+15550100001", "15550100001"])
async def test_the_list_is_filtered_by_number_with_an_escaped_or_plain_plus(caller: Caller, query: str) -> None:
    for number in (NUMBER, OTHER):
        await caller.post("/v1/do-not-call", {"phone_number": number})
    assert [entry["phone_number"] for entry in await list_entries(caller, f"?phone_number={query}")] == [NUMBER]
    assert await list_entries(caller, "?phone_number=nobody") == []


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("phone_number", "5550100001"),
        ("phone_number", None),
        ("phone_number", 1),
        ("note", "x" * 10_001),
        ("note", None),
        ("source", "call"),
    ],
)
async def test_a_bad_field_is_named(caller: Caller, field: str, value: object) -> None:
    response = await caller.post("/v1/do-not-call", {"phone_number": NUMBER, field: value})
    assert response.status == 422
    assert [error["field"] for error in objects_at(response.json, "errors")] == [field]


async def test_each_organization_has_its_own_list(caller: Caller, stranger: Caller) -> None:
    entry_id = (await caller.post("/v1/do-not-call", {"phone_number": NUMBER})).json["id"]
    assert await list_entries(stranger) == []
    assert (await stranger.send("DELETE", f"/v1/do-not-call/{entry_id}")).status == 404
    assert (await stranger.send("DELETE", f"/v1/do-not-call/{uuid4()}")).status == 404
    assert (await stranger.post("/v1/do-not-call", {"phone_number": NUMBER})).json["id"] != entry_id
    assert [entry["id"] for entry in await list_entries(caller)] == [entry_id]


async def test_endpoints_require_their_scopes(organizations: Organizations, caller: Caller) -> None:
    reader = await organizations.create_key(caller.organization_id, scopes=["contacts:read"])
    writer = await organizations.create_key(caller.organization_id, scopes=["contacts:write"])
    assert (await reader.get("/v1/do-not-call")).status == 200
    assert (await reader.post("/v1/do-not-call", {"phone_number": NUMBER})).status == 403
    assert (await writer.get("/v1/do-not-call")).status == 403
    assert (await writer.post("/v1/do-not-call", {"phone_number": NUMBER})).status == 201


async def test_many_numbers_are_checked_in_one_statement(caller: Caller, runtime: Runtime) -> None:
    entry = (await caller.post("/v1/do-not-call", {"phone_number": NUMBER})).json
    async with runtime.database.write(caller.organization_id) as session:
        assert await do_not_call.filter_listed(
            session, [f"+1555{number:07}" for number in range(100_000, 200_000)]
        ) == {NUMBER}
        assert await do_not_call.filter_listed(session, []) == set()
        await do_not_call.delete_entry(session, UUID(str(entry["id"])))
        assert not await do_not_call.is_listed(session, NUMBER)


async def build_call(caller: Caller) -> Json:
    """Build the request of a call to `NUMBER`."""
    agent_id = (await caller.post("/v1/agents", {"name": "Agent"})).json["id"]
    number_id = (await caller.post("/v1/phone-numbers", {"phone_number": fresh_number()})).json["id"]
    return {"agent_id": agent_id, "from_number_id": number_id, "to_number": NUMBER}


async def test_a_listed_number_is_not_called(caller: Caller) -> None:
    body = await build_call(caller)
    entry_id = (await caller.post("/v1/do-not-call", {"phone_number": NUMBER})).json["id"]
    refused = await caller.post("/v1/calls", body)
    assert (refused.status, refused.json["code"]) == (409, "invalid_state")
    assert "do-not-call list" in str(refused.json["detail"])
    assert (await caller.get("/v1/calls")).json["total"] == 0
    await caller.send("DELETE", f"/v1/do-not-call/{entry_id}")
    assert (await caller.post("/v1/calls", body)).status == 201


async def test_lists_of_other_organizations_do_not_block_calls(caller: Caller, stranger: Caller) -> None:
    await stranger.post("/v1/do-not-call", {"phone_number": NUMBER})
    assert (await caller.post("/v1/calls", await build_call(caller))).status == 201


async def test_a_queued_call_to_a_newly_listed_number_is_not_placed(caller: Caller, runtime: Runtime) -> None:
    call_id = (await caller.post("/v1/calls", await build_call(caller))).json["id"]
    await caller.post("/v1/do-not-call", {"phone_number": NUMBER})
    await runtime.call(CallDialer).place_with_carrier(caller.organization_id, UUID(str(call_id)))
    call = (await caller.get(f"/v1/calls/{call_id}")).json
    assert (call["status"], call["ended_reason"], call["started_at"]) == ("failed", "do_not_call", None)
    assert "do-not-call list" in str(call["error_message"])
    assert call["ended_at"] is not None


async def simulate_call_from(live: LivePlatform, from_number: str, *lines: str) -> SimulatedCall:
    organization_id = live.caller.organization_id
    async with live.runtime.providers.use(organization_id, TelephonyProvider) as carrier:
        assert isinstance(carrier, SimulatedCarrier)
        return await carrier.simulate_call(
            from_number=from_number,
            to_number=live.number,
            lines=[SpokenLine(text=line) for line in lines],
            callbacks=build_callback_urls(live.runtime.settings.base_url, organization_id, "loopback"),
        )


RULES = 'When the caller says "do not call me again": say "You will not be called again." and call opt_out'


async def test_a_caller_who_asks_is_listed_and_still_answered(live: LivePlatform) -> None:
    await live.caller.send("PUT", f"/v1/agents/{live.agent_id}", {"system_prompt": RULES})
    assert (await simulate_call_from(live, NUMBER, "Do not call me again")).answered
    [entry] = await list_entries(live.caller)
    calls = (await live.caller.get("/v1/calls")).json["items"]
    assert (entry["phone_number"], entry["source"]) == (NUMBER, "call")
    assert str(at(calls, 0, "id")) in str(at(entry, "note"))
    body = {"agent_id": live.agent_id, "to_number": NUMBER, "from_number_id": live.number_id}
    assert (await live.caller.post("/v1/calls", body)).status == 409
    assert (await simulate_call_from(live, NUMBER, "Hello")).answered


async def test_a_callee_who_asks_is_listed(live: LivePlatform) -> None:
    sorry = 'say "You will not be called again." and call opt_out and call end_call'
    rules = f'When the caller says "hello" or "thank you" or "goodbye": {sorry}\nOtherwise: {sorry}'
    await live.caller.send("PUT", f"/v1/agents/{live.agent_id}", {"system_prompt": rules})
    await live.wait_for_end((await live.place_call(NUMBER))["id"])
    assert [(entry["phone_number"], entry["source"]) for entry in await list_entries(live.caller)] == [(NUMBER, "call")]


async def test_a_caller_with_a_withheld_number_cannot_be_listed(live: LivePlatform) -> None:
    await live.caller.send("PUT", f"/v1/agents/{live.agent_id}", {"system_prompt": RULES})
    assert (await simulate_call_from(live, "anonymous", "Do not call me again")).answered
    assert await list_entries(live.caller) == []


async def test_agents_cannot_transfer_calls_to_listed_numbers(live: LivePlatform) -> None:
    connects = f'call transfer_call(to_number="{NUMBER}")'
    rules = f'When the caller says "hello" or "help" or "thank you" or "goodbye": {connects}\nOtherwise: {connects}'
    await live.caller.send("PUT", f"/v1/agents/{live.agent_id}", {"system_prompt": rules})
    await live.caller.post("/v1/do-not-call", {"phone_number": NUMBER})
    await simulate_call_from(live, OTHER, "Hello", "Goodbye")
    items: Any = (await live.caller.get("/v1/calls")).json["items"]
    call = await live.wait_for_end(items[0]["id"])
    assert (call["ended_reason"], call["transferred_to"]) == ("caller_hung_up", None)
    transcript: Any = (await live.caller.get(f"/v1/calls/{call['id']}/transcript")).json
    assert "transfer_call" in str(transcript["items"])
