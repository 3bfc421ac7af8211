"""Appointments in a calendar of somebody else, which is busy, slow, changed by people, or cannot be reached."""

import asyncio
from datetime import datetime
from uuid import uuid4

import pytest
from switchboard.plugin_sdk import BusyTime
from switchboard.plugin_sdk.registry import Registry
from switchboard.resources.appointments.jobs import settle_appointment
from switchboard.runtime import Runtime

from tests.api.test_appointments import build_request, create, create_type, list_free
from tests.fixtures import paper_calendar
from tests.fixtures.app import Caller
from tests.fixtures.json_access import Json, objects_at
from tests.fixtures.paper_calendar import BOOKS, Book
from tests.fixtures.virtual_clock import CLOCK
from tests.fixtures.work import do_due_work


@pytest.fixture(scope="module")
def registry() -> Registry:
    return paper_calendar.discover_plugins()


async def connect(caller: Caller, book: str) -> str:
    settings: Json = {"book": book, "password": "pencil"}
    made = await create(caller, "/v1/calendars", {"provider": "paper", "name": "Paper", "settings": settings})
    assert (made["settings"], made["time_zone"]) == ({"book": book}, "Europe/Berlin"), "no secret is returned"
    return str(made["id"])


def take(book: Book, slot: Json) -> None:
    """Let somebody write into the calendar itself."""
    starts_at, ends_at = (datetime.fromisoformat(str(slot[name])) for name in ("starts_at", "ends_at"))
    book.taken.append(BusyTime(starts_at, ends_at))


def list_times(book: Book) -> list[datetime]:
    return sorted(event.starts_at for event in book.events.values())


def read_start(slot: Json) -> datetime:
    return datetime.fromisoformat(str(slot["starts_at"]))


async def settle(runtime: Runtime, seconds: float) -> None:
    """Let time pass, and reconcile."""
    CLOCK.advance(seconds)
    await do_due_work(runtime, settle_appointment)


async def test_an_appointment_is_an_event_that_moves_and_goes(caller: Caller, paper: str) -> None:
    type_id, book = await create_type(caller, await connect(caller, paper)), BOOKS[paper]
    busy, first, second, third = await list_free(caller, type_id, limit=4)
    take(book, busy)
    assert (await list_free(caller, type_id, limit=1))[0]["starts_at"] == first["starts_at"]
    made = await create(caller, "/v1/appointments", build_request(first))
    assert list_times(book) == [read_start(first)]
    (draft,) = book.drafts
    assert (draft.attendee_name, draft.attendee_phone) == (made["name"], made["phone_number"])
    path = f"/v1/appointments/{made['id']}"
    assert (await caller.send("PATCH", path, {"slot_token": third["slot_token"]})).status == 200
    assert list_times(book) == [read_start(third)]
    (event,) = book.events.values()
    assert event.version == "2", "it is the same event"
    take(book, second)
    refused = await caller.send("PATCH", path, {"slot_token": second["slot_token"]})
    assert (refused.status, refused.json["code"]) == (409, "slot_taken")
    assert list_times(book) == [read_start(third)]
    assert (await caller.send("DELETE", path)).status == 204
    assert not book.events


async def test_a_time_that_people_take_after_it_was_offered_is_not_booked(caller: Caller, paper: str) -> None:
    other = f"{paper}-2"
    calendars = [await connect(caller, name) for name in (paper, other)]
    either, both = await create_type(caller, *calendars), await create_type(caller, *calendars, calendar_mode="all")
    slot = (await list_free(caller, either, limit=1))[0]
    in_both = (await list_free(caller, both, limit=1))[0]
    take(BOOKS[paper], slot)
    refused = await caller.post("/v1/appointments", build_request(in_both))
    assert (refused.status, refused.json["code"]) == (409, "slot_taken")
    assert not BOOKS[other].events
    await create(caller, "/v1/appointments", build_request(slot))
    assert (list_times(BOOKS[paper]), list_times(BOOKS[other])) == ([], [read_start(slot)]), "the other one is free"
    BOOKS.pop(other)


@pytest.mark.parametrize("fault", ["silent", "lost", "refused", "gone", "unreadable"])
async def test_what_the_calendar_does_not_confirm_is_not_booked(
    caller: Caller, runtime: Runtime, paper: str, fault: str
) -> None:
    type_id, book = await create_type(caller, await connect(caller, paper)), BOOKS[paper]
    slot, later = await list_free(caller, type_id, limit=2)
    book.fault = fault
    refused = await caller.post("/v1/appointments", build_request(slot))
    assert (refused.status, refused.json["code"]) == (502, "provider_error"), refused.body
    assert "Nothing was changed" in str(refused.json["detail"])
    assert (await caller.get("/v1/appointments")).json["total"] == 0
    book.fault = ""
    await settle(runtime, 40)
    assert not book.events
    assert (await list_free(caller, type_id, limit=1))[0]["starts_at"] == slot["starts_at"]
    made = await create(caller, "/v1/appointments", build_request(slot))
    writes = book.writes
    book.fault = fault
    moved = await caller.send("PATCH", f"/v1/appointments/{made['id']}", {"slot_token": later["slot_token"]})
    assert moved.status == 502, moved.body
    book.fault = ""
    await settle(runtime, 40)
    assert list_times(book) == [read_start(slot)], "an event that was moved is moved back"
    assert book.writes in (writes, writes + 2)
    assert (await caller.get(f"/v1/appointments/{made['id']}")).json == made
    await settle(runtime, 1200)
    assert list_times(book) == [read_start(slot)]


async def test_a_process_that_dies_leaves_no_event(caller: Caller, runtime: Runtime, paper: str) -> None:
    type_id, book = await create_type(caller, await connect(caller, paper)), BOOKS[paper]
    slot = (await list_free(caller, type_id, limit=1))[0]
    book.fault = "killed"
    headers = {"Authorization": f"Bearer {caller.key}"}
    answer = await caller.client.post("/v1/appointments", json=build_request(slot), headers=headers)
    assert not await answer.get_data(), "nobody answers"
    assert book.events
    book.fault = ""
    assert (await list_free(caller, type_id, limit=1))[0]["starts_at"] != slot["starts_at"], "it is held"
    await settle(runtime, 91)
    assert not book.events
    assert (await list_free(caller, type_id, limit=1))[0]["starts_at"] == slot["starts_at"]
    failed = (await caller.get("/v1/appointments?status=failed")).json
    assert failed["total"] == 1


async def test_a_canceled_appointment_leaves_a_calendar_that_comes_back(
    caller: Caller, runtime: Runtime, paper: str
) -> None:
    type_id, book = await create_type(caller, await connect(caller, paper)), BOOKS[paper]
    slot = (await list_free(caller, type_id, limit=1))[0]
    made = await create(caller, "/v1/appointments", build_request(slot))
    book.fault = "gone"
    assert (await caller.send("DELETE", f"/v1/appointments/{made['id']}")).status == 204
    assert (await caller.get(f"/v1/appointment-types/{type_id}/availability")).status == 502
    await settle(runtime, 40)
    assert book.events
    book.fault = ""
    assert (await list_free(caller, type_id, limit=1))[0]["starts_at"] == slot["starts_at"], "it is free at once"
    await settle(runtime, 40)
    assert not book.events


async def test_an_event_that_people_change_or_delete_is_moved_all_the_same(
    caller: Caller, runtime: Runtime, paper: str
) -> None:
    type_id, book = await create_type(caller, await connect(caller, paper)), BOOKS[paper]
    slots = await list_free(caller, type_id, limit=3)
    made = await create(caller, "/v1/appointments", build_request(slots[0]))
    book.events.clear()
    path = f"/v1/appointments/{made['id']}"
    book.fault = "silent"
    assert (await caller.send("PATCH", path, {"slot_token": slots[1]["slot_token"]})).status == 502
    book.fault = ""
    await settle(runtime, 1200)
    assert not book.events, "what was written in its place is deleted"
    assert (await caller.send("PATCH", path, {"slot_token": slots[1]["slot_token"]})).status == 200
    assert list_times(book) == [read_start(slots[1])]
    assert (await caller.send("PATCH", path, {"slot_token": slots[2]["slot_token"]})).status == 200
    assert list_times(book) == [read_start(slots[2])]
    assert (await caller.send("DELETE", path)).status == 204
    assert not book.events


async def test_an_account_that_the_provider_refuses_is_not_connected(caller: Caller, paper: str) -> None:
    for settings, field in (
        ({"book": paper, "password": "pen"}, "settings"),
        ({"book": paper}, "settings.password"),
        ({"book": paper, "password": "pencil", "color": "red"}, "settings.color"),
    ):
        refused = await caller.post("/v1/calendars", {"provider": "paper", "name": "x", "settings": settings})
        assert refused.status == 422
        assert [error["field"] for error in objects_at(refused.json, "errors")] == [field]
        assert "pen" not in str(refused.json["detail"]).replace("pencil", "").split()
    calendar = await connect(caller, paper)
    path = f"/v1/calendars/{calendar}"
    assert (await caller.send("PATCH", path, {"settings": {"password": "pen"}})).status == 422
    assert (await caller.send("PATCH", path, {"settings": {"book": f"{paper}-3"}})).json["settings"] == {
        "book": f"{paper}-3"
    }, "the password stays"
    assert (await caller.get("/v1/calendars")).json["total"] == 1


async def test_calendars_that_are_opened_together_are_closed_together_later(caller: Caller, papers: list[str]) -> None:
    others = [uuid4().hex, uuid4().hex]
    types = [await create_type(caller, await connect(caller, name)) for name in (*papers, *others)]
    for _ in range(2):
        assert all(await asyncio.gather(*(list_free(caller, type_id, limit=1) for type_id in types)))
        CLOCK.advance(61)
    for name in others:
        BOOKS.pop(name, None)
