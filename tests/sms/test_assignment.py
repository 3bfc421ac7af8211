"""Conversations that users share out, resolve, and read."""

import pytest
from switchboard.plugin_sdk import SimulatedCarrier, TelephonyProvider
from switchboard.resources.phone_numbers.purchases import build_callback_urls

from tests.fixtures.app import LivePlatform
from tests.fixtures.dashboard import People
from tests.fixtures.eventually import eventually
from tests.fixtures.json_access import Json, objects_at
from tests.fixtures.oauth import make_user, register_application

CONTACT = "+15550100001"


async def write(live: LivePlatform, body: str) -> None:
    """Write a text message to our number, as the contact."""
    organization_id = live.caller.organization_id
    async with live.runtime.providers.use(organization_id, TelephonyProvider) as carrier:
        assert isinstance(carrier, SimulatedCarrier)
        urls = build_callback_urls(live.runtime.settings.base_url, organization_id, "loopback")
        await carrier.simulate_text_message(from_number=CONTACT, to_number=live.number, body=body, callbacks=urls)


async def list_conversations(live: LivePlatform, query: str = "") -> list[Json]:
    response = await live.caller.get(f"/v1/sms/conversations{query}")
    assert response.status == 200, response.body
    return objects_at(response.json, "items")


async def wait_for(live: LivePlatform, query: str, count: int = 1) -> list[Json]:
    return await eventually(lambda: list_conversations(live, query), lambda found: len(found) == count)


async def list_authors(live: LivePlatform, conversation: Json) -> list[str]:
    response = await live.caller.get(f"/v1/sms/conversations/{conversation['id']}/messages")
    return [str(message["author"]) for message in reversed(objects_at(response.json, "items"))]


async def test_a_member_answers_in_the_agents_place_until_the_conversation_is_resolved(
    live: LivePlatform, people: People
) -> None:
    owner = await people.join(live.caller.organization_id)
    await write(live, "Hello?")
    (conversation,) = await wait_for(live, "")
    await eventually(lambda: list_authors(live, conversation), lambda authors: authors == ["contact", "agent"])
    path = f"/v1/sms/conversations/{conversation['id']}"
    assigned = await live.caller.send("PATCH", path, {"assigned_to": str(owner.user_id)})
    assert assigned.json["assigned_to"] == str(owner.user_id)
    assert (await list_conversations(live, f"?assigned_to={owner.user_id}"))[0]["id"] == conversation["id"]
    await write(live, "May I speak to a person?")
    await wait_for(live, "?waiting=true")
    assert (await owner.post(f"/dashboard/texts/{conversation['id']}", {"body": "This is me."})).status == 303
    assert not await list_conversations(live, "?waiting=true")
    resolved = await live.caller.send("PATCH", path, {"resolved": True})
    assert resolved.json["assigned_to"] is None
    assert not await list_conversations(live, "?resolved=false")
    assert "No open conversations" in (await owner.get("/dashboard/texts")).html
    await write(live, "One more thing.")
    await eventually(
        lambda: list_authors(live, conversation),
        lambda authors: authors == ["contact", "agent", "contact", "person", "contact", "agent"],
    )
    assert (await live.caller.get(path)).json["resolved_at"] is None
    assert ("sms_conversation.updated", f"{conversation['id']} resolved") in [
        entry[1:] for entry in await people.list_audit_entries(live.caller.organization_id)
    ]


async def test_a_conversation_without_an_agent_waits_for_a_person(live: LivePlatform) -> None:
    number = f"/v1/phone-numbers/{live.number_id}"
    assert (await live.caller.send("PUT", number, {"inbound_agent_id": None})).status == 200
    await write(live, "Is anybody there?")
    (conversation,) = await wait_for(live, "?waiting=true")
    assert conversation["waiting_since"] is not None
    await live.caller.send("PATCH", f"/v1/sms/conversations/{conversation['id']}", {"resolved": True})
    assert not await list_conversations(live, "?waiting=true")


@pytest.mark.parametrize("member", ["stranger", "former"])
async def test_only_members_get_conversations(live: LivePlatform, people: People, member: str) -> None:
    owner = await people.join(live.caller.organization_id)
    other = await people.join(live.caller.organization_id if member == "former" else None, role="builder")
    await write(live, "Hello?")
    (conversation,) = await wait_for(live, "")
    path = f"/v1/sms/conversations/{conversation['id']}"
    if member == "former":
        assert (await live.caller.send("PATCH", path, {"assigned_to": str(other.user_id)})).status == 200
        await owner.post(f"/dashboard/team/{other.user_id}/remove")
        assert (await live.caller.get(path)).json["assigned_to"] is None
    refused = await live.caller.send("PATCH", path, {"assigned_to": str(other.user_id)})
    assert refused.status == 422
    refused = await live.caller.send("PATCH", path, {"assigned_to": str(owner.user_id), "resolved": True})
    assert refused.status == 422


async def test_each_user_has_unread_messages_of_their_own(live: LivePlatform, people: People) -> None:
    owner, colleague = [await people.join(live.caller.organization_id) for _ in range(2)]
    await write(live, "Hello?")
    await write(live, "Are you open?")
    (conversation,) = await wait_for(live, "")
    for person in (owner, colleague):
        assert '2<span class="visually-hidden"> unread' in (await person.get("/dashboard/texts")).html
    await owner.get(f"/dashboard/texts/{conversation['id']}")
    assert " unread</span>" not in (await owner.get("/dashboard/texts")).html
    assert " unread</span>" in (await colleague.get("/dashboard/texts")).html
    assert conversation["unread_count"] is None
    assert (await live.caller.post(f"/v1/sms/conversations/{conversation['id']}/read")).status == 409


async def test_an_application_reads_for_its_user(live: LivePlatform) -> None:
    user_id = await make_user(live.runtime, live.caller.organization_id)
    application = await register_application(live.runtime, live.caller.client, live.caller, user_id)
    await write(live, "Hello?")
    (conversation,) = await wait_for(live, "")
    user = application.build_caller(await application.obtain_tokens(scope="sms:read"))
    path = f"/v1/sms/conversations/{conversation['id']}"
    assert (await user.get(path)).json["unread_count"] == 1
    assert (await user.post(f"{path}/read")).status == 204
    assert objects_at((await user.get("/v1/sms/conversations")).json, "items")[0]["unread_count"] == 0
