"""The do-not-call list through the API, and what it does to calls."""

import asyncio
from uuid import uuid4

import pytest
from switchboard.do_not_call import service as do_not_call
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller, Json, Organizations

NUMBER, OTHER = "+15550100001", "+15550100002"


async def entries(caller: Caller, query: str = "") -> list[Json]:
    items = (await caller.get(f"/v1/do-not-call{query}")).json["items"]
    assert isinstance(items, list)
    return items  # type: ignore[return-value]


async def test_a_number_is_listed_found_and_taken_off(caller: Caller) -> None:
    created = await caller.post("/v1/do-not-call", {"phone_number": NUMBER, "note": " Asked by letter. "})
    assert created.status == 201
    assert set(created.json) == {"id", "phone_number", "source", "note", "created_at"}
    assert (created.json["phone_number"], created.json["source"], created.json["note"]) == (NUMBER, "api", "Asked by letter.")
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
    [("phone_number", "5550100001"), ("phone_number", None), ("phone_number", 1), ("note", "x" * 10_001), ("note", None), ("source", "call")],
)
async def test_a_bad_field_is_named(caller: Caller, field: str, value: object) -> None:
    answer = await caller.post("/v1/do-not-call", {"phone_number": NUMBER, field: value})
    assert answer.status == 422
    assert [error["field"] for error in answer.json["errors"]] == [field]  # type: ignore[union-attr,index,call-overload]


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
        assert await do_not_call.listed_among(session, [f"+1555{number:07}" for number in range(100_000, 200_000)]) == {NUMBER}
        assert await do_not_call.listed_among(session, []) == set()
        await do_not_call.remove(session, NUMBER)
        assert not await do_not_call.is_listed(session, NUMBER)
