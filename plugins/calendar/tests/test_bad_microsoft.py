"""Microsoft Graph when it answers badly, late, or elsewhere."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from aiohttp import web
from pydantic import SecretStr
from switchboard.plugin_sdk import (
    AccountRefused,
    CalendarEvent,
    EventChanged,
    EventDraft,
    OutcomeUnknown,
    ProviderError,
)
from switchboard.plugin_sdk.testing.vendors import VENDORS_ONLY, serve_private
from switchboard_calendar.microsoft import MAX_PAGES, MicrosoftAccount, MicrosoftCalendar, MicrosoftSettings

from tests.fixtures.graph_server import ACCESS_TOKEN, DEFAULT_CALENDAR, GraphServer, run_graph

CALENDAR, HOUR = DEFAULT_CALENDAR, timedelta(hours=1)
NOON = datetime(2027, 3, 3, 12, tzinfo=UTC)
Answer = Callable[[web.Request], Awaitable[web.StreamResponse | None]]
DRAFT = EventDraft(uuid4(), NOON, NOON + HOUR, "Europe/Berlin", "Visit")
EVENT = CalendarEvent(uuid4(), "AAkALgAA=", 'W/"x"', NOON, NOON + HOUR)
WATCH = "1"
BUSY = (
    '{{"value":[{{"id":"AAkALgAA=","showAs":"busy","start":{{"dateTime":{},"timeZone":"{}"}},'
    '"end":{{"dateTime":"2027-03-03T13:00:00.0000000","timeZone":"UTC"}}}}]}}'
)


async def open_calendar(server: GraphServer, token: str = ACCESS_TOKEN) -> MicrosoftCalendar:
    provider = MicrosoftCalendar(MicrosoftSettings(api_url=server.url))
    provider.account = MicrosoftAccount(access_token=SecretStr(token))
    provider.network_policy = VENDORS_ONLY
    await provider.open()
    return provider


def answer_at(place: str, text: str, status: int = 200, *, method: str = "GET", **headers: str) -> Answer:
    async def serve(request: web.Request) -> web.Response | None:
        if place not in request.path or request.method != method:
            return None
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        return web.Response(text=text, status=status, content_type="application/json", headers=given)

    return serve


async def list_noon(provider: MicrosoftCalendar) -> None:
    await provider.list_busy(CALENDAR, NOON, NOON + HOUR, time_zone="UTC")


async def look(provider: MicrosoftCalendar) -> None:
    await provider.find_changes(CALENDAR, "")


async def find(provider: MicrosoftCalendar) -> None:
    await provider.find_event(CALENDAR, DRAFT.key)


async def create(provider: MicrosoftCalendar) -> None:
    await provider.create_event(CALENDAR, DRAFT)


async def move(provider: MicrosoftCalendar) -> None:
    await provider.move_event(CALENDAR, EVENT, NOON, NOON + HOUR)


async def cancel(provider: MicrosoftCalendar) -> None:
    await provider.cancel_event(CALENDAR, EVENT)


async def watch(provider: MicrosoftCalendar) -> None:
    await provider.watch(CALENDAR, "https://voice.example.com/calendars/microsoft/1/2", "secret")


async def renew(provider: MicrosoftCalendar) -> None:
    await provider.watch(CALENDAR, "https://voice.example.com/calendars/microsoft/1/2", "secret", current=WATCH)


async def end_watch(provider: MicrosoftCalendar) -> None:
    await provider.end_watch(WATCH)


READS = [list_noon, look, find, MicrosoftCalendar.list_calendars]


@pytest.mark.parametrize("ask", READS)
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<html><body>Welcome</body>", "not JSON of Microsoft Graph"),
        ("", "not JSON of Microsoft Graph"),
        ("[" * 100_000, "not JSON of Microsoft Graph"),
        ("null", "not JSON of Microsoft Graph"),
        ("{}", "field value"),
        ('{"value":null}', "field value"),
        ('{"value":7}', "field value"),
        ('{"value":[7]}', "field value.0"),
        ('{"value":[],"@odata.nextLink":7}', "field @odata.nextLink"),
        ('{"value":"' + "x" * 5 * 2**20 + '"}', "longer than 4 MiB"),
    ],
)
async def test_what_cannot_be_read_is_never_free(
    ask: Callable[[MicrosoftCalendar], Awaitable[object]], text: str, message: str
) -> None:
    async with run_graph() as server:
        server.before = answer_at("/me", text)
        provider = await open_calendar(server)
        with pytest.raises(ProviderError, match=message) as failed:
            await ask(provider)
        await provider.close()
    assert (failed.value.code, failed.value.retryable) == ("unreadable", False)


@pytest.mark.parametrize("ask", READS)
async def test_an_answer_that_is_cut_off_is_never_free(
    ask: Callable[[MicrosoftCalendar], Awaitable[object]],
) -> None:
    """The connection ends before the length that was announced."""

    async def cut(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "1000", "Content-Type": "application/json"})
        await response.prepare(request)
        await response.write(b'{"value":[]}')
        assert request.transport is not None
        request.transport.close()
        return response

    async with run_graph() as server:
        server.before = cut
        provider = await open_calendar(server)
        with pytest.raises(ProviderError, match="did not answer"):
            await ask(provider)
        await provider.close()


@pytest.mark.parametrize(
    ("moment", "zone", "message"),
    [
        ('"soon"', "UTC", "start.dateTime"),
        ("null", "UTC", "start.dateTime"),
        ("1804075200", "UTC", "start.dateTime"),
        ('"2027-03-03T12:00:00Z"', "UTC", "start.dateTime"),
        ('"2027-03-03T12:00:00.0000000"', "Pacific Standard Time", "start.timeZone"),
        ('"2027-03-03T14:00:00.0000000"', "UTC", "ends before it starts"),
    ],
)
async def test_a_time_must_be_understood(moment: str, zone: str, message: str) -> None:
    """The time of a dateTimeTimeZone has no offset, and the zone is the one that was asked for."""
    async with run_graph() as server:
        provider = await open_calendar(server)
        server.before = answer_at("/calendarView", BUSY.format(moment, zone))
        with pytest.raises(ProviderError, match=message):
            await list_noon(provider)
        server.before = answer_at("/calendarView", BUSY.format('"2027-03-03T12:00:00.0000000"', "UTC"))
        await list_noon(provider)
        await provider.close()


@pytest.mark.parametrize("ask", READS)
async def test_a_next_page_elsewhere_is_refused(ask: Callable[[MicrosoftCalendar], Awaitable[object]]) -> None:
    """The token goes to Graph's origin alone; a port is part of it."""
    async with serve_private() as inside, run_graph() as server:
        provider = await open_calendar(server)
        for link in (f"{inside.address}/v1.0/me/calendars", "//elsewhere.example.com/", "/v1.0/me", "http://[", ""):
            server.before = answer_at("/me", f'{{"value":[],"@odata.nextLink":"{link}"}}')
            with pytest.raises(ProviderError, match="next page is") as refused:
                await ask(provider)
            assert not refused.value.retryable
        await provider.close()
        assert inside.requests == []


async def test_pages_without_end_are_left() -> None:
    async with run_graph() as server:
        provider = await open_calendar(server)

        async def again(request: web.Request) -> web.Response:
            return web.json_response({"value": [], "@odata.nextLink": str(request.url)})

        server.before = again
        with pytest.raises(ProviderError, match=f"more than {MAX_PAGES} pages"):
            await list_noon(provider)
        assert server.count("GET") == MAX_PAGES
        await provider.close()


@pytest.mark.parametrize("links", ["", ',"@odata.deltaLink":"https://[?$deltatoken=x"', ',"@odata.deltaLink":"/delta"'])
async def test_a_round_of_changes_has_an_end(links: str) -> None:
    async with run_graph() as server:
        provider = await open_calendar(server)
        server.before = answer_at("/delta", f'{{"value":[]{links}}}')
        with pytest.raises(ProviderError, match="next changes") as failed:
            await look(provider)
        assert failed.value.code == "unreadable"
        await provider.close()


@pytest.mark.parametrize(
    ("status", "headers", "message", "retryable"),
    [
        (403, {}, "needs the right to change the calendar and the permission", False),
        (404, {}, "has no such calendar any more", False),
        (302, {"Location": "https://elsewhere.example.com/"}, "redirects to https://elsewhere.example.com/", False),
        (400, {}, "answered 400: Too bad$", False),
        (412, {}, "answered 412", True),
        (429, {"Retry_After": "7"}, "answered 429", True),
        (500, {}, "answered 500", True),
        (503, {"Retry_After": "7"}, "answered 503", True),
        (504, {}, "answered 504", True),
    ],
)
@pytest.mark.parametrize("ask", READS)
async def test_a_refusal_says_what_to_do(
    ask: Callable[[MicrosoftCalendar], Awaitable[object]],
    status: int,
    headers: dict[str, str],
    message: str,
    retryable: bool,
) -> None:
    async with run_graph() as server:
        text = '{"error":{"code":"UnknownError","message":"Too bad.","innerError":{}}}'
        server.before = answer_at("/me", text, status, **headers)
        provider = await open_calendar(server)
        if ask is look and status == 400:
            await look(provider)
        else:
            with pytest.raises(ProviderError, match=message) as refused:
                await ask(provider)
            assert (refused.value.retryable, refused.value.code) == (retryable, str(status))
            assert refused.value.retry_after_seconds == (7 if headers.get("Retry_After") else None)
        await provider.close()


@pytest.mark.parametrize("ask", [*READS, create, move, cancel, watch, renew, end_watch])
async def test_a_token_that_is_refused_disconnects(ask: Callable[[MicrosoftCalendar], Awaitable[object]]) -> None:
    async with run_graph() as server:
        provider = await open_calendar(server, "another")
        with pytest.raises(AccountRefused, match="connect the calendar again"):
            await ask(provider)
        await provider.close()
        assert len(server.requests) == 1


@pytest.mark.parametrize(("ask", "method"), [(watch, "POST"), (renew, "PATCH")])
@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("<html>", 201),
        ('{"id":"1","expirationDateTime":"2027-03-03T12:00:00"}', 201),
        ('{"id":"1","expirationDateTime":"soon"}', 201),
        ('{"error":{"code":"ValidationError","message":"Subscription validation request failed."}}', 400),
        ("{}", 429),
    ],
)
async def test_a_subscription_that_is_not_made_is_an_error(
    ask: Callable[[MicrosoftCalendar], Awaitable[object]], method: str, text: str, status: int
) -> None:
    async with run_graph() as server:
        provider = await open_calendar(server)
        server.before = answer_at("/subscriptions", text, status, method=method)
        with pytest.raises(ProviderError):
            await ask(provider)
        await provider.close()
        assert len(server.requests) == 1, "it is not tried another way"


async def test_an_account_without_a_mailbox_says_so() -> None:
    """The code is one of an inner error, whose name Microsoft writes in two ways."""
    async with run_graph() as server:
        provider = await open_calendar(server)
        for inner in ("innerError", "innererror"):
            error = f'{{"code":"ResourceNotFound","{inner}":{{"code":"MailboxNotEnabledForRESTAPI"}}}}'
            server.before = answer_at("/me", f'{{"error":{error}}}', 404)
            with pytest.raises(ProviderError, match="no mailbox at Exchange Online") as refused:
                await provider.check()
            assert not refused.value.retryable
        server.before = answer_at("/me", '{"error":' + '{"innerError":' * 500 + "7" + "}" * 501, 400)
        with pytest.raises(ProviderError, match=r"answered 400$"):
            await provider.check()
        await provider.close()


@pytest.mark.parametrize(
    ("status", "is_unknown"), [(429, False), (503, False), (507, False), (408, True), (500, True), (504, True)]
)
@pytest.mark.parametrize(("ask", "method"), [(create, "POST"), (move, "PATCH"), (cancel, "DELETE")])
async def test_only_a_write_that_may_be_done_is_unknown(
    ask: Callable[[MicrosoftCalendar], Awaitable[object]], method: str, status: int, is_unknown: bool
) -> None:
    async with run_graph() as server:
        provider = await open_calendar(server)
        server.events[EVENT.id] = {**server.add(NOON, NOON + HOUR), "id": EVENT.id, "@odata.etag": EVENT.version}
        server.before = answer_at("/events", "{}", status, method=method, Retry_After="30")
        with pytest.raises(ProviderError) as refused:
            await ask(provider)
        await provider.close()
    assert isinstance(refused.value, OutcomeUnknown) == is_unknown
    if not is_unknown:
        assert (refused.value.retryable, refused.value.retry_after_seconds) == (True, 30)


@pytest.mark.parametrize(
    ("status", "text"),
    [(404, "{}"), (410, "{}"), (412, "<html>"), (409, '{"error":{"code":"ErrorIrresolvableConflict"}}')],
)
async def test_another_version_is_a_change(status: int, text: str) -> None:
    async with run_graph() as server:
        provider = await open_calendar(server)
        server.events[EVENT.id] = {**server.add(NOON, NOON + HOUR), "id": EVENT.id, "@odata.etag": EVENT.version}
        server.before = answer_at("/events", text, status, method="PATCH")
        with pytest.raises(EventChanged):
            await move(provider)
        await provider.close()


async def test_neither_token_nor_request_leaves_the_server() -> None:
    async with serve_private() as inside, run_graph() as server:

        async def lead_away(request: web.Request) -> web.Response:
            return web.Response(status=308, headers={"Location": f"{inside.address}/v1.0/me"})

        server.before = lead_away
        provider = await open_calendar(server)
        for ask in (*READS, create, move, cancel):
            with pytest.raises(ProviderError, match="redirects to"):
                await ask(provider)
        await provider.close()
        assert inside.requests == []


async def test_a_server_that_is_silent_is_left() -> None:
    released = asyncio.Event()

    async def wait(request: web.Request) -> web.Response | None:
        if "/calendarView" in request.path or request.method != "GET":
            await released.wait()
        return None

    async with run_graph() as server:
        provider = await open_calendar(server)
        server.events[EVENT.id] = {**server.add(NOON, NOON + HOUR), "id": EVENT.id, "@odata.etag": EVENT.version}
        server.before = wait
        read, changes, *written = await asyncio.gather(
            *(ask(provider) for ask in (list_noon, look, create, move, cancel)), return_exceptions=True
        )
        released.set()
        with suppress(ProviderError):
            await provider.close()
    assert isinstance(read, ProviderError)
    assert isinstance(changes, ProviderError)
    assert not isinstance(read, OutcomeUnknown)
    assert [type(error) for error in written] == [OutcomeUnknown] * 3
    assert all("did not answer in time" in str(error) for error in (read, changes, *written))
