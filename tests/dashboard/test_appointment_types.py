"""The pages of appointment types."""

import re
from html import unescape

from switchboard.resources.appointments.models import Calendar
from switchboard.runtime import Runtime

from tests.api.test_appointments import build_request, connect_calendar, create_type, list_free
from tests.fixtures.app import Caller, LivePlatform
from tests.fixtures.dashboard import People, Window
from tests.fixtures.json_access import Json

PAGE = "/dashboard/appointment-types"
Fields = dict[str, str | list[str]]
WHOLE: Fields = {
    "name": "Consultation",
    "calendar_mode": "all",
    "duration_minutes": "45",
    "grid_minutes": "15",
    "buffer_before_minutes": "5",
    "buffer_after_minutes": "10",
    "hours.timezone": "Europe/Berlin",
    "hours.slots.0.days[]": ["mon", "tue", "wed", "fri"],
    "hours.slots.0.start": "09:00",
    "hours.slots.0.end": "17:00",
    "hours.slots.2.start": "",
    "hours.slots.2.end": "",
    "hours.holidays[]": ["2026-12-25", ""],
    "hours.special_days.0.date": "2026-12-24",
    "hours.special_days.0.start": "09:00",
    "hours.special_days.0.end": "11:00",
    "hours.special_days.1.date": "2026-12-31",
    "hours.special_days.2.date": "2026-12-24",
    "hours.special_days.2.start": "12:00",
    "hours.special_days.2.end": "13:00",
    "hours.special_days.3.date": "",
    "lead_minutes": "120",
    "horizon_days": "30",
    "daily_limit": "8",
    "fields.0.name": "reason",
    "fields.0.description": "What is it about?",
    "fields.0.required": "false",
    "fields.0.check": "false",
    "fields.1.name": "",
    "fields.1.description": "",
    "fields.1.required": "false",
    "fields.2.name": "born_on",
    "fields.2.description": "When were you born?",
    "fields.2.required": "true",
    "fields.2.check": "true",
    "reminder_minutes": "1440, 60",
}
SAVED: Json = {
    "name": "Consultation",
    "calendar_mode": "all",
    "duration_minutes": 45,
    "grid_minutes": 15,
    "buffer_before_minutes": 5,
    "buffer_after_minutes": 10,
    "hours": {
        "timezone": "Europe/Berlin",
        "slots": [{"days": ["mon", "tue", "wed", "fri"], "start": "09:00", "end": "17:00"}],
        "holidays": ["2026-12-25"],
        "special_days": [
            {"date": "2026-12-24", "hours": [{"start": "09:00", "end": "11:00"}, {"start": "12:00", "end": "13:00"}]},
            {"date": "2026-12-31", "hours": []},
        ],
    },
    "lead_minutes": 120,
    "horizon_days": 30,
    "daily_limit": 8,
    "fields": [
        {"name": "reason", "description": "What is it about?", "required": False},
        {"name": "born_on", "description": "When were you born?", "required": True},
    ],
    "check_fields": ["born_on"],
    "reminder_minutes": [1440, 60],
}


async def get_only_type(caller: Caller) -> Json:
    items = (await caller.get("/v1/appointment-types")).json["items"]
    assert isinstance(items, list)
    (kind,) = items
    assert isinstance(kind, dict)
    return {name: value for name, value in kind.items() if name not in ("id", "created_at", "updated_at")}


def read_form(html: str) -> Fields:
    """Return what a browser without scripts sends when the page's form is submitted as it is shown."""
    form = html[html.index('class="form') :]
    fields: Fields = {}

    def put(name: str, value: str) -> None:
        if name.endswith("[]"):
            held = fields.setdefault(name, [])
            assert isinstance(held, list)
            held.append(value)
        else:
            fields[name] = value

    for tag in re.findall(
        r"<(?:input|select|option)\b[^>]*>", re.sub(r"<template>.*?</template>", "", form, flags=re.S)
    ):
        given = {name: unescape(value) for name, value in re.findall(r'([\w-]+)="([^"]*)"', tag)}
        if tag.startswith("<select"):
            put(given["name"], "")
            select = given["name"]
        elif tag.startswith("<option"):
            if " selected" in tag:
                put(select, given["value"])
        elif given.get("type") != "checkbox" or " checked" in tag:
            put(given["name"], given.get("value", ""))
    return {name: value for name, value in fields.items() if name != "csrf_token"}


async def test_a_type_with_everything_is_created_shown_and_saved_again_without_a_change(
    people: People, caller: Caller
) -> None:
    owner = await people.join(caller.organization_id)
    ids = [await connect_calendar(caller, name) for name in ("Ada", "Room 1")]
    made = await owner.post(f"{PAGE}/new", {**WHOLE, "calendar_ids[]": ids})
    assert (made.status, made.location) == (303, PAGE)
    assert await get_only_type(caller) == {**SAVED, "calendar_ids": ids}
    before = (await caller.get("/v1/appointment-types")).json
    page = re.search(rf'href="({PAGE}/[0-9a-f-]+)"', (await owner.get(PAGE)).html)
    assert page
    assert (await owner.post(page[1], read_form((await owner.get(page[1])).html))).status == 303
    assert (await caller.get("/v1/appointment-types")).json == before, "not even updated_at has changed"
    removed = {name: value for name, value in WHOLE.items() if not re.match(r"fields\.|hours\.(special|holi)", name)}
    emptied: Fields = {"grid_minutes": "", "buffer_after_minutes": "", "daily_limit": "", "reminder_minutes": ""}
    assert (await owner.post(page[1], {**removed, **emptied, "calendar_ids[]": ids[1:]})).status == 303
    changed: Json = {"grid_minutes": None, "buffer_after_minutes": 0, "daily_limit": None, "reminder_minutes": []}
    hours = {"timezone": "Europe/Berlin", "holidays": [], "special_days": []}
    assert isinstance(SAVED["hours"], dict)
    assert await get_only_type(caller) == {
        **SAVED,
        **changed,
        "calendar_ids": ids[1:],
        "fields": [],
        "check_fields": [],
        "hours": {**hours, "slots": SAVED["hours"]["slots"]},
    }


WRONG: tuple[tuple[Fields, str, str], ...] = (
    ({"name": ""}, "name", "is required"),
    ({"calendar_ids[]": []}, "calendar_ids", "needs at least 1"),
    ({"calendar_ids[]": ["nobody"]}, "calendar_ids", "is not a calendar of the organization"),
    ({"duration_minutes": "4"}, "duration_minutes", "must be at least 5"),
    ({"daily_limit": "many"}, "daily_limit", "must be a whole number"),
    ({"hours.slots.0.start": "9"}, "hours.slots.0.start", "must be a time like 09:00"),
    ({"hours.holidays[]": ["soon"]}, "hours.holidays", "soon is not a date like 2026-12-25"),
    ({"hours.special_days.2.end": ""}, "hours.special_days.2.end", "must be a time like 09:00"),
    ({"hours.special_days.1.date": "", "hours.special_days.1.start": "9"}, "hours.special_days.1.date", "is required"),
    ({"fields.0.name": "born_on"}, "fields", "fields must have different names"),
    # The empty row before the last one is dropped, so that its number is 1.
    ({"fields.2.name": "Born on"}, "fields.1.name", "must be a name like last_visit"),
    ({"fields.2.required": "false"}, "fields.1.check", "is not the name of a required question of fields"),
    ({"reminder_minutes": "60, 1"}, "reminder_minutes", "must be at least 5"),
)


async def test_errors_are_at_their_fields_and_nothing_typed_is_lost(people: People, caller: Caller) -> None:
    owner = await people.join(caller.organization_id)
    calendar_id = await connect_calendar(caller)
    type_id = await create_type(caller, calendar_id)
    before = await get_only_type(caller)
    for place in (f"{PAGE}/new", f"{PAGE}/{type_id}"):
        for fields, name, message in WRONG:
            given = {**WHOLE, "calendar_ids[]": [calendar_id], **fields}
            refused = await owner.post(place, given)
            assert refused.status == 422, (place, fields)
            assert f'<a href="#field-{name}">' in refused.html, (place, fields)
            assert f'id="field-{name}"' in refused.html, (place, fields)
            fault = re.search(rf'id="fault-{re.escape(name)}">([^<]*)<', refused.html)
            assert fault, (place, fields)
            assert message in fault[1]
            shown = read_form(refused.html)
            assert shown["reminder_minutes"] == given["reminder_minutes"]
            assert shown["fields.1.description"] == "When were you born?"
            assert shown["hours.special_days.2.start"] == "12:00"
            assert shown["daily_limit"] == given["daily_limit"]
    assert await get_only_type(caller) == before


async def test_the_list_shows_calendars_hours_and_agents_and_a_calendar_its_types(
    people: People, caller: Caller, runtime: Runtime
) -> None:
    viewer = await people.join(caller.organization_id, role="viewer")
    owner = await people.join(caller.organization_id)
    empty = (await viewer.get(PAGE)).html
    assert "It needs a calendar first." in empty
    assert f"{PAGE}/new" not in empty
    assert "Connect a calendar" in (await owner.get(PAGE)).html
    assert "Connect a calendar first" in (await owner.get(f"{PAGE}/new")).html
    ids = [await connect_calendar(caller, name) for name in ("Ada", "Grace")]
    assert f"{PAGE}/new" in (await owner.get(PAGE)).html
    hours: Json = {
        "timezone": "Europe/Berlin",
        "slots": [
            {"days": ["wed", "mon", "tue", "sat"], "start": "09:00", "end": "17:00"},
            {"days": ["sun", "sat"], "start": "22:00", "end": "02:00"},
        ],
    }
    type_id = await create_type(caller, ids[0], name="Visit", duration_minutes=90, hours=hours)
    agent = await caller.post("/v1/agents", {"name": "Front desk", "appointment_type_ids": [type_id]})
    await caller.post("/v1/agents", {"name": "Another"})
    async with runtime.database.write(caller.organization_id) as session:
        for calendar in (await session.exec(session.select(Calendar))).all():
            calendar.status = "disconnected" if str(calendar.id) == ids[0] else "connected"
    html = (await viewer.get(PAGE)).html
    for text in (
        f'href="{PAGE}/{type_id}">Visit</a>',
        "1 hour, 30 minutes",
        'Mon–Wed, Sat, <span class="nowrap">09:00–17:00</span>',
        'Sat, Sun, <span class="nowrap">22:00–02:00</span>',
        "Europe/Berlin",
        f'href="/dashboard/calendars#calendar-{ids[0]}">Ada</a> <span class="badge bad">disconnected</span>',
        f'href="/dashboard/agents/{agent.json["id"]}">Front desk</a>',
    ):
        assert text in html, text
    assert "Grace" not in html
    assert "Another" not in html
    shown = (await viewer.get(f"{PAGE}/{type_id}")).html
    assert "Your role can read this, and not change it." in shown
    assert "Ada (disconnected)" in shown
    assert "Front desk" in shown
    assert f"{PAGE}/{type_id}/delete" not in shown
    assert f'href="{PAGE}/{type_id}"' in (await viewer.get("/dashboard/search?q=visi")).html
    listed = (await viewer.get("/dashboard/calendars")).html
    assert listed.count(f'href="{PAGE}/{type_id}">Visit</a>') == 1
    assert listed.index("Ada") < listed.index(f"{PAGE}/{type_id}")


async def test_only_types_without_coming_appointments_are_deleted(people: People, caller: Caller) -> None:
    owner = await people.join(caller.organization_id)
    type_id = await create_type(caller)
    slot, *_others = await list_free(caller, type_id)
    appointment = (await caller.post("/v1/appointments", build_request(slot))).json["id"]
    page = f"{PAGE}/{type_id}"
    owner.headers["Referer"] = f"http://localhost{page}"
    assert (await owner.post(f"{page}/delete")).location == page
    assert "The appointment type has coming appointments; cancel them first." in (await owner.get(page)).html
    assert (await caller.send("DELETE", f"/v1/appointments/{appointment}")).status == 204
    assert (await owner.post(f"{page}/delete")).location == PAGE
    assert "Appointment type deleted." in (await owner.get(PAGE)).html
    assert (await owner.get(page)).status == 404


async def test_a_type_is_created_in_a_browser_by_adding_and_removing_rows(window: Window, live: LivePlatform) -> None:
    await connect_calendar(live.caller, "Front desk")
    page = window.page
    await window.open(PAGE)
    await page.get_by_role("link", name="New appointment type").first.click()
    assert await page.get_by_label("Front desk").is_checked(), "the only calendar is chosen"
    await page.get_by_label("Name *").first.fill("Visit")
    await page.get_by_role("button", name="Add a day").click()
    await page.get_by_label("Date").fill("2026-12-24")
    await page.get_by_role("button", name="Add a day").click()
    await page.get_by_role("button", name="Remove this day").last.click()
    for name in ("reason", "born_on"):
        await page.get_by_role("button", name="Add a question").click()
        await page.locator("[name^='fields.'][name$='.name']").last.fill(name)
    await page.get_by_label("Required").last.check()
    await page.get_by_label("Check of callers").last.check()
    await page.get_by_role("button", name="Remove this question").first.click()
    await window.check_accessibility()
    await page.get_by_role("button", name="Create appointment type").click()
    await page.get_by_text("Visit was created.").wait_for()
    saved = await get_only_type(live.caller)
    assert saved["fields"] == [{"name": "born_on", "description": "", "required": True}]
    assert saved["check_fields"] == ["born_on"]
    hours = saved["hours"]
    assert isinstance(hours, dict)
    assert hours["special_days"] == [{"date": "2026-12-24", "hours": []}]
    assert hours["slots"] == [{"days": ["mon", "tue", "wed", "thu", "fri"], "start": "09:00", "end": "17:00"}]
