"""Calendars whose accounts are connected by OAuth in the dashboard, and accounts that are refused."""

import asyncio
import re
from collections.abc import AsyncIterator
from functools import partial
from uuid import UUID

import pytest
from pydantic import JsonValue
from switchboard.apps.embedded import DataDirectory
from switchboard.apps.process_runtime import open_process_runtime
from switchboard.engine.providers import editing
from switchboard.engine.providers.configuration import ProviderSpec
from switchboard.foundation.settings import Settings
from switchboard.plugin_sdk.registry import Capability, Registry
from switchboard.resources.appointments.calendars import CalendarConnections
from switchboard.resources.appointments.models import Calendar
from switchboard.runtime import Runtime

from tests.api.test_appointments import build_request, create, create_type, list_free
from tests.fixtures import oauth_calendar, paper_calendar
from tests.fixtures.app import Caller
from tests.fixtures.dashboard import PageResponse, People, Person
from tests.fixtures.eventually import eventually
from tests.fixtures.json_access import Json, objects_at
from tests.fixtures.oauth_calendar import CLIENT_ID, CLIENT_SECRET, EVENTS, CloudCalendar, CloudServer, serve_cloud
from tests.fixtures.paper_calendar import BOOKS
from tests.fixtures.virtual_clock import CLOCK

BEGIN = "/dashboard/calendars/oauth/cloud"
COOKIE = "connected_account"


@pytest.fixture(scope="module")
def registry() -> Registry:
    registry = paper_calendar.discover_plugins()
    assert not registry.add("cloud", oauth_calendar).faults
    return registry


@pytest.fixture
async def server() -> AsyncIterator[CloudServer]:
    async with serve_cloud() as server:
        yield server


async def set_up(runtime: Runtime, organization_id: UUID, server: CloudServer) -> None:
    """Configure the provider for an organization, as its operator does."""
    settings: dict[str, JsonValue] = {
        "server": server.url,
        "client_id": CLIENT_ID,
        "client_secret": CLIENT_SECRET,
    }
    spec = ProviderSpec(Capability.CALENDAR, "cloud", settings)
    async with runtime.database.write(organization_id) as session:
        await editing.put_provider(session, runtime.registry, runtime.keyring, spec, by_operator=True)


@pytest.fixture
async def owner(people: People, caller: Caller, runtime: Runtime, server: CloudServer) -> Person:
    """An owner of an organization that can use the vendor."""
    await set_up(runtime, caller.organization_id, server)
    return await people.join(caller.organization_id)


async def list_calendars(caller: Caller) -> list[Json]:
    return objects_at((await caller.get("/v1/calendars")).json, "items")


async def connect(owner: Person, caller: Caller, server: CloudServer, account: str = "ada") -> str:
    """Connect an account in the dashboard, and return the calendar's id."""
    known = {calendar["id"] for calendar in await list_calendars(caller)}
    response = await owner.get(server.consent((await owner.post(BEGIN)).html, account))
    assert (response.status, response.location) == (303, "/dashboard/calendars")
    (made,) = [calendar for calendar in await list_calendars(caller) if calendar["id"] not in known]
    return str(made["id"])


async def read_notice(person: Person) -> str:
    return (await person.get("/dashboard/calendars")).html


async def come_back(owner: Person, path: str) -> str:
    """Come back from the vendor, and return the page to which that leads."""
    response = await owner.get(path)
    assert (response.status, response.location) == (303, "/dashboard/calendars")
    return await read_notice(owner)


async def get_calendar(caller: Caller, calendar_id: str) -> Json:
    return (await caller.get(f"/v1/calendars/{calendar_id}")).json


async def read_row(runtime: Runtime, caller: Caller, calendar_id: str) -> Calendar:
    async with runtime.database.write(caller.organization_id) as session:
        row = await session.find(Calendar, UUID(calendar_id))
    assert row is not None
    return row


async def ask(caller: Caller, type_id: str) -> int:
    """Ask for free times, and return the status."""
    return (await caller.get(f"/v1/appointment-types/{type_id}/availability")).status


async def use_calendar(process: Runtime, row: Calendar) -> None:
    """Use the account of a calendar."""
    async with process.call(CalendarConnections).open(row) as provider:
        assert isinstance(provider, CloudCalendar)
        assert provider.user == "ada"


async def read_delivery(caller: Caller) -> Json:
    """Return the body of the only delivery of an event of calendars."""
    (delivery,) = objects_at((await caller.get("/v1/webhook-deliveries")).json, "items")
    body = (await caller.get(f"/v1/webhook-deliveries/{delivery['id']}")).json["payload"]
    assert isinstance(body, dict)
    return body


async def subscribe(caller: Caller) -> None:
    endpoint: Json = {"url": "https://example.com/hook", "events": ["calendar.disconnected"]}
    await create(caller, "/v1/webhook-endpoints", endpoint)


def get_cookie(response: PageResponse) -> str:
    """Return the sealed state that a response sets."""
    (found,) = (
        text
        for text in response.headers.getlist("Set-Cookie")
        if text.startswith(f"{COOKIE}=") and "Max-Age=600" in text
    )
    return found.partition("=")[2].partition(";")[0]


async def test_an_account_is_connected_and_books_appointments(
    owner: Person, caller: Caller, runtime: Runtime, server: CloudServer, people: People
) -> None:
    page = (await owner.get("/dashboard/calendars")).html
    assert "Connect Cloud" in page
    began = await owner.post(BEGIN)
    assert began.status == 200
    (cookie,) = (text for text in began.headers.getlist("Set-Cookie") if text.startswith(COOKIE))
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
    assert "Path=/dashboard/calendars/oauth" in cookie
    assert "Ada, main is connected." in await come_back(owner, server.consent(began.html))
    (made,) = await list_calendars(caller)
    assert (made["provider"], made["name"], made["status"]) == ("cloud", "Ada, main", "connected")
    assert (made["settings"], made["time_zone"]) == ({}, "Europe/Berlin"), "no token is returned"
    slot = (await list_free(caller, await create_type(caller, str(made["id"])), limit=1))[0]
    await create(caller, "/v1/appointments", build_request(slot))
    assert len(EVENTS["ada"]) == 1
    row = await read_row(runtime, caller, str(made["id"]))
    html = (await owner.get("/dashboard/calendars")).html + (await owner.get(f"/dashboard/calendars/{made['id']}")).html
    for token in server.given:
        assert token not in f"{row.secrets} {row.settings} {html}"
    entries = await people.list_audit_entries(caller.organization_id)
    assert (f"user:{owner.user_id}", "calendar.connected", f"{made['id']} name, provider") in entries


async def test_only_the_user_who_began_comes_back_once(
    owner: Person, caller: Caller, people: People, server: CloudServer
) -> None:
    began = await owner.post(BEGIN)
    back = server.consent(began.html)
    other = await people.join(caller.organization_id)
    assert "started in another browser" in await come_back(other, back), "another browser"
    assert "started in another browser" in await come_back(owner, back.replace("state=", "state=x"))
    assert "started in another browser" in await come_back(owner, back), "the state is used up by the first way back"
    assert "started in another browser" in await come_back(owner, "/dashboard/calendars/oauth")
    assert not server.requests
    again = server.consent((await owner.post(BEGIN)).html)
    CLOCK.advance(601)
    assert "started in another browser" in await come_back(owner, again), "it has expired"
    assert not await list_calendars(caller)
    good = server.consent((await owner.post(BEGIN)).html)
    assert "is connected" in await come_back(owner, good)
    assert "started in another browser" in await come_back(owner, good), "replayed"
    assert len(await list_calendars(caller)) == 1


async def test_the_sealed_state_of_one_user_is_refused_to_another(
    owner: Person, caller: Caller, people: People, server: CloudServer
) -> None:
    began = await owner.post(BEGIN)
    back, sealed = server.consent(began.html), get_cookie(began)
    other = await people.join(caller.organization_id)
    other.client.set_cookie("localhost", COOKIE, sealed, path="/dashboard/calendars/oauth")
    assert "started in another browser" in await come_back(other, back)
    assert not server.requests


@pytest.mark.parametrize(
    ("changes", "fault", "message"),
    [
        ({"error": "access_denied", "code": ""}, "", "You have not allowed access to the account of Cloud."),
        ({"error": "server_error", "code": ""}, "", "did not give access to the account: server_error"),
        ({"error": "<script>", "code": ""}, "", "did not give access to the account: no code"),
        ({"code": ""}, "", "did not give access to the account: no code"),
        ({"code": "another"}, "", "The consent of Cloud is not valid any more."),
        ({}, "no refresh token", "returned no refresh token"),
        ({}, "garbage", "is not understood"),
        ({}, "down", "answers with status 503"),
        ({}, "unauthorized_client", "refuses the request (unauthorized_client)"),
    ],
)
async def test_what_the_vendor_does_not_give_is_said_and_nothing_is_saved(
    owner: Person, caller: Caller, server: CloudServer, *, changes: dict[str, str], fault: str, message: str
) -> None:
    server.fault = fault
    page = await come_back(owner, server.consent((await owner.post(BEGIN)).html, **changes))
    assert message in page
    assert not await list_calendars(caller)


async def test_a_wrong_code_verifier_gives_no_tokens(owner: Person, caller: Caller, server: CloudServer) -> None:
    back = server.consent((await owner.post(BEGIN)).html)
    (asked,) = server.codes.values()
    asked["code_challenge"] = "another"
    assert "not valid any more" in await come_back(owner, back)
    assert not server.given


async def test_a_vendor_that_cannot_be_reached_is_named(owner: Person, caller: Caller, server: CloudServer) -> None:
    back = server.consent((await owner.post(BEGIN)).html)
    server.delay = 60
    began_at = asyncio.get_running_loop().time()
    assert "cannot be reached" in await come_back(owner, back)
    assert asyncio.get_running_loop().time() - began_at < 15
    assert not await list_calendars(caller)


async def test_a_setting_without_a_calendar_is_refused(owner: Person, caller: Caller, server: CloudServer) -> None:
    path = f"/v1/calendars/{await connect(owner, caller, server)}"
    refused = await caller.send("PATCH", path, {"settings": {"calendar": "unknown"}})
    assert (refused.status, "no calendar" in str(refused.json)) == (422, True)
    page = await owner.post(f"/dashboard{path.removeprefix('/v1')}", {"name": "Ada", "settings.calendar": "unknown"})
    assert page.status == 422
    assert "no calendar that events can be written to" in page.html
    assert 'value="unknown"' in page.html
    assert "access_token" not in page.html


async def test_an_organization_without_the_registration_reads_what_is_missing(
    people: People, caller: Caller, server: CloudServer
) -> None:
    owner = await people.join(caller.organization_id)
    page = (await owner.get("/dashboard/calendars")).html
    assert "Cloud is not set up" in page
    assert "client_id" in page
    assert "/dashboard/providers/calendar/cloud" in page
    assert "Connect Cloud" not in page
    refused = await owner.post(BEGIN)
    assert refused.status == 303
    assert (await owner.post("/dashboard/calendars/oauth/paper")).status == 404
    assert (await owner.post("/dashboard/calendars/oauth/unheard-of")).status == 404


async def test_the_api_connects_no_such_account_and_takes_no_token(
    owner: Person, caller: Caller, server: CloudServer
) -> None:
    body: Json = {"provider": "cloud", "name": "Ada", "settings": {"access_token": "stolen"}}
    refused = await caller.post("/v1/calendars", body)
    assert (refused.status, refused.json["errors"]) == (
        422,
        [{"field": "provider", "message": "is connected in the dashboard"}],
    )
    path = f"/v1/calendars/{await connect(owner, caller, server)}"
    for token in ("stolen", None):
        refused = await caller.send("PATCH", path, {"settings": {"access_token": token}})
        assert (refused.status, objects_at(refused.json, "errors")[0]["field"]) == (422, "settings.access_token")
    changed = await caller.send("PATCH", path, {"settings": {"calendar": "work"}})
    assert (changed.status, changed.json["settings"]) == (200, {"calendar": "work"})
    CLOCK.advance(3600)
    changed = await caller.send("PATCH", path, {"settings": {"calendar": None}})
    assert (changed.status, changed.json["settings"]) == (200, {}), "with a token that was refreshed first"
    CLOCK.advance(3600)
    type_id = await create_type(caller, path.rpartition("/")[2])
    assert await ask(caller, type_id) == 200, "the new refresh token was kept"
    assert server.requests.count("refresh_token") == 2


async def test_tokens_are_refreshed_and_rotate(owner: Person, caller: Caller, server: CloudServer) -> None:
    type_id = await create_type(caller, await connect(owner, caller, server))
    for rounds in range(3):
        assert await ask(caller, type_id) == 200
        assert server.requests.count("refresh_token") == rounds
        CLOCK.advance(3600 - 119)
    before = await caller.get("/v1/calendars")
    assert await ask(caller, type_id) == 200
    assert (await caller.get("/v1/calendars")).json == before.json, "a refresh is no change of the calendar"


async def test_a_token_without_an_end_is_refreshed_when_it_is_refused(
    owner: Person, caller: Caller, server: CloudServer
) -> None:
    server.lifetime = None
    type_id = await create_type(caller, await connect(owner, caller, server))
    CLOCK.advance(86_400)
    for rounds in range(2):
        assert await ask(caller, type_id) == 200
        server.accounts.clear()
        assert await ask(caller, type_id) == 502, "the token is refused"
        assert (await list_calendars(caller))[0]["status"] == "connected"
        assert await ask(caller, type_id) == 200, "and refreshed for the next use"
        assert server.requests.count("refresh_token") == rounds + 1


async def test_a_fresh_token_that_is_refused_once_more_disconnects(
    owner: Person, caller: Caller, server: CloudServer
) -> None:
    calendar_id = await connect(owner, caller, server)
    type_id = await create_type(caller, calendar_id)
    server.takes_tokens = False
    assert await ask(caller, type_id) == 502
    assert (await get_calendar(caller, calendar_id))["status"] == "connected", "the token alone may be bad"
    assert await ask(caller, type_id) == 502
    found = await get_calendar(caller, calendar_id)
    assert (found["status"], found["error_message"]) == ("disconnected", "the cloud does not take this token")
    assert server.requests.count("refresh_token") == 1


async def test_a_refusal_that_was_overcome_counts_no_more(owner: Person, caller: Caller, server: CloudServer) -> None:
    calendar_id = await connect(owner, caller, server)
    type_id = await create_type(caller, calendar_id)
    for _ in range(3):
        server.accounts.clear()
        assert await ask(caller, type_id) == 502
        assert await ask(caller, type_id) == 200
        assert (await get_calendar(caller, calendar_id))["status"] == "connected"


async def test_uses_at_once_in_two_processes_send_one_request_for_a_token(
    owner: Person,
    caller: Caller,
    *,
    server: CloudServer,
    runtime: Runtime,
    settings: Settings,
    registry: Registry,
    servers: DataDirectory,
) -> None:
    row = await read_row(runtime, caller, await connect(owner, caller, server))
    CLOCK.advance(3600)
    server.delay = 2
    urls = {"database_url": servers.database_url, "redis_url": servers.redis_url}

    async with open_process_runtime(settings, **urls, registry=registry) as another:
        await asyncio.gather(*(use_calendar(process, row) for process in (runtime, another) for _ in range(4)))
    assert server.requests.count("refresh_token") == 1


async def test_a_refresh_outlives_the_use_that_needed_it(
    owner: Person, caller: Caller, server: CloudServer, runtime: Runtime
) -> None:
    row = await read_row(runtime, caller, await connect(owner, caller, server))
    CLOCK.advance(3600)
    server.delay = 2
    use = asyncio.create_task(use_calendar(runtime, row))
    await eventually(partial(asyncio.sleep, 0), lambda _: "refresh_token" in server.requests)
    use.cancel()
    await asyncio.wait({use})
    assert use.cancelled()
    await use_calendar(runtime, row)
    assert server.requests.count("refresh_token") == 1, "the refresh token that the vendor gave was not lost"


async def test_a_token_server_that_is_down_disconnects_nothing(
    owner: Person, caller: Caller, server: CloudServer
) -> None:
    calendar_id = await connect(owner, caller, server)
    type_id = await create_type(caller, calendar_id)
    CLOCK.advance(3600)
    for fault in ("down", "garbage", "invalid_client", "temporarily_unavailable"):
        server.fault = fault
        assert await ask(caller, type_id) == 502
        assert (await get_calendar(caller, calendar_id))["status"] == "connected", fault
    server.fault = ""
    assert await ask(caller, type_id) == 200


async def test_a_revoked_grant_disconnects_until_it_is_connected_again(
    owner: Person, caller: Caller, server: CloudServer, people: People
) -> None:
    calendar_id = await connect(owner, caller, server)
    type_id = await create_type(caller, calendar_id)
    slot = (await list_free(caller, type_id, limit=1))[0]
    await subscribe(caller)
    server.end_grants()
    CLOCK.advance(3600)
    answers = await asyncio.gather(*(caller.get(f"/v1/appointment-types/{type_id}/availability") for _ in range(3)))
    assert [answer.status for answer in answers] == [502] * 3
    found = await get_calendar(caller, calendar_id)
    reason = "the access was revoked or has expired at the vendor (invalid_grant)"
    assert (found["status"], found["error_message"]) == ("disconnected", reason)
    event = await read_delivery(caller)
    assert event["event"] == "calendar.disconnected"
    data = event["data"]
    assert isinstance(data, dict)
    assert {**data, "disconnected_at": ""} == {
        "calendar_id": calendar_id,
        "name": "Ada, main",
        "provider": "cloud",
        "error_message": reason,
        "disconnected_at": "",
    }
    entries = await people.list_audit_entries(caller.organization_id)
    assert [entry for entry in entries if entry[1] == "calendar.disconnected"] == [
        ("system", "calendar.disconnected", calendar_id)
    ]
    asked = len(server.requests)
    refused = await caller.post("/v1/appointments", build_request(slot))
    assert refused.status in (422, 502)
    again = await caller.get(f"/v1/appointment-types/{type_id}/availability")
    assert reason in str(again.json["detail"])
    assert len(server.requests) == asked, "the vendor is asked no more"

    page = (await owner.get("/dashboard/calendars")).html
    assert reason in page
    assert "Connect again" in page
    began = await owner.post(BEGIN, {"calendar_id": calendar_id})
    assert "is connected" in await come_back(owner, server.consent(began.html))
    (only,) = await list_calendars(caller)
    assert (only["id"], only["status"], only["error_message"]) == (calendar_id, "connected", None)
    assert await ask(caller, type_id) == 200
    assert "Connect again" not in (await owner.get("/dashboard/calendars")).html


async def test_a_removed_calendar_revokes_its_tokens(owner: Person, caller: Caller, server: CloudServer) -> None:
    first, second = [await connect(owner, caller, server) for _ in range(2)]
    refresh = server.given[-1]
    assert (await owner.post(f"/dashboard/calendars/{first}/remove")).status == 303
    assert not server.revoked, "the other calendar may be of the same grant"
    assert (await caller.send("DELETE", f"/v1/calendars/{second}")).status == 204
    assert server.revoked == [refresh]
    assert not await list_calendars(caller)


async def test_a_calendar_goes_although_its_tokens_cannot_be_revoked(
    owner: Person, caller: Caller, server: CloudServer, capsys: pytest.CaptureFixture[str]
) -> None:
    calendar_id = await connect(owner, caller, server)
    server.fault = "down"
    capsys.readouterr()
    assert (await caller.send("DELETE", f"/v1/calendars/{calendar_id}")).status == 204
    log = capsys.readouterr().out
    assert "tokens of a calendar were not revoked" in log
    assert not any(token in log for token in server.given)
    assert not await list_calendars(caller)


async def test_another_organization_connects_nothing_of_this_one(
    owner: Person,
    caller: Caller,
    *,
    stranger: Caller,
    people: People,
    server: CloudServer,
    runtime: Runtime,
) -> None:
    calendar_id = await connect(owner, caller, server)
    await set_up(runtime, stranger.organization_id, server)
    foreigner = await people.join(stranger.organization_id)
    assert (await foreigner.post(BEGIN, {"calendar_id": calendar_id})).status == 404
    assert (await foreigner.get(f"/dashboard/calendars/{calendar_id}")).status == 404
    assert (await foreigner.post(f"/dashboard/calendars/{calendar_id}", {"name": "Mine"})).status == 404
    assert (await foreigner.post(f"/dashboard/calendars/{calendar_id}/remove")).status == 404
    assert "Ada, main" not in (await foreigner.get("/dashboard/calendars")).html
    builder = await people.join(caller.organization_id, role="builder")
    page = (await builder.get("/dashboard/calendars")).html
    assert "Ada, main" in page
    assert "Remove" not in page
    assert "Connect" not in page.replace("Connected", "")
    assert (await builder.post(BEGIN)).status == 403
    assert (await builder.get("/dashboard/calendars/oauth?code=a&state=b")).status == 403


# Accounts that need no OAuth.


async def test_the_page_is_in_the_language_of_its_reader(owner: Person, caller: Caller) -> None:
    await create(caller, "/v1/calendars", {"provider": "local", "name": "Empfang"})
    owner.headers["Accept-Language"] = "de"
    page = (await owner.get("/dashboard/calendars")).html
    assert page.count("Eingebauter Kalender") == 2
    assert "verbunden" in page
    assert "Er braucht kein Konto." in (await owner.get("/dashboard/calendars/new/local")).html


async def test_a_calendar_is_connected_by_a_form_that_loses_nothing(owner: Person, caller: Caller, paper: str) -> None:
    path = "/dashboard/calendars/new/paper"
    page = (await owner.get(path)).html
    assert re.search(r'name="settings.password" type="password"', page)
    wrong = await owner.post(path, {"name": "Front desk", "settings.book": paper, "settings.password": "chalk"})
    assert wrong.status == 422
    assert "the paper does not know this password" in wrong.html
    assert f'value="{paper}"' in wrong.html
    assert 'value="Front desk"' in wrong.html
    assert "chalk" not in wrong.html
    missing = await owner.post(path, {"name": "", "settings.book": "", "settings.password": "pencil"})
    assert missing.status == 422
    assert "fault-name" in missing.html
    typed = re.search(r'name="settings.password:typed" value="([^"]+)"', missing.html)
    assert typed, "a typed secret survives the refusal"
    fields: dict[str, str | list[str]] = {
        "name": "Front desk",
        "settings.book": "",
        "settings.password": "",
        "settings.password:typed": typed[1],
    }
    assert "fault-settings.book" in (await owner.post(path, fields)).html
    assert (await owner.post(path, {**fields, "settings.book": paper})).status == 303
    (made,) = await list_calendars(caller)
    assert (made["name"], made["settings"], made["status"]) == ("Front desk", {"book": paper}, "connected")
    edit = f"/dashboard/calendars/{made['id']}"
    assert "A value is set" in (await owner.get(edit)).html
    saved = await owner.post(edit, {"name": "Desk", "settings.book": paper, "settings.password": ""})
    assert saved.status == 303
    assert (await get_calendar(caller, str(made["id"])))["name"] == "Desk"
    assert (await owner.post("/dashboard/calendars/new/local", {"name": "Here"})).status == 303
    assert (await owner.get("/dashboard/calendars/new/cloud")).status == 404
    assert (await owner.post("/dashboard/calendars/new/cloud", {"name": "Here"})).status == 404


@pytest.mark.parametrize("moment", ["reading", "booking", "settling"])
async def test_an_account_that_is_refused_disconnects_the_calendar_once(
    owner: Person, caller: Caller, paper: str, moment: str
) -> None:
    settings: Json = {"book": paper, "password": "pencil"}
    made = await create(caller, "/v1/calendars", {"provider": "paper", "name": "Paper", "settings": settings})
    type_id, path = await create_type(caller, str(made["id"])), f"/v1/calendars/{made['id']}"
    await subscribe(caller)
    first, second = await list_free(caller, type_id, limit=2)
    booked = await create(caller, "/v1/appointments", build_request(first))
    BOOKS[paper].fault = "locked out"
    if moment == "reading":
        assert set(await asyncio.gather(*(ask(caller, type_id) for _ in range(3)))) == {502}
    elif moment == "booking":
        refused = await caller.post("/v1/appointments", build_request(second))
        assert refused.status == 502
        assert "Nothing was changed" in str(refused.json["detail"])
    else:
        assert (await caller.send("DELETE", f"/v1/appointments/{booked['id']}")).status == 204
    found = (await caller.get(path)).json
    assert (found["status"], found["error_message"]) == (
        "disconnected",
        "the paper does not know this password any more",
    )
    assert (await read_delivery(caller))["event"] == "calendar.disconnected", "once"
    refused = await caller.send("PATCH", path, {"settings": {"password": "pencil"}})
    assert refused.status == 422, "it is tried, and refused"
    BOOKS[paper].fault = ""
    page = (await owner.get(f"/dashboard/calendars/{made['id']}")).html
    assert "The calendar is disconnected" in page
    again = await owner.post(f"/dashboard/calendars/{made['id']}", {"name": "Paper", "settings.book": paper})
    assert again.status == 303
    assert (await caller.get(path)).json["status"] == "connected"
    assert await ask(caller, type_id) == 200
