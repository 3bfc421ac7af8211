"""The do-not-call list through the API, and its effect on calls."""

import asyncio
from typing import Any
from uuid import UUID, uuid4

import pytest
from switchboard.plugin_sdk import SimulatedCall, SimulatedCarrier, SpokenLine, TelephonyProvider
from switchboard.resources.calls.dialing import place_with_carrier
from switchboard.resources.do_not_call import service as do_not_call
from switchboard.resources.phone_numbers.purchases import build_callback_urls
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller, LivePlatform, Organizations, fresh_number
from tests.fixtures.json_access import Json, at, objects_at

NUMBER, OTHER = "+15550100001", "+15550100002"


async def entries(caller: Caller, query: str = "") -> list[Json]:
    items = (await caller.get(f"/v1/do-not-call{query}")).json["items"]
    assert isinstance(items, list)
    return items  # type: ignore[return-value]


async def test_a_number_is_listed_found_and_taken_off(caller: Caller) -> None:
    created = await caller.post("/v1/do-not-call", {"phone_number": NUMBER, "note": " Requested by letter. "})
    assert created.status == 201
    assert set(created.json) == {"id", "phone_number", "source", "note", "created_at"}
    assert (created.json["phone_number"], created.json["source"], created.json["note"]) == (
        NUMBER,
        "api",
        "Requested by letter.",
    )
    await caller.post("/v1/do-not-call", {"phone_number": OTHER})
    assert [entry["phone_number"] for entry in await entries(caller)] == [OTHER, NUMBER]
    assert (await caller.send("DELETE", f"/v1/do-not-call/{created.json['id']}")).status == 204
    assert (await caller.send("DELETE", f"/v1/do-not-call/{created.json['id']}")).status == 404
    assert [entry["phone_number"] for entry in await entries(caller)] == [OTHER]


async def test_adding_again_answers_the_entry_as_it_is(caller: Caller) -> None:
    first = await caller.post("/v1/do-not-call", {"phone_number": NUMBER, "note": "first"})
    again = await caller.post("/v1/do-not-call", {"phone_number": NUMBER, "note": "second"})
    assert (again.status, again.json) == (201, first.json)
    assert len(await entries(caller)) == 1


async def test_adding_at_once_makes_one_entry(caller: Caller) -> None:
    answers = await asyncio.gather(*(caller.post("/v1/do-not-call", {"phone_number": NUMBER}) for _ in range(8)))
    assert {answer.status for answer in answers} == {201}
    assert len({answer.json["id"] for answer in answers}) == 1


@pytest.mark.parametrize("query", ["%2B15550100001", "+15550100001", "15550100001"])
async def test_the_list_is_filtered_by_number_with_the_plus_escaped_or_not(caller: Caller, query: str) -> None:
    for number in (NUMBER, OTHER):
        await caller.post("/v1/do-not-call", {"phone_number": number})
    assert [entry["phone_number"] for entry in await entries(caller, f"?phone_number={query}")] == [NUMBER]
    assert await entries(caller, "?phone_number=nobody") == []


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
    answer = await caller.post("/v1/do-not-call", {"phone_number": NUMBER, field: value})
    assert answer.status == 422
    assert [error["field"] for error in objects_at(answer.json, "errors")] == [field]


async def test_another_organizations_list_is_its_own(caller: Caller, stranger: Caller) -> None:
    entry_id = (await caller.post("/v1/do-not-call", {"phone_number": NUMBER})).json["id"]
    assert await entries(stranger) == []
    assert (await stranger.send("DELETE", f"/v1/do-not-call/{entry_id}")).status == 404
    assert (await stranger.send("DELETE", f"/v1/do-not-call/{uuid4()}")).status == 404
    assert (await stranger.post("/v1/do-not-call", {"phone_number": NUMBER})).json["id"] != entry_id
    assert [entry["id"] for entry in await entries(caller)] == [entry_id]


async def test_scopes_are_asked_for(organizations: Organizations, caller: Caller) -> None:
    reader = await organizations.key(caller.organization_id, scopes=["contacts:read"])
    writer = await organizations.key(caller.organization_id, scopes=["contacts:write"])
    assert (await reader.get("/v1/do-not-call")).status == 200
    assert (await reader.post("/v1/do-not-call", {"phone_number": NUMBER})).status == 403
    assert (await writer.get("/v1/do-not-call")).status == 403
    assert (await writer.post("/v1/do-not-call", {"phone_number": NUMBER})).status == 201


async def test_many_numbers_are_checked_in_one_statement(caller: Caller, runtime: Runtime) -> None:
    await caller.post("/v1/do-not-call", {"phone_number": NUMBER})
    async with runtime.database.tenant(caller.organization_id) as session:
        assert await do_not_call.filter_listed(
            session, [f"+1555{number:07}" for number in range(100_000, 200_000)]
        ) == {NUMBER}
        assert await do_not_call.filter_listed(session, []) == set()
        await do_not_call.remove_number(session, NUMBER)
        assert not await do_not_call.is_listed(session, NUMBER)


async def order(caller: Caller) -> Json:
    """Build the request of a call to `NUMBER`."""
    agent_id = (await caller.post("/v1/agents", {"name": "Agent"})).json["id"]
    number_id = (await caller.post("/v1/phone-numbers", {"phone_number": fresh_number()})).json["id"]
    return {"agent_id": agent_id, "from_number_id": number_id, "to_number": NUMBER}


async def test_a_listed_number_is_not_called(caller: Caller) -> None:
    body = await order(caller)
    entry_id = (await caller.post("/v1/do-not-call", {"phone_number": NUMBER})).json["id"]
    refused = await caller.post("/v1/calls", body)
    assert (refused.status, refused.json["code"]) == (409, "invalid_state")
    assert "do-not-call list" in str(refused.json["detail"])
    assert (await caller.get("/v1/calls")).json["total"] == 0
    await caller.send("DELETE", f"/v1/do-not-call/{entry_id}")
    assert (await caller.post("/v1/calls", body)).status == 201


async def test_another_organizations_list_does_not_count(caller: Caller, stranger: Caller) -> None:
    await stranger.post("/v1/do-not-call", {"phone_number": NUMBER})
    assert (await caller.post("/v1/calls", await order(caller))).status == 201


async def test_a_number_listed_while_its_call_waits_is_not_called(caller: Caller, runtime: Runtime) -> None:
    call_id = (await caller.post("/v1/calls", await order(caller))).json["id"]
    await caller.post("/v1/do-not-call", {"phone_number": NUMBER})
    await place_with_carrier(runtime, caller.organization_id, UUID(str(call_id)))
    call = (await caller.get(f"/v1/calls/{call_id}")).json
    assert (call["status"], call["ended_reason"], call["started_at"]) == ("failed", "do_not_call", None)
    assert "do-not-call list" in str(call["error_message"])
    assert call["ended_at"] is not None


async def ring(live: LivePlatform, from_number: str, *lines: str) -> SimulatedCall:
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


async def test_a_caller_who_says_so_is_listed_and_still_answered(live: LivePlatform) -> None:
    await live.caller.send("PUT", f"/v1/agents/{live.agent_id}", {"system_prompt": RULES})
    assert (await ring(live, NUMBER, "Do not call me again")).answered
    [entry] = await entries(live.caller)
    calls = (await live.caller.get("/v1/calls")).json["items"]
    assert (entry["phone_number"], entry["source"]) == (NUMBER, "call")
    assert str(at(calls, 0, "id")) in str(at(entry, "note"))
    body = {"agent_id": live.agent_id, "to_number": NUMBER, "from_number_id": live.number_id}
    assert (await live.caller.post("/v1/calls", body)).status == 409
    assert (await ring(live, NUMBER, "Hello")).answered


async def test_who_is_called_and_says_so_is_listed(live: LivePlatform) -> None:
    sorry = 'say "You will not be called again." and call opt_out and call end_call'
    rules = f'When the caller says "hello" or "thank you" or "goodbye": {sorry}\nOtherwise: {sorry}'
    await live.caller.send("PUT", f"/v1/agents/{live.agent_id}", {"system_prompt": rules})
    await live.ended((await live.place(NUMBER))["id"])
    assert [(entry["phone_number"], entry["source"]) for entry in await entries(live.caller)] == [(NUMBER, "call")]


async def test_a_caller_who_withholds_the_number_cannot_be_listed(live: LivePlatform) -> None:
    await live.caller.send("PUT", f"/v1/agents/{live.agent_id}", {"system_prompt": RULES})
    assert (await ring(live, "anonymous", "Do not call me again")).answered
    assert await entries(live.caller) == []


async def test_no_agent_transfers_a_call_to_a_listed_number(live: LivePlatform) -> None:
    connects = f'call transfer_call(to_number="{NUMBER}")'
    rules = f'When the caller says "hello" or "help" or "thank you" or "goodbye": {connects}\nOtherwise: {connects}'
    await live.caller.send("PUT", f"/v1/agents/{live.agent_id}", {"system_prompt": rules})
    await live.caller.post("/v1/do-not-call", {"phone_number": NUMBER})
    await ring(live, OTHER, "Hello", "Goodbye")
    items: Any = (await live.caller.get("/v1/calls")).json["items"]
    call = await live.ended(items[0]["id"])
    assert (call["ended_reason"], call["transferred_to"]) == ("caller_hung_up", None)
    transcript: Any = (await live.caller.get(f"/v1/calls/{call['id']}/transcript")).json
    assert "transfer_call" in str(transcript["items"])
