"""The pages of appointments: a week, booking by hand, and the page of one appointment."""

import re
from datetime import datetime, timedelta
from functools import partial
from html import unescape
from urllib.parse import parse_qs, urlsplit
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from pydantic import JsonValue
from switchboard.foundation.database import new_id, now
from switchboard.plugin_sdk.registry import Registry
from switchboard.resources.appointments.models import Appointment
from switchboard.runtime import Runtime

from tests.api.test_appointments import FIRST_DAY, build_request, connect_calendar, create, create_type, list_free
from tests.appointments.test_booking import connect
from tests.fixtures import paper_calendar
from tests.fixtures.app import Caller, LivePlatform
from tests.fixtures.calls import add_call
from tests.fixtures.dashboard import People, Person, Window
from tests.fixtures.json_access import Json, objects_at
from tests.fixtures.paper_calendar import BOOKS

WEEK = "/dashboard/appointments"
BLOCK = re.compile(r'<li class="block ([^"]*)"><a href="([^"]*)">(.*?)</a></li>', re.DOTALL)
TIME = re.compile(r'<time datetime="[^"]*">([^<]*)</time>(?:<span class="end">([^<]*)</span>)?')
DAYS = re.compile(r'<section class="day.*?</section>', re.DOTALL)


@pytest.fixture(scope="module")
def registry() -> Registry:
    return paper_calendar.discover_plugins()


async def add_appointment(
    runtime: Runtime, caller: Caller, type_id: str, starts_at: str, *, minutes: int = 30, **fields: object
) -> UUID:
    """Add an appointment at any time, also in the past, to no calendar; return its id."""
    begin = datetime.fromisoformat(starts_at)
    row = Appointment.model_validate(
        {
            "id": new_id(),
            "organization_id": caller.organization_id,
            "appointment_type_id": UUID(type_id),
            "status": "booked",
            "starts_at": begin,
            "ends_at": begin + timedelta(minutes=minutes),
            "time_zone": "Europe/Berlin",
            "phone_number": "+15550100001",
            "name": "Ada",
            **fields,
        }
    )
    async with runtime.database.write(caller.organization_id) as session:
        session.add(row)
    return row.id


def read_days(html: str) -> list[list[tuple[str, str]]]:
    """Return the names of the classes, and the texts of the times, of the blocks of each day of a page."""
    return [
        [
            (classes, "".join(found.groups("")))
            for classes, _, text in BLOCK.findall(day)
            if (found := TIME.search(text))
        ]
        for day in DAYS.findall(html)
    ]


async def test_a_week_has_its_appointments_at_their_local_times(
    people: People, caller: Caller, runtime: Runtime
) -> None:
    viewer = await people.join(caller.organization_id, role="viewer")
    type_id = await create_type(caller)
    add = partial(add_appointment, runtime, caller, type_id)
    await add("2030-05-05T21:30:00+00:00", minutes=60, name="Over midnight")
    first = await add("2030-05-06T07:00:00+00:00", name="First", confirmed_at=now())
    await add("2030-05-06T07:15:00+00:00", name="Second", status="pending")
    await add("2030-05-06T08:00:00+00:00", name="Gone", status="canceled")
    await add("2030-05-06T08:00:00+00:00", name="Never", status="failed")
    await add("2030-05-12T22:00:00+00:00", name="Next Monday")
    page = (await viewer.get(f"{WEEK}?week=2030-05-08")).html
    assert "Times are in the time zone Europe/Berlin." in page
    monday, *others = read_days(page)
    assert [text for _, text in monday] == ["23:30–00:30", "09:00–09:30", "09:15–09:45"]
    assert [classes for classes, _ in monday] == [
        "booked h0 q0 hl0 ql2",
        "booked confirmed h0 q0 hl0 ql2",
        "pending h0 q1 hl0 ql2",
    ], "those that overlap are one cluster"
    assert others == [[]] * 6
    assert f'href="{WEEK}/{first}"' in page
    assert not {"Gone", "Never", "Next Monday"} & set(re.findall(r"<strong>([^<]*)</strong>", page))
    assert "Gone" in (await viewer.get(f"{WEEK}?week=2030-05-06&canceled=true")).html
    sunday = read_days((await viewer.get(f"{WEEK}?week=2030-05-05")).html)[6]
    assert [text for _, text in sunday] == ["23:30–00:30"]


@pytest.mark.parametrize(
    ("sunday", "moments", "texts"),
    [
        pytest.param(
            "2026-10-25",
            ["2026-10-25T00:45:00+00:00", "2026-10-25T01:30:00+00:00", "2026-10-25T08:00:00+00:00"],
            ["02:45 CEST–02:15 CET", "02:30 CET–03:00 CET", "09:00 CET–09:30 CET"],
            id="autumn",
        ),
        pytest.param(
            "2027-03-28",
            ["2027-03-27T22:45:00+00:00", "2027-03-28T00:45:00+00:00", "2027-03-28T07:00:00+00:00"],
            ["23:45 CET–00:15 CET", "01:45 CET–03:15 CEST", "09:00 CEST–09:30 CEST"],
            id="spring",
        ),
    ],
)
async def test_times_are_right_when_clocks_change(
    people: People, caller: Caller, runtime: Runtime, *, sunday: str, moments: list[str], texts: list[str]
) -> None:
    viewer = await people.join(caller.organization_id, role="viewer")
    type_id = await create_type(caller)
    for moment in moments:
        await add_appointment(runtime, caller, type_id, moment)
    days = read_days((await viewer.get(f"{WEEK}?week={sunday}")).html)
    assert [text for _, text in days[6]] == texts


async def find_free(person: Person, path: str) -> dict[str, str]:
    """Return the local times of a page's free times, with the addresses or the tokens that book them."""
    html = unescape((await person.get(path)).html)
    links = re.findall(r'<a [^>]*href="([^"]*slot_token=[^"]*)"><time [^>]*>([^<]*)</time>', html)
    radios = re.findall(r'name="slot_token" value="([^"]*)"><time [^>]*>([^<]*)</time>', html)
    return {text: given for given, text in [*reversed(links), *reversed(radios)]}


def read_local_hour(appointment: Json) -> int:
    moment = datetime.fromisoformat(str(appointment["starts_at"]))
    return moment.astimezone(ZoneInfo(str(appointment["time_zone"]))).hour


def get_token(address: str) -> str:
    return parse_qs(urlsplit(address).query)["slot_token"][0]


async def list_appointments(caller: Caller) -> list[Json]:
    return objects_at((await caller.get("/v1/appointments")).json, "items")


async def test_an_agent_books_by_hand_moves_and_cancels(people: People, caller: Caller) -> None:
    agent = await people.join(caller.organization_id, role="agent")
    questions: list[JsonValue] = [{"name": "reason", "description": "Why do you come?", "required": True}]
    type_id = await create_type(caller, fields=questions)
    contact = await create(caller, "/v1/contacts", {"phone_number": "+15550100001", "name": "Ada Lovelace"})
    week = f"{WEEK}?week={FIRST_DAY}"
    assert not await find_free(agent, week), "the page does not wait for calendars"
    free = await find_free(agent, f"{week}&free=true")
    assert (await agent.get(f"{WEEK}/week?week={FIRST_DAY}")).html.count("slot_token=") == len(
        re.findall("slot_token=", (await agent.get(f"{week}&free=true")).html)
    )
    form = free["09:00"]
    assert "Why do you come?" in (await agent.get(form)).html
    found = unescape((await agent.get(f"{form}&search=lovel")).html)
    assert f"&contact={contact['id']}" in found
    booking: dict[str, str | list[str]] = {"slot_token": get_token(form), "type": type_id}
    chosen = {**booking, "contact_id": str(contact["id"])}
    refused = await agent.post(f"{WEEK}/new", {**chosen, "fields.reason": ""})
    assert (refused.status, "Ada Lovelace" in refused.html) == (422, True)
    assert 'href="#field-fields.reason">Why do you come?</a>: is required' in refused.html
    assert (await agent.post(f"{WEEK}/new", booking)).html.count("is required") == 4, "a number and a name"
    booked = await agent.post(f"{WEEK}/new", {**chosen, "fields.reason": "A cough"})
    (made,) = await list_appointments(caller)
    assert (booked.status, booked.location) == (303, f"{WEEK}/{made['id']}")
    assert (made["name"], made["fields"]) == ("Ada Lovelace", {"reason": "A cough"})
    page = (await agent.get(booked.location)).html
    assert "The appointment is booked." in page
    assert re.search(rf"<dt>Booked by</dt><dd>{re.escape(agent.email)}</dd>", page)
    assert f'<a href="/dashboard/contacts/{contact["id"]}">Ada Lovelace</a>' in page
    assert booked.location in (await agent.get(f"/dashboard/contacts/{contact['id']}")).html

    token = (await find_free(agent, f"{booked.location}/move?day={FIRST_DAY}"))["10:00"]
    assert (await agent.post(f"{booked.location}/confirm", {"is_confirmed": "true"})).status == 303
    assert (await list_appointments(caller))[0]["is_confirmed"]
    assert (await agent.post(f"{booked.location}/move", {"slot_token": token})).status == 303
    (moved,) = await list_appointments(caller)
    assert (read_local_hour(made), read_local_hour(moved), moved["is_confirmed"]) == (9, 10, False)
    assert (await agent.post(booked.location, {"name": "Grace", "fields.reason": "A cold"})).status == 303
    assert (await agent.post(booked.location, {"name": " ", "fields.reason": "A cold"})).status == 422
    (changed,) = await list_appointments(caller)
    assert (changed["name"], changed["fields"]) == ("Grace", {"reason": "A cold"})
    assert (await agent.post(f"{booked.location}/cancel")).status == 303
    assert (await list_appointments(caller))[0]["status"] == "canceled"
    assert "Cancel appointment" not in (await agent.get(booked.location)).html
    assert booked.location not in (await agent.get(week)).html


async def test_a_time_that_is_gone_is_refused_with_others_and_what_was_typed(people: People, caller: Caller) -> None:
    agent = await people.join(caller.organization_id, role="agent")
    type_id = await create_type(caller)
    gone, *_ = await list_free(caller, type_id)
    await create(caller, "/v1/appointments", build_request(gone))
    typed: dict[str, str | list[str]] = {"type": type_id, "phone_number": "+15550100002", "name": "Grace"}
    for token, reason in (
        (str(gone["slot_token"]), "is not free any more; choose another time"),
        ("v1.old", "was offered too long ago; choose it again"),
    ):
        refused = await agent.post(f"{WEEK}/new", {**typed, "slot_token": token})
        assert (refused.status, reason in refused.html, 'value="Grace"' in refused.html) == (422, True, True)
        choices = re.findall(r'name="slot_token" value="([^"]*)"', refused.html)
        assert token not in choices
    unchosen = (await agent.post(f"{WEEK}/new", typed)).html
    assert 'href="#field-slot_token">Time</a>: is required' in unchosen
    assert (await agent.post(f"{WEEK}/new", {**typed, "slot_token": choices[0]})).status == 303
    assert [each["name"] for each in await list_appointments(caller)] == ["Grace", "Ada"]
    own = f"{WEEK}/{(await list_appointments(caller))[0]['id']}"
    refused = await agent.post(f"{own}/move", {"slot_token": str(gone["slot_token"])})
    assert (refused.status, "is not free any more" in refused.html) == (422, True)
    assert 'type="radio" name="slot_token"' in refused.html


async def test_calendars_that_fail_leave_the_bookings_and_say_so(people: People, caller: Caller, paper: str) -> None:
    agent = await people.join(caller.organization_id, role="agent")
    type_id = await create_type(caller, await connect(caller, paper))
    slot, other = await list_free(caller, type_id, limit=2)
    made = await create(caller, "/v1/appointments", build_request(slot))
    form: dict[str, str | list[str]] = {"type": type_id, "phone_number": "+15550100002", "name": "Grace"}
    BOOKS[paper].fault = "refused"
    refused = await agent.post(f"{WEEK}/new", {**form, "slot_token": str(other["slot_token"])})
    assert (refused.status, "so nothing was changed. The calendar did not take" in refused.html) == (502, True)
    assert len(await list_appointments(caller)) == 1
    for fault, reason in (("unreadable", "the paper cannot be read"), ("asleep", "have not answered in time")):
        BOOKS[paper].fault = fault
        part = (await agent.get(f"{WEEK}/week?week={FIRST_DAY}")).html
        assert "No free times are shown." in part
        assert reason in part
        assert f"{WEEK}/{made['id']}" in part
    BOOKS[paper].fault = "locked out"
    await agent.get(f"{WEEK}/week?week={FIRST_DAY}")
    page = (await agent.get(f"{WEEK}?week={FIRST_DAY}")).html
    assert "The calendar Paper is disconnected, and nothing is booked in it" in page


async def test_the_call_of_an_appointment_is_linked_both_ways(people: People, caller: Caller, runtime: Runtime) -> None:
    viewer = await people.join(caller.organization_id, role="viewer")
    type_id = await create_type(caller)
    call = await add_call(runtime, caller, now(), from_number="+15550100001")
    in_call = await add_appointment(runtime, caller, type_id, "2030-05-06T07:00:00+00:00", call_id=call.id)
    other = await add_appointment(runtime, caller, type_id, "2030-05-06T07:00:00+00:00", call_id=new_id())
    assert (
        f'<a href="/dashboard/calls/{call.id}">An agent, in a call</a>' in (await viewer.get(f"{WEEK}/{in_call}")).html
    )
    assert "An agent, in a call that is deleted" in (await viewer.get(f"{WEEK}/{other}")).html
    page = (await viewer.get(f"/dashboard/calls/{call.id}")).html
    assert (f"{WEEK}/{in_call}" in page, f"{WEEK}/{other}" in page) == (True, False)


async def test_a_viewer_reads_and_foreign_ids_are_unknown(people: People, caller: Caller, stranger: Caller) -> None:
    viewer = await people.join(caller.organization_id, role="viewer")
    type_id, other_type = await create_type(caller), await create_type(stranger)
    made = await create(caller, "/v1/appointments", build_request((await list_free(caller, type_id, limit=1))[0]))
    page = (await viewer.get(f"{WEEK}/{made['id']}")).html
    assert "Your role can read this, and not change it." in page
    assert "/cancel" not in page
    week = (await viewer.get(f"{WEEK}?week={FIRST_DAY}&free=true")).html
    assert (str(made["id"]) in week, "slot_token" in week, f"{WEEK}/new" in week) == (True, False, False)
    calendar = await connect_calendar(stranger)
    for query in (f"type={other_type}", f"calendar={calendar}"):
        assert (await viewer.get(f"{WEEK}?{query}")).status == 404
    agent = await people.join(caller.organization_id, role="agent")
    foreign = (await list_free(stranger, other_type, limit=1))[0]
    typed = {"type": type_id, "phone_number": "+15550100002", "name": "Grace"}
    assert (await agent.post(f"{WEEK}/new", {**typed, "slot_token": str(foreign["slot_token"])})).status == 422
    assert (await agent.get(f"{WEEK}/new?type={other_type}")).status == 404


async def test_the_filters_of_a_week(people: People, caller: Caller) -> None:
    agent = await people.join(caller.organization_id, role="agent")
    calendars = [await connect_calendar(caller, name) for name in ("Ada", "Grace")]
    types = [await create_type(caller, calendar) for calendar in calendars]
    ids = [
        str((await create(caller, "/v1/appointments", build_request((await list_free(caller, each))[0])))["id"])
        for each in types
    ]
    for query, shown in (
        ("", [True, True]),
        (f"type={types[0]}", [True, False]),
        (f"calendar={calendars[1]}", [False, True]),
    ):
        page = (await agent.get(f"{WEEK}?week={FIRST_DAY}&free=true&{query}")).html
        assert [each in page for each in ids] == shown, query
        assert ("slot_token" in page) == query.startswith("type"), "free times are those of one type"


async def test_a_week_gets_its_free_times_in_a_browser_and_fits_a_phone(window: Window, live: LivePlatform) -> None:
    page = window.page
    type_id = await create_type(live.caller)
    slot = (await list_free(live.caller, type_id))[0]
    await create(live.caller, "/v1/appointments", build_request(slot, name="Donaudampfschifffahrtskapitän " * 5))
    await window.open(f"{WEEK}?week={FIRST_DAY}")
    await page.locator(".block.free").first.wait_for()
    heights = await page.locator(".block").evaluate_all("blocks => blocks.map(block => block.offsetHeight)")
    assert min(heights) > 25, "half an hour has two rows"
    booked, free = page.locator(".block.booked"), page.locator(".day", has=page.locator(".booked")).locator(".free")
    places = [await each.bounding_box() for each in (booked, free.first)]
    assert places[0]
    assert places[1]
    assert places[0]["y"] < places[1]["y"]
    await window.check_accessibility()
    await page.set_viewport_size({"width": 390, "height": 844})
    await check_phone(window)
    await free.get_by_role("link").first.click()
    await page.get_by_label("Phone number").fill("+15550100002")
    await page.get_by_label("Name").fill("Grace")
    await check_phone(window)
    await page.get_by_role("button", name="Book").click()
    await page.get_by_text("The appointment is booked.").wait_for()
    await check_phone(window)
    await page.get_by_role("link", name="Move").click()
    await check_phone(window)
    await page.get_by_label("16:00").first.check()
    await page.get_by_role("button", name="Move").click()
    await page.get_by_text("The appointment is moved.").wait_for()
    await window.press("Cancel appointment")
    await page.get_by_text("The appointment is canceled.").wait_for()


async def check_phone(window: Window) -> None:
    """Check that the page is not wider than a phone, and accessible."""
    assert await window.page.evaluate("document.documentElement.scrollWidth") <= 390, window.page.url
    await window.check_accessibility()
