"""Calendars, appointment types, free times, and appointments over the API, in the built-in calendar."""

import asyncio
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from pydantic import JsonValue
from switchboard.foundation.database import now

from tests.fixtures.app import UNKNOWN_ID, Caller, Organizations
from tests.fixtures.json_access import Json, objects_at
from tests.fixtures.virtual_clock import CLOCK

ALWAYS: Json = {
    "timezone": "Europe/Berlin",
    "slots": [{"days": ["mon", "tue", "wed", "thu", "fri", "sat", "sun"], "start": "09:00", "end": "17:00"}],
    "holidays": [],
}


FIRST_DAY = (datetime.now(UTC) + timedelta(days=3)).date()


async def create(caller: Caller, path: str, body: Json) -> Json:
    response = await caller.post(path, body)
    assert response.status == 201, response.body
    return response.json


async def connect_calendar(caller: Caller, name: str = "Ada") -> str:
    """Connect a calendar of the built-in provider."""
    return str((await create(caller, "/v1/calendars", {"provider": "local", "name": name}))["id"])


async def create_type(caller: Caller, *calendar_ids: str, **fields: JsonValue) -> str:
    """Create an appointment type of half an hour, open every day from nine to five in Berlin."""
    body: Json = {
        "name": "Consultation",
        "calendar_ids": [*calendar_ids] or [await connect_calendar(caller)],
        "duration_minutes": 30,
        "grid_minutes": 30,
        "hours": ALWAYS,
        "lead_minutes": 60,
        "horizon_days": 30,
        **fields,
    }
    return str((await create(caller, "/v1/appointment-types", body))["id"])


async def list_free(caller: Caller, type_id: str, **query: object) -> list[Json]:
    """List free times from `FIRST_DAY` on: the next ones of all pass while a test runs."""
    given = {"from": f"{FIRST_DAY}T00:00:00Z", **query}
    text = "&".join(f"{name}={value}" for name, value in given.items())
    response = await caller.get(f"/v1/appointment-types/{type_id}/availability?{text}")
    assert response.status == 200, response.body
    return objects_at(response.json, "items")


def build_request(slot: Json, **fields: JsonValue) -> Json:
    return {"slot_token": slot["slot_token"], "phone_number": "+15550100001", "name": "Ada", **fields}


async def test_an_appointment_is_booked_moved_and_canceled(caller: Caller) -> None:
    type_id = await create_type(caller)
    first, second, *_ = await list_free(caller, type_id, limit=5)
    assert datetime.fromisoformat(str(second["starts_at"])) - datetime.fromisoformat(
        str(first["starts_at"])
    ) == timedelta(minutes=30)
    made = await create(caller, "/v1/appointments", build_request(first))
    assert (made["status"], made["starts_at"], made["time_zone"]) == ("booked", first["starts_at"], "Europe/Berlin")
    assert (await caller.get(f"/v1/appointments/{made['id']}")).json == made
    assert (await caller.get("/v1/appointments")).json["items"] == [made]
    assert (await list_free(caller, type_id, limit=1))[0]["starts_at"] == second["starts_at"]

    path = f"/v1/appointments/{made['id']}"
    moved = (await caller.send("PATCH", path, {"slot_token": second["slot_token"], "name": "Ada Lovelace"})).json
    assert (moved["starts_at"], moved["name"], moved["status"]) == (second["starts_at"], "Ada Lovelace", "booked")
    assert (await list_free(caller, type_id, limit=1))[0]["starts_at"] == first["starts_at"]

    assert (await caller.send("DELETE", path)).status == 204
    canceled = (await caller.get(path)).json
    assert (canceled["status"], canceled["canceled_at"] is None) == ("canceled", False)
    assert [slot["starts_at"] for slot in await list_free(caller, type_id, limit=2)] == [
        first["starts_at"],
        second["starts_at"],
    ]
    assert (await caller.send("DELETE", path)).status == 204, "again, it has no effect"
    refused = await caller.send("PATCH", path, {"name": "Ada"})
    assert (refused.status, refused.json["code"]) == (409, "invalid_state")


async def test_a_time_that_is_taken_is_refused_with_the_next_free_ones(caller: Caller) -> None:
    type_id = await create_type(caller)
    slots = await list_free(caller, type_id, limit=4)
    await create(caller, "/v1/appointments", build_request(slots[0]))
    refused = await caller.post("/v1/appointments", build_request(slots[0]))
    assert (refused.status, refused.json["code"]) == (409, "slot_taken")
    alternatives = objects_at(refused.json, "alternatives")
    assert [slot["starts_at"] for slot in alternatives] == [slot["starts_at"] for slot in slots[1:]]
    made = await create(caller, "/v1/appointments", build_request(alternatives[0]))
    moved = await caller.send("PATCH", f"/v1/appointments/{made['id']}", {"slot_token": slots[0]["slot_token"]})
    assert (moved.status, moved.json["code"]) == (409, "slot_taken")
    assert (await caller.get(f"/v1/appointments/{made['id']}")).json == made, "it stays where it is"


async def test_one_of_many_concurrent_requests_gets_the_time(caller: Caller) -> None:
    calendars = [await connect_calendar(caller, name) for name in ("Ada", "Bob")]
    type_id = await create_type(caller, *calendars)
    slots = await list_free(caller, type_id, limit=2)
    answers = await asyncio.gather(
        *(caller.post("/v1/appointments", build_request(slots[place % 2])) for place in range(12))
    )
    assert sorted(answer.status for answer in answers) == [201] * 4 + [409] * 8
    booked = (await caller.get("/v1/appointments?limit=100")).json
    assert booked["total"] == 4, "two calendars at two times"


async def test_a_repeated_request_with_a_key_books_once(caller: Caller) -> None:
    slot = (await list_free(caller, await create_type(caller), limit=1))[0]
    key = uuid4().hex
    answers = [
        await caller.send("POST", "/v1/appointments", build_request(slot), Idempotency_Key=key) for _ in range(2)
    ]
    assert [answer.status for answer in answers] == [201, 201]
    assert answers[0].json == answers[1].json
    assert (await caller.get("/v1/appointments")).json["total"] == 1


async def test_tokens_that_cannot_be_used_book_nothing(caller: Caller, stranger: Caller) -> None:
    type_id = await create_type(caller)
    slot = (await list_free(caller, type_id, limit=1))[0]
    token = str(slot["slot_token"])
    foreign = (await list_free(stranger, await create_type(stranger), limit=1))[0]
    for bad in (token[:-4] + "AAAA", "x", str(foreign["slot_token"])):
        refused = await caller.post("/v1/appointments", build_request({"slot_token": bad}))
        assert refused.status == 422
        assert "slot_token" in str(refused.json["detail"])
    CLOCK.advance(31 * 60)
    refused = await caller.post("/v1/appointments", build_request(slot))
    assert refused.status == 422
    assert "expired" in str(refused.json["detail"])
    assert (await caller.get("/v1/appointments")).json["total"] == 0


async def test_appointment_types_of_other_rules(caller: Caller) -> None:
    first, second = await connect_calendar(caller), await connect_calendar(caller, "Bob")
    both = await create_type(caller, first, second, calendar_mode="all", buffer_after_minutes=30, daily_limit=2)
    either = await create_type(caller, first, second)
    tomorrow = (now() + timedelta(days=1)).date()
    window = {"from": f"{tomorrow}T00:00:00Z", "to": f"{tomorrow + timedelta(days=1)}T00:00:00Z", "limit": 100}
    slots = await list_free(caller, both, **window)
    assert len(slots) == 16
    for place in (0, 4):
        await create(caller, "/v1/appointments", build_request(slots[place]))
    assert not await list_free(caller, both, **window), "two on one day are enough"
    free = [slot["starts_at"] for slot in await list_free(caller, either, **window)]
    taken = {slots[place]["starts_at"] for place in (0, 1, 3, 4, 5)}
    assert free == [slot["starts_at"] for slot in slots if slot["starts_at"] not in taken - {slots[3]["starts_at"]}]


async def test_answers_and_persons_are_checked(caller: Caller, stranger: Caller) -> None:
    questions: JsonValue = [{"name": "reason", "description": "What is it about?", "required": True}]
    type_id = await create_type(caller, fields=questions)
    slot = (await list_free(caller, type_id, limit=1))[0]
    contact = await create(caller, "/v1/contacts", {"phone_number": "+15550100002", "name": "Grace"})
    foreign = await create(stranger, "/v1/contacts", {"phone_number": "+15550100002", "name": "Grace"})
    refused: list[Json] = [
        build_request(slot),
        build_request(slot, fields={"reason": " "}),
        build_request(slot, fields={"reason": "Bread", "color": "red"}),
        build_request(slot, contact_id=contact["id"], fields={"reason": "Bread"}),
        {"slot_token": slot["slot_token"], "phone_number": "+15550100001", "fields": {"reason": "Bread"}},
        {"slot_token": slot["slot_token"], "contact_id": foreign["id"], "fields": {"reason": "Bread"}},
        {"slot_token": slot["slot_token"], "fields": {"reason": "Bread"}},
    ]
    for each in refused:
        assert (await caller.post("/v1/appointments", each)).status == 422, each
    body: Json = {"slot_token": slot["slot_token"], "contact_id": contact["id"], "fields": {"reason": "Bread"}}
    made = await create(caller, "/v1/appointments", body)
    assert (made["phone_number"], made["name"], made["fields"]) == ("+15550100002", "Grace", {"reason": "Bread"})
    changed = await caller.send("PATCH", f"/v1/appointments/{made['id']}", {"fields": {"reason": ""}})
    assert changed.status == 422


async def test_what_is_in_use_is_not_deleted(caller: Caller) -> None:
    calendar = await connect_calendar(caller)
    type_id = await create_type(caller, calendar)
    assert (await caller.send("DELETE", f"/v1/calendars/{calendar}")).status == 409, "a type names it"
    slot = (await list_free(caller, type_id, limit=1))[0]
    made = await create(caller, "/v1/appointments", build_request(slot))
    assert (await caller.send("DELETE", f"/v1/appointment-types/{type_id}")).status == 409
    other = await connect_calendar(caller, "Bob")
    await caller.send("PATCH", f"/v1/appointment-types/{type_id}", {"calendar_ids": [other]})
    assert (await caller.send("DELETE", f"/v1/calendars/{calendar}")).status == 409, "it has a coming appointment"
    assert (await caller.send("DELETE", f"/v1/appointments/{made['id']}")).status == 204
    assert (await caller.send("DELETE", f"/v1/calendars/{calendar}")).status == 204
    assert (await caller.send("DELETE", f"/v1/appointment-types/{type_id}")).status == 204
    assert (await caller.get(f"/v1/appointments/{made['id']}")).status == 404


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/calendars", {"provider": "abacus", "name": "x"}),
        ("/v1/calendars", {"provider": "local", "name": "x", "settings": {"url": "https://example.com"}}),
        ("/v1/appointment-types", {"name": "x", "calendar_ids": [UNKNOWN_ID], "hours": ALWAYS}),
        ("/v1/appointment-types", {"name": "x", "calendar_ids": [], "hours": ALWAYS}),
        ("/v1/appointment-types", {"name": "x", "calendar_ids": [UNKNOWN_ID], "hours": {**ALWAYS, "timezone": "Mars"}}),
        ("/v1/appointment-types", {"name": "x", "calendar_ids": [UNKNOWN_ID], "hours": {"timezone": "UTC"}}),
    ],
)
async def test_bad_configuration_is_refused(caller: Caller, path: str, body: Json) -> None:
    refused = await caller.post(path, body)
    assert refused.status == 422, refused.body


async def test_other_organizations_see_nothing(caller: Caller, stranger: Caller, organizations: Organizations) -> None:
    calendar = await connect_calendar(caller)
    type_id = await create_type(caller, calendar)
    slot = (await list_free(caller, type_id, limit=1))[0]
    made = await create(caller, "/v1/appointments", build_request(slot))
    for path in (f"/v1/calendars/{calendar}", f"/v1/appointment-types/{type_id}", f"/v1/appointments/{made['id']}"):
        for method in ("GET", "DELETE"):
            assert (await stranger.send(method, path)).status == 404, path
        assert (await stranger.send("PATCH", path, {"name": "x"})).status == 404, path
    assert (await stranger.get(f"/v1/appointment-types/{type_id}/availability")).status == 404
    body: Json = {"name": "x", "calendar_ids": [calendar], "hours": ALWAYS}
    assert (await stranger.post("/v1/appointment-types", body)).status == 422
    reader = await organizations.create(scopes=["calendar:read"])
    assert (await reader.get("/v1/appointments")).status == 200
    assert (await reader.post("/v1/calendars", {"provider": "local", "name": "x"})).status == 403


async def test_availability_has_a_time_zone_and_a_period(caller: Caller) -> None:
    type_id = await create_type(caller)
    slots = await list_free(caller, type_id, time_zone="Asia/Kathmandu", limit=3)
    for slot in slots:
        local = datetime.fromisoformat(str(slot["local_starts_at"]))
        assert local.utcoffset() == timedelta(hours=5, minutes=45)
        assert local.astimezone(UTC) == datetime.fromisoformat(str(slot["starts_at"]))
    path = f"/v1/appointment-types/{type_id}/availability"
    for query in ("time_zone=Mars", "from=yesterday", "from=2026-12-02T00:00:00Z&to=2026-12-01T00:00:00Z", "limit=0"):
        assert (await caller.get(f"{path}?{query}")).status == 422, query
