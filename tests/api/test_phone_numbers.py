"""Phone numbers through the API."""

from datetime import UTC, datetime, timedelta

import pytest
from sqlmodel import update
from switchboard.foundation.database import now
from switchboard.resources.phone_numbers.jobs import release_number, repair_purchase
from switchboard.resources.phone_numbers.models import PhoneNumber
from switchboard.resources.phone_numbers.schedule import Schedule, find_period_end, is_open
from switchboard.runtime import Runtime

from tests.fixtures.app import UNKNOWN_ID, Caller, fresh_number
from tests.fixtures.json_access import at, objects_at
from tests.fixtures.work import do_due_work

HOURS = {
    "enabled": True,
    "timezone": "Europe/Berlin",
    "slots": [{"days": ["mon"], "start": "09:00", "end": "17:00"}],
    "outside_action": "hangup",
}


async def buy_number(caller: Caller, **fields: object) -> dict[str, object]:
    response = await caller.post("/v1/phone-numbers", {"phone_number": fresh_number(), **fields})
    assert response.status == 201, response.body
    return response.json  # type: ignore[return-value]


async def test_phone_number_life_cycle(caller: Caller, runtime: Runtime) -> None:
    available = await caller.post("/v1/phone-numbers/search", {"country": "US", "area_code": "212"})
    assert available.status == 200
    first = at(available.json, "items", 0)
    assert at(first, "capabilities") == {"voice": True, "sms": True, "mms": False}
    number = await buy_number(caller, friendly_name="Desk")
    assert (number["status"], number["friendly_name"], number["sms_active"]) == ("active", "Desk", True)
    path = f"/v1/phone-numbers/{number['id']}"
    changed = await caller.send(
        "PUT",
        path,
        {"schedule": HOURS, "forward_number": "+15550100001", "forward_webhook_url": "https://example.com/hook"},
    )
    assert changed.status == 200, changed.body
    assert str(changed.json["forward_webhook_secret"]).startswith("whsec_")
    assert at((await caller.get("/v1/phone-numbers")).json, "items", 0, "forward_webhook_secret") is None
    released = await caller.send("DELETE", path)
    assert (released.status, released.json["status"]) == (200, "pending_release")
    assert (await caller.send("DELETE", path)).json["code"] == "invalid_state"
    async with runtime.database.write(caller.organization_id) as session:
        await session.exec(update(PhoneNumber).values(release_at=now() - timedelta(seconds=1)))
    await do_due_work(runtime, release_number)
    assert (await caller.get("/v1/phone-numbers")).json["total"] == 0


async def test_a_number_is_sold_once(caller: Caller, stranger: Caller) -> None:
    number = await buy_number(caller)
    again = await stranger.post("/v1/phone-numbers", {"phone_number": number["phone_number"]})
    assert (again.status, again.json["code"]) == (409, "conflict")


async def test_a_carriers_refusal_is_returned_in_its_own_words(caller: Caller) -> None:
    refused = await caller.post("/v1/phone-numbers", {"phone_number": "+15550100199"})
    assert (refused.status, refused.json["code"]) == (502, "provider_error")
    assert "+15550100199" in str(refused.json["detail"])
    assert (await caller.get("/v1/phone-numbers")).json["total"] == 0


async def test_an_interrupted_purchase_is_completed(caller: Caller, runtime: Runtime) -> None:
    number = PhoneNumber(
        organization_id=caller.organization_id, phone_number=fresh_number(), friendly_name="x", carrier="loopback"
    )
    number.created_at = now() - timedelta(minutes=5)
    async with runtime.database.write(caller.organization_id) as session:
        session.add(number)
    await do_due_work(runtime, repair_purchase)
    async with runtime.database.write(caller.organization_id) as session:
        assert (await session.get_one(PhoneNumber, number.id)).status == "active"


@pytest.mark.parametrize(
    ("field", "value", "error_field"),
    [
        ("friendly_name", "", "friendly_name"),
        ("friendly_name", None, "friendly_name"),
        ("inbound_agent_id", UNKNOWN_ID, "inbound_agent_id"),
        ("inbound_agent_id", "x", "inbound_agent_id"),
        ("forward_number", "12", "forward_number"),
        ("forward_number", "+1 555", "forward_number"),
        ("forward_webhook_url", "http://169.254.169.254/", "forward_webhook_url"),
        ("schedule", [], "schedule"),
        ("schedule", {**HOURS, "timezone": "Mars/Base"}, "schedule.timezone"),
        ("schedule", {**HOURS, "slots": []}, "schedule"),
        (
            "schedule",
            {**HOURS, "slots": [{"days": ["monday"], "start": "09:00", "end": "10:00"}]},
            "schedule.slots.0.days.0",
        ),
        ("schedule", {**HOURS, "slots": [{"days": ["mon"], "start": "9", "end": "10:00"}]}, "schedule.slots.0.start"),
        ("schedule", {**HOURS, "holidays": ["25.12.2026"]}, "schedule.holidays.0"),
        ("sms_schedule", {"x": 1}, "sms_schedule.x"),
        ("friendly_name", "a\0", "friendly_name"),
    ],
)
async def test_a_bad_field_is_named(caller: Caller, field: str, value: object, error_field: str) -> None:
    number = await buy_number(caller)
    response = await caller.send("PUT", f"/v1/phone-numbers/{number['id']}", {field: value})
    assert response.status == 422, response.body
    assert error_field in [error["field"] for error in objects_at(response.json, "errors")]


@pytest.mark.parametrize(
    "body", [{}, {"phone_number": "555"}, {"phone_number": 5}, {"phone_number": "+15550100200", "x": 1}]
)
async def test_an_invalid_purchase_is_refused(caller: Caller, body: object) -> None:
    assert (await caller.post("/v1/phone-numbers", body)).status == 422


@pytest.mark.parametrize(
    "body", [{}, {"country": "USA"}, {"country": "us"}, {"country": "US", "area_code": "abc"}, {"country": 1}]
)
async def test_an_invalid_search_is_refused(caller: Caller, body: object) -> None:
    assert (await caller.post("/v1/phone-numbers/search", body)).status == 422


async def test_phone_numbers_of_other_organizations_are_not_found(caller: Caller, stranger: Caller) -> None:
    number = await buy_number(caller)
    assert (await stranger.send("PUT", f"/v1/phone-numbers/{number['id']}", {"friendly_name": "x"})).status == 404
    assert (await stranger.send("DELETE", f"/v1/phone-numbers/{number['id']}")).status == 404
    agent = (await caller.post("/v1/agents", {"name": "Mine"})).json["id"]
    foreign = await stranger.post("/v1/phone-numbers", {"phone_number": fresh_number(), "inbound_agent_id": agent})
    assert foreign.status == 422


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        ("2026-11-23T08:00:00+00:00", True),  # Monday, 09:00 in Berlin
        ("2026-11-23T07:59:00+00:00", False),
        ("2026-11-23T16:00:00+00:00", False),  # 17:00: the end is exclusive
        ("2026-11-24T10:00:00+00:00", False),
    ],
)
def test_opening_hours_use_their_time_zone(moment: str, expected: bool) -> None:
    assert is_open(Schedule.model_validate(HOURS), datetime.fromisoformat(moment)) is expected


def test_slots_may_cross_midnight_and_holidays_close_the_day_they_begin_on() -> None:
    night = {"days": ["fri"], "start": "22:00", "end": "02:00"}
    schedule = Schedule.model_validate({"slots": [night], "holidays": ["2026-11-27"]})
    assert is_open(schedule, datetime(2026, 11, 21, 1, 0, tzinfo=UTC))
    assert not is_open(schedule, datetime(2026, 11, 21, 2, 0, tzinfo=UTC))
    assert not is_open(schedule, datetime(2026, 11, 28, 1, 0, tzinfo=UTC))
    assert is_open(None, datetime(2026, 11, 21, tzinfo=UTC))


def test_a_billing_period_is_a_month_from_the_purchase() -> None:
    purchased_at = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
    assert find_period_end(purchased_at, purchased_at) == datetime(2026, 2, 28, 12, 0, tzinfo=UTC)
    assert find_period_end(purchased_at, datetime(2026, 3, 1, tzinfo=UTC)) == datetime(2026, 3, 31, 12, 0, tzinfo=UTC)
