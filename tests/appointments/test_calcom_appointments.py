"""Appointments whose calendar is an event type at cal.com."""

from collections.abc import AsyncIterator
from datetime import datetime

import pytest
import pytest_asyncio

from tests.api.test_appointments import build_request, create, create_type, list_free
from tests.fixtures.app import Caller
from tests.fixtures.calcom_server import API_KEY, EVENT_TYPE_ID, CalcomServer, run_calcom
from tests.fixtures.json_access import Json

pytestmark = pytest.mark.local_receivers


@pytest_asyncio.fixture
async def server() -> AsyncIterator[CalcomServer]:
    async with run_calcom() as running:
        yield running


async def connect(caller: Caller, server: CalcomServer) -> str:
    settings: Json = {
        "api_key": API_KEY,
        "event_type_id": EVENT_TYPE_ID,
        "attendee_email": "desk@example.com",
        "url": server.url,
    }
    body: Json = {"provider": "calcom", "name": "Practice", "settings": settings}
    return str((await create(caller, "/v1/calendars", body))["id"])


def list_starts(server: CalcomServer) -> list[datetime]:
    return [datetime.fromisoformat(each["start"]) for each in server.list_active()]


async def test_an_appointment_is_a_booking_that_moves_and_goes(caller: Caller, server: CalcomServer) -> None:
    """Also to a time that overlaps its own, and when another person books in between."""
    type_id = await create_type(caller, await connect(caller, server), duration_minutes=60)
    first, second, third, fourth = await list_free(caller, type_id, limit=4)
    starts = [datetime.fromisoformat(str(slot["starts_at"])) for slot in (first, second, third, fourth)]
    made = await create(caller, "/v1/appointments", build_request(first))
    assert list_starts(server) == [starts[0]]
    assert server.list_active()[0]["attendees"][0]["name"] == "Ada"
    path = f"/v1/appointments/{made['id']}"
    assert (await caller.send("PATCH", path, {"slot_token": second["slot_token"]})).status == 200
    assert list_starts(server) == [starts[1]]
    server.book(starts[3])
    refused = await caller.send("PATCH", path, {"slot_token": fourth["slot_token"]})
    assert (refused.status, refused.json["code"]) == (409, "slot_taken")
    assert sorted(list_starts(server)) == [starts[1], starts[3]]
    free = {str(slot["starts_at"]) for slot in await list_free(caller, type_id, limit=3)}
    assert not free & {str(slot["starts_at"]) for slot in (first, second, third, fourth)}
    assert (await caller.send("DELETE", path)).status == 204
    assert list_starts(server) == [starts[3]]


async def test_another_length_books_nothing(caller: Caller, server: CalcomServer) -> None:
    type_id = await create_type(caller, await connect(caller, server), duration_minutes=30)
    (slot,) = await list_free(caller, type_id, limit=1)
    refused = await caller.send("POST", "/v1/appointments", build_request(slot))
    assert refused.status == 502
    assert "give the appointment type the same length" in str(refused.json["detail"])
    assert server.bookings == {}
    again = (await list_free(caller, type_id, limit=1))[0]
    assert again["starts_at"] == slot["starts_at"], "the time is free again"
