"""Many callers who want few times, through two servers and two calendars, a calendar that does not confirm what it has
written, and a server that is killed.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import aiohttp
import pytest
from aiohttp import web
from pydantic import JsonValue
from sqlmodel import col, update
from switchboard.foundation.database import now
from switchboard.resources.appointments.calendars import CalendarConnections
from switchboard.resources.appointments.models import Appointment, Calendar, CalendarEntry
from switchboard.resources.appointments.queries import list_calendars

from tests.api.test_appointments import build_request, create, create_type, list_free
from tests.fixtures.app import LivePlatform
from tests.fixtures.caldav_servers import PASSWORD, USERNAME, CalDAVServer, run_radicale, run_xandikos
from tests.fixtures.eventually import eventually
from tests.fixtures.isolation import FREE
from tests.fixtures.json_access import Json
from tests.fixtures.processes import kill_process, run_another_process, start_live_platform

pytestmark = [pytest.mark.system, pytest.mark.timeout(900)]

CALLERS, TIMES, TRIES = 200, 10, 20


class Swallower:
    """A proxy of a calendar server that, while `answers` is not set, carries out what is written, but neither says so
    nor returns an event.
    """

    def __init__(self, server: CalDAVServer) -> None:
        self._server = server
        self.answers = asyncio.Event()
        self.answers.set()
        self.writes = 0

    @asynccontextmanager
    async def run(self) -> AsyncIterator[str]:
        """Serve, and yield the address."""
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._forward)
        runner = web.AppRunner(app, shutdown_timeout=0)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        try:
            yield f"http://127.0.0.1:{runner.addresses[0][1]}"
        finally:
            await runner.cleanup()

    async def _forward(self, request: web.Request) -> web.StreamResponse:
        headers = {name: value for name, value in request.headers.items() if name not in ("Host", "Content-Length")}
        content = await request.read()
        if request.method == "GET":
            await self.answers.wait()
        async with (
            aiohttp.ClientSession(auto_decompress=False) as http,
            http.request(request.method, self._server.url + request.raw_path, headers=headers, data=content) as got,
        ):
            body = await got.read()
            kept = {name: got.headers[name] for name in ("ETag", "Content-Type") if name in got.headers}
        if request.method == "PUT":
            self.writes += not self.answers.is_set()
            await self.answers.wait()
        return web.Response(status=got.status, headers=kept, body=body)


async def connect(live: LivePlatform, server: CalDAVServer, name: str, *, url: str = "", **more: JsonValue) -> str:
    account: Json = {"url": (url or server.url) + server.home, "username": USERNAME, "password": PASSWORD}
    settings: Json = {**account, **more}
    made = await create(live.caller, "/v1/calendars", {"provider": "caldav", "name": name, "settings": settings})
    return str(made["id"])


async def list_keys(live: LivePlatform) -> Counter[UUID]:
    """Count the events of the platform in the calendars themselves, by their keys."""
    keys = Counter[UUID]()
    connections = live.runtime.call(CalendarConnections)
    async with live.runtime.database.write(live.caller.organization_id) as session:
        found: Sequence[Calendar] = await list_calendars(session)
    for calendar in found:
        async with connections.open(calendar) as provider:
            assert provider is not None
            busy = await provider.list_busy(calendar.remote_id, now(), now() + timedelta(days=40), time_zone="UTC")
        keys.update(time.event_key for time in busy if time.event_key is not None)
    return keys


async def list_entries(live: LivePlatform, state: str) -> set[UUID]:
    async with live.runtime.database.write(live.caller.organization_id) as session:
        rows = session.select(CalendarEntry).where(col(CalendarEntry.state) == state)
        return {entry.id for entry in (await session.exec(rows)).all()}


@dataclass(frozen=True, slots=True)
class Callers:
    """Callers who book through two servers in turn."""

    live: LivePlatform
    http: aiohttp.ClientSession
    ports: tuple[int, int]

    async def book(self, slots: Sequence[Json], place: int, *, port: int | None = None) -> tuple[int, str]:
        """Ask for one of the times once."""
        url = f"http://127.0.0.1:{port or self.ports[place % 2]}/v1/appointments"
        async with self.http.post(url, json=build_request(slots[place % len(slots)])) as answer:
            content = await answer.json()
            return answer.status, str(content.get("code", content.get("status")))

    async def insist(self, slots: Sequence[Json], place: int) -> tuple[int, str]:
        """Ask again while a busy machine answers that nothing was changed."""
        for _ in range(TRIES):
            answer = await self.book(slots, place)
            if answer[0] not in (502, 503):
                break
            await asyncio.sleep(1)
        return answer

    async def require_agreement(self) -> set[UUID]:
        """Return the entries when nothing is open any more: each has its event, and no other event is there."""
        await let_holds_expire(self.live)
        await eventually(lambda: count_unsettled(self.live), lambda count: count == 0)
        events, entries = await list_keys(self.live), await list_entries(self.live, "booked")
        assert set(events.values()) == {1}
        assert events.keys() == entries
        return entries


async def test_no_time_is_booked_twice_and_no_event_is_left(tmp_path: Path) -> None:
    for name in ("platform", "radicale", "xandikos"):
        (tmp_path / name).mkdir()
    async with (
        run_radicale(tmp_path / "radicale") as radicale,
        run_xandikos(tmp_path / "xandikos") as xandikos,
        (swallower := Swallower(radicale)).run() as swallower_url,
        start_live_platform(tmp_path / "platform", policy=FREE) as (live, servers),
        run_another_process(live, database_url=servers.database_url, redis_url=servers.redis_url) as (first, _),
        run_another_process(live, database_url=servers.database_url, redis_url=servers.redis_url) as (second, process),
        aiohttp.ClientSession(headers={"Authorization": f"Bearer {live.caller.key}"}) as http,
    ):
        callers = Callers(live, http, (first, second))
        calendars = [await connect(live, server, name) for server, name in ((radicale, "R"), (xandikos, "X"))]
        type_id = await create_type(live.caller, *calendars)
        slots = await list_free(live.caller, type_id, limit=TIMES)
        answers = await asyncio.gather(*(callers.insist(slots, place) for place in range(CALLERS)))
        assert Counter(answers) == {(201, "booked"): 2 * TIMES, (409, "slot_taken"): CALLERS - 2 * TIMES}
        assert len(await callers.require_agreement()) == 2 * TIMES

        calendar = await radicale.create_calendar("unconfirmed")
        unconfirming = await connect(live, radicale, "U", url=swallower_url, calendar=calendar)
        slots = await list_free(live.caller, await create_type(live.caller, unconfirming), limit=TIMES)
        swallower.answers.clear()
        told = await asyncio.gather(*(callers.book(slots, place) for place in range(TIMES)))
        swallower.answers.set()
        assert Counter(told) == {(502, "provider_error"): TIMES}
        assert swallower.writes == TIMES, "the calendar has written what it never confirmed"
        assert len(await callers.require_agreement()) == 2 * TIMES, "nobody has an event of nothing"

        slots = await list_free(live.caller, type_id, limit=TIMES)
        requests = [asyncio.create_task(callers.book(slots, place, port=second)) for place in range(TIMES)]
        await eventually(lambda: list_entries(live, "held"))
        await kill_process(process)
        ended = await asyncio.gather(*requests, return_exceptions=True)
        booked = sum(isinstance(answer, tuple) and answer[0] == 201 for answer in ended)
        assert len(await callers.require_agreement()) >= 2 * TIMES + booked, "what the dead server has left is undone"


async def let_holds_expire(live: LivePlatform) -> None:
    """Let what the dead server holds be due, and old enough that no request can be under way."""
    earlier = now() - timedelta(minutes=11)
    async with live.runtime.database.write(live.caller.organization_id) as session:
        held = col(CalendarEntry.state) != "booked"
        await session.exec(update(CalendarEntry).where(held).values(settle_at=earlier, created_at=earlier))


async def count_unsettled(live: LivePlatform) -> int:
    async with live.runtime.database.write(live.caller.organization_id) as session:
        pending = session.select(Appointment).where(col(Appointment.status) == "pending")
        unsettled = session.select(CalendarEntry).where(col(CalendarEntry.state) != "booked")
        return len((await session.exec(pending)).all()) + len((await session.exec(unsettled)).all())
