"""Campaigns that dial over the loopback carrier, with a running worker."""

import asyncio
from datetime import timedelta

from pydantic import JsonValue
from switchboard.foundation.database import now
from switchboard.plugin_sdk import TelephonyProvider
from switchboard.resources.billing import ledger
from switchboard.resources.identity.policy import CallingHours, Policy, Prices
from switchboard.resources.phone_numbers import purchases
from switchboard.resources.phone_numbers.schemas import PhoneNumberBuy

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
    act,
    contacts,
    fields_of,
    has,
    make,
    means,
    numbers,
    outcomes,
    until,
)
from tests.fixtures.eventually import eventually
from tests.fixtures.json_access import Json


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
