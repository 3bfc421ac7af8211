"""Appointments whose calendar is at Google or Microsoft."""

import json
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from uuid import uuid4

import pytest
import pytest_asyncio
from aiohttp import web
from pydantic import JsonValue
from switchboard.engine.providers.configuration import ProviderSpec
from switchboard.engine.providers.connected_accounts import OAuthTokens
from switchboard.engine.providers.editing import put_provider
from switchboard.foundation.settings import Settings
from switchboard.foundation.web.principal import Limit, Principal
from switchboard.plugin_sdk.registry import Capability
from switchboard.resources.appointments.calendars import CalendarConnections
from switchboard.runtime import Runtime

from tests.api.test_appointments import build_request, create, create_type, list_free
from tests.appointments.test_booking import read_start
from tests.appointments.test_changes import look
from tests.fixtures import google_calendar_server, graph_server
from tests.fixtures.app import UNKNOWN_ID, Caller, Client
from tests.fixtures.google_calendar_server import PRIMARY, GoogleServer, run_google
from tests.fixtures.graph_server import GraphServer, run_graph
from tests.fixtures.json_access import text_at

pytestmark = pytest.mark.local_receivers
HOUR = timedelta(hours=1)
BASE = "https://voice.example.com"


class AtGoogle:
    """Google, as somebody sees it who opens the calendar."""

    name = "google"
    access_token = google_calendar_server.ACCESS_TOKEN

    def __init__(self, server: GoogleServer) -> None:
        self.server = server
        self.url = server.url

    def list_watches(self) -> list[str]:
        """List the addresses to which changes are reported."""
        return [channel["address"] for channel in self.server.channels.values()]

    def count_watches(self) -> int:
        """Count the watches that were made or renewed."""
        writes = [path for method, path, _ in self.server.requests if method in ("POST", "PATCH")]
        return len([path for path in writes if path.endswith("/watch") or "/subscriptions" in path])

    def forget_watches(self) -> None:
        """Let every watch end early."""
        self.server.channels.clear()

    def build_report(self) -> tuple[dict[str, str], bytes]:
        """Return headers and body of a report."""
        (channel,) = self.server.channels.values()
        return {"X-Goog-Resource-State": "exists", "X-Goog-Channel-Token": channel["token"]}, b""

    def list_starts(self) -> list[datetime]:
        """List the beginnings of the events."""
        events = [each for each in self.server.events[PRIMARY].values() if each["status"] != "cancelled"]
        return sorted(datetime.fromisoformat(each["start"]["dateTime"]) for each in events)

    def add(self, moment: datetime) -> None:
        """Write an event of an hour."""
        self.server.put(moment, moment + HOUR)

    def move(self, earlier: datetime, moment: datetime) -> None:
        """Move the event that begins at a moment."""
        start, end = ({"dateTime": each.isoformat(), "timeZone": "UTC"} for each in (moment, moment + HOUR))
        self.server.change(self._find(earlier), start=start, end=end)

    def delete(self, moment: datetime) -> None:
        """Delete the event that begins at a moment."""
        self.server.delete(self._find(moment))

    def _find(self, moment: datetime) -> str:
        events = [
            (key, each["start"]["dateTime"]) for key, each in self.server.events[PRIMARY].items() if "start" in each
        ]
        return next(key for key, text in events if datetime.fromisoformat(text) == moment)


class AtMicrosoft:
    """Microsoft 365, as somebody sees it who opens the calendar."""

    name = "microsoft"
    access_token = graph_server.ACCESS_TOKEN

    def __init__(self, server: GraphServer) -> None:
        self.server = server
        self.url = server.url

    def list_watches(self) -> list[str]:
        """List the addresses to which changes are reported."""
        return [each["notificationUrl"] for each in self.server.subscriptions.values()]

    def count_watches(self) -> int:
        """Count the watches that were made or renewed."""
        writes = [path for method, path, _ in self.server.requests if method in ("POST", "PATCH")]
        return len([path for path in writes if path.endswith("/watch") or "/subscriptions" in path])

    def forget_watches(self) -> None:
        """Let every watch end early."""
        self.server.subscriptions.clear()

    def build_report(self) -> tuple[dict[str, str], bytes]:
        """Return headers and body of a report."""
        (subscription,) = self.server.subscriptions.values()
        return {}, json.dumps({"value": [{"clientState": subscription["clientState"]}]}).encode()

    def list_starts(self) -> list[datetime]:
        """List the beginnings of the events."""
        return sorted(_read(each["start"]["dateTime"]) for each in self.server.events.values())

    def add(self, moment: datetime) -> None:
        """Write an event of an hour."""
        self.server.add(moment, moment + HOUR)

    def move(self, earlier: datetime, moment: datetime) -> None:
        """Move the event that begins at a moment."""
        start, end = (
            {"dateTime": f"{each:%Y-%m-%dT%H:%M:%S}.0000000", "timeZone": "UTC"} for each in (moment, moment + HOUR)
        )
        self.server.edit(self._find(earlier), start=start, end=end)

    def delete(self, moment: datetime) -> None:
        """Delete the event that begins at a moment."""
        self.server.remove(self._find(moment))

    def _find(self, moment: datetime) -> str:
        return next(key for key, each in self.server.events.items() if _read(each["start"]["dateTime"]) == moment)


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
    async with runtime.database.write(organization_id) as session:
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


@pytest.fixture
def settings(settings: Settings, request: pytest.FixtureRequest) -> Settings:
    """Settings with an https address for tests that are marked with `reported`; vendors report changes to no other."""
    is_reported = request.node.get_closest_marker("reported") is not None
    return settings.model_copy(update={"public_url": BASE}) if is_reported else settings


async def deliver(client: Client, url: str, headers: Mapping[str, str], body: bytes) -> tuple[int, bytes]:
    """Send a vendor's request to the platform."""
    assert url.startswith(f"{BASE}/calendars/")
    answer = await client.post(url.removeprefix(BASE), headers=dict(headers), data=body)
    return answer.status_code, await answer.get_data(as_text=False)


@pytest.mark.reported
async def test_a_vendor_reports_changes_at_once_until_the_calendar_is_removed(
    runtime: Runtime, caller: Caller, client: Client, vendor: AtGoogle | AtMicrosoft
) -> None:
    vendor.server.deliver = partial(deliver, client)
    calendar_id = await connect(runtime, caller, vendor)
    type_id = await create_type(caller, calendar_id, duration_minutes=60)
    slot = (await list_free(caller, type_id, limit=1))[0]
    path = f"/v1/appointments/{(await create(caller, '/v1/appointments', build_request(slot)))['id']}"
    await look(runtime, seconds=1)
    address = f"{BASE}/calendars/{vendor.name}/{caller.organization_id}/{calendar_id}"
    assert vendor.list_watches() == [address]
    await look(runtime)

    moment = read_start(slot) + 5 * HOUR
    vendor.move(read_start(slot), moment)
    await look(runtime)
    assert read_start((await caller.get(path)).json) != moment, "a watched calendar is asked each quarter of an hour"
    assert await vendor.server.notify() == [202 if vendor.name == "microsoft" else 200]
    await look(runtime, seconds=0)
    assert read_start((await caller.get(path)).json) == moment
    requests = len(vendor.server.requests)
    await look(runtime)
    assert len(vendor.server.requests) == requests, "nothing was reported"

    vendor.delete(moment)
    await look(runtime, seconds=15 * 60)
    assert (await caller.get(path)).json["status"] == "canceled", "a report may be lost"
    assert (await caller.send("DELETE", f"/v1/appointment-types/{type_id}")).status == 204
    assert (await caller.send("DELETE", f"/v1/calendars/{calendar_id}")).status == 204
    assert vendor.list_watches() == []


@pytest.mark.reported
async def test_a_watch_is_renewed_and_made_again_where_it_has_ended(
    runtime: Runtime, caller: Caller, client: Client, vendor: AtGoogle | AtMicrosoft
) -> None:
    vendor.server.deliver = partial(deliver, client)
    calendar_id = await connect(runtime, caller, vendor)
    type_id = await create_type(caller, calendar_id, duration_minutes=60, horizon_days=60)
    later = f"{datetime.now(UTC) + timedelta(days=30):%Y-%m-%dT00:00:00Z}"
    slot = (await list_free(caller, type_id, limit=1, **{"from": later}))[0]
    await create(caller, "/v1/appointments", build_request(slot))
    await look(runtime, seconds=1)
    await look(runtime, seconds=24 * 3600)
    assert vendor.count_watches() == 1, "less than half of its time has passed"
    await look(runtime, seconds=3 * 24 * 3600)
    assert (vendor.count_watches(), len(vendor.list_watches())) == (2, 1)
    vendor.forget_watches()
    await look(runtime, seconds=4 * 24 * 3600)
    assert len(vendor.list_watches()) == 1


@pytest.mark.reported
async def test_a_report_without_the_secret_of_the_watch_is_refused(
    runtime: Runtime, caller: Caller, stranger: Caller, client: Client, vendor: AtGoogle | AtMicrosoft
) -> None:
    vendor.server.deliver = partial(deliver, client)
    calendar_id = await connect(runtime, caller, vendor)
    type_id = await create_type(caller, calendar_id, duration_minutes=60)
    await create(caller, "/v1/appointments", build_request((await list_free(caller, type_id, limit=1))[0]))
    await look(runtime, seconds=1)
    (address,) = vendor.list_watches()
    headers, body = vendor.build_report()
    assert (await deliver(client, address, headers, body))[0] < 300
    other = await connect(runtime, stranger, vendor)
    foreign = [
        address.replace(calendar_id, other),
        address.replace(calendar_id, UNKNOWN_ID),
        address.replace(f"{caller.organization_id}/{calendar_id}", f"{stranger.organization_id}/{other}"),
    ]
    for url in foreign:
        assert (await deliver(client, url, headers, body))[0] == 403
    for bad in (b"", b"{}", b'{"value": []}', b'{"value": [{"clientState": "v1.x"}]}', b"[" * 5000, b"\xff"):
        assert (await deliver(client, address, {"X-Goog-Channel-Token": "v1.0a1b2c3d.Ä"}, bad))[0] == 403
    for path in ("google/1/2", f"google/{caller.organization_id}/2", f"nothing/{caller.organization_id}/{calendar_id}"):
        assert (await deliver(client, f"{BASE}/calendars/{path}", headers, body))[0] in (404, 502)
    wrong = f"{BASE}/calendars/caldav/{caller.organization_id}/{calendar_id}"
    assert (await deliver(client, wrong, headers, body))[0] == 403, "CalDAV reports nothing"


@pytest.mark.reported
async def test_a_calendar_that_is_not_watched_is_asked_each_minute(
    runtime: Runtime, caller: Caller, vendor: AtGoogle | AtMicrosoft
) -> None:
    """Such as one whose vendor cannot reach the platform."""

    async def refuse(request: web.Request) -> web.StreamResponse | None:
        fault = google_calendar_server.describe_fault(401, "push.webhookUrlUnauthorized")
        is_watch = request.path.endswith(("/watch", "/subscriptions"))
        return web.json_response(fault, status=401 if vendor.name == "google" else 400) if is_watch else None

    vendor.server.before = refuse
    type_id = await create_type(caller, await connect(runtime, caller, vendor), duration_minutes=60)
    slot = (await list_free(caller, type_id, limit=1))[0]
    path = f"/v1/appointments/{(await create(caller, '/v1/appointments', build_request(slot)))['id']}"
    await look(runtime)
    vendor.delete(read_start(slot))
    await look(runtime)
    assert (await caller.get(path)).json["status"] == "canceled"
    assert vendor.count_watches() == 1, "it is asked again in an hour"


async def test_a_search_uses_the_connection_of_the_one_before(
    runtime: Runtime, caller: Caller, vendor: AtGoogle | AtMicrosoft
) -> None:
    type_id = await create_type(caller, await connect(runtime, caller, vendor), duration_minutes=60)
    vendor.server.peers.clear()
    for _ in range(3):
        slots = await list_free(caller, type_id, limit=2)
    await create(caller, "/v1/appointments", build_request(slots[0]))
    assert len(vendor.server.peers) == 1
