"""Appointments whose calendar is at Google."""

from collections.abc import AsyncIterator
from datetime import datetime, timedelta

import pytest
import pytest_asyncio
from pydantic import JsonValue
from switchboard.engine.providers.configuration import ProviderSpec
from switchboard.engine.providers.editing import put_provider
from switchboard.plugin_sdk.registry import Capability
from switchboard.runtime import Runtime

from tests.api.test_appointments import build_request, create, create_type, list_free
from tests.fixtures.app import Caller
from tests.fixtures.google_calendar_server import ACCESS_TOKEN, PRIMARY, GoogleServer, run_google
from tests.fixtures.json_access import Json

pytestmark = pytest.mark.local_receivers


@pytest_asyncio.fixture
async def server() -> AsyncIterator[GoogleServer]:
    async with run_google() as running:
        yield running


async def connect(runtime: Runtime, caller: Caller, server: GoogleServer) -> str:
    """Connect the primary calendar, with a token that the user has consented to."""
    application: dict[str, JsonValue] = {"client_id": "1-a", "client_secret": "GOCSPX-1", "api_url": server.url}
    async with runtime.database.tenant(caller.organization_id) as session:
        spec = ProviderSpec(Capability.CALENDAR, "google", application)
        await put_provider(session, runtime.registry, runtime.keyring, spec, by_operator=True)
    body: Json = {"provider": "google", "name": "Practice", "settings": {"access_token": ACCESS_TOKEN}}
    return str((await create(caller, "/v1/calendars", body))["id"])


def list_starts(server: GoogleServer) -> list[datetime]:
    events = [each for each in server.events[PRIMARY].values() if each["status"] != "cancelled"]
    return sorted(datetime.fromisoformat(each["start"]["dateTime"]) for each in events)


async def test_an_appointment_is_an_event_that_moves_and_goes(
    runtime: Runtime, caller: Caller, server: GoogleServer
) -> None:
    """Also to a time that overlaps its own, and when a person writes an event in between."""
    type_id = await create_type(caller, await connect(runtime, caller, server), duration_minutes=60)
    first, second, third, fourth = await list_free(caller, type_id, limit=4)
    starts = [datetime.fromisoformat(str(slot["starts_at"])) for slot in (first, second, third, fourth)]
    made = await create(caller, "/v1/appointments", build_request(first))
    assert list_starts(server) == [starts[0]]
    (event,) = server.events[PRIMARY].values()
    assert (event["summary"], event["description"]) == ("Consultation: Ada", "+15550100001")
    path = f"/v1/appointments/{made['id']}"
    assert (await caller.send("PATCH", path, {"slot_token": second["slot_token"]})).status == 200
    assert list_starts(server) == [starts[1]]
    server.put(starts[3], starts[3] + timedelta(hours=1))
    refused = await caller.send("PATCH", path, {"slot_token": fourth["slot_token"]})
    assert (refused.status, refused.json["code"]) == (409, "slot_taken")
    assert list_starts(server) == [starts[1], starts[3]]
    free = {str(slot["starts_at"]) for slot in await list_free(caller, type_id, limit=3)}
    assert not free & {str(slot["starts_at"]) for slot in (first, second, third, fourth)}
    assert (await caller.send("DELETE", path)).status == 204
    assert list_starts(server) == [starts[3]]
