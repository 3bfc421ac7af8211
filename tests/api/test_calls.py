"""Calls through the API. Calls over each carrier are in tests/carriers/test_scenarios.py."""

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import aiohttp
import pytest
from redis.exceptions import RedisError
from sqlalchemy import text
from switchboard.apps.embedded import DataDirectory
from switchboard.apps.server.http_server import GRACE_SECONDS
from switchboard.foundation.database import Database, lock_name, now, session
from switchboard.foundation.web import problems
from switchboard.resources.calls import queries
from switchboard.resources.calls.dialing import build_media_url
from switchboard.resources.calls.models import Call
from switchboard.resources.calls.queries import lock_calls
from switchboard.resources.identity.policy import Encryption, Policy, RateLimit, RateLimits
from switchboard.runtime import Runtime

from tests.fixtures.app import (
    UNKNOWN_ID,
    Caller,
    LivePlatform,
    Organizations,
    create_bakery,
    fresh_number,
    run_server,
)
from tests.fixtures.calls import add_call, add_line
from tests.fixtures.eventually import eventually
from tests.fixtures.json_access import Json, at, objects_at

MONDAY = datetime(2026, 11, 16, 9, tzinfo=UTC)


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


@pytest.mark.real_time
@pytest.mark.parametrize("lock", ["calls of", "webhook endpoints"])
async def test_requests_that_wait_for_each_other_take_no_connection_from_others(
    lock: str,
    runtime: Runtime,
    organizations: Organizations,
    servers: DataDirectory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another server's transaction has the organization's lock, for longer than a request waits for it. Calls wait in
    turn, and what has no turn takes half of the connections.
    """
    monkeypatch.setattr(session, "LOCK_MILLISECONDS", 500)
    often = RateLimit(per_second=1000, burst=1000)
    policy = Policy(max_concurrent_calls=100, rate_limits=RateLimits(read=often, write=often))
    bakery = await create_bakery(runtime, await organizations.create(policy=policy), fresh_number())
    call = {"agent_id": bakery.agent_id, "to_number": "+15550100001", "from_number_id": bakery.number_id}
    in_turn = lock == "calls of"
    request = ("/v1/calls", call) if in_turn else ("/v1/webhook-endpoints", {"url": "https://example.com/"})
    stranger, elsewhere = await organizations.create(), Database(servers.database_url, pool_size=1)
    most = runtime.database.pool.size()
    async with elsewhere.write(bakery.caller.organization_id) as other:
        await (lock_calls(other) if in_turn else lock_name(other, f"{lock} {bakery.caller.organization_id}"))
        waiting = [asyncio.create_task(bakery.caller.post(*request)) for _ in range(2 * most)]
        refused, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        assert {task.result().json["code"] for task in refused} == {"unavailable"}
        assert {task.result().headers["Retry-After"] for task in refused} == {problems.RETRY_AFTER}
        assert (await stranger.get("/v1/agents")).status == 200
        # Background work may have some for a moment.
        assert runtime.database.pool.checkedout() < (most // 2 if in_turn else most)
    answers = await asyncio.gather(*waiting)
    assert {201, 503} <= {answer.status for answer in answers}
    await elsewhere.close()


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


@dataclass(frozen=True)
class Sample:
    """Two days of calls: one of a contact with words in its transcript, one of somebody else."""

    first: str
    second: str

    def expect(self, names: str) -> list[str]:
        return [getattr(self, name) for name in names.split()]


async def add_sample(runtime: Runtime, caller: Caller) -> Sample:
    first = await add_call(
        runtime,
        caller,
        MONDAY,
        ended_reason="silence",
        user_sentiment="negative",
        call_successful=False,
        duration_seconds=30,
        from_number="+15550100031",
    )
    second = await add_call(
        runtime,
        caller,
        MONDAY + timedelta(days=1),
        user_sentiment="positive",
        call_successful=True,
        duration_seconds=90,
    )
    async with runtime.database.write(caller.organization_id) as session:
        for position, words in enumerate(("I need an Invoice", "for order 4711, please")):
            await add_line(session, first.id, words, position=position)
        for call in (first, second):
            await session.flush()
            await queries.index_transcript(session, call.id)
    return Sample(str(first.id), str(second.id))


async def test_each_filter_finds_its_calls(runtime: Runtime, caller: Caller, stranger: Caller) -> None:
    sample = await add_sample(runtime, caller)
    await add_sample(runtime, stranger)
    contact = {"phone_number": "+15550100031", "name": "Ada", "tags": "VIP, late payer"}
    contact_id = (await caller.post("/v1/contacts", contact)).json["id"]
    for query, expected in {
        "created_after=2026-11-17T00:00:00Z": "second",
        "created_before=2026-11-17T00:00:00Z": "first",
        "created_after=2026-11-16T08:00:00Z&created_before=2026-11-18T00:00:00Z": "second first",
        "ended_reason=silence": "first",
        "user_sentiment=positive": "second",
        "call_successful=false": "first",
        "min_duration_seconds=31": "second",
        "max_duration_seconds=30": "first",
        "phone=%2B15550100031": "first",
        f"contact_id={contact_id}": "first",
        "contact_id=nobody": "",
        "tag=vip": "first",
        "tag=late%20payer": "first",
        "tag=late": "",
        "transcript=invoice": "first",
        "transcript=4711%20order": "first",
        "transcript=invoice%204711": "first",
        "transcript=invoice&user_sentiment=positive": "",
        "transcript=invoice&tag=vip&call_successful=false": "first",
    }.items():
        page = (await caller.get(f"/v1/calls?{query}")).json
        assert [item["id"] for item in objects_at(page, "items")] == sample.expect(expected), query
        assert page["total"] == len(expected.split()), query
    pages = [(await caller.get(f"/v1/calls?call_successful=false&transcript=invoice&offset={n}")).json for n in (0, 1)]
    assert [(len(objects_at(page, "items")), page["total"]) for page in pages] == [(1, 1), (0, 1)]


COPY_CALLS = """
with copies as (select gen_random_uuid() as id, call as row from call, generate_series(1, 10000)
    where call.organization_id = :organization and call.created_at = :moment),
  added as (insert into call select (jsonb_populate_record(row, jsonb_build_object('id', id))).* from copies)
insert into transcript_line
select (jsonb_populate_record(line, jsonb_build_object('call_id', copies.id))).*
from copies, transcript_line as line where line.organization_id = :organization
"""
INDEX_CALLS = """
insert into transcript_search select organization_id, id, collect_transcript_words(organization_id, id)
from call where organization_id = :organization
on conflict (organization_id, call_id) do update set words = excluded.words
"""


async def test_common_words_count_ten_thousand_calls(runtime: Runtime, caller: Caller) -> None:
    sample = await add_sample(runtime, caller)
    async with runtime.database.write(caller.organization_id) as session:
        connection = await session.connection()
        await connection.execute(text(COPY_CALLS), {"organization": caller.organization_id, "moment": MONDAY})
        await connection.execute(text(INDEX_CALLS), {"organization": caller.organization_id})
        changed = text("update transcript_line set content = 'for an invoice' where position = 1 and call_id <> :first")
        await connection.execute(changed, {"first": sample.first})
    common = (await caller.get("/v1/calls?transcript=invoice&offset=9999&limit=1")).json
    assert (common["total"], len(objects_at(common, "items"))) == (10_000, 1)
    rare = (await caller.get("/v1/calls?transcript=4711")).json
    assert rare["total"] == 1
    filtered = (await caller.get("/v1/calls?transcript=invoice&created_after=2026-11-17T00:00:00Z")).json
    assert filtered["total"] == 0
    filtered = (await caller.get("/v1/calls?transcript=invoice&created_after=2026-11-16T00:00:00Z")).json
    assert (filtered["total"], sample.second in str(filtered["items"])) == (10_000, False)


async def test_common_words_of_few_matching_calls_are_found(
    runtime: Runtime, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample = await add_sample(runtime, caller)
    common = "/v1/calls?transcript=invoice"
    for name, value in (("MANY_CALLS", 1), ("PROBED_CALLS", 2)):
        monkeypatch.setattr(queries, name, value)
    page = (await caller.get(common)).json
    assert ([item["id"] for item in objects_at(page, "items")], page["total"]) == (sample.expect("first"), 1)
    filtered = (await caller.get(f"{common}&call_successful=false")).json
    assert ([item["id"] for item in objects_at(filtered, "items")], filtered["total"]) == (sample.expect("first"), 1)


@pytest.mark.parametrize(
    "query",
    [
        "created_after=monday",
        "ended_reason=boredom",
        "user_sentiment=sad",
        "min_duration_seconds=-1",
        "tag=",
        "transcript=",
    ],
)
async def test_a_filter_that_is_not_valid_is_refused(caller: Caller, query: str) -> None:
    refused = await caller.get(f"/v1/calls?{query}")
    assert refused.status == 422
    assert at(refused.json, "errors", 0, "field") == query.partition("=")[0]


async def test_encrypted_transcripts_are_not_searched(runtime: Runtime, organizations: Organizations) -> None:
    caller = await organizations.create(policy=Policy(encryption=Encryption(texts=True)))
    await add_sample(runtime, caller)
    refused = await caller.get("/v1/calls?transcript=invoice")
    assert (refused.status, refused.json["code"]) == (409, "invalid_state")
    async with runtime.database.write(caller.organization_id) as session:
        words = await (await session.connection()).execute(text("select words from transcript_search"))
        assert [row[0] for row in words.all()] == [[], []]


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
        path, {"type": "incoming", "carrier_call_id": "x", "from_number": "+15550100001", "to_number": live.number}
    )
    assert (forged.status, forged.json["code"]) == (403, "forbidden")
    assert (await live.caller.get("/v1/calls")).json["total"] == 0


async def lose_wake_ups(live: LivePlatform) -> None:
    """Empty Redis, which the process leaves alone for a moment if it was late, as on a busy machine."""

    async def flush() -> bool:
        try:
            await live.runtime.redis.flushall()
        except RedisError:
            return False
        return True

    await eventually(flush)


async def test_a_call_is_placed_despite_a_lost_wake_up(live: LivePlatform) -> None:
    await lose_wake_ups(live)
    call = await live.place_call("+15550100020")
    await lose_wake_ups(live)
    async with asyncio.timeout(60):
        assert (await live.wait_for_end(call["id"]))["status"] == "busy"


async def test_the_socket_of_an_ended_call_does_not_block_shutdown(runtime: Runtime, caller: Caller) -> None:
    await add_call(runtime, caller, now())
    async with runtime.database.write(caller.organization_id) as session:
        call = (await session.exec(session.select(Call))).one()
    url = build_media_url(
        runtime.settings, runtime.keyring, carrier=call.carrier, organization_id=call.organization_id, call_id=call.id
    )
    async with aiohttp.ClientSession() as http:
        async with run_server(runtime):
            socket = await http.ws_connect(url, autoclose=False, autoping=False)
            for _ in range(50):  # more than the server buffers for a client that does not read
                await socket.send_str("{}")
            assert (await socket.receive()).type is aiohttp.WSMsgType.CLOSE
            stopping = asyncio.get_running_loop().time()
        assert asyncio.get_running_loop().time() - stopping < GRACE_SECONDS - 5
