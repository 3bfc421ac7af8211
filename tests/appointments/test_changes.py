"""Changes that people make to appointments in the calendar itself."""

from datetime import timedelta

import pytest
from switchboard.plugin_sdk.registry import Registry
from switchboard.resources.appointments.jobs import find_calendar_changes, settle_appointment
from switchboard.runtime import Runtime

from tests.api.test_appointments import build_request, create, create_type, list_free
from tests.appointments.test_booking import connect, list_times, read_start
from tests.fixtures import paper_calendar
from tests.fixtures.app import Caller
from tests.fixtures.json_access import Json, objects_at
from tests.fixtures.paper_calendar import BOOKS
from tests.fixtures.virtual_clock import CLOCK
from tests.fixtures.webhooks import create_endpoint, list_items
from tests.fixtures.work import do_due_work

HOUR = timedelta(hours=1)


@pytest.fixture(scope="module")
def registry() -> Registry:
    return paper_calendar.discover_plugins()


async def look(runtime: Runtime, *, seconds: float = 61) -> None:
    """Let time pass, and look for changes."""
    CLOCK.advance(seconds)
    await do_due_work(runtime, find_calendar_changes)


async def list_events(caller: Caller) -> list[Json]:
    """List the data of the appointment events, oldest first, with their names as `event`."""
    found = list_items(await caller.get("/v1/webhook-deliveries?limit=100"))
    bodies = [(await caller.get(f"/v1/webhook-deliveries/{each['id']}")).json["payload"] for each in found]
    events = objects_at(bodies[::-1])
    return [{"event": event["event"], **data} for event in events for data in objects_at([event["data"]])]


async def test_an_event_that_people_move_moves_its_appointment(
    caller: Caller, runtime: Runtime, papers: list[str]
) -> None:
    book = BOOKS[papers[0]]
    await create_endpoint(caller, "https://example.com/hooks")
    type_id = await create_type(caller, await connect(caller, papers[0]))
    slots = await list_free(caller, type_id, limit=4)
    made = await create(caller, "/v1/appointments", build_request(slots[0]))
    path = f"/v1/appointments/{made['id']}"
    await look(runtime)
    assert (await caller.get(path)).json == made, "what the platform has written itself is no change"
    reads = book.reads
    await look(runtime)
    assert book.reads == reads, "a calendar without a change is not read"

    (key,) = book.events
    moment = read_start(slots[0]) + HOUR
    book.edit(key, moment, moment + HOUR)
    await look(runtime)
    moved = (await caller.get(path)).json
    assert (read_start(moved), moved["status"]) == (moment, "booked")
    assert str(slots[2]["starts_at"]) == moved["starts_at"]
    free = [slot["starts_at"] for slot in await list_free(caller, type_id, limit=3)]
    assert free[:2] == [slots[0]["starts_at"], slots[1]["starts_at"]]
    assert slots[3]["starts_at"] not in free, "it lasts an hour now"

    del book.events[key]
    await look(runtime)
    assert (await caller.get(path)).json["status"] == "canceled"
    booked, *changed = await list_events(caller)
    assert (booked["event"], booked["starts_at"]) == ("appointment.booked", made["starts_at"])
    assert [(each["event"], each["changed_in"]) for each in changed] == [
        ("appointment.moved", "calendar"),
        ("appointment.canceled", "calendar"),
    ]
    assert (changed[0]["previous_starts_at"], changed[0]["starts_at"]) == (made["starts_at"], moved["starts_at"])
    await look(runtime)
    assert len(await list_events(caller)) == 3, "nothing is published twice"


async def test_the_platforms_own_changes_are_not_taken_for_those_of_people(
    caller: Caller, runtime: Runtime, papers: list[str]
) -> None:
    await create_endpoint(caller, "https://example.com/hooks", events=["appointment.moved", "appointment.canceled"])
    type_id = await create_type(caller, await connect(caller, papers[0]))
    first, second = await list_free(caller, type_id, limit=2)
    path = f"/v1/appointments/{(await create(caller, '/v1/appointments', build_request(first)))['id']}"
    await look(runtime)
    assert (await caller.send("PATCH", path, {"slot_token": second["slot_token"]})).status == 200
    await look(runtime)
    assert (await caller.send("DELETE", path)).status == 204
    await look(runtime)
    assert [(each["event"], each["changed_in"]) for each in await list_events(caller)] == [
        ("appointment.moved", "switchboard"),
        ("appointment.canceled", "switchboard"),
    ]


async def test_the_other_calendars_of_an_appointment_follow(
    caller: Caller, runtime: Runtime, papers: list[str]
) -> None:
    calendars = [await connect(caller, name) for name in papers]
    type_id = await create_type(caller, *calendars, calendar_mode="all")
    slot = (await list_free(caller, type_id, limit=1))[0]
    made = await create(caller, "/v1/appointments", build_request(slot))
    await look(runtime)
    one, other = (BOOKS[name] for name in papers)
    (key,) = one.events
    moment = read_start(slot) + HOUR
    one.edit(key, moment, moment + HOUR / 2)
    await look(runtime)
    await look(runtime, seconds=10)
    assert (list_times(one), list_times(other)) == ([moment], [moment])
    await look(runtime)
    assert read_start((await caller.get(f"/v1/appointments/{made['id']}")).json) == moment, "it stays there"

    other.events.clear()
    await look(runtime)
    CLOCK.advance(31)
    await do_due_work(runtime, settle_appointment)
    assert not one.events, "an appointment that is gone from one calendar is canceled in all"


async def test_a_calendar_that_cannot_be_read_changes_nothing(
    caller: Caller, runtime: Runtime, papers: list[str]
) -> None:
    book = BOOKS[papers[0]]
    type_id = await create_type(caller, await connect(caller, papers[0]))
    slots = await list_free(caller, type_id, limit=2)
    made = [await create(caller, "/v1/appointments", build_request(slot)) for slot in slots]
    keys = {event.starts_at: key for key, event in book.events.items()}
    book.events.pop(keys[read_start(slots[0])])
    for fault in ("unreadable", "gone"):
        book.fault = fault
        await look(runtime)
        assert [item["status"] for item in objects_at((await caller.get("/v1/appointments")).json, "items")] == [
            "booked"
        ] * 2
    book.fault = ""
    await look(runtime)
    statuses = [(await caller.get(f"/v1/appointments/{each['id']}")).json["status"] for each in made]
    assert statuses == ["canceled", "booked"], "it is found when the calendar is back"


async def test_another_account_does_not_cancel_what_it_does_not_have(
    caller: Caller, runtime: Runtime, papers: list[str]
) -> None:
    calendar = await connect(caller, papers[0])
    slot = (await list_free(caller, await create_type(caller, calendar), limit=1))[0]
    path = f"/v1/appointments/{(await create(caller, '/v1/appointments', build_request(slot)))['id']}"
    refused = await caller.send("PATCH", f"/v1/calendars/{calendar}", {"settings": {"book": papers[1]}})
    assert (refused.status, "coming appointments" in str(refused.json["detail"])) == (422, True)
    BOOKS[papers[1]].events.update(BOOKS[papers[0]].events)  # the calendar has moved to another server
    moved = await caller.send("PATCH", f"/v1/calendars/{calendar}", {"settings": {"book": papers[1]}})
    assert (moved.status, moved.json["settings"]) == (200, {"book": papers[1]})
    await look(runtime)
    assert (await caller.get(path)).json["status"] == "booked"


async def test_an_appointment_that_is_being_moved_is_compared_later(
    caller: Caller, runtime: Runtime, papers: list[str]
) -> None:
    book = BOOKS[papers[0]]
    type_id = await create_type(caller, await connect(caller, papers[0]))
    first, second = await list_free(caller, type_id, limit=2)
    made = await create(caller, "/v1/appointments", build_request(first))
    path = f"/v1/appointments/{made['id']}"
    await look(runtime)
    book.fault = "lost"
    assert (await caller.send("PATCH", path, {"slot_token": second["slot_token"]})).status == 502
    book.fault = ""
    await look(runtime)
    assert (await caller.get(path)).json == made
    CLOCK.advance(1200)
    await do_due_work(runtime, settle_appointment)
    await look(runtime)
    assert (await caller.get(path)).json == made
    assert list_times(book) == [read_start(first)]
