"""The pages of campaigns."""

import io
from datetime import UTC, datetime

import pytest
from switchboard.resources.identity.models import Organization
from switchboard.runtime import Runtime
from werkzeug.datastructures import FileStorage

from tests.fixtures.app import UNKNOWN_ID, Caller, LivePlatform, create_bakery, fresh_number
from tests.fixtures.dashboard import PageResponse, People, Person, Window
from tests.fixtures.json_access import Json, objects_at

Fields = dict[str, str | list[str]]


@pytest.fixture
async def campaign_fields(runtime: Runtime, caller: Caller) -> Fields:
    """Form fields of a campaign that can dial."""
    shop = await create_bakery(runtime, caller, fresh_number())
    return {
        "name": "Reminders",
        "agent_id": shop.agent_id,
        "phone_number_id": shop.number_id,
        "max_concurrent": "3",
        "scheduled_at": "",
        "retry.attempts": "0",
        "retry.delay_seconds": "3600",
        "retry.on[]": ["busy", "no-answer"],
    }


@pytest.fixture
async def owner(people: People, caller: Caller) -> Person:
    return await people.join(caller.organization_id, role="builder")


async def get_only_campaign(caller: Caller) -> Json:
    items = (await caller.get("/v1/campaigns")).json["items"]
    assert isinstance(items, list)
    (campaign,) = items
    assert isinstance(campaign, dict)
    return campaign


async def list_campaign_contacts(caller: Caller, campaign: Json) -> list[tuple[object, object]]:
    items = (await caller.get(f"/v1/campaigns/{campaign['id']}/contacts")).json["items"]
    assert isinstance(items, list)
    return sorted((item["phone_number"], item["name"]) for item in objects_at(items))


async def send_file(person: Person, path: str, fields: Fields, content: bytes) -> PageResponse:
    """Post a form with a file, as browsers do."""
    token = (await person.get("/dashboard/campaigns/new")).html.partition('name="csrf_token" value="')[2][:64]
    single = {name: value for name, value in fields.items() if isinstance(value, str)}
    files = {"file": FileStorage(io.BytesIO(content), "people.csv")}
    response = await person.client.post(
        path, form={**single, "csrf_token": token}, files=files, scope_base={"client": (person.address, 0)}
    )
    return PageResponse(response.status_code, response.headers, await response.get_data(as_text=True))


async def test_a_campaign_from_pasted_lines_runs_to_its_end(window: Window, live: LivePlatform) -> None:
    page = window.page
    await window.open("/dashboard/campaigns")
    await page.get_by_role("link", name="New campaign").first.click()
    await page.get_by_label("Name", exact=False).first.fill("Reminders")
    await page.get_by_label("Agent").select_option(label="Agent")
    await page.get_by_label("From").select_option(index=1)
    await page.get_by_label("Lines", exact=True).fill(
        "+15550100020, Ada\n555 010 0022, Bob\n12, Nobody\n+15550100040, Eve"
    )
    await page.get_by_role("button", name="Preview the list").click()
    await page.get_by_text("1 line cannot be used.").wait_for()
    await window.check_accessibility()
    await page.get_by_label("Skip these lines").check()
    await page.get_by_role("button", name="Create campaign").click()
    await page.get_by_text("Campaign created.").wait_for()
    await window.check_accessibility()
    await window.press("Start")
    await page.get_by_text("3 of 3 done").wait_for(timeout=180_000)
    await page.get_by_text("completed", exact=True).first.wait_for()
    assert await page.get_by_role("progressbar").get_attribute("value") == "3"
    await page.get_by_role("cell", name="busy").wait_for()
    await window.check_accessibility()
    await window.open("/dashboard/campaigns")
    await window.check_accessibility()


async def test_a_preview_saves_nothing_and_a_campaign_contains_only_confirmed_contacts(
    owner: Person, caller: Caller, campaign_fields: Fields
) -> None:
    lines: Fields = {"people": "Phone,Who\n+15550100001,Ada\n(555) 010-0002,Bob\n77,Eve\n+15550100001,Again"}
    html = (await owner.post("/dashboard/campaigns/new/preview", {**campaign_fields, **lines})).html
    assert "No campaigns yet" in (await owner.get("/dashboard/campaigns")).html
    for fragment in (
        "2 people, 1 duplicate removed",
        "77 is not a phone number",
        "<td>4</td>",
        '<option value="0" selected>Phone</option>',
        "77,Eve",
    ):
        assert fragment in html
    refused = await owner.post("/dashboard/campaigns/new", {**campaign_fields, **lines})
    assert refused.status == 422
    assert "1 line cannot be used. Correct" in refused.html
    assert "(555) 010-0002,Bob" in refused.html
    assert 'value="Reminders"' in refused.html
    chosen: Fields = {
        "leave_out": "true",
        "columns.phone": "0",
        "columns.name": "",
        "columns.header": "true",
        "retry.attempts": "2",
        "voicemail_policy.action": "leave_message",
        "voicemail_policy.message": "Please call back.",
    }
    assert (await owner.post("/dashboard/campaigns/new", {**campaign_fields, **lines, **chosen})).status == 303
    campaign = await get_only_campaign(caller)
    page = (await owner.get(f"/dashboard/campaigns/{campaign['id']}")).html
    assert ("0 of 2 done" in page, "up to 2, if busy, no-answer, after" in page) == (True, True)
    assert (campaign["status"], campaign["max_concurrent"], campaign["skipped"]) == ("draft", 3, 0)
    assert campaign["voicemail_policy"] == {
        "action": "leave_message",
        "message": "Please call back.",
        "prompt": "",
        "carrier_detection": True,
    }
    assert campaign["retry"] == {"attempts": 2, "delay_seconds": 3600, "on": ["busy", "no-answer"]}
    assert await list_campaign_contacts(caller, campaign) == [
        ("+15550100001", None),
        ("+15550100002", None),
    ]


async def test_an_uploaded_file_is_previewed_and_filled_into_the_form(
    owner: Person, caller: Caller, campaign_fields: Fields
) -> None:
    text = "Name;Telefon\r\nZoë;+1 555 010 0001\r\n"
    for encoding in ("utf-8-sig", "cp1252", "utf-16"):
        fields: Fields = {**campaign_fields, "people": "what stood here"}
        html = (await send_file(owner, "/dashboard/campaigns/new/preview", fields, text.encode(encoding))).html
        assert "Name;Telefon\nZoë;+1 555 010 0001" in html, encoding
        assert "what stood here" not in html
    assert (await send_file(owner, "/dashboard/campaigns/new", campaign_fields, text.encode())).status == 303
    assert await list_campaign_contacts(caller, await get_only_campaign(caller)) == [("+15550100001", "Zoë")]


async def test_a_binary_file_is_refused_and_the_input_kept(owner: Person, campaign_fields: Fields) -> None:
    response = await send_file(
        owner,
        "/dashboard/campaigns/new/preview",
        {**campaign_fields, "people": "+15550100001"},
        b"PK\x03\x04\0\0\x9d\0",
    )
    assert 'id="fault-file"' in response.html
    assert "+15550100001</textarea>" in response.html
    assert (await send_file(owner, "/dashboard/campaigns/new", campaign_fields, b"PK\x03\x04\0\0\x9d\0")).status == 422


async def test_a_long_list_is_imported_completely(owner: Person, caller: Caller, campaign_fields: Fields) -> None:
    lines = "\n".join(f"+1555{number:07},Somebody with a name {number} {'x' * 200}" for number in range(2_500))
    assert len(lines) > 500_000
    response = await send_file(
        owner, "/dashboard/campaigns/new/preview", {**campaign_fields, "people": lines}, lines.encode()
    )
    assert "2,500 people" in response.html
    assert (await owner.post("/dashboard/campaigns/new", {**campaign_fields, "people": lines})).status == 303
    assert (await get_only_campaign(caller))["total_contacts"] == 2_500


async def test_invalid_settings_are_refused_at_their_fields(owner: Person, campaign_fields: Fields) -> None:
    invalid: Fields = {"name": "", "agent_id": UNKNOWN_ID, "max_concurrent": "0", "scheduled_at": "soon", "people": ""}
    refused = await owner.post("/dashboard/campaigns/new", {**campaign_fields, "people": ""})
    assert refused.status == 422
    assert "is empty" in refused.html
    refused = await owner.post("/dashboard/campaigns/new", {**campaign_fields, **invalid, "people": "+15550100001"})
    for field in ("name", "max_concurrent", "scheduled_at"):
        assert f'id="fault-{field}"' in refused.html, field
    refused = await owner.post(
        "/dashboard/campaigns/new", {**campaign_fields, "agent_id": UNKNOWN_ID, "people": "+15550100001"}
    )
    assert 'id="fault-agent_id"' in refused.html


async def test_a_draft_is_changed_in_the_organizations_time_zone_and_contacts_are_added(
    owner: Person, caller: Caller, campaign_fields: Fields, runtime: Runtime
) -> None:
    async with runtime.database.system() as session:
        (await session.get_one(Organization, caller.organization_id)).timezone = "America/New_York"
    await owner.post("/dashboard/campaigns/new", {**campaign_fields, "people": "+15550100001"})
    campaign = await get_only_campaign(caller)
    path = f"/dashboard/campaigns/{campaign['id']}"
    saved = await owner.post(f"{path}/edit", {**campaign_fields, "name": "Later", "scheduled_at": "2031-01-15T09:30"})
    assert (saved.status, saved.location) == (303, path)
    changed = await get_only_campaign(caller)
    assert changed["name"] == "Later"
    assert datetime.fromisoformat(str(changed["scheduled_at"])) == datetime(2031, 1, 15, 14, 30, tzinfo=UTC)
    assert 'value="2031-01-15T09:30"' in (await owner.get(f"{path}/edit")).html
    response = await owner.post(f"{path}/people/preview", {"people": "+15550100001\n+15550100002"})
    assert "2 people" in response.html
    assert (await owner.post(f"{path}/people", {"people": "+15550100001\nx"})).status == 422
    assert (await owner.post(f"{path}/people", {"people": "+15550100001\n+15550100002"})).status == 303
    assert "1 person was added." in (await owner.get(path)).html
    assert len(await list_campaign_contacts(caller, campaign)) == 2
    many = "\n".join(f"+1555{number:07}" for number in range(33_000))  # more than a statement has parameters
    assert (await owner.post(f"{path}/people", {"people": many})).status == 303
    assert (await get_only_campaign(caller))["total_contacts"] == 33_002


async def test_campaign_actions_are_refused_in_the_wrong_state(
    owner: Person, caller: Caller, campaign_fields: Fields
) -> None:
    await owner.post(
        "/dashboard/campaigns/new", {**campaign_fields, "scheduled_at": "2031-01-15T09:30", "people": "+15550100001"}
    )
    path = f"/dashboard/campaigns/{(await get_only_campaign(caller))['id']}"
    await owner.post(f"{path}/pause")
    assert "To pause, it must be running" in (await owner.get("/dashboard")).html
    await owner.post(f"{path}/start")
    assert (await get_only_campaign(caller))["status"] == "scheduled"
    assert (await owner.post(f"{path}/edit", campaign_fields)).status == 409
    await owner.post(f"{path}/cancel")
    assert (await get_only_campaign(caller))["status"] == "canceled"
    assert (await owner.get(f"{path}/people")).status == 409
    assert "+1 555-010-0001" in (await owner.get(f"{path}?status=canceled")).html
    assert "No contact has this status." in (await owner.get(f"{path}?status=pending")).html
    assert (await owner.post(f"{path}/delete")).status == 303
    assert "No campaigns yet" in (await owner.get("/dashboard/campaigns")).html


async def test_other_organizations_campaigns_are_unreachable(
    owner: Person, people: People, stranger: Caller, campaign_fields: Fields, caller: Caller
) -> None:
    await owner.post("/dashboard/campaigns/new", {**campaign_fields, "people": "+15550100001, Ada"})
    campaign = await get_only_campaign(caller)
    thief = await people.join(stranger.organization_id)
    assert "Reminders" not in (await thief.get("/dashboard/campaigns")).html
    assert str(campaign_fields["agent_id"]) not in (await thief.get("/dashboard/campaigns/new")).html
    for campaign_id in (campaign["id"], UNKNOWN_ID):
        path = f"/dashboard/campaigns/{campaign_id}"
        for way in ("", "/edit", "/people", "/live", "/contacts/live"):
            assert (await thief.get(path + way)).status == 404, way
        for way in ("start", "pause", "resume", "cancel", "delete", "people", "people/preview"):
            assert (await thief.post(f"{path}/{way}", {"people": "+15550100001"})).status == 404, way
        assert (await thief.post(f"{path}/edit", campaign_fields)).status == 404
    assert (await thief.post("/dashboard/campaigns/new", {**campaign_fields, "people": "+15550100001"})).status == 422
    assert (await thief.send("/dashboard/campaigns/new/preview", {"people": "+15550100001"})).status == 403
    assert (await get_only_campaign(caller))["status"] == "draft"
