"""Campaigns through the API: lists, states, and calls over the loopback carrier, whose numbers determine the
outcome.
"""

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta
from itertools import count

import pytest
from pydantic import JsonValue
from switchboard.foundation.database import now
from switchboard.plugin_sdk import TelephonyProvider
from switchboard.resources.billing import ledger
from switchboard.resources.campaigns.schemas import MAX_CONTACTS
from switchboard.resources.identity.policy import CallingHours, Policy, Prices
from switchboard.resources.phone_numbers import purchases
from switchboard.resources.phone_numbers.schemas import PhoneNumberBuy
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller, LivePlatform, Organizations, fresh_number
from tests.fixtures.eventually import eventually
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
ADDITIONS = {"status_reason", "retry", "skipped", "canceled"}
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
BUSY, RINGS, FAILS, DECLINED, REFUSED, NO_SUCH, MACHINE, SHORT = "20", "21", "22", "23", "24", "25", "30", "40"

_people = count(10_000)


def numbers(*endings: str) -> list[str]:
    """Return fresh numbers with these last digits."""
    return [f"+1555{next(_people):05d}{ending}" for ending in endings]


async def means(runtime: Runtime, caller: Caller) -> Json:
    """Create the agent and the number that a campaign needs."""
    agent = (await caller.post("/v1/agents", {"name": "Agent", "greeting_message": "Hello {{name}}, good day."})).json
    buyer = purchases.NumberBuyer(runtime.database, runtime.providers, runtime.settings.base_url)
    number = await buyer.buy_number(caller.organization_id, PhoneNumberBuy(phone_number=fresh_number()))
    return {"agent_id": agent["id"], "phone_number_id": str(number.id)}


@pytest.fixture
async def body(runtime: Runtime, caller: Caller) -> Json:
    """Build the request of a campaign with one contact."""
    return {
        "name": "Reminders",
        **await means(runtime, caller),
        "contacts": [{"phone_number": "+15550100001", "name": "Ada"}],
    }


def fields_of(live: LivePlatform) -> Json:
    """Return the agent and the number of the live platform."""
    return {"name": "Reminders", "agent_id": live.agent_id, "phone_number_id": live.number_id}


async def make(caller: Caller, body: Json, people: Sequence[str] = (), **fields: JsonValue) -> Json:
    people_to_call: list[JsonValue] = [{"phone_number": number} for number in people]
    made = await caller.post("/v1/campaigns", {**body, **({"contacts": people_to_call} if people else {}), **fields})
    assert made.status == 201, made.body
    return made.json


async def act(caller: Caller, campaign: Json, action: str) -> Json:
    answer = await caller.post(f"/v1/campaigns/{campaign['id']}/{action}")
    assert answer.status == 200, answer.body
    return answer.json


async def until(caller: Caller, campaign: Json, good: Callable[[Json], object], seconds: float = 60) -> Json:
    """Wait until the campaign satisfies `good`, and return it."""

    async def look() -> Json:
        return (await caller.get(f"/v1/campaigns/{campaign['id']}")).json

    return await eventually(look, good, seconds=seconds)


def has(status: str) -> Callable[[Json], object]:
    return lambda campaign: campaign["status"] == status


async def contacts(caller: Caller, campaign: Json, query: str = "limit=100") -> list[Json]:
    """Return the contacts in the order of the list."""
    answer = await caller.get(f"/v1/campaigns/{campaign['id']}/contacts?{query}")
    assert answer.status == 200, answer.body
    return list(reversed(answer.json["items"]))  # type: ignore[arg-type]


async def outcomes(caller: Caller, campaign: Json) -> list[tuple[JsonValue, JsonValue]]:
    return [(contact["status"], contact["outcome"]) for contact in await contacts(caller, campaign)]


async def test_a_campaign_is_made_as_a_draft_with_its_list(caller: Caller, body: Json) -> None:
    made = await make(caller, body, max_concurrent=7)
    assert made.keys() == FIELDS | ADDITIONS
    assert (made["status"], made["total_contacts"], made["called"], made["max_concurrent"]) == ("draft", 1, 0, 7)
    assert (await caller.get(f"/v1/campaigns/{made['id']}")).json == made
    assert (await caller.get("/v1/campaigns?limit=1")).json == {"items": [made], "total": 1, "limit": 1, "offset": 0}
    (contact,) = await contacts(caller, made)
    assert contact.keys() == CONTACT_FIELDS | {"attempts"}
    assert (contact["phone_number"], contact["name"], contact["status"], contact["outcome"]) == (
        "+15550100001",
        "Ada",
        "pending",
        None,
    )


async def test_a_number_that_is_in_the_list_twice_is_called_once(caller: Caller, body: Json) -> None:
    made = await make(caller, body, ["+15550100001", "+15550100002", "+15550100001"])
    assert (made["total_contacts"], made["skipped"]) == (3, 1)
    found = await contacts(caller, made)
    assert [contact["status"] for contact in found] == ["pending", "pending", "skipped"]
    assert found[2]["error"] == "The number is in the list already."
    assert [contact["id"] for contact in await contacts(caller, made, "status=skipped")] == [found[2]["id"]]


async def test_a_hundred_thousand_contacts_come_in_one_request(caller: Caller, body: Json) -> None:
    people: list[JsonValue] = [
        {"phone_number": f"+1555{number:07d}", "name": f"Person {number}"} for number in range(MAX_CONTACTS)
    ]
    made = await make(caller, body, contacts=people)
    assert made["total_contacts"] == MAX_CONTACTS
    last = (await caller.get(f"/v1/campaigns/{made['id']}/contacts?limit=1")).json
    assert (at(last, "total"), at(last, "items", 0, "phone_number")) == (MAX_CONTACTS, f"+1555{MAX_CONTACTS - 1:07d}")


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"name": None}, "name"),
        ({"agent_id": "019a9f6e-7b0c-7c2e-9f39-5a8f6f0f7c11"}, "agent_id"),
        ({"agent_id": "nobody"}, "agent_id"),
        ({"phone_number_id": "019a9f6e-7b0c-7c2e-9f39-5a8f6f0f7c11"}, "phone_number_id"),
        ({"contacts": []}, "contacts"),
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
async def test_what_cannot_be_a_campaign_is_refused_by_the_field(
    caller: Caller, body: Json, fields: Json, field: str
) -> None:
    answer = await caller.post("/v1/campaigns", {**body, **fields})
    assert (answer.status, at(answer.json, "errors", 0, "field")) == (422, field), answer.body
    assert (await caller.get("/v1/campaigns")).json["total"] == 0


ANSWERS: dict[str, dict[str, str]] = {
    "draft": {"start": "running", "cancel": "canceled"},
    "scheduled": {"cancel": "canceled"},
    "running": {"pause": "paused", "cancel": "canceled"},
    "paused": {"resume": "running", "cancel": "canceled"},
    "canceled": {},
}  # fmt: skip
WAYS: dict[str, list[str]] = {
    "draft": [],
    "scheduled": ["start"],
    "running": ["start"],
    "paused": ["start", "pause"],
    "canceled": ["cancel"],
}


@pytest.mark.parametrize("status", ANSWERS)
async def test_each_action_in_each_state(caller: Caller, body: Json, status: str) -> None:
    for action in ("start", "pause", "resume", "cancel"):
        scheduled_at = (now() + timedelta(days=1)).isoformat() if status == "scheduled" else None
        campaign = await make(caller, body, scheduled_at=scheduled_at)
        for step in WAYS[status]:
            campaign = await act(caller, campaign, step)
        assert campaign["status"] == status
        answer = await caller.post(f"/v1/campaigns/{campaign['id']}/{action}")
        become = ANSWERS[status].get(action)
        assert (answer.status, answer.json.get("code")) == ((200, None) if become else (409, "invalid_state")), (
            status,
            action,
        )
        assert (await caller.get(f"/v1/campaigns/{campaign['id']}")).json["status"] == become or status


async def test_a_canceled_campaign_leaves_its_contacts_canceled_and_can_be_deleted(caller: Caller, body: Json) -> None:
    campaign = await act(caller, await make(caller, body), "cancel")
    assert (campaign["status"], campaign["canceled"]) == ("canceled", 1)
    assert await outcomes(caller, campaign) == [("canceled", "canceled")]
    assert (await caller.send("DELETE", f"/v1/campaigns/{campaign['id']}")).status == 204
    assert (await caller.get(f"/v1/campaigns/{campaign['id']}")).status == 404
    assert (await caller.get(f"/v1/campaigns/{campaign['id']}/contacts")).status == 404


async def test_a_campaign_without_its_agent_or_number_cannot_be_started(caller: Caller, body: Json) -> None:
    campaign = await make(caller, body)
    await caller.send("PUT", f"/v1/agents/{body['agent_id']}", {"status": "paused"})
    answer = await caller.post(f"/v1/campaigns/{campaign['id']}/start")
    assert (answer.status, answer.json["detail"]) == (409, "The campaign's agent is paused.")
    await caller.send("DELETE", f"/v1/phone-numbers/{body['phone_number_id']}")
    answer = await caller.post(f"/v1/campaigns/{campaign['id']}/start")
    assert (answer.status, answer.json["detail"]) == (409, "The campaign's phone number is no longer active.")


async def test_every_outcome_is_told_and_counted(live: LivePlatform) -> None:
    caller = live.caller
    ways = [BUSY, FAILS, DECLINED, REFUSED, NO_SUCH, MACHINE, SHORT, "20", "40", "40"]
    people = numbers(*ways)
    await caller.post("/v1/do-not-call", {"phone_number": people[-1]})
    campaign = await make(caller, fields_of(live), people, max_concurrent=4)
    await act(caller, campaign, "start")
    done = await until(caller, campaign, has("completed"))
    assert await outcomes(caller, campaign) == [
        ("failed", "busy"),
        ("failed", "failed"),
        ("failed", "failed"),
        ("failed", "failed"),
        ("failed", "invalid_number"),
        ("completed", "voicemail"),
        ("completed", "answered"),
        ("failed", "busy"),
        ("completed", "answered"),
        ("skipped", "do_not_call"),
    ]
    assert [done[name] for name in ("total_contacts", "called", "completed", "failed", "skipped", "canceled")] == [
        10,
        9,
        3,
        6,
        1,
        0,
    ]
    found = await contacts(caller, campaign)
    assert found[1]["error"] == "the number is not in service"
    assert found[9]["call_id"] is None
    call = (await caller.get(f"/v1/calls/{found[6]['call_id']}")).json
    assert (call["to_number"], call["status"], call["direction"]) == (people[6], "completed", "outbound")
    assert call["metadata"] == {"campaign_id": campaign["id"], "campaign_contact_id": found[6]["id"], "name": ""}


async def test_a_campaign_begins_at_its_time(live: LivePlatform) -> None:
    begins = now() + timedelta(seconds=1.5)
    campaign = await make(live.caller, fields_of(live), numbers(BUSY), scheduled_at=begins.isoformat())
    assert (await act(live.caller, campaign, "start"))["status"] == "scheduled"
    await until(live.caller, campaign, has("completed"), 10)
    (contact,) = await contacts(live.caller, campaign)
    assert str(contact["called_at"]) >= begins.isoformat()[:23]


async def test_paused_it_dials_nobody_else_and_resumed_it_goes_on(live: LivePlatform) -> None:
    campaign = await make(live.caller, fields_of(live), numbers(*[RINGS] * 2, *[BUSY] * 3), max_concurrent=2)
    await act(live.caller, campaign, "start")
    await until(live.caller, campaign, lambda found: found["called"] == 2)
    await act(live.caller, campaign, "pause")
    for contact in (await contacts(live.caller, campaign))[:2]:
        async with live.runtime.providers.use(live.caller.organization_id, TelephonyProvider) as carrier:
            call = await until_known(live, contact["call_id"])
            await carrier.hang_up(str(call))
    paused = await until(live.caller, campaign, lambda found: found["canceled"] == 2)
    assert (paused["status"], paused["called"]) == ("paused", 2)
    await act(live.caller, campaign, "resume")
    done = await until(live.caller, campaign, has("completed"))
    assert (done["called"], done["failed"]) == (5, 3)


async def until_known(live: LivePlatform, call_id: JsonValue) -> str:
    """Wait until the carrier has the call, and return its own id of it."""

    async def look() -> str | None:
        async with live.runtime.providers.use(live.caller.organization_id, TelephonyProvider) as carrier:
            return await carrier.find_call(str(call_id))

    return str(await eventually(look))


async def test_canceled_it_hangs_up_what_rings_and_lets_people_finish(live: LivePlatform) -> None:
    campaign = await make(live.caller, fields_of(live), numbers(RINGS, SHORT, BUSY), max_concurrent=2)
    await act(live.caller, campaign, "start")
    await until_statuses(live, campaign, ["dialing", "in_progress", "pending"])
    canceled = await act(live.caller, campaign, "cancel")
    assert (canceled["status"], canceled["canceled"]) == ("canceled", 2)
    assert [status for status, _ in await outcomes(live.caller, campaign)] == ["canceled", "in_progress", "canceled"]
    ringing = (await contacts(live.caller, campaign))[0]
    call = (await live.caller.get(f"/v1/calls/{ringing['call_id']}")).json
    assert (call["status"], call["ended_reason"]) == ("canceled", "canceled")
    await until_statuses(live, campaign, ["canceled", "completed", "canceled"])
    done = (await live.caller.get(f"/v1/campaigns/{campaign['id']}")).json
    assert (done["status"], done["completed"], done["canceled"]) == ("canceled", 1, 2)


async def until_statuses(live: LivePlatform, campaign: Json, wanted: list[str]) -> None:
    await eventually(lambda: outcomes(live.caller, campaign), lambda found: [status for status, _ in found] == wanted)


async def test_who_was_busy_is_dialled_again_as_often_as_the_retry_says(live: LivePlatform) -> None:
    retry: JsonValue = {"attempts": 2, "delay_seconds": 1, "on": ["busy"]}
    campaign = await make(live.caller, fields_of(live), numbers(BUSY, FAILS), retry=retry)
    await act(live.caller, campaign, "start")
    done = await until(live.caller, campaign, has("completed"))
    assert [contact["attempts"] for contact in await contacts(live.caller, campaign)] == [3, 1]
    assert (done["called"], done["failed"]) == (2, 2)
    assert (await live.caller.get("/v1/calls")).json["total"] == 4


async def test_a_campaign_whose_calls_fail_pauses_and_says_why(live: LivePlatform) -> None:
    campaign = await make(live.caller, fields_of(live), numbers(*[BUSY] * 10, *[FAILS] * 12), max_concurrent=1)
    await act(live.caller, campaign, "start")
    paused = await until(live.caller, campaign, has("paused"))
    assert paused["status_reason"] == "10 of the last 20 calls failed. Last error: the number is not in service"
    assert paused["called"] == 20
    await act(live.caller, campaign, "resume")
    assert (await until(live.caller, campaign, has("completed")))["failed"] == 22


async def test_a_deleted_agent_pauses_and_a_released_number_fails_a_campaign(live: LivePlatform) -> None:
    made = (await live.caller.post("/v1/agents", {"name": "Short-lived"})).json
    buyer = purchases.NumberBuyer(live.runtime.database, live.runtime.providers, live.runtime.settings.base_url)
    number = await buyer.buy_number(live.caller.organization_id, PhoneNumberBuy(phone_number=fresh_number()))
    first = await make(live.caller, fields_of(live), numbers(RINGS, BUSY), agent_id=made["id"], max_concurrent=1)
    second = await make(
        live.caller, fields_of(live), numbers(RINGS, BUSY), phone_number_id=str(number.id), max_concurrent=1
    )
    for campaign in (first, second):
        await act(live.caller, campaign, "start")
        await until(live.caller, campaign, lambda found: found["called"] == 1)
    await live.caller.send("DELETE", f"/v1/agents/{made['id']}")
    await live.caller.send("DELETE", f"/v1/phone-numbers/{number.id}")
    for campaign in (first, second):
        await until(live.caller, campaign, lambda found: found["status"] != "running")
    assert (await until(live.caller, first, has("paused")))["status_reason"] == "The campaign's agent was deleted."
    failed = await until(live.caller, second, has("failed"))
    assert failed["status_reason"] == "The campaign's phone number is no longer active."
    assert (await outcomes(live.caller, second))[1] == ("canceled", "canceled")
    assert (await live.caller.post(f"/v1/campaigns/{second['id']}/resume")).status == 409
    await act(live.caller, first, "cancel")


async def test_without_money_a_campaign_pauses_before_it_owes(live: LivePlatform, organizations: Organizations) -> None:
    policy = Policy(billing_mode="prepaid", prices=Prices(call_minute=1))
    caller = await organizations.make(policy=policy)
    campaign = await make(
        caller, {"name": "Poor", **await means(live.runtime, caller)}, numbers(*[BUSY] * 3), max_concurrent=3
    )
    await act(caller, campaign, "start")
    paused = await until(caller, campaign, has("paused"))
    assert (paused["status_reason"], paused["called"]) == ("The balance does not cover another call.", 0)
    async with live.runtime.database.tenant(caller.organization_id) as session:
        await ledger.credit_account(session, 1)  # type: ignore[arg-type]
    await act(caller, campaign, "resume")
    assert (await until(caller, campaign, lambda found: found["status"] != "running"))["called"] != 0


async def test_outside_the_callees_hours_nobody_is_dialled(live: LivePlatform, organizations: Organizations) -> None:
    clock = now()
    hours = CallingHours(start=f"{(clock + timedelta(hours=3)):%H}:00", end=f"{(clock + timedelta(hours=4)):%H}:00")
    caller = await organizations.make(policy=Policy(calling_hours=hours))
    # The first number has no region, so the organization's zone (UTC) counts; Tokyo is nine hours ahead.
    campaign = await make(
        caller, {"name": "Night", **await means(live.runtime, caller)}, ["+15550100020", "+81312345678"]
    )
    await act(caller, campaign, "start")
    await asyncio.sleep(1.5)  # long enough for two ticks to do the wrong thing
    assert [status for status, _ in await outcomes(caller, campaign)] == ["pending", "pending"]


async def test_campaigns_share_what_the_organization_may_have(live: LivePlatform, organizations: Organizations) -> None:
    caller = await organizations.make(policy=Policy(max_concurrent_calls=3))
    fields = await means(live.runtime, caller)
    started = []
    for name in ("One", "Two"):
        started.append(await make(caller, {"name": name, **fields}, numbers(*[RINGS] * 5), max_concurrent=5))
        await act(caller, started[-1], "start")
    first, second = started
    await eventually(lambda: caller.get("/v1/calls"), lambda listed: listed.json["total"] == 3)
    call = {"agent_id": fields["agent_id"], "from_number_id": fields["phone_number_id"], "to_number": "+15550100001"}
    refused = await caller.post("/v1/calls", call)
    assert refused.status == 409
    await act(caller, first, "cancel")
    await until(caller, second, lambda found: found["called"] == 3)
    await act(caller, second, "cancel")
    assert (await caller.get("/v1/calls?status=canceled")).json["total"] == (await caller.get("/v1/calls")).json[
        "total"
    ]
