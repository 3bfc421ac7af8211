"""The pages of numbers."""

import re
from datetime import UTC, datetime

import pytest
from switchboard.resources.identity.weekly_hours import Slot
from switchboard.resources.phone_numbers.schedule import Schedule, find_next_change
from switchboard.runtime import Runtime

from tests.fixtures.app import UNKNOWN_ID, Caller, LivePlatform, create_bakery, fresh_number
from tests.fixtures.dashboard import People, Window

OFFICE: dict[str, str | list[str]] = {
    "schedule.enabled": "true",
    "schedule.timezone": "Europe/Berlin",
    "schedule.outside_action": "voicemail",
    "schedule.holidays[]": ["2026-12-25", ""],
    "schedule.slots.0.days[]": ["mon", "tue"],
    "schedule.slots.0.start": "09:00",
    "schedule.slots.0.end": "17:00",
    "schedule.slots.3.days[]": ["sat"],
    "schedule.slots.3.start": "22:00",
    "schedule.slots.3.end": "02:00",
    "schedule.slots.4.start": "",
    "schedule.slots.4.end": "",
}


async def get_number(caller: Caller) -> dict[str, object]:
    """The organization's only number, as the API shows it."""
    items = (await caller.get("/v1/phone-numbers")).json["items"]
    assert isinstance(items, list)
    (number,) = items
    assert isinstance(number, dict)
    return dict(number)


async def test_a_number_is_found_bought_and_given_opening_hours(window: Window, live: LivePlatform) -> None:
    page = window.page
    await window.open("/dashboard/numbers")
    await window.check_accessibility()
    await page.get_by_role("link", name="Buy a phone number").click()
    await page.get_by_label("Country").select_option("Germany")
    await page.get_by_label("Area code").fill("30")
    await page.get_by_role("button", name="Search").click()
    await page.get_by_role("link", name="Choose").first.wait_for()
    await window.check_accessibility()
    # Another test may have bought a number that the search finds.
    await window.open(f"/dashboard/numbers/order?phone_number=%2B{live.number[1:-2]}01")
    await page.get_by_label("Name").fill("Night desk")
    await page.get_by_label("Agent").select_option("Agent")
    await window.check_accessibility()
    await page.get_by_role("button", name="Buy").click()
    await page.get_by_text("was bought.").wait_for()
    await page.get_by_label("Answer only during opening hours").check()
    calls = page.locator("form", has=page.get_by_label("Answer only during opening hours"))
    assert await calls.locator(".slot").count() == 1
    await calls.get_by_role("button", name="Add hours").click()
    second = calls.locator(".slot").nth(1)
    for name in ("Mon", "Tue", "Wed", "Thu", "Fri"):
        await second.get_by_label(name).uncheck()
    await second.get_by_label("Sat").check()
    await second.get_by_label("from").fill("10:00")
    await second.get_by_label("to").fill("14:00")
    await calls.get_by_role("button", name="Add hours").click()
    await calls.get_by_role("button", name="Remove these hours").last.click()
    await calls.get_by_role("button", name="Add a holiday").click()
    await calls.get_by_label("Holiday", exact=True).fill("2026-12-25")
    await calls.get_by_label("Outside opening hours").select_option("Take a voicemail message")
    await window.check_accessibility()
    await calls.get_by_role("button", name="Save").click()
    await page.get_by_text("Saved.").wait_for()
    assert await page.locator(".slot").count() == 2
    assert await page.get_by_label("Holiday", exact=True).input_value() == "2026-12-25"
    await window.open("/dashboard/numbers")
    await page.get_by_text("Night desk").wait_for()


async def test_hours_are_saved_without_scripts_and_empty_rows_are_left_out(
    people: People, caller: Caller, runtime: Runtime
) -> None:
    platform = await create_bakery(runtime, caller, fresh_number())
    owner = await people.join(caller.organization_id, role="builder")
    address = f"/dashboard/numbers/{platform.number_id}"
    saved = await owner.post(address, {**OFFICE, "forward_number": ""})
    assert saved.status == 303
    assert (await get_number(caller))["schedule"] == {
        "enabled": True,
        "timezone": "Europe/Berlin",
        "slots": [
            {"days": ["mon", "tue"], "start": "09:00", "end": "17:00"},
            {"days": ["sat"], "start": "22:00", "end": "02:00"},
        ],
        "holidays": ["2026-12-25"],
        "outside_action": "voicemail",
    }
    html = (await owner.get(address)).html
    assert len(set(re.findall(r'name="schedule\.slots\.\d\.start"', html))) == 3
    assert "until" in html


WRONG: tuple[tuple[dict[str, str | list[str]], str], ...] = (
    ({"schedule.slots.0.days[]": []}, "Choose at least one day."),
    ({"schedule.slots.0.start": "9"}, "must be a time like 09:00"),
    ({"schedule.timezone": "Mars/Base"}, "is not an IANA time zone"),
    ({"schedule.holidays[]": ["soon"]}, "is not a date like"),
    ({"forward_number": "110"}, "must be an E.164 phone number"),
)


async def test_invalid_hours_are_shown_again_as_typed(people: People, caller: Caller, runtime: Runtime) -> None:
    platform = await create_bakery(runtime, caller, fresh_number())
    owner = await people.join(caller.organization_id)
    for fields, message in WRONG:
        refused = await owner.post(f"/dashboard/numbers/{platform.number_id}", {**OFFICE, **fields})
        assert refused.status == 422, message
        assert message in refused.html
        assert 'value="22:00"' in refused.html
        assert f'value="{(await get_number(caller))["friendly_name"]}"' in refused.html
    assert (await get_number(caller))["schedule"] is None


async def test_incomplete_outside_hours_settings_show_a_warning(
    people: People, caller: Caller, runtime: Runtime
) -> None:
    platform = await create_bakery(runtime, caller, fresh_number())
    owner = await people.join(caller.organization_id)
    address = f"/dashboard/numbers/{platform.number_id}"
    await owner.post(address, {**OFFICE, "schedule.outside_action": "forward"})
    assert "the phone number to forward to is missing" in (await owner.get(address)).html
    await owner.post(address, {**OFFICE, "schedule.outside_action": "forward", "forward_number": "+15550100001"})
    assert "the phone number to forward to is missing" not in (await owner.get(address)).html
    await owner.post(address, {**OFFICE, "schedule.outside_action": "webhook"})
    assert "the webhook is missing" in (await owner.get(address)).html


async def test_the_webhook_secret_is_shown_once_and_only_to_owners(
    people: People, caller: Caller, runtime: Runtime
) -> None:
    platform = await create_bakery(runtime, caller, fresh_number())
    owner, member = await people.join(caller.organization_id), await people.join(caller.organization_id, role="builder")
    address = f"/dashboard/numbers/{platform.number_id}"
    url = "https://example.com/closed"
    assert (await member.post(f"{address}/webhook", {"forward_webhook_url": url})).status == 403
    assert (await member.post(address, {"forward_webhook_url": url})).status == 303
    assert (await get_number(caller))["forward_webhook_url"] is None
    response = await owner.post(f"{address}/webhook", {"forward_webhook_url": url})
    assert response.status == 200
    assert "whsec_" in response.html
    assert "whsec_" not in (await owner.get(address)).html
    assert (await owner.post(address, {"friendly_name": "Desk"})).status == 303
    assert (await get_number(caller))["forward_webhook_url"] == url
    assert (await owner.post(f"{address}/webhook", {"forward_webhook_url": "ftp://example.com"})).status == 422
    assert (await owner.post(f"{address}/webhook", {"forward_webhook_url": ""})).status == 303
    assert (await get_number(caller))["forward_webhook_url"] is None


async def test_only_owners_buy_and_release_numbers(people: People, caller: Caller, runtime: Runtime) -> None:
    platform = await create_bakery(runtime, caller, fresh_number())
    owner, member = await people.join(caller.organization_id), await people.join(caller.organization_id, role="builder")
    release = f"/dashboard/numbers/{platform.number_id}/release"
    assert (await member.get("/dashboard/numbers/buy")).status == 403
    assert (
        await member.post("/dashboard/numbers/order?phone_number=%2B12125550100", {"phone_number": "+12125550100"})
    ).status == 403
    assert (await member.post(release)).status == 403
    assert (await owner.post(release)).status == 303
    assert (await get_number(caller))["status"] == "pending_release"
    assert "released on" in (await owner.get("/dashboard/numbers")).html


async def test_a_carriers_refusal_is_shown(people: People, caller: Caller) -> None:
    owner = await people.join(caller.organization_id)
    refused = await owner.post(
        "/dashboard/numbers/order?phone_number=%2B12125550199",
        {"phone_number": "+12125550199", "friendly_name": "Mine"},
    )
    assert refused.status == 502
    assert "is taken" in refused.html
    assert 'value="Mine"' in refused.html
    assert "1 to 6 digits" in (await owner.get("/dashboard/numbers/buy?country=US&area_code=x")).html
    assert "No phone numbers found" in (await owner.get("/dashboard/numbers/buy?country=TR")).html


async def test_other_organizations_numbers_are_neither_visible_nor_changeable(
    people: People, caller: Caller, stranger: Caller, runtime: Runtime
) -> None:
    foreign_shop = await create_bakery(runtime, stranger, fresh_number())
    owner = await people.join(caller.organization_id)
    for number_id in (foreign_shop.number_id, UNKNOWN_ID):
        address = f"/dashboard/numbers/{number_id}"
        assert (await owner.get(address)).status == 404
        assert (await owner.post(address, {"friendly_name": "Mine"})).status == 404
        assert (await owner.post(f"{address}/webhook", {"forward_webhook_url": ""})).status == 404
        assert (await owner.post(f"{address}/release")).status == 404
    assert foreign_shop.number_id not in (await owner.get("/dashboard/numbers")).html


def parse_utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("moment", "change"),
    [
        ("2026-11-23T07:00", "2026-11-23T08:00"),  # Monday morning: closed until nine in Berlin
        ("2026-11-23T08:00", "2026-11-23T16:00"),  # nine sharp: open until five
        ("2026-11-28T21:30", "2026-11-29T01:00"),  # a Saturday's night: open until two on Sunday
        ("2026-12-21T16:00", "2026-12-26T21:00"),  # the next Tuesday's and Friday's are holidays
        ("2026-12-27T01:00", "2026-12-28T08:00"),
    ],
)
def test_the_next_change_follows_the_opening_hours(moment: str, change: str) -> None:
    slots = [
        Slot(days=["mon", "tue", "fri"], start="09:00", end="17:00"),
        Slot(days=["sat"], start="22:00", end="02:00"),
    ]
    schedule = Schedule(timezone="Europe/Berlin", slots=slots, holidays=["2026-12-22", "2026-12-25"])
    assert find_next_change(schedule, parse_utc(moment)) == parse_utc(change)


def test_constant_hours_have_no_next_change() -> None:
    always = Schedule(slots=[Slot(days=["mon", "tue", "wed", "thu", "fri", "sat", "sun"], start="00:00", end="00:00")])
    assert find_next_change(always, parse_utc("2026-11-23T08:00")) is None
    assert find_next_change(None, parse_utc("2026-11-23T08:00")) is None
    assert find_next_change(Schedule(enabled=False), parse_utc("2026-11-23T08:00")) is None
