"""Google's API when it answers badly, late, or elsewhere."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio
from aiohttp import web
from pydantic import SecretStr
from switchboard.plugin_sdk import (
    AccountRefused,
    CalendarEvent,
    EventDraft,
    OutcomeUnknown,
    ProviderError,
)
from switchboard.plugin_sdk.testing.vendors import VENDORS_ONLY, serve_private
from switchboard_calendar.google import GoogleCalendar, GoogleCalendarAccount, GoogleCalendarSettings

from tests.fixtures.google_calendar_server import ACCESS_TOKEN, PRIMARY, GoogleServer, describe_fault, run_google

NOON, HOUR = datetime(2027, 3, 3, 12, tzinfo=UTC), timedelta(hours=1)
Answer = Callable[[web.Request], Awaitable[web.StreamResponse | None]]
DRAFT = EventDraft(uuid4(), NOON, NOON + HOUR, "Europe/Berlin", "Visit")
EVENT = CalendarEvent(DRAFT.key, DRAFT.key.hex, '"1"', NOON, NOON + HOUR)
WATCH = "1 2"
TIMED = '{{"items":[{{"id":"other0","start":{},"end":{{"dateTime":"2027-03-03T13:00:00Z"}}}}]}}'


@pytest_asyncio.fixture
async def server() -> AsyncIterator[GoogleServer]:
    async with run_google() as running:
        yield running


@pytest_asyncio.fixture
async def calendar(server: GoogleServer) -> AsyncIterator[GoogleCalendar]:
    provider = GoogleCalendar(GoogleCalendarSettings(api_url=server.url))
    provider.account = GoogleCalendarAccount(access_token=SecretStr(ACCESS_TOKEN))
    provider.network_policy = VENDORS_ONLY
    await provider.open()
    yield provider
    await provider.close()


def answer_with(text: str, status: int = 200, *, method: str = "", **headers: str) -> Answer:
    async def serve(request: web.Request) -> web.Response | None:
        if method and request.method != method:
            return None
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        return web.Response(text=text, status=status, content_type="application/json", headers=given)

    return serve


async def list_noon(calendar: GoogleCalendar) -> None:
    await calendar.list_busy(PRIMARY, NOON, NOON + HOUR, time_zone="UTC")


READS: list[Callable[[GoogleCalendar], Awaitable[Any]]] = [
    list_noon,
    lambda calendar: calendar.list_calendars(),
    lambda calendar: calendar.find_event(PRIMARY, DRAFT.key),
    lambda calendar: calendar.find_changes(PRIMARY, ""),
]


async def watch(calendar: GoogleCalendar) -> None:
    await calendar.watch(PRIMARY, "https://voice.example.com/calendars/google/1/2", "secret")


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<html><body>Welcome</body>", "not JSON of Google's"),
        ("", "not JSON of Google's"),
        ("[" * 100_000, "not JSON of Google's"),
        ("null", "not JSON of Google's"),
        ('{"items":7,"id":7}', "is not as described"),
        ('{"items":[{"id":null}],"id":null}', "is not as described"),
        ('{"items":[{"id":"other0","start":"2027-0', "not JSON of Google's"),
        ('{"id":"' + "x" * 5 * 2**20 + '"}', "longer than 4 MiB"),
    ],
)
async def test_what_cannot_be_read_is_an_error(
    calendar: GoogleCalendar, server: GoogleServer, read: Any, text: str, message: str
) -> None:
    server.before = answer_with(text)
    with pytest.raises(ProviderError, match=message) as failed:
        await read(calendar)
    assert (failed.value.code, failed.value.retryable) == ("unreadable", False)


@pytest.mark.parametrize(
    "start",
    [
        "null",
        "{}",
        '{"dateTime":"soon"}',
        '{"dateTime":1772539200}',
        '{"dateTime":"2027-03-03T12:00:00"}',
        '{"date":"2027-03-33"}',
        '{"date":20270303}',
        '{"dateTime":"0001-01-01T00:00:00+14:00"}',
    ],
)
async def test_a_time_must_be_understood(calendar: GoogleCalendar, server: GoogleServer, start: str) -> None:
    server.before = answer_with(TIMED.format(start))
    with pytest.raises(ProviderError) as failed:
        await list_noon(calendar)
    assert failed.value.code == "unreadable"


async def test_a_time_without_offset_has_a_zone(calendar: GoogleCalendar, server: GoogleServer) -> None:
    """Google's page about events allows that."""
    start = '{"dateTime":"2027-03-03T13:00:00","timeZone":"Europe/Berlin"}'
    server.before = answer_with(TIMED.format(start))
    (busy,) = await calendar.list_busy(PRIMARY, NOON, NOON + HOUR, time_zone="UTC")
    assert (busy.starts_at, busy.ends_at) == (NOON, NOON + HOUR)


async def test_pages_without_end_are_left(calendar: GoogleCalendar, server: GoogleServer) -> None:
    server.before = answer_with('{"items":[],"nextPageToken":"again"}')
    with pytest.raises(ProviderError, match="more than 20000 events"):
        await list_noon(calendar)
    assert len(server.requests) == 20
    with pytest.raises(ProviderError, match="more than 2000 calendars"):
        await calendar.list_calendars()
    assert (await calendar.find_changes(PRIMARY, "cursor")).cursor == ""


async def test_a_cursor_can_be_saved(calendar: GoogleCalendar, server: GoogleServer) -> None:
    server.before = answer_with('{"items":[],"nextSyncToken":"' + "x" * 2001 + '"}')
    changes = await calendar.find_changes(PRIMARY, "")
    assert (changes.has_changed, changes.cursor) == (True, "")


@pytest.mark.parametrize(
    ("answered", "headers", "expected"),
    [
        ((403, "rateLimitExceeded"), {}, ("answered 403: Because$", True)),
        ((403, "userRateLimitExceeded"), {"Retry_After": "7"}, ("answered 403: Because$", True)),
        ((403, "quotaExceeded"), {}, ("answered 403: Because$", True)),
        ((429, "rateLimitExceeded"), {"Retry_After": "7"}, ("answered 429: Because$", True)),
        ((403, "insufficientPermissions"), {}, ("consent at Google lacks a right", False)),
        ((403, "accessNotConfigured"), {}, ("Google Calendar API is off", False)),
        ((403, "forbiddenForNonOrganizer"), {}, ("only the organizer", False)),
        ((403, "forbidden"), {}, ("does not allow this to the account", False)),
        ((400, "badRequest"), {}, ("answered 400: Because$", False)),
        ((302, ""), {"Location": "https://elsewhere.example.com/"}, ("redirects to https://elsewhere.example", False)),
        ((500, "backendError"), {}, ("answered 500: Because$", True)),
        ((503, "backendError"), {}, ("answered 503: Because$", True)),
    ],
)
async def test_a_refusal_says_what_to_do(
    calendar: GoogleCalendar,
    server: GoogleServer,
    answered: tuple[int, str],
    headers: dict[str, str],
    expected: tuple[str, bool],
) -> None:
    (status, reason), (message, retryable) = answered, expected

    async def refuse(request: web.Request) -> web.Response:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        return web.json_response(describe_fault(status, reason, "Because."), status=status, headers=given)

    server.before = refuse
    with pytest.raises(ProviderError, match=message) as refused:
        await list_noon(calendar)
    assert (refused.value.retryable, refused.value.code) == (retryable, str(status))
    assert refused.value.retry_after_seconds == (7 if "Retry_After" in headers else None)
    with pytest.raises(ProviderError, match=message) as refused:
        await calendar.create_event(PRIMARY, DRAFT)
    assert isinstance(refused.value, OutcomeUnknown) == (status >= 500)


@pytest.mark.parametrize(
    ("text", "status", "message"),
    [
        ("<html>", 200, "not JSON of Google's"),
        ('{"id":"1","resourceId":"2"}', 200, "expiration is not as described"),
        ('{"id":"1","resourceId":"2","expiration":"1e400"}', 200, "expiration is not as described"),
        ('{"id":"1","resourceId":"2","expiration":"999999999999999"}', 200, "expiration is not as described"),
        ('{"error":{"errors":[{"reason":"push.webhookUrlUnauthorized"}],"message":"No."}}', 401, "answered 401: No$"),
    ],
)
async def test_a_channel_that_is_not_opened_is_an_error(
    calendar: GoogleCalendar, server: GoogleServer, text: str, status: int, message: str
) -> None:
    """A refused address is no refusal of the account, although Google answers both with 401."""
    server.before = answer_with(text, status)
    with pytest.raises(ProviderError, match=message) as failed:
        await watch(calendar)
    assert not isinstance(failed.value, AccountRefused)


async def test_a_channel_that_cannot_be_closed_ends_by_itself(calendar: GoogleCalendar, server: GoogleServer) -> None:
    async def refuse(request: web.Request) -> web.Response | None:
        fault = describe_fault(503, "backendError")
        return web.json_response(fault, status=503) if request.path.endswith("/stop") else None

    server.before = refuse
    opened = await calendar.watch(PRIMARY, "https://voice.example.com/", "secret", current=WATCH)
    assert opened.id.split()[0] in server.channels
    with pytest.raises(ProviderError):
        await calendar.end_watch(opened.id)


@pytest.mark.parametrize("body", ["<html>", "[]", '{"error":"invalid"}', '{"error":{"errors":[7],"details":7}}'])
async def test_a_refusal_may_have_any_body(calendar: GoogleCalendar, server: GoogleServer, body: str) -> None:
    server.before = answer_with(body, 400)
    with pytest.raises(ProviderError, match=r"answered 400$"):
        await list_noon(calendar)


async def test_newer_errors_name_their_reason_elsewhere(calendar: GoogleCalendar, server: GoogleServer) -> None:
    details = '{"error":{"code":403,"message":"No.","details":[{"reason":"ACCESS_TOKEN_SCOPE_INSUFFICIENT"}]}}'
    server.before = answer_with(details, 403)
    with pytest.raises(ProviderError, match="consent at Google lacks a right"):
        await list_noon(calendar)


@pytest.mark.parametrize(
    "use",
    [
        *READS,
        lambda calendar: calendar.create_event(PRIMARY, DRAFT),
        lambda calendar: calendar.move_event(PRIMARY, EVENT, NOON, NOON + HOUR),
        lambda calendar: calendar.cancel_event(PRIMARY, EVENT),
        watch,
        lambda calendar: calendar.end_watch(WATCH),
    ],
)
async def test_a_token_that_is_refused_disconnects_the_account(
    calendar: GoogleCalendar, server: GoogleServer, use: Any
) -> None:
    server.before = answer_with("{}", 401)
    with pytest.raises(AccountRefused, match="connect the calendar again"):
        await use(calendar)
    assert len(server.requests) == 1


async def drop(request: web.Request) -> web.Response | None:
    """Lose the answer to a write."""
    if request.method != "GET":
        assert request.transport is not None
        request.transport.close()
    return None


async def fail(request: web.Request) -> web.Response | None:
    if request.method == "GET":
        return None
    return web.json_response(describe_fault(503, "backendError", "Backend Error"), status=503)


async def babble(request: web.Request) -> web.Response | None:
    return web.Response(text="<html>Welcome</html>") if request.method in ("POST", "PATCH") else None


async def mistake(request: web.Request) -> web.Response | None:
    """Answer with another event."""
    body = {"id": "other0", "etag": '"1"', "start": {"date": "2027-03-03"}, "end": {"date": "2027-03-04"}}
    return web.json_response(body) if request.method in ("POST", "PATCH") else None


@pytest.mark.parametrize("lose", [drop, fail, babble])
async def test_a_lost_answer_is_asked_for_once(calendar: GoogleCalendar, server: GoogleServer, lose: Answer) -> None:
    server.after = lose
    event = await calendar.create_event(PRIMARY, DRAFT)
    assert event.version == server.events[PRIMARY][DRAFT.key.hex]["etag"]
    assert [method for method, _, _ in server.requests] == ["POST", "GET"]
    with pytest.raises(OutcomeUnknown):
        await calendar.move_event(PRIMARY, event, NOON + HOUR, NOON + 2 * HOUR)
    moved = await calendar.find_event(PRIMARY, event.key)
    assert moved is not None
    assert moved.starts_at == NOON + HOUR


@pytest.mark.parametrize("lose", [drop, fail])
async def test_a_lost_cancellation_is_unknown(calendar: GoogleCalendar, server: GoogleServer, lose: Answer) -> None:
    """aiohttp repeats a DELETE whose connection was lost, and Google answers that the event is gone."""
    event = await calendar.create_event(PRIMARY, DRAFT)
    server.after = lose
    with pytest.raises(OutcomeUnknown):
        await calendar.cancel_event(PRIMARY, event)
    assert server.list_keys() == []


@pytest.mark.parametrize(("lose", "count"), [(fail, 3), (babble, 3), (mistake, 1)])
async def test_a_request_that_was_lost_is_unknown(
    calendar: GoogleCalendar, server: GoogleServer, lose: Answer, count: int
) -> None:
    """Google has no event yet, but the request may be under way to it."""
    server.before = lose
    with pytest.raises(OutcomeUnknown):
        await calendar.create_event(PRIMARY, DRAFT)
    assert [method for method, _, _ in server.requests] == ["POST", "GET", "GET"][:count]
    assert server.list_keys() == []


async def test_another_event_is_not_taken_for_ours(calendar: GoogleCalendar, server: GoogleServer) -> None:
    await calendar.create_event(PRIMARY, DRAFT)
    server.before = answer_with('{"id":"other0","etag":"1"}', method="GET")
    with pytest.raises(ProviderError, match="it is another event"):
        await calendar.find_event(PRIMARY, DRAFT.key)
    server.before = answer_with(f'{{"id":"{DRAFT.key.hex}","start":{{"dateTime":"2027-03-03T12:00:00Z"}}}}')
    with pytest.raises(ProviderError, match="no version"):
        await calendar.find_event(PRIMARY, DRAFT.key)


async def test_a_limit_of_requests_writes_nothing(calendar: GoogleCalendar, server: GoogleServer) -> None:
    server.before = answer_with("{}", 429, method="POST", Retry_After="30")
    with pytest.raises(ProviderError) as refused:
        await calendar.create_event(PRIMARY, DRAFT)
    assert not isinstance(refused.value, OutcomeUnknown)
    assert (refused.value.retryable, refused.value.retry_after_seconds) == (True, 30)
    assert len(server.requests) == 1


async def test_neither_token_nor_request_leaves_the_server(calendar: GoogleCalendar, server: GoogleServer) -> None:
    async with serve_private() as inside:
        server.before = answer_with("", 308, Location=f"{inside.address}/calendar/v3/")
        for attempt in (calendar.check(), calendar.create_event(PRIMARY, DRAFT)):
            with pytest.raises(ProviderError, match="redirects to"):
                await attempt
        assert inside.requests == []


async def test_a_server_that_is_silent_is_left(calendar: GoogleCalendar, server: GoogleServer) -> None:
    released = asyncio.Event()

    async def wait(request: web.Request) -> web.Response | None:
        if request.method != "GET" or not request.path.endswith(DRAFT.key.hex):
            await released.wait()
        return None

    server.before = wait
    results = await asyncio.gather(
        list_noon(calendar),
        calendar.create_event(PRIMARY, DRAFT),
        calendar.cancel_event(PRIMARY, EVENT),
        return_exceptions=True,
    )
    released.set()
    listed, created, canceled = results
    assert isinstance(listed, ProviderError)
    assert isinstance(created, OutcomeUnknown)
    assert isinstance(canceled, OutcomeUnknown)
    assert all("did not answer in time" in str(error) for error in results)
