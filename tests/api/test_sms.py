"""Text messages through the API, over the loopback carrier's real callbacks and with a running worker."""

import asyncio
from collections.abc import Callable
from uuid import uuid4

import pytest
from pydantic import JsonValue
from sqlmodel import col, select, update
from switchboard.foundation.events.models import Event
from switchboard.plugin_sdk import SimulatedCarrier, TelephonyProvider
from switchboard.resources.phone_numbers.models import PhoneNumber
from switchboard.resources.phone_numbers.purchases import build_callback_urls
from switchboard.resources.sms.keywords import ANSWERS
from switchboard_offline.loopback import LoopbackTelephony
from switchboard_offline.loopback.callbacks import InboundTextNotice

from tests.fixtures.app import UNKNOWN_ID, Caller, LivePlatform, Organizations, fresh_number
from tests.fixtures.eventually import eventually
from tests.fixtures.json_access import Json, at, objects_at, text_at

CONTACT = "+15550100001"
MESSAGE_FIELDS = {"id", "conversation_id", "direction", "from_number", "to_number", "body", "status", "created_at"}
ADDITIONS = {"segments", "cost", "author", "media_urls", "error_message"}


async def send(live: LivePlatform, to_number: str = CONTACT, body: str = "Your bread is ready.") -> Json:
    sent = await live.caller.post("/v1/sms", {"to_number": to_number, "from_number_id": live.number_id, "body": body})
    assert sent.status == 201, sent.body
    return sent.json


async def text(live: LivePlatform, body: str, *, from_number: str = CONTACT) -> str:
    """Send a text message to our number; return the carrier's id of it."""
    organization_id = live.caller.organization_id
    async with live.runtime.providers.use(organization_id, TelephonyProvider) as carrier:
        assert isinstance(carrier, SimulatedCarrier)
        urls = build_callback_urls(live.runtime.settings.base_url, organization_id, "loopback")
        return await carrier.simulate_text_message(
            from_number=from_number, to_number=live.number, body=body, callbacks=urls
        )


async def conversations(caller: Caller) -> list[Json]:
    return (await caller.get("/v1/sms/conversations")).json["items"]  # type: ignore[return-value]


async def messages(live: LivePlatform) -> list[Json]:
    """Return the messages of the only conversation, newest first."""
    (conversation,) = await conversations(live.caller)
    answer = await live.caller.get(f"/v1/sms/conversations/{conversation['id']}/messages")
    return objects_at(answer.json, "items")


async def until(live: LivePlatform, good: Callable[[list[Json]], object]) -> list[Json]:
    """Wait until the messages of the only conversation satisfy `good`, and return them."""
    return await eventually(lambda: messages(live), good)


def summarize(found: list[Json]) -> list[tuple[JsonValue, JsonValue]]:
    return [(message["author"], message["body"]) for message in reversed(found)]


async def event_data(live: LivePlatform, name: str) -> list[Json]:
    async with live.runtime.database.tenant(live.caller.organization_id) as session:
        rows = await session.exec(select(Event).where(col(Event.name) == name).order_by(col(Event.created_at)))
        return [event.data for event in rows.all()]


async def test_a_text_is_queued_sent_and_delivered(live: LivePlatform) -> None:
    accepted = await send(live)
    assert set(accepted) == MESSAGE_FIELDS | ADDITIONS
    assert (accepted["status"], accepted["direction"], accepted["segments"]) == ("queued", "outbound", 1)
    assert (accepted["from_number"], accepted["to_number"], accepted["body"]) == (
        live.number,
        CONTACT,
        "Your bread is ready.",
    )
    (delivered,) = await until(live, lambda found: found[0]["status"] == "delivered")
    assert {**delivered, "status": "queued"} == accepted
    (conversation,) = await conversations(live.caller)
    assert conversation == {
        "id": accepted["conversation_id"],
        "phone_number_id": live.number_id,
        "contact_number": CONTACT,
        "status": "open",
        "last_message_at": accepted["created_at"],
        "created_at": conversation["created_at"],
    }
    (data,) = await event_data(live, "sms.sent")
    assert data == {
        "message_id": accepted["id"],
        "conversation_id": accepted["conversation_id"],
        "direction": "outbound",
        "from_number": live.number,
        "to_number": CONTACT,
        "body": "Your bread is ready.",
        "status": "sent",
        "contact_name": None,
        "created_at": accepted["created_at"],
    }


@pytest.mark.parametrize(
    ("last_digits", "status", "error"), [("80", "undelivered", "switched off"), ("82", "failed", "does not text")]
)
async def test_what_is_not_delivered_says_why(live: LivePlatform, last_digits: str, status: str, error: str) -> None:
    await send(live, f"+155501000{last_digits}")
    (message,) = await until(live, lambda found: found[0]["status"] == status)
    assert error in str(message["error_message"])
    assert len(await event_data(live, "sms.sent")) == (status == "undelivered")


async def test_a_contact_answers_and_the_agent_answers_back(live: LivePlatform) -> None:
    await send(live, "+15550100081", "Do you want to know our opening hours?")
    found = await until(live, lambda found: len(found) == 3 and found[0]["status"] == "delivered")
    assert [message["author"] for message in reversed(found)] == ["api", "contact", "agent"]


async def test_a_text_gets_the_agents_answer(live: LivePlatform) -> None:
    await live.caller.post("/v1/contacts", {"phone_number": CONTACT, "name": "Ada"})
    await text(live, "What are your opening hours?")
    answer, question = await until(live, lambda found: len(found) == 2 and found[0]["status"] == "delivered")
    assert (question["status"], question["direction"], question["author"]) == ("received", "inbound", "contact")
    assert answer["body"] == "We are open from seven to six every day of the week."
    assert answer["author"] == "agent"
    (data,) = await event_data(live, "sms.received")
    assert data == {
        "message_id": question["id"],
        "conversation_id": question["conversation_id"],
        "direction": "inbound",
        "from_number": CONTACT,
        "to_number": live.number,
        "body": "What are your opening hours?",
        "status": "received",
        "contact_name": "Ada",
        "created_at": question["created_at"],
    }


async def test_two_texts_in_quick_succession_get_one_answer(live: LivePlatform) -> None:
    await asyncio.gather(text(live, "Hello there,"), text(live, "what are your opening hours?"))
    await until(live, lambda found: found[0]["direction"] == "outbound" and found[0]["status"] == "delivered")
    await text(live, "HELP")
    found = await until(live, lambda found: found[0]["author"] == "platform")
    assert [message["author"] for message in found].count("agent") == 1


async def test_a_callback_told_twice_is_one_text(live: LivePlatform) -> None:
    organization_id = live.caller.organization_id
    async with live.runtime.providers.use(organization_id, TelephonyProvider) as carrier:
        assert isinstance(carrier, LoopbackTelephony)
        came = InboundTextNotice("lt-same", CONTACT, live.number, "HELP")
        url = build_callback_urls(live.runtime.settings.base_url, organization_id, "loopback").events
        await asyncio.gather(*(carrier._exchange.post.deliver(url, came) for _ in range(5)))
    assert [message["author"] for message in await messages(live)] == ["platform", "contact"]


async def test_stop_closes_the_conversation_until_start(live: LivePlatform) -> None:
    await text(live, "Stop.")
    await text(live, "STOP")
    body = {"to_number": CONTACT, "from_number_id": live.number_id, "body": "Hello"}
    refused = await live.caller.post("/v1/sms", body)
    assert (refused.status, refused.json["code"]) == (409, "recipient_opted_out")
    assert [conversation["status"] for conversation in await conversations(live.caller)] == ["closed"]
    await text(live, "Are you there?")
    await text(live, "HELP")
    await text(live, "START")
    await text(live, "start")
    assert (await live.caller.post("/v1/sms", body)).status == 201
    assert [conversation["status"] for conversation in await conversations(live.caller)] == ["open"]
    found = await until(live, lambda found: all(message["status"] in ("received", "delivered") for message in found))
    answers = [
        str(message["body"]).partition(": ")[2] for message in reversed(found) if message["author"] == "platform"
    ]
    assert answers == [ANSWERS["stop"], ANSWERS["help"], ANSWERS["start"]]


async def listed_sources(live: LivePlatform) -> list[JsonValue]:
    return [entry["source"] for entry in objects_at((await live.caller.get("/v1/do-not-call")).json, "items")]


async def test_stop_feeds_the_do_not_call_list_and_start_lifts_only_that(live: LivePlatform) -> None:
    body = {"to_number": CONTACT, "from_number_id": live.number_id, "body": "Hello"}
    await text(live, "STOP")
    assert await listed_sources(live) == ["text"]
    other = (await live.caller.post("/v1/phone-numbers", {"phone_number": fresh_number()})).json["id"]
    refused = await live.caller.post("/v1/sms", {**body, "from_number_id": other})
    assert (refused.status, refused.json["code"]) == (409, "recipient_opted_out")
    await text(live, "START")
    assert await listed_sources(live) == []
    await live.caller.post("/v1/do-not-call", {"phone_number": CONTACT})
    assert (await live.caller.post("/v1/sms", body)).json["code"] == "recipient_opted_out"
    await text(live, "STOP")
    await text(live, "START")
    assert await listed_sources(live) == ["api"]
    assert (await live.caller.post("/v1/sms", body)).json["code"] == "recipient_opted_out"


async def test_a_text_to_a_number_that_is_not_ours_is_dropped(live: LivePlatform) -> None:
    organization_id = live.caller.organization_id
    async with live.runtime.providers.use(organization_id, TelephonyProvider) as carrier:
        assert isinstance(carrier, SimulatedCarrier)
        urls = build_callback_urls(live.runtime.settings.base_url, organization_id, "loopback")
        await carrier.simulate_text_message(from_number=CONTACT, to_number=fresh_number(), body="Hello", callbacks=urls)
    assert await conversations(live.caller) == []


async def test_the_agent_texts_during_a_call(live: LivePlatform) -> None:
    prompt = (
        'When the agent says "two friendly" or "hello" or "thank you" or "hours": '
        'say "Done." and call send_sms(body="The address: Mill Lane 12")\n'
    )
    otherwise = 'Otherwise: say "Done." and call send_sms(body="The address: Mill Lane 12")'
    await live.caller.send("PUT", f"/v1/agents/{live.agent_id}", {"system_prompt": prompt + otherwise})
    call = await live.ended((await live.place(CONTACT))["id"])
    found = await until(live, lambda found: found[0]["status"] == "delivered")
    assert found[0]["body"] == "The address: Mill Lane 12"
    assert (found[0]["author"], found[0]["to_number"]) == ("agent", CONTACT)
    lines = (await live.caller.get(f"/v1/calls/{call['id']}/transcript")).json["items"]
    assert any(line["role"] == "tool" and "send_sms" in text_at(line, "content") for line in objects_at(lines))


async def test_the_wake_up_may_be_lost(live: LivePlatform) -> None:
    await send(live)
    await live.runtime.redis.flushall()
    await until(live, lambda found: found[0]["status"] == "delivered")
    await text(live, "What are your opening hours?")
    await live.runtime.redis.flushall()
    await until(live, lambda found: found[0]["author"] == "agent")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("to_number", "12"),
        ("to_number", 5),
        ("to_number", None),
        ("to_number", "+1555\0"),
        ("from_number_id", UNKNOWN_ID),
        ("from_number_id", "x"),
        ("from_number_id", 5),
        ("body", ""),
        ("body", "   "),
        ("body", "x" * 1601),
        ("body", 5),
        ("body", "a\0b"),
        ("nonsense", 1),
    ],
)
async def test_a_bad_field_is_named(caller: Caller, field: str, value: object) -> None:
    number = (await caller.post("/v1/phone-numbers", {"phone_number": fresh_number()})).json["id"]
    answer = await caller.post(
        "/v1/sms", {"to_number": CONTACT, "from_number_id": number, "body": "Hello", field: value}
    )
    assert answer.status == 422, answer.body
    assert [error["field"] for error in objects_at(answer.json, "errors")] == [field]


@pytest.mark.parametrize("field", ["to_number", "from_number_id", "body"])
async def test_each_field_is_required(caller: Caller, field: str) -> None:
    body = {"to_number": CONTACT, "from_number_id": str(uuid4()), "body": "Hello"}
    del body[field]
    assert (await caller.post("/v1/sms", body)).status == 422


async def test_numbers_that_cannot_text(live: LivePlatform) -> None:
    body = {"to_number": CONTACT, "from_number_id": live.number_id, "body": "x" * 1600}
    assert (await live.caller.post("/v1/sms", {**body, "to_number": live.number})).status == 422
    assert (await live.caller.post("/v1/sms", body)).status == 201
    async with live.runtime.database.tenant(live.caller.organization_id) as session:
        await session.exec(update(PhoneNumber).values(sms_active=False))
    refused = await live.caller.post("/v1/sms", body)
    assert (refused.status, refused.json["code"]) == (409, "invalid_state")
    await live.caller.send("DELETE", f"/v1/phone-numbers/{live.number_id}")
    assert (await live.caller.post("/v1/sms", body)).status == 422


async def test_lists_are_newest_first_and_paged(live: LivePlatform) -> None:
    for index in range(3):
        await send(live, f"+1555010001{index}", "first")
    await send(live, "+15550100010", "second")
    listed = (await live.caller.get("/v1/sms/conversations?limit=2")).json
    assert [item["contact_number"] for item in objects_at(listed, "items")] == ["+15550100012", "+15550100011"]
    assert (listed["total"], listed["limit"], listed["offset"]) == (3, 2, 0)
    oldest = (await conversations(live.caller))[2]
    path = f"/v1/sms/conversations/{oldest['id']}/messages"
    assert (await live.caller.get("/v1/sms/conversations?offset=2")).json["items"] == [oldest]
    page = (await live.caller.get(path)).json
    assert [item["body"] for item in objects_at(page, "items")] == ["second", "first"]
    assert (page["total"], page["limit"], page["offset"]) == (2, 100, 0)
    assert at((await live.caller.get(f"{path}?limit=500&offset=1")).json, "items", 0, "body") == "first"
    for query in ("limit=0", "limit=501", "offset=-1", "limit=x", "status=sent"):
        assert (await live.caller.get(f"{path}?{query}")).status == 422, query
    for query in ("limit=0", "limit=101", "offset=-1"):
        assert (await live.caller.get(f"/v1/sms/conversations?{query}")).status == 422, query


async def test_another_organizations_texts_are_unknown(live: LivePlatform, organizations: Organizations) -> None:
    stranger = await organizations.make()
    message = await send(live)
    for conversation_id in (message["conversation_id"], uuid4(), "x"):
        assert (await stranger.get(f"/v1/sms/conversations/{conversation_id}/messages")).status == 404
    assert await conversations(stranger) == []
    foreign = await stranger.post("/v1/sms", {"to_number": CONTACT, "from_number_id": live.number_id, "body": "Hello"})
    assert (foreign.status, foreign.json["code"]) == (422, "validation_error")


async def test_scopes_are_asked_for(organizations: Organizations, caller: Caller) -> None:
    reader = await organizations.key(caller.organization_id, scopes=["sms:read"])
    assert (await reader.get("/v1/sms/conversations")).status == 200
    assert (await reader.post("/v1/sms", {})).status == 403
    writer = await organizations.key(caller.organization_id, scopes=["sms:write"])
    assert (await writer.get("/v1/sms/conversations")).status == 403


async def test_a_repeated_key_sends_once(live: LivePlatform) -> None:
    body = {"to_number": CONTACT, "from_number_id": live.number_id, "body": "Hello"}
    first, second = [await live.caller.send("POST", "/v1/sms", body, Idempotency_Key="once") for _ in range(2)]
    assert first.json == second.json
    assert len(await messages(live)) == 1
