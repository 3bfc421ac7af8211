"""Campaigns through the API: fields, lists, and states."""

from datetime import timedelta

import pytest
from pydantic import JsonValue
from switchboard.foundation.database import now
from switchboard.resources.campaigns.schemas import MAX_CONTACTS
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller
from tests.fixtures.campaigns import (
    ANSWERS,
    WAYS,
    create_agent_and_number,
    create_campaign,
    list_contacts,
    list_outcomes,
    send_action,
)
from tests.fixtures.json_access import Json, at

FIELDS = {
    "id",
    "name",
    "agent_id",
    "phone_number_id",
    "status",
    "scheduled_at",
    "max_concurrent",
    "total_contacts",
    "called",
    "completed",
    "failed",
    "created_at",
    "updated_at",
}


ADDITIONS = {"status_reason", "retry", "voicemail_policy", "skipped", "canceled"}


CONTACT_FIELDS = {
    "id",
    "campaign_id",
    "phone_number",
    "name",
    "status",
    "outcome",
    "call_id",
    "error",
    "called_at",
    "created_at",
}


@pytest.fixture
async def body(runtime: Runtime, caller: Caller) -> Json:
    """Build the request of a campaign with one contact."""
    return {
        "name": "Reminders",
        **await create_agent_and_number(runtime, caller),
        "contacts": [{"phone_number": "+15550100001", "name": "Ada"}],
    }


async def test_a_campaign_is_created_as_a_draft_with_its_contacts(caller: Caller, body: Json) -> None:
    campaign = await create_campaign(caller, body, max_concurrent=7)
    assert campaign.keys() == FIELDS | ADDITIONS
    assert (campaign["status"], campaign["total_contacts"], campaign["called"], campaign["max_concurrent"]) == (
        "draft",
        1,
        0,
        7,
    )
    assert (await caller.get(f"/v1/campaigns/{campaign['id']}")).json == campaign
    assert (await caller.get("/v1/campaigns?limit=1")).json == {
        "items": [campaign],
        "total": 1,
        "limit": 1,
        "offset": 0,
    }
    (contact,) = await list_contacts(caller, campaign)
    assert contact.keys() == CONTACT_FIELDS | {"attempts"}
    assert (contact["phone_number"], contact["name"], contact["status"], contact["outcome"]) == (
        "+15550100001",
        "Ada",
        "pending",
        None,
    )


async def test_a_repeated_number_is_called_once(caller: Caller, body: Json) -> None:
    campaign = await create_campaign(caller, body, ["+15550100001", "+15550100002", "+15550100001"])
    assert (campaign["total_contacts"], campaign["skipped"]) == (3, 1)
    listed_contacts = await list_contacts(caller, campaign)
    assert [contact["status"] for contact in listed_contacts] == ["pending", "pending", "skipped"]
    assert listed_contacts[2]["error"] == "The number is in the list already."
    assert [contact["id"] for contact in await list_contacts(caller, campaign, "status=skipped")] == [
        listed_contacts[2]["id"]
    ]


async def test_one_request_may_contain_a_hundred_thousand_contacts(caller: Caller, body: Json) -> None:
    people: list[JsonValue] = [
        {"phone_number": f"+1555{number:07d}", "name": f"Person {number}"} for number in range(MAX_CONTACTS)
    ]
    campaign = await create_campaign(caller, body, contacts=people)
    assert campaign["total_contacts"] == MAX_CONTACTS
    last = (await caller.get(f"/v1/campaigns/{campaign['id']}/contacts?limit=1")).json
    assert (at(last, "total"), at(last, "items", 0, "phone_number")) == (MAX_CONTACTS, f"+1555{MAX_CONTACTS - 1:07d}")


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"name": None}, "name"),
        ({"agent_id": "019a9f6e-7b0c-7c2e-9f39-5a8f6f0f7c11"}, "agent_id"),
        ({"agent_id": "nobody"}, "agent_id"),
        ({"phone_number_id": "019a9f6e-7b0c-7c2e-9f39-5a8f6f0f7c11"}, "phone_number_id"),
        ({"contacts": []}, "contacts"),
        ({"contacts": [{"phone_number": "+15550100001"}] * (MAX_CONTACTS + 1)}, "contacts"),
        ({"contacts": [{"phone_number": "+15550100001"}, {"phone_number": "5550100"}]}, "contacts.1.phone_number"),
        ({"contacts": [{"phone_number": "+15550100001", "number": 1}]}, "contacts.0.number"),
        ({"contacts": [{"phone_number": "+15550100001", "name": "\0"}]}, "contacts"),
        ({"max_concurrent": 0}, "max_concurrent"),
        ({"max_concurrent": 1001}, "max_concurrent"),
        ({"scheduled_at": "2026-12-24T10:00:00"}, "scheduled_at"),
        ({"retry": {"attempts": 0}}, "retry.attempts"),
        ({"retry": {"attempts": 1, "on": ["answered"]}}, "retry.on.0"),
        ({"status": "running"}, "status"),
    ],
)
async def test_invalid_campaigns_are_refused_by_field(caller: Caller, body: Json, fields: Json, field: str) -> None:
    response = await caller.post("/v1/campaigns", {**body, **fields})
    assert (response.status, at(response.json, "errors", 0, "field")) == (422, field), response.body
    assert (await caller.get("/v1/campaigns")).json["total"] == 0


@pytest.mark.parametrize("status", ANSWERS)
async def test_each_action_is_allowed_only_in_its_states(caller: Caller, body: Json, status: str) -> None:
    for action in ("start", "pause", "resume", "cancel"):
        scheduled_at = (now() + timedelta(days=1)).isoformat() if status == "scheduled" else None
        campaign = await create_campaign(caller, body, scheduled_at=scheduled_at)
        for step in WAYS[status]:
            campaign = await send_action(caller, campaign, step)
        assert campaign["status"] == status
        response = await caller.post(f"/v1/campaigns/{campaign['id']}/{action}")
        expected_status = ANSWERS[status].get(action)
        assert (response.status, response.json.get("code")) == (
            (200, None) if expected_status else (409, "invalid_state")
        ), (
            status,
            action,
        )
        assert (await caller.get(f"/v1/campaigns/{campaign['id']}")).json["status"] == expected_status or status


async def test_canceling_a_campaign_cancels_its_contacts_and_allows_its_deletion(caller: Caller, body: Json) -> None:
    campaign = await send_action(caller, await create_campaign(caller, body), "cancel")
    assert (campaign["status"], campaign["canceled"]) == ("canceled", 1)
    assert await list_outcomes(caller, campaign) == [("canceled", "canceled")]
    assert (await caller.send("DELETE", f"/v1/campaigns/{campaign['id']}")).status == 204
    assert (await caller.get(f"/v1/campaigns/{campaign['id']}")).status == 404
    assert (await caller.get(f"/v1/campaigns/{campaign['id']}/contacts")).status == 404


async def test_a_campaign_cannot_start_without_its_agent_or_number(caller: Caller, body: Json) -> None:
    campaign = await create_campaign(caller, body)
    await caller.send("PUT", f"/v1/agents/{body['agent_id']}", {"status": "paused"})
    response = await caller.post(f"/v1/campaigns/{campaign['id']}/start")
    assert (response.status, response.json["detail"]) == (409, "The campaign's agent is paused.")
    await caller.send("DELETE", f"/v1/phone-numbers/{body['phone_number_id']}")
    response = await caller.post(f"/v1/campaigns/{campaign['id']}/start")
    assert (response.status, response.json["detail"]) == (409, "The campaign's phone number is no longer active.")
