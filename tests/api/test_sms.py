"""Text messages through the API, over the loopback carrier's real callbacks and with a running worker."""

import asyncio
from collections.abc import Callable
from uuid import uuid4

import pytest
from pydantic import JsonValue
from sqlmodel import col, select, update
from switchboard.foundation.encryption.content import open_content
from switchboard.foundation.events.models import Event
from switchboard.plugin_sdk import SimulatedCarrier, TelephonyProvider, TextMessageReceived
from switchboard.resources.phone_numbers.models import PhoneNumber
from switchboard.resources.phone_numbers.purchases import build_callback_urls
from switchboard.resources.sms.keywords import ANSWERS
from switchboard_offline.loopback import LoopbackTelephony

from tests.fixtures.app import UNKNOWN_ID, Caller, LivePlatform, Organizations, fresh_number
from tests.fixtures.eventually import eventually
from tests.fixtures.json_access import Json, at, objects_at, text_at

CONTACT = "+15550100001"
MESSAGE_FIELDS = {"id", "conversation_id", "direction", "from_number", "to_number", "body", "status", "created_at"}
ADDITIONS = {"segments", "cost", "author", "agent_id", "interventions", "media_urls", "error_message"}


async def send_message(live: LivePlatform, to_number: str = CONTACT, body: str = "Your bread is ready.") -> Json:
    response = await live.caller.post(
        "/v1/sms", {"to_number": to_number, "from_number_id": live.number_id, "body": body}
    )
    assert response.status == 201, response.body
    return response.json


async def list_conversations(caller: Caller) -> list[Json]:
    return (await caller.get("/v1/sms/conversations")).json["items"]  # type: ignore[return-value]


async def list_messages(live: LivePlatform) -> list[Json]:
    """Return the messages of the only conversation, newest first."""
    (conversation,) = await list_conversations(live.caller)
    response = await live.caller.get(f"/v1/sms/conversations/{conversation['id']}/messages")
    return objects_at(response.json, "items")


async def wait_for_messages(live: LivePlatform, good: Callable[[list[Json]], object]) -> list[Json]:
    """Wait until the messages of the only conversation satisfy `good`, and return them."""
    return await eventually(lambda: list_messages(live), good)


def summarize(messages: list[Json]) -> list[tuple[JsonValue, JsonValue]]:
    return [(message["author"], message["body"]) for message in reversed(messages)]


async def list_event_data(live: LivePlatform, name: str) -> list[Json]:
    async with live.runtime.database.write(live.caller.organization_id) as session:
        rows = await session.exec(select(Event).where(col(Event.name) == name).order_by(col(Event.created_at)))
        events = rows.all()
        await open_content(session, *events)
        return [event.data.value for event in events]


async def test_a_message_is_queued_sent_and_delivered(live: LivePlatform) -> None:
    accepted = await send_message(live)
    assert set(accepted) == MESSAGE_FIELDS | ADDITIONS
    assert (accepted["status"], accepted["direction"], accepted["segments"]) == ("queued", "outbound", 1)
    assert (accepted["from_number"], accepted["to_number"], accepted["body"]) == (
        live.number,
        CONTACT,
        "Your bread is ready.",
    )
    (delivered,) = await wait_for_messages(live, lambda messages: messages[0]["status"] == "delivered")
    assert {**delivered, "status": "queued"} == accepted
    (conversation,) = await list_conversations(live.caller)
    assert conversation == {
        "id": accepted["conversation_id"],
        "phone_number_id": live.number_id,
        "contact_number": CONTACT,
        "status": "open",
        "last_message_at": accepted["created_at"],
        "assigned_to": None,
        "resolved": False,
        "resolved_at": None,
        "waiting_since": None,
        "unread_count": None,
        "created_at": conversation["created_at"],
    }
    (data,) = await list_event_data(live, "sms.sent")
    assert data == {
        "message_id": accepted["id"],
        "conversation_id": accepted["conversation_id"],
        "direction": "outbound",
        "from_number": live.number,
        "to_number": CONTACT,
        "body": "Your bread is ready.",
        "status": "sent",
        "media_urls": [],
        "contact_name": None,
        "created_at": accepted["created_at"],
    }


@pytest.mark.parametrize(
    ("last_digits", "status", "error"), [("80", "undelivered", "switched off"), ("82", "failed", "does not text")]
)
async def test_an_undelivered_message_states_its_reason(
    live: LivePlatform, last_digits: str, status: str, error: str
) -> None:
    await send_message(live, f"+155501000{last_digits}")
    (message,) = await wait_for_messages(live, lambda messages: messages[0]["status"] == status)
    assert error in str(message["error_message"])
    assert len(await list_event_data(live, "sms.sent")) == (status == "undelivered")


async def test_a_contact_replies_and_the_agent_answers(live: LivePlatform) -> None:
    await send_message(live, "+15550100081", "Do you want to know our opening hours?")
    messages = await wait_for_messages(
        live, lambda messages: len(messages) == 3 and messages[0]["status"] == "delivered"
    )
    assert [message["author"] for message in reversed(messages)] == ["api", "contact", "agent"]


async def test_an_inbound_message_gets_the_agents_answer(live: LivePlatform) -> None:
    await live.caller.post("/v1/contacts", {"phone_number": CONTACT, "name": "Ada"})
    await live.receive_text("What are your opening hours?")
    response, question = await wait_for_messages(
        live, lambda messages: len(messages) == 2 and messages[0]["status"] == "delivered"
    )
    assert (question["status"], question["direction"], question["author"]) == ("received", "inbound", "contact")
    assert response["body"] == "We are open from seven to six every day of the week."
    assert response["author"] == "agent"
    (data,) = await list_event_data(live, "sms.received")
    assert data == {
        "message_id": question["id"],
        "conversation_id": question["conversation_id"],
        "direction": "inbound",
        "from_number": CONTACT,
        "to_number": live.number,
        "body": "What are your opening hours?",
        "status": "received",
        "media_urls": [],
        "contact_name": "Ada",
        "created_at": question["created_at"],
    }


async def test_two_quick_messages_get_one_answer(live: LivePlatform) -> None:
    await asyncio.gather(live.receive_text("Hello there,"), live.receive_text("what are your opening hours?"))
    await wait_for_messages(
        live, lambda messages: messages[0]["direction"] == "outbound" and messages[0]["status"] == "delivered"
    )
    await live.receive_text("HELP")
    messages = await wait_for_messages(live, lambda messages: messages[0]["author"] == "platform")
    assert [message["author"] for message in messages].count("agent") == 1


async def test_a_repeated_callback_creates_one_message(live: LivePlatform) -> None:
    organization_id = live.caller.organization_id
    async with live.runtime.providers.use(organization_id, TelephonyProvider) as carrier:
        assert isinstance(carrier, LoopbackTelephony)
        notice = TextMessageReceived("lt-same", CONTACT, live.number, "HELP")
        url = build_callback_urls(live.runtime.settings.base_url, organization_id, "loopback").events
        await asyncio.gather(*(carrier._exchange.post.deliver(url, notice) for _ in range(5)))
    assert [message["author"] for message in await list_messages(live)] == ["platform", "contact"]


async def test_stop_closes_the_conversation_until_start(live: LivePlatform) -> None:
    await live.receive_text("Stop.")
    await live.receive_text("STOP")
    body = {"to_number": CONTACT, "from_number_id": live.number_id, "body": "Hello"}
    refused = await live.caller.post("/v1/sms", body)
    assert (refused.status, refused.json["code"]) == (409, "recipient_opted_out")
    assert [conversation["status"] for conversation in await list_conversations(live.caller)] == ["closed"]
    await live.receive_text("Are you there?")
    await live.receive_text("HELP")
    await live.receive_text("START")
    await live.receive_text("start")
    assert (await live.caller.post("/v1/sms", body)).status == 201
    assert [conversation["status"] for conversation in await list_conversations(live.caller)] == ["open"]
    messages = await wait_for_messages(
        live, lambda messages: all(message["status"] in ("received", "delivered") for message in messages)
    )
    responses = [
        str(message["body"]).partition(": ")[2] for message in reversed(messages) if message["author"] == "platform"
    ]
    assert responses == [ANSWERS["stop"], ANSWERS["help"], ANSWERS["start"]]


async def list_opt_out_sources(live: LivePlatform) -> list[JsonValue]:
    return [entry["source"] for entry in objects_at((await live.caller.get("/v1/do-not-call")).json, "items")]


async def test_stop_adds_a_do_not_call_entry_and_start_removes_only_that_entry(live: LivePlatform) -> None:
    body = {"to_number": CONTACT, "from_number_id": live.number_id, "body": "Hello"}
    await live.receive_text("STOP")
    assert await list_opt_out_sources(live) == ["text"]
    other = (await live.caller.post("/v1/phone-numbers", {"phone_number": fresh_number()})).json["id"]
    refused = await live.caller.post("/v1/sms", {**body, "from_number_id": other})
    assert (refused.status, refused.json["code"]) == (409, "recipient_opted_out")
    await live.receive_text("START")
    assert await list_opt_out_sources(live) == []
    await live.caller.post("/v1/do-not-call", {"phone_number": CONTACT})
    assert (await live.caller.post("/v1/sms", body)).json["code"] == "recipient_opted_out"
    await live.receive_text("STOP")
    await live.receive_text("START")
    assert await list_opt_out_sources(live) == ["api"]
    assert (await live.caller.post("/v1/sms", body)).json["code"] == "recipient_opted_out"


async def test_a_message_to_an_unknown_number_is_dropped(live: LivePlatform) -> None:
    organization_id = live.caller.organization_id
    async with live.runtime.providers.use(organization_id, TelephonyProvider) as carrier:
        assert isinstance(carrier, SimulatedCarrier)
        urls = build_callback_urls(live.runtime.settings.base_url, organization_id, "loopback")
        await carrier.simulate_text_message(from_number=CONTACT, to_number=fresh_number(), body="Hello", callbacks=urls)
    assert await list_conversations(live.caller) == []


async def test_the_agent_sends_messages_during_a_call(live: LivePlatform) -> None:
    prompt = (
        'When the agent says "two friendly" or "hello" or "thank you" or "hours": '
        'say "Done." and call send_sms(body="The address: Mill Lane 12")\n'
    )
    rule = 'Otherwise: say "Done." and call send_sms(body="The address: Mill Lane 12")'
    await live.caller.send("PUT", f"/v1/agents/{live.agent_id}", {"system_prompt": prompt + rule})
    call = await live.wait_for_end((await live.place_call(CONTACT))["id"])
    messages = await wait_for_messages(live, lambda messages: messages[0]["status"] == "delivered")
    assert messages[0]["body"] == "The address: Mill Lane 12"
    assert (messages[0]["author"], messages[0]["to_number"]) == ("agent", CONTACT)
    lines = (await live.caller.get(f"/v1/calls/{call['id']}/transcript")).json["items"]
    assert any(line["role"] == "tool" and "send_sms" in text_at(line, "content") for line in objects_at(lines))


async def test_a_message_is_sent_despite_a_lost_wake_up(live: LivePlatform) -> None:
    await send_message(live)
    await live.runtime.redis.flushall()
    await wait_for_messages(live, lambda messages: messages[0]["status"] == "delivered")
    await live.receive_text("What are your opening hours?")
    await live.runtime.redis.flushall()
    await wait_for_messages(live, lambda messages: messages[0]["author"] == "agent")


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
    response = await caller.post(
        "/v1/sms", {"to_number": CONTACT, "from_number_id": number, "body": "Hello", field: value}
    )
    assert response.status == 422, response.body
    assert [error["field"] for error in objects_at(response.json, "errors")] == [field]


@pytest.mark.parametrize("field", ["to_number", "from_number_id", "body"])
async def test_each_field_is_required(caller: Caller, field: str) -> None:
    body = {"to_number": CONTACT, "from_number_id": str(uuid4()), "body": "Hello"}
    del body[field]
    assert (await caller.post("/v1/sms", body)).status == 422


async def test_numbers_without_text_messages_are_refused(live: LivePlatform) -> None:
    body = {"to_number": CONTACT, "from_number_id": live.number_id, "body": "x" * 1600}
    assert (await live.caller.post("/v1/sms", {**body, "to_number": live.number})).status == 422
    assert (await live.caller.post("/v1/sms", body)).status == 201
    async with live.runtime.database.write(live.caller.organization_id) as session:
        await session.exec(update(PhoneNumber).values(sms_active=False))
    refused = await live.caller.post("/v1/sms", body)
    assert (refused.status, refused.json["code"]) == (409, "invalid_state")
    await live.caller.send("DELETE", f"/v1/phone-numbers/{live.number_id}")
    assert (await live.caller.post("/v1/sms", body)).status == 422


async def test_lists_are_newest_first_and_paged(live: LivePlatform) -> None:
    for index in range(3):
        await send_message(live, f"+1555010001{index}", "first")
    await send_message(live, "+15550100010", "second")
    response = (await live.caller.get("/v1/sms/conversations?limit=2")).json
    assert [item["contact_number"] for item in objects_at(response, "items")] == ["+15550100012", "+15550100011"]
    assert (response["total"], response["limit"], response["offset"]) == (3, 2, 0)
    oldest = (await list_conversations(live.caller))[2]
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


async def test_messages_of_other_organizations_are_not_found(live: LivePlatform, organizations: Organizations) -> None:
    stranger = await organizations.create()
    message = await send_message(live)
    for conversation_id in (message["conversation_id"], uuid4(), "x"):
        assert (await stranger.get(f"/v1/sms/conversations/{conversation_id}/messages")).status == 404
    assert await list_conversations(stranger) == []
    foreign = await stranger.post("/v1/sms", {"to_number": CONTACT, "from_number_id": live.number_id, "body": "Hello"})
    assert (foreign.status, foreign.json["code"]) == (422, "validation_error")


async def test_endpoints_require_their_scopes(organizations: Organizations, caller: Caller) -> None:
    reader = await organizations.create_key(caller.organization_id, scopes=["sms:read"])
    assert (await reader.get("/v1/sms/conversations")).status == 200
    assert (await reader.post("/v1/sms", {})).status == 403
    writer = await organizations.create_key(caller.organization_id, scopes=["sms:write"])
    assert (await writer.get("/v1/sms/conversations")).status == 403


async def test_a_repeated_idempotency_key_sends_once(live: LivePlatform) -> None:
    body = {"to_number": CONTACT, "from_number_id": live.number_id, "body": "Hello"}
    first, second = [await live.caller.send("POST", "/v1/sms", body, Idempotency_Key="once") for _ in range(2)]
    assert first.json == second.json
    assert len(await list_messages(live)) == 1
