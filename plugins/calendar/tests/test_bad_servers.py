"""Servers that answer badly, late, elsewhere, or not at all."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from pydantic import SecretStr
from switchboard.plugin_sdk import (
    CalendarEvent,
    EventChanged,
    EventDraft,
    OutcomeUnknown,
    ProviderError,
    ProviderSettings,
)
from switchboard.plugin_sdk.testing.vendors import VENDORS_ONLY, serve_private
from switchboard_calendar.provider import CalDAVAccount, CalDAVCalendar

NOON = datetime(2027, 3, 3, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
CALENDAR = """<?xml version="1.0"?><D:multistatus xmlns:D="DAV:" xmlns:C="urn:ietf:params:xml:ns:caldav"><D:response>
<D:href>{href}</D:href><D:propstat><D:prop><D:resourcetype><D:collection/><C:calendar/></D:resourcetype>{more}</D:prop>
<D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response></D:multistatus>"""
EVENTS = """<?xml version="1.0"?><D:multistatus xmlns:D="DAV:" xmlns:C="urn:ietf:params:xml:ns:caldav"><D:response>
<D:href>/c/a.ics</D:href>{}</D:response></D:multistatus>"""
DATA = """<D:propstat><D:prop><D:getetag>"1"</D:getetag><C:calendar-data>{}</C:calendar-data></D:prop>
<D:status>HTTP/1.1 200 OK</D:status></D:propstat>"""
BOMB = """<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "bbbbbbbbbb"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">
<!ENTITY f SYSTEM "file:///etc/passwd">]><D:multistatus xmlns:D="DAV:"><D:response><D:href>&c;&f;</D:href>
</D:response></D:multistatus>"""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def answer(text: str, status: int = 207, **headers: str) -> Handler:
    async def serve(_request: web.Request) -> web.Response:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        return web.Response(text=text, status=status, content_type="application/xml", headers=given)

    return serve


class Server:
    """A server of one calendar, `/c/`, whose answers a test sets by method. `requests` are those that it has had."""

    def __init__(self, **handlers: Handler) -> None:
        self.handlers = {"PROPFIND": answer(CALENDAR.format(href="/c/", more="")), **handlers}
        self.requests: list[tuple[str, str, str | None]] = []

    async def serve(self, request: web.Request) -> web.StreamResponse:
        self.requests.append((request.method, request.path, request.headers.get("Authorization")))
        handler = self.handlers.get(request.method)
        return web.Response(status=404) if handler is None else await handler(request)

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[CalDAVCalendar]:
        application = web.Application(client_max_size=2**24)
        application.router.add_route("*", "/{path:.*}", self.serve)
        async with TestServer(application, host="127.0.0.1") as server:
            provider = CalDAVCalendar(ProviderSettings())
            provider.account = CalDAVAccount(
                url=str(server.make_url("/c/")), username="ada", password=SecretStr("secret")
            )
            provider.network_policy = VENDORS_ONLY
            await provider.open()
            try:
                yield provider
            finally:
                await provider.close()


def draft() -> EventDraft:
    return EventDraft(uuid4(), NOON, NOON + HOUR, "Europe/Berlin", "Visit")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<html><body>Welcome</body>", "not XML"),
        ("<html/>", "not a multistatus"),
        (BOMB, "document type"),
        ("", "not XML"),
        (EVENTS.format(""), "no text"),
        (EVENTS.format("<D:propstat><D:prop/></D:propstat>"), "no status"),
        (EVENTS.format("<D:status>HTTP/1.1 507 Insufficient Storage</D:status>"), "not complete"),
        (EVENTS.format(DATA.format("").replace("200 OK", "403 Forbidden")), "not complete"),
        (EVENTS.format(DATA.format("")), "no text"),
        (EVENTS.format(DATA.format("BEGIN:VTODO")), "has no end"),
        (EVENTS.format(DATA.format("x" * 5 * 2**20)), "longer than 4 MiB"),
        ("<D:multistatus xmlns:D='DAV:'>" + "<D:response/>" * 5001 + "</D:multistatus>", "more than 5000"),
        ("<a>" * 100_000, "not XML"),
    ],
)
async def test_what_cannot_be_read_is_never_free(text: str, message: str) -> None:
    async with Server(REPORT=answer(text)).connect() as provider:
        with pytest.raises(ProviderError, match=message) as failed:
            await provider.list_busy("/c/", NOON, NOON + HOUR, time_zone="UTC")
    assert not failed.value.retryable


async def test_a_deleted_event_is_not_missed() -> None:
    """It was deleted while the server wrote its answer."""
    gone = EVENTS.format("<D:status>HTTP/1.1 404 Not Found</D:status>")
    async with Server(REPORT=answer(gone)).connect() as provider:
        assert await provider.list_busy("/c/", NOON, NOON + HOUR, time_zone="UTC") == []


async def test_a_compressed_answer_is_refused() -> None:
    async def compress(_request: web.Request) -> web.Response:
        response = web.Response(text="x" * 2**24, status=207)
        response.enable_compression(web.ContentCoding.gzip)
        return response

    async with Server(REPORT=compress).connect() as provider:
        with pytest.raises(ProviderError, match="compressed"):
            await provider.list_busy("/c/", NOON, NOON + HOUR, time_zone="UTC")


@pytest.mark.parametrize(
    ("status", "headers", "message", "retryable"),
    [
        (401, {"WWW_Authenticate": "Digest realm=x"}, "sign-in with Digest; only Basic", False),
        (401, {"WWW_Authenticate": "Basic realm=x"}, "refuses the user name or the password", False),
        (403, {}, "does not allow this", False),
        (404, {}, "nothing at this address", False),
        (200, {}, "no CalDAV server", False),
        (302, {"Location": "https://elsewhere.example.com/c/"}, "redirects to https://elsewhere.example.com/c/", False),
        (429, {"Retry_After": "7"}, "answered 429", True),
        (503, {}, "answered 503", True),
    ],
)
async def test_a_refusal_says_what_to_do(status: int, headers: dict[str, str], message: str, retryable: bool) -> None:
    async with Server(REPORT=answer("", status, **headers)).connect() as provider:
        with pytest.raises(ProviderError, match=message) as refused:
            await provider.list_busy("/c/", NOON, NOON + HOUR, time_zone="UTC")
    code = "account_refused" if status == 401 else str(status)
    assert (refused.value.retryable, refused.value.code) == (retryable, code)
    assert refused.value.retry_after_seconds == (7 if status == 429 else None)


async def test_neither_password_nor_request_leaves_the_server() -> None:
    """Not by a redirect, and not by the address of a home or a calendar."""
    async with serve_private() as inside:
        elsewhere = f"{inside.address}/c/"
        home = f"<C:calendar-home-set><D:href>{elsewhere}</D:href></C:calendar-home-set>"
        for text in (
            CALENDAR.format(href=elsewhere, more=""),
            CALENDAR.format(href="/p/", more=home).replace("<C:calendar/>", ""),
        ):
            async with Server(PROPFIND=answer(text)).connect() as provider:
                with pytest.raises(ProviderError, match=r"the calendars are at http://127\.0\.0\.2") as refused:
                    await provider.list_calendars()
            assert not refused.value.retryable
        async with Server(PROPFIND=answer("", 308, Location=elsewhere)).connect() as provider:
            with pytest.raises(ProviderError, match="redirects to"):
                await provider.check()
            for event_id in (elsewhere, "//127.0.0.2/c/a.ics", "http://[", "file:///etc/passwd"):
                event = CalendarEvent(uuid4(), event_id, '"1"', NOON, NOON + HOUR)
                with pytest.raises(ProviderError):
                    await provider.cancel_event("/c/", event)
        assert inside.requests == []


async def drop(request: web.Request) -> web.Response:
    assert request.transport is not None
    request.transport.close()
    return web.Response()


async def test_a_creation_without_an_answer_is_looked_for() -> None:
    """The server has written the event, and the connection was lost."""
    server, written = Server(), list[str]()

    async def write(request: web.Request) -> web.Response:
        written.append(await request.text())
        return await drop(request)

    async def read(_request: web.Request) -> web.Response:
        return web.Response(text=written[0], headers={"ETag": '"7"'}, content_type="text/calendar")

    server.handlers |= {"PUT": write, "GET": read}
    async with server.connect() as provider:
        event = await provider.create_event("/c/", draft())
    assert (event.version, event.starts_at, event.ends_at) == ('"7"', NOON, NOON + HOUR)


@pytest.mark.parametrize("put", [drop, answer("", 504), answer("", 500)])
async def test_an_unknown_outcome_is_said(put: Handler) -> None:
    nothing = answer('<D:multistatus xmlns:D="DAV:"/>')
    async with Server(PUT=put, DELETE=put, REPORT=nothing).connect() as provider:
        with pytest.raises(OutcomeUnknown):
            await provider.create_event("/c/", draft())
        with pytest.raises(OutcomeUnknown):
            await provider.cancel_event("/c/", CalendarEvent(uuid4(), "/c/a.ics", '"1"', NOON, NOON + HOUR))


async def test_a_move_without_an_answer_is_unknown() -> None:
    server, given = Server(), draft()
    async with server.connect() as provider:
        event_text = f"BEGIN:VEVENT\r\nUID:{given.key}\r\nDTSTART:20270303T120000Z\r\nEND:VEVENT\r\n"
        text = f"BEGIN:VCALENDAR\r\n{event_text}END:VCALENDAR\r\n"
        server.handlers |= {"GET": answer(text, 200, ETag='"1"'), "PUT": drop}
        event = CalendarEvent(given.key, "/c/a.ics", '"1"', NOON, NOON + HOUR)
        with pytest.raises(OutcomeUnknown):
            await provider.move_event("/c/", event, NOON + HOUR, NOON + 2 * HOUR)
        server.handlers["PUT"] = answer("", 503)
        with pytest.raises(ProviderError, match="answered 503") as refused:
            await provider.move_event("/c/", event, NOON + HOUR, NOON + 2 * HOUR)
        assert not isinstance(refused.value, OutcomeUnknown)
        server.handlers["GET"] = answer(text, 200)
        with pytest.raises(ProviderError, match="no version"):
            await provider.find_event("/c/", given.key)


async def test_a_move_that_was_written_twice_is_a_move() -> None:
    """aiohttp repeats a PUT if the server closes the connection, and the second one finds the version of the first."""
    texts: list[str] = []

    async def write(request: web.Request) -> web.Response:
        if request.headers.get("If-Match") == f'"{len(texts)}"' or not texts:
            texts.append(await request.text())
            return await drop(request) if len(texts) == 2 else web.Response(status=201, headers={"ETag": '"1"'})
        return web.Response(status=412)

    async def read(_request: web.Request) -> web.Response:
        return web.Response(text=texts[-1], headers={"ETag": f'"{len(texts)}"'})

    server = Server(PUT=write, GET=read)
    async with server.connect() as provider:
        event = await provider.create_event("/c/", draft())
        moved = await provider.move_event("/c/", event, NOON + HOUR, NOON + 2 * HOUR)
        assert (moved.version, moved.starts_at, moved.id) == ('"2"', NOON + HOUR, event.id)
        texts.append(texts[-1].replace("SUMMARY", "X-BY-A-PERSON:1\r\nSUMMARY"))
        with pytest.raises(EventChanged):
            await provider.move_event("/c/", moved, NOON, NOON + HOUR)
    assert [method for method, _, _ in server.requests].count("PUT") == 3


async def test_a_person_may_be_faster_than_a_move() -> None:
    server, given = Server(), draft()
    async with server.connect() as provider:
        event_text = f"BEGIN:VEVENT\r\nUID:{given.key}\r\nDTSTART:20270303T120000Z\r\nEND:VEVENT\r\n"
        text = f"BEGIN:VCALENDAR\r\n{event_text}END:VCALENDAR\r\n"
        server.handlers |= {"GET": answer(text, 200, ETag='"1"'), "PUT": answer("", 412)}
        event = CalendarEvent(given.key, "/c/a.ics", '"1"', NOON, NOON + HOUR)
        with pytest.raises(EventChanged):
            await provider.move_event("/c/", event, NOON + HOUR, NOON + 2 * HOUR)
        server.handlers["PUT"] = answer("", 404)
        with pytest.raises(EventChanged):
            await provider.move_event("/c/", event, NOON + HOUR, NOON + 2 * HOUR)


@pytest.mark.parametrize("status", [200, 403, 405])
async def test_calendars_are_below_another_path_of_the_server(status: int) -> None:
    """Nextcloud's are: its first page is for browsers, and `/.well-known/caldav` redirects (RFC 6764)."""
    principal = "<D:current-user-principal><D:href>/dav/p/</D:href></D:current-user-principal>"
    home = "<C:calendar-home-set><D:href>/dav/h/</D:href></C:calendar-home-set>"

    async def describe(request: web.Request) -> web.Response:
        if request.path == "/.well-known/caldav":
            return web.Response(status=301, headers={"Location": "/dav/"})
        folder = {"/dav/": principal, "/dav/p/": home}.get(request.path)
        if folder:
            text = CALENDAR.format(href=request.path, more=folder).replace("<C:calendar/>", "")
            return web.Response(text=text, status=207)
        if request.path == "/dav/h/":
            return web.Response(text=CALENDAR.format(href="/dav/h/c/", more=""), status=207)
        return web.Response(text="<html>Sign in</html>", status=status)

    async with Server(PROPFIND=describe).connect() as provider:
        assert [calendar.id for calendar in await provider.list_calendars()] == ["/dav/h/c/"]


async def test_a_server_that_is_silent_is_left() -> None:
    released = asyncio.Event()

    async def wait(_request: web.Request) -> web.Response:
        await released.wait()
        return web.Response()

    async with Server(REPORT=wait, PUT=wait).connect() as provider:
        listed, created = await asyncio.gather(
            provider.list_busy("/c/", NOON, NOON + HOUR, time_zone="UTC"),
            provider.create_event("/c/", draft()),
            return_exceptions=True,
        )
        released.set()
    assert isinstance(listed, ProviderError)
    assert isinstance(created, OutcomeUnknown)
    assert all("did not answer in time" in str(error) for error in (listed, created))


async def test_a_server_without_versions_in_its_answers_is_asked_again() -> None:
    """A server must not say the version if it has changed the event (RFC 4791, section 5.3.4)."""
    texts: list[str] = []

    async def write(request: web.Request) -> web.Response:
        texts.append(await request.text())
        return web.Response(status=201)

    async def read(_request: web.Request) -> web.Response:
        return web.Response(text=texts[-1], headers={"ETag": f'"{len(texts)}"'})

    async with Server(PUT=write, GET=read).connect() as provider:
        event = await provider.create_event("/c/", draft())
        moved = await provider.move_event("/c/", event, NOON + HOUR, NOON + 2 * HOUR)
    assert (event.version, moved.version, moved.starts_at) == ('"1"', '"2"', NOON + HOUR)


async def test_the_user_of_invitations_is_the_principal() -> None:
    """Her address is not her user name."""
    address = "<C:calendar-user-address-set><D:href>mailto:Ada.L@example.com</D:href></C:calendar-user-address-set>"
    principal = "<D:current-user-principal><D:href>/p/</D:href></D:current-user-principal>"

    async def describe(request: web.Request) -> web.Response:
        more = address if request.path == "/p/" else principal
        return web.Response(text=CALENDAR.format(href=request.path, more=more), status=207)

    text = (
        "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nUID:x\r\nDTSTART:20270303T120000Z\r\nDURATION:PT1H\r\n"
        "ATTENDEE;PARTSTAT=DECLINED:mailto:ada.l@example.com\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
    )
    server = Server(PROPFIND=describe, REPORT=answer(EVENTS.format(DATA.format(text))))
    async with server.connect() as provider:
        for _ in range(2):
            assert await provider.list_busy("/c/", NOON, NOON + HOUR, time_zone="UTC") == []
    assert [method for method, _, _ in server.requests] == ["PROPFIND", "PROPFIND", "REPORT", "REPORT"]
    assert {credential for _, _, credential in server.requests} == {"Basic YWRhOnNlY3JldA=="}


VERSIONED = """<?xml version="1.0"?><D:multistatus xmlns:D="DAV:" xmlns:S="http://calendarserver.org/ns/"><D:response>
<D:href>/c/</D:href><D:propstat><D:prop>{}</D:prop><D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>
</D:multistatus>"""


@pytest.mark.parametrize(
    ("first", "second", "has_changed"),
    [
        ("<S:getctag>1</S:getctag>", "<S:getctag>1</S:getctag>", False),
        ("<S:getctag>1</S:getctag>", "<S:getctag>2</S:getctag>", True),
        ("<S:getctag>1</S:getctag>", "<D:sync-token>1</D:sync-token>", True),
        ("<D:sync-token/><S:getctag>1</S:getctag>", "<S:getctag>1</S:getctag>", False),
        ("<D:sync-token>1</D:sync-token><S:getctag>1</S:getctag>", "<D:sync-token>1</D:sync-token>", False),
        ("", "", True),
        (f"<S:getctag>{'x' * 2001}</S:getctag>", f"<S:getctag>{'x' * 2001}</S:getctag>", True),
    ],
)
async def test_older_servers_have_a_version_of_the_calendar(first: str, second: str, has_changed: bool) -> None:
    """And some have neither: everything may have changed each time."""
    server = Server()
    async with server.connect() as provider:
        server.handlers["PROPFIND"] = answer(VERSIONED.format(first))
        changes = await provider.find_changes("/c/", "")
        assert changes.has_changed
        assert len(changes.cursor) <= 2000
        server.handlers["PROPFIND"] = answer(VERSIONED.format(second))
        assert (await provider.find_changes("/c/", changes.cursor)).has_changed is has_changed
        server.handlers["PROPFIND"] = answer("", 404)
        with pytest.raises(ProviderError, match="nothing at this address"):
            await provider.find_changes("/c/", changes.cursor)
