"""Campaigns that dial over the loopback carrier, with a running worker."""

import asyncio
from datetime import timedelta
from decimal import Decimal
from time import perf_counter

from pydantic import JsonValue
from switchboard.foundation.database import now
from switchboard.plugin_sdk import TelephonyProvider
from switchboard.resources.billing import ledger
from switchboard.resources.campaigns.jobs import dial_campaigns
from switchboard.resources.identity.policy import CallingHours, Policy, Prices
from switchboard.resources.phone_numbers import purchases
from switchboard.resources.phone_numbers.schemas import PhoneNumberBuy
from switchboard.runtime import Runtime

from tests.fixtures.app import LivePlatform, Organizations, fresh_number
from tests.fixtures.campaigns import (
    BUSY,
    DECLINED,
    FAILS,
    MACHINE,
    NO_SUCH,
    REFUSED,
    RINGS,
    SHORT,
    TALKS,
    create_agent_and_number,
    create_campaign,
    generate_numbers,
    get_agent_and_number,
    has_status,
    list_contacts,
    list_outcomes,
    send_action,
    wait_for_campaign,
)
from tests.fixtures.eventually import eventually
from tests.fixtures.json_access import Json


async def test_every_outcome_is_reported_and_counted(live: LivePlatform) -> None:
    caller = live.caller
    ways = [BUSY, FAILS, DECLINED, REFUSED, NO_SUCH, MACHINE, SHORT, "20", "40", "40"]
    people = generate_numbers(*ways)
    await caller.post("/v1/do-not-call", {"phone_number": people[-1]})
    campaign = await create_campaign(caller, get_agent_and_number(live), people, max_concurrent=4)
    await send_action(caller, campaign, "start")
    finished = await wait_for_campaign(caller, campaign, has_status("completed"))
    assert await list_outcomes(caller, campaign) == [
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
    assert [finished[name] for name in ("total_contacts", "called", "completed", "failed", "skipped", "canceled")] == [
        10,
        9,
        3,
        6,
        1,
        0,
    ]
    progress = await list_contacts(caller, campaign)
    assert progress[1]["error"] == "the number is not in service"
    assert progress[9]["call_id"] is None
    call = (await caller.get(f"/v1/calls/{progress[6]['call_id']}")).json
    assert (call["to_number"], call["status"], call["direction"]) == (people[6], "completed", "outbound")
    assert call["metadata"] == {"campaign_id": campaign["id"], "campaign_contact_id": progress[6]["id"], "name": ""}


async def test_a_campaign_has_a_voicemail_policy_of_its_own(live: LivePlatform) -> None:
    policy: JsonValue = {"action": "off"}
    campaign = await create_campaign(
        live.caller, get_agent_and_number(live), generate_numbers(MACHINE), voicemail_policy=policy
    )
    await send_action(live.caller, campaign, "start")
    await wait_for_campaign(live.caller, campaign, has_status("completed"))
    assert await list_outcomes(live.caller, campaign) == [("completed", "answered")]


async def test_a_campaign_starts_at_its_scheduled_time(live: LivePlatform) -> None:
    begins = now() + timedelta(seconds=1.5)
    campaign = await create_campaign(
        live.caller, get_agent_and_number(live), generate_numbers(BUSY), scheduled_at=begins.isoformat()
    )
    assert (await send_action(live.caller, campaign, "start"))["status"] == "scheduled"
    await wait_for_campaign(live.caller, campaign, has_status("completed"), 10)
    (contact,) = await list_contacts(live.caller, campaign)
    assert str(contact["called_at"]) >= begins.isoformat()[:23]


async def test_a_paused_campaign_stops_dialing_until_it_is_resumed(live: LivePlatform) -> None:
    campaign = await create_campaign(
        live.caller, get_agent_and_number(live), generate_numbers(*[RINGS] * 2, *[BUSY] * 3), max_concurrent=2
    )
    await send_action(live.caller, campaign, "start")
    await wait_for_campaign(live.caller, campaign, lambda progress: progress["called"] == 2)
    await send_action(live.caller, campaign, "pause")
    for contact in (await list_contacts(live.caller, campaign))[:2]:
        async with live.runtime.providers.use(live.caller.organization_id, TelephonyProvider) as carrier:
            call = await wait_for_carrier_call_id(live, contact["call_id"])
            await carrier.hang_up(str(call))
    paused = await wait_for_campaign(live.caller, campaign, lambda progress: progress["canceled"] == 2)
    assert (paused["status"], paused["called"]) == ("paused", 2)
    await send_action(live.caller, campaign, "resume")
    finished = await wait_for_campaign(live.caller, campaign, has_status("completed"))
    assert (finished["called"], finished["failed"]) == (5, 3)


async def wait_for_carrier_call_id(live: LivePlatform, call_id: JsonValue) -> str:
    """Wait until the carrier has the call, and return its own id of it."""

    async def look() -> str | None:
        async with live.runtime.providers.use(live.caller.organization_id, TelephonyProvider) as carrier:
            return await carrier.find_call(str(call_id))

    return str(await eventually(look))


async def test_canceling_a_campaign_hangs_up_ringing_calls_and_leaves_answered_ones(live: LivePlatform) -> None:
    campaign = await create_campaign(
        live.caller, get_agent_and_number(live), generate_numbers(RINGS, TALKS, BUSY), max_concurrent=2
    )
    await send_action(live.caller, campaign, "start")
    await wait_for_statuses(live, campaign, ["dialing", "in_progress", "pending"])
    canceled = await send_action(live.caller, campaign, "cancel")
    assert (canceled["status"], canceled["canceled"]) == ("canceled", 2)
    assert [status for status, _ in await list_outcomes(live.caller, campaign)] == [
        "canceled",
        "in_progress",
        "canceled",
    ]
    ringing = (await list_contacts(live.caller, campaign))[0]
    call = (await live.caller.get(f"/v1/calls/{ringing['call_id']}")).json
    assert (call["status"], call["ended_reason"]) == ("canceled", "canceled")
    await wait_for_statuses(live, campaign, ["canceled", "completed", "canceled"])
    finished = (await live.caller.get(f"/v1/campaigns/{campaign['id']}")).json
    assert (finished["status"], finished["completed"], finished["canceled"]) == ("canceled", 1, 2)


async def wait_for_statuses(live: LivePlatform, campaign: Json, wanted: list[str]) -> None:
    await eventually(
        lambda: list_outcomes(live.caller, campaign),
        lambda status_pairs: [status for status, _ in status_pairs] == wanted,
    )


async def test_busy_contacts_are_redialed_up_to_the_retry_limit(live: LivePlatform) -> None:
    retry: JsonValue = {"attempts": 2, "delay_seconds": 1, "on": ["busy"]}
    campaign = await create_campaign(
        live.caller, get_agent_and_number(live), generate_numbers(BUSY, FAILS), retry=retry
    )
    await send_action(live.caller, campaign, "start")
    finished = await wait_for_campaign(live.caller, campaign, has_status("completed"))
    assert [contact["attempts"] for contact in await list_contacts(live.caller, campaign)] == [3, 1]
    assert (finished["called"], finished["failed"]) == (2, 2)
    assert (await live.caller.get("/v1/calls")).json["total"] == 4


async def test_a_campaign_with_many_failed_calls_pauses_with_a_reason(live: LivePlatform) -> None:
    campaign = await create_campaign(
        live.caller, get_agent_and_number(live), generate_numbers(*[BUSY] * 10, *[FAILS] * 12), max_concurrent=1
    )
    await send_action(live.caller, campaign, "start")
    paused = await wait_for_campaign(live.caller, campaign, has_status("paused"))
    assert paused["status_reason"] == "10 of the last 20 calls failed. Last error: the number is not in service"
    assert paused["called"] == 20
    await send_action(live.caller, campaign, "resume")
    assert (await wait_for_campaign(live.caller, campaign, has_status("completed")))["failed"] == 22


async def test_a_deleted_agent_pauses_and_a_released_number_fails_a_campaign(live: LivePlatform) -> None:
    agent = (await live.caller.post("/v1/agents", {"name": "Short-lived"})).json
    buyer = live.runtime.call(purchases.NumberBuyer)
    number = await buyer.buy_number(live.caller.organization_id, PhoneNumberBuy(phone_number=fresh_number()))
    first = await create_campaign(
        live.caller, get_agent_and_number(live), generate_numbers(RINGS, BUSY), agent_id=agent["id"], max_concurrent=1
    )
    second = await create_campaign(
        live.caller,
        get_agent_and_number(live),
        generate_numbers(RINGS, BUSY),
        phone_number_id=str(number.id),
        max_concurrent=1,
    )
    for campaign in (first, second):
        await send_action(live.caller, campaign, "start")
        await wait_for_campaign(live.caller, campaign, lambda progress: progress["called"] == 1)
    await live.caller.send("DELETE", f"/v1/agents/{agent['id']}")
    await live.caller.send("DELETE", f"/v1/phone-numbers/{number.id}")
    for campaign in (first, second):
        await wait_for_campaign(live.caller, campaign, lambda progress: progress["status"] != "running")
    assert (await wait_for_campaign(live.caller, first, has_status("paused")))[
        "status_reason"
    ] == "The campaign's agent was deleted."
    failed = await wait_for_campaign(live.caller, second, has_status("failed"))
    assert failed["status_reason"] == "The campaign's phone number is no longer active."
    assert (await list_outcomes(live.caller, second))[1] == ("canceled", "canceled")
    assert (await live.caller.post(f"/v1/campaigns/{second['id']}/resume")).status == 409
    await send_action(live.caller, first, "cancel")


async def test_a_campaign_pauses_before_the_balance_is_negative(
    live: LivePlatform, organizations: Organizations
) -> None:
    policy = Policy(billing_mode="prepaid", prices=Prices(call_minute=1))
    caller = await organizations.create(policy=policy)
    campaign = await create_campaign(
        caller,
        {"name": "Poor", **await create_agent_and_number(live.runtime, caller)},
        generate_numbers(*[BUSY] * 3),
        max_concurrent=3,
    )
    await send_action(caller, campaign, "start")
    paused = await wait_for_campaign(caller, campaign, has_status("paused"))
    assert (paused["status_reason"], paused["called"]) == ("The balance does not cover another call.", 0)
    async with live.runtime.database.write(caller.organization_id) as session:
        await ledger.credit_account(session, 1)  # type: ignore[arg-type]
    await send_action(caller, campaign, "resume")
    assert (await wait_for_campaign(caller, campaign, lambda progress: progress["status"] != "running"))["called"] != 0


async def test_dialing_leaves_the_account_to_others_in_between(runtime: Runtime, organizations: Organizations) -> None:
    policy = Policy(billing_mode="prepaid", max_concurrent_calls=60, prices=Prices(call_minute=1))
    caller = await organizations.create(policy=policy)

    async def credit() -> None:
        async with runtime.database.write(caller.organization_id) as session:
            await ledger.credit_account(session, Decimal(10))

    for _ in range(6):
        await credit()
    campaign = await create_campaign(
        caller,
        {"name": "Many", **await create_agent_and_number(runtime, caller)},
        generate_numbers(*[RINGS] * 60),
        max_concurrent=60,
    )
    await send_action(caller, campaign, "start")
    clock = perf_counter  # PostgreSQL's locks are waited for in real time.
    began = clock()
    dialing = asyncio.create_task(runtime.call(dial_campaigns, organization_id=caller.organization_id))
    longest = 0.0
    while not dialing.done():
        asked = clock()
        await credit()
        longest = max(longest, clock() - asked)
    await dialing
    assert (await caller.get(f"/v1/campaigns/{campaign['id']}")).json["called"] == 60
    assert longest < (clock() - began) / 2, "sixty calls in one transaction lock the account for most of the time"


async def test_contacts_are_not_dialed_outside_their_calling_hours(
    live: LivePlatform, organizations: Organizations
) -> None:
    clock = now()
    hours = CallingHours(start=f"{(clock + timedelta(hours=3)):%H}:00", end=f"{(clock + timedelta(hours=4)):%H}:00")
    caller = await organizations.create(policy=Policy(calling_hours=hours))
    # The first number has no region, so the organization's zone (UTC) counts; Tokyo is nine hours ahead.
    campaign = await create_campaign(
        caller,
        {"name": "Night", **await create_agent_and_number(live.runtime, caller)},
        ["+15550100020", "+81312345678"],
    )
    await send_action(caller, campaign, "start")
    await asyncio.sleep(1.5)  # long enough for two ticks to do the wrong thing
    assert [status for status, _ in await list_outcomes(caller, campaign)] == ["pending", "pending"]


async def test_campaigns_share_the_organizations_call_capacity(
    live: LivePlatform, organizations: Organizations
) -> None:
    caller = await organizations.create(policy=Policy(max_concurrent_calls=3))
    fields = await create_agent_and_number(live.runtime, caller)
    started = []
    for name in ("One", "Two"):
        started.append(
            await create_campaign(caller, {"name": name, **fields}, generate_numbers(*[RINGS] * 5), max_concurrent=5)
        )
        await send_action(caller, started[-1], "start")
    first, second = started
    await eventually(lambda: caller.get("/v1/calls"), lambda response: response.json["total"] == 3)
    call = {"agent_id": fields["agent_id"], "from_number_id": fields["phone_number_id"], "to_number": "+15550100001"}
    refused = await caller.post("/v1/calls", call)
    assert refused.status == 409
    await send_action(caller, first, "cancel")
    await wait_for_campaign(caller, second, lambda progress: progress["called"] == 3)
    await send_action(caller, second, "cancel")
    assert (await caller.get("/v1/calls?status=canceled")).json["total"] == (await caller.get("/v1/calls")).json[
        "total"
    ]
