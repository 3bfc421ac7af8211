"""A server that is stopped while it holds a call."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest
from aiohttp import CookieJar
from switchboard.apps.server import app
from switchboard.apps.server.http_server import StopRequest, serve_http
from switchboard.engine.conversation.turn_taking import FAREWELLS
from switchboard.foundation.settings import Settings
from switchboard.runtime import Runtime

from tests.fixtures.app import LivePlatform, Organizations, create_bakery, fresh_number
from tests.fixtures.dashboard import PASSWORD, create_person
from tests.fixtures.eventually import eventually, wait_for_port
from tests.fixtures.json_access import Json, objects_at
from tests.fixtures.monitors import connect_telephone

pytestmark = pytest.mark.usefixtures("running_worker")


@pytest.fixture
def settings(settings: Settings, request: pytest.FixtureRequest) -> Settings:
    return settings.model_copy(update={"drain_seconds": request.param})


@asynccontextmanager
async def start_server(runtime: Runtime) -> AsyncIterator[StopRequest]:
    """Serve until the event is set, as SIGTERM does."""
    stop = StopRequest()
    application = app.build_asgi_app(app.create_app(runtime), runtime)
    serving = asyncio.create_task(serve_http(application, runtime.settings, runtime.engine, stop))
    await wait_for_port(runtime.settings.host, runtime.settings.port)
    try:
        yield stop
    finally:
        stop.set()
        await serving


async def read_readiness(runtime: Runtime) -> tuple[int, Json]:
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{runtime.settings.base_url}/readyz") as response,
    ):
        return response.status, await response.json()


@pytest.fixture
async def live(runtime: Runtime, organizations: Organizations) -> LivePlatform:
    return await create_bakery(runtime, await organizations.create(), fresh_number())


@pytest.mark.parametrize("settings", [60], indirect=True)
async def test_a_draining_server_serves_on_until_its_calls_have_ended(live: LivePlatform) -> None:
    runtime = live.runtime
    async with start_server(runtime) as stop:
        assert (await read_readiness(runtime))[0] == 200
        async with connect_telephone(live) as caller:
            stop.set()
            status, body = await eventually(lambda: read_readiness(runtime), lambda answer: answer[0] == 503)
            assert (status, body["status"]) == (503, "draining")
            assert (await live.caller.get("/v1/calls")).status == 200
            await caller.phone.wait(1.5)
            assert (await live.caller.get(f"/v1/calls/{caller.call_id}")).json["status"] == "in-progress"
    call = await live.wait_for_end(caller.call_id)
    assert (call["status"], call["ended_reason"]) == ("completed", "caller_hung_up")


@pytest.mark.parametrize("settings", [600], indirect=True)
async def test_a_second_signal_ends_the_calls_at_once(live: LivePlatform) -> None:
    async with start_server(live.runtime) as stop, connect_telephone(live) as caller:
        stop.handle_signal()
        await eventually(lambda: read_readiness(live.runtime), lambda answer: answer[0] == 503)
        stop.handle_signal()
        call = await live.wait_for_end(caller.call_id)
    assert (call["status"], call["ended_reason"]) == ("failed", "shutdown")


@pytest.mark.parametrize("settings", [1], indirect=True)
async def test_a_call_that_outlasts_the_drain_hears_a_sentence_and_its_contact_is_called_again(
    live: LivePlatform,
) -> None:
    fields = {"agent_id": live.agent_id, "phone_number_id": live.number_id, "retry": {"attempts": 1}}
    contacts = [{"phone_number": "+15550100070"}]  # silent
    campaign = (await live.caller.post("/v1/campaigns", {"name": "All", **fields, "contacts": contacts})).json

    async def read_contact() -> Json:
        (contact,) = objects_at((await live.caller.get(f"/v1/campaigns/{campaign['id']}/contacts")).json, "items")
        return contact

    async with start_server(live.runtime) as stop:
        await live.caller.post(f"/v1/campaigns/{campaign['id']}/start")
        await eventually(read_contact, lambda contact: contact["status"] == "in_progress")
        await eventually(lambda: _is_held(live))
        stop.set()
    (call,) = objects_at((await live.caller.get("/v1/calls")).json, "items")
    ended = await live.wait_for_end(call["id"])
    assert (ended["status"], ended["ended_reason"]) == ("failed", "shutdown")
    lines = (await live.caller.get(f"/v1/calls/{call['id']}/transcript")).json["items"]
    assert FAREWELLS["en"] in str(lines)
    assert (await read_contact())["status"] == "pending"


@pytest.mark.parametrize("settings", [0], indirect=True)
async def test_a_stopping_server_tells_event_streams_to_reconnect(live: LivePlatform, runtime: Runtime) -> None:
    owner = await create_person(runtime, live.caller.client, live.caller.organization_id)
    form = {"email": owner.email, "password": PASSWORD, "after": ""}
    async with (
        start_server(runtime) as stop,
        aiohttp.ClientSession(runtime.settings.base_url, cookie_jar=CookieJar(unsafe=True)) as session,
    ):
        await session.post("/dashboard/sign-in", data=form)
        async with session.get("/dashboard/live-parts", params={"part": "/dashboard/live/calls"}) as stream:
            assert stream.content_type == "text/event-stream"
            await stream.content.readany()
            stop.set()
            rest = await stream.content.read()
    assert rest.endswith(b"retry: 1000\n\n")
    assert b"over" not in rest


async def _is_held(live: LivePlatform) -> bool:
    return bool(live.runtime.engine.live_call_ids)
