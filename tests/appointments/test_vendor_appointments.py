"""Appointments whose calendar is at Google or Microsoft."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
import pytest_asyncio
from pydantic import JsonValue
from switchboard.engine.providers.configuration import ProviderSpec
from switchboard.engine.providers.connected_accounts import OAuthTokens
from switchboard.engine.providers.editing import put_provider
from switchboard.foundation.web.principal import Limit, Principal
from switchboard.plugin_sdk.registry import Capability
from switchboard.resources.appointments.calendars import CalendarConnections
from switchboard.runtime import Runtime

from tests.api.test_appointments import build_request, create, create_type, list_free
from tests.appointments.test_booking import read_start
from tests.appointments.test_changes import look
from tests.fixtures import google_calendar_server, graph_server
from tests.fixtures.app import Caller
from tests.fixtures.google_calendar_server import PRIMARY, GoogleServer, run_google
from tests.fixtures.graph_server import GraphServer, run_graph
from tests.fixtures.json_access import text_at

pytestmark = pytest.mark.local_receivers
HOUR = timedelta(hours=1)


class AtGoogle:
    """Google, as somebody sees it who opens the calendar."""

    name = "google"
    access_token = google_calendar_server.ACCESS_TOKEN

    def __init__(self, server: GoogleServer) -> None:
        self._server = server
        self.url = server.url

    def list_starts(self) -> list[datetime]:
        """List the beginnings of the events."""
        events = [each for each in self._server.events[PRIMARY].values() if each["status"] != "cancelled"]
        return sorted(datetime.fromisoformat(each["start"]["dateTime"]) for each in events)

    def add(self, moment: datetime) -> None:
        """Write an event of an hour."""
        self._server.put(moment, moment + HOUR)

    def move(self, earlier: datetime, moment: datetime) -> None:
        """Move the event that begins at a moment."""
        start, end = ({"dateTime": each.isoformat(), "timeZone": "UTC"} for each in (moment, moment + HOUR))
        self._server.change(self._find(earlier), start=start, end=end)

    def delete(self, moment: datetime) -> None:
        """Delete the event that begins at a moment."""
        self._server.delete(self._find(moment))

    def _find(self, moment: datetime) -> str:
        events = [
            (key, each["start"]["dateTime"]) for key, each in self._server.events[PRIMARY].items() if "start" in each
        ]
        return next(key for key, text in events if datetime.fromisoformat(text) == moment)


class AtMicrosoft:
    """Microsoft 365, as somebody sees it who opens the calendar."""

    name = "microsoft"
    access_token = graph_server.ACCESS_TOKEN

    def __init__(self, server: GraphServer) -> None:
        self._server = server
        self.url = server.url

    def list_starts(self) -> list[datetime]:
        """List the beginnings of the events."""
        return sorted(_read(each["start"]["dateTime"]) for each in self._server.events.values())

    def add(self, moment: datetime) -> None:
        """Write an event of an hour."""
        self._server.add(moment, moment + HOUR)

    def move(self, earlier: datetime, moment: datetime) -> None:
        """Move the event that begins at a moment."""
        start, end = (
            {"dateTime": f"{each:%Y-%m-%dT%H:%M:%S}.0000000", "timeZone": "UTC"} for each in (moment, moment + HOUR)
        )
        self._server.edit(self._find(earlier), start=start, end=end)

    def delete(self, moment: datetime) -> None:
        """Delete the event that begins at a moment."""
        self._server.remove(self._find(moment))

    def _find(self, moment: datetime) -> str:
        return next(key for key, each in self._server.events.items() if _read(each["start"]["dateTime"]) == moment)


def _read(text: str) -> datetime:
    return datetime.fromisoformat(text[:19]).replace(tzinfo=UTC)


@pytest_asyncio.fixture(params=["google", "microsoft"])
async def vendor(request: pytest.FixtureRequest) -> AsyncIterator[AtGoogle | AtMicrosoft]:
    if request.param == "google":
        async with run_google() as google:
            yield AtGoogle(google)
    else:
        async with run_graph() as graph:
            yield AtMicrosoft(graph)


async def connect(runtime: Runtime, caller: Caller, vendor: AtGoogle | AtMicrosoft) -> str:
    """Connect the user's own calendar, with tokens of a consent."""
    application: dict[str, JsonValue] = {"client_id": "1-a", "client_secret": "GOCSPX-1", "api_url": vendor.url}
    organization_id = caller.organization_id
    async with runtime.database.tenant(organization_id) as session:
        spec = ProviderSpec(Capability.CALENDAR, vendor.name, application)
        await put_provider(session, runtime.registry, runtime.keyring, spec, by_operator=True)
    principal = Principal(organization_id, uuid4(), "key:test", frozenset(), Limit(1, 1), Limit(1, 1))
    tokens = OAuthTokens(vendor.access_token, "refresh")
    return str((await runtime.call(CalendarConnections).connect_account(principal, vendor.name, tokens)).id)


async def test_an_appointment_is_an_event_that_moves_and_goes(
    runtime: Runtime, caller: Caller, vendor: AtGoogle | AtMicrosoft
) -> None:
    """Also to a time that overlaps its own, and when a person writes an event in between."""
    type_id = await create_type(caller, await connect(runtime, caller, vendor), duration_minutes=60)
    slots = await list_free(caller, type_id, limit=4)
    starts = [read_start(slot) for slot in slots]
    made = await create(caller, "/v1/appointments", build_request(slots[0]))
    assert vendor.list_starts() == [starts[0]]
    path = f"/v1/appointments/{made['id']}"
    assert (await caller.send("PATCH", path, {"slot_token": slots[1]["slot_token"]})).status == 200
    assert vendor.list_starts() == [starts[1]]
    vendor.add(starts[3])
    refused = await caller.send("PATCH", path, {"slot_token": slots[3]["slot_token"]})
    assert (refused.status, refused.json["code"]) == (409, "slot_taken")
    assert vendor.list_starts() == [starts[1], starts[3]]
    free = {text_at(slot, "starts_at") for slot in await list_free(caller, type_id, limit=3)}
    assert not free & {text_at(slot, "starts_at") for slot in slots}
    assert (await caller.send("DELETE", path)).status == 204
    assert vendor.list_starts() == [starts[3]]


async def test_what_people_change_there_changes_the_appointment(
    runtime: Runtime, caller: Caller, vendor: AtGoogle | AtMicrosoft
) -> None:
    type_id = await create_type(caller, await connect(runtime, caller, vendor), duration_minutes=60)
    slot = (await list_free(caller, type_id, limit=1))[0]
    path = f"/v1/appointments/{(await create(caller, '/v1/appointments', build_request(slot)))['id']}"
    await look(runtime)
    moment = read_start(slot) + 5 * HOUR
    vendor.move(read_start(slot), moment)
    await look(runtime)
    assert read_start((await caller.get(path)).json) == moment
    vendor.add(moment + HOUR)
    vendor.delete(moment)
    await look(runtime)
    assert (await caller.get(path)).json["status"] == "canceled"
