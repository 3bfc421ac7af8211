"""cal.com's API when it answers badly, late, or elsewhere."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from aiohttp import web
from pydantic import SecretStr
from switchboard.plugin_sdk import CalendarEvent, EventDraft, OutcomeUnknown, ProviderError, ProviderSettings
from switchboard.plugin_sdk.testing.vendors import VENDORS_ONLY, serve_private
from switchboard_calendar.calcom import CalcomAccount, CalcomCalendar

from tests.fixtures.calcom_server import API_KEY, EVENT_TYPE_ID, CalcomServer, run_calcom

CALENDAR, HOUR = str(EVENT_TYPE_ID), timedelta(hours=1)
NOON = datetime(2027, 3, 3, 12, tzinfo=UTC)
Answer = Callable[[web.Request], Awaitable[web.StreamResponse | None]]
SLOT = '{{"status":"success","data":{{"2027-03-03":[{{"start":{},"end":{}}}]}}}}'
DRAFT = EventDraft(uuid4(), NOON, NOON + HOUR, "Europe/Berlin", "Visit")


async def open_calendar(server: CalcomServer) -> CalcomCalendar:
    provider = CalcomCalendar(ProviderSettings())
    provider.account = CalcomAccount(
        api_key=SecretStr(API_KEY), event_type_id=EVENT_TYPE_ID, attendee_email="desk@example.com", url=server.url
    )
    provider.network_policy = VENDORS_ONLY
    await provider.open()
    return provider


def answer_at(place: str, text: str, status: int = 200, **headers: str) -> Answer:
    async def serve(request: web.Request) -> web.Response | None:
        if place not in request.path:
            return None
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        return web.Response(text=text, status=status, content_type="application/json", headers=given)

    return serve


async def list_noon(provider: CalcomCalendar) -> None:
    await provider.list_busy(CALENDAR, NOON, NOON + HOUR, time_zone="UTC")


@pytest.mark.parametrize("place", ["/slots", "/bookings", "/event-types"])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<html><body>Welcome</body>", "not JSON of cal.com"),
        ("", "not JSON of cal.com"),
        ("[" * 100_000, "not JSON of cal.com"),
        ("null", "not JSON of cal.com"),
        ('{"status":"error","data":{}}', "field status"),
        ('{"status":"success"}', "field data"),
        ('{"status":"success","data":7}', "field data"),
        ('{"status":"success","data":"' + "x" * 5 * 2**20 + '"}', "longer than 4 MiB"),
    ],
)
async def test_what_cannot_be_read_is_never_free(place: str, text: str, message: str) -> None:
    async with run_calcom() as server:
        server.before = answer_at(place, text)
        provider = await open_calendar(server)
        with pytest.raises(ProviderError, match=message) as failed:
            await list_noon(provider)
        await provider.close()
    assert (failed.value.code, failed.value.retryable) == ("unreadable", False)


@pytest.mark.parametrize(
    ("start", "end"),
    [('"soon"', '"2027-03-03T13:00:00Z"'), ('"2027-03-03T12:00:00"', '"2027-03-03T13:00:00Z"'), ("null", "null")],
)
async def test_a_time_must_be_understood(start: str, end: str) -> None:
    """A slot without a time, or without a zone, and one booking that has none among others."""
    async with run_calcom() as server:
        provider = await open_calendar(server)
        server.before = answer_at("/slots", SLOT.format(start, end))
        with pytest.raises(ProviderError, match="field data"):
            await list_noon(provider)
        server.before = None
        server.book(NOON + 5 * HOUR)["start"] = None
        with pytest.raises(ProviderError, match="field data"):
            await provider.find_event(CALENDAR, DRAFT.key)
        await provider.close()


async def test_a_uid_is_no_path() -> None:
    async with run_calcom() as server:
        server.book(NOON + timedelta(days=2), {"switchboard_event": str(DRAFT.key)}, uid="../event-types")
        provider = await open_calendar(server)
        server.before = answer_at("/bookings", '{"status":"success","data":[{"uid":"../me"}],"pagination":{}}')
        with pytest.raises(ProviderError, match="not as described"):
            await provider.find_event(CALENDAR, DRAFT.key)
        await provider.close()


@pytest.mark.parametrize(
    ("status", "headers", "message", "retryable"),
    [
        (401, {}, "refuses the API key", False),
        (403, {}, "its user must own the event type", False),
        (302, {"Location": "https://elsewhere.example.com/v2"}, "redirects to https://elsewhere.example.com/v2", False),
        (400, {}, "answered 400$", False),
        (429, {"Retry_After": "7"}, "answered 429", True),
        (500, {}, "answered 500", True),
    ],
)
async def test_a_refusal_says_what_to_do(status: int, headers: dict[str, str], message: str, retryable: bool) -> None:
    async with run_calcom() as server:
        server.before = answer_at("/slots", "<html>", status, **headers)
        provider = await open_calendar(server)
        with pytest.raises(ProviderError, match=message) as refused:
            await list_noon(provider)
        await provider.close()
    code = "account_refused" if status == 401 else str(status)
    assert (refused.value.retryable, refused.value.code) == (retryable, code)
    assert refused.value.retry_after_seconds == (7 if status == 429 else None)


async def test_a_limit_of_requests_books_nothing() -> None:
    async with run_calcom() as server:
        provider = await open_calendar(server)

        async def limit(request: web.Request) -> web.Response | None:
            headers = {"Retry-After": "30"}
            return web.Response(status=429, headers=headers) if request.method == "POST" else None

        server.before = limit
        with pytest.raises(ProviderError) as refused:
            await provider.create_event(CALENDAR, DRAFT)
        await provider.close()
    assert not isinstance(refused.value, OutcomeUnknown)
    assert (refused.value.retryable, refused.value.retry_after_seconds) == (True, 30)


async def test_neither_key_nor_request_leaves_the_server() -> None:
    async with serve_private() as inside, run_calcom() as server:
        server.before = answer_at("/v2", "", 308, Location=f"{inside.address}/v2/bookings")
        provider = await open_calendar(server)
        with pytest.raises(ProviderError, match="redirects to"):
            await provider.check()
        with pytest.raises(ProviderError, match="redirects to"):
            await provider.create_event(CALENDAR, DRAFT)
        await provider.close()
        assert inside.requests == []


async def test_a_server_that_is_silent_is_left() -> None:
    released = asyncio.Event()

    async def wait(request: web.Request) -> web.Response | None:
        if "/slots" in request.path or request.method == "POST":
            await released.wait()
        return None

    async with run_calcom() as server:
        server.before = wait
        provider = await open_calendar(server)
        event = CalendarEvent(uuid4(), "x", "uid", NOON, NOON + HOUR)
        listed, created, moved = await asyncio.gather(
            list_noon(provider),
            provider.create_event(CALENDAR, DRAFT),
            provider.move_event(CALENDAR, event, NOON, NOON + HOUR),
            return_exceptions=True,
        )
        released.set()
        await provider.close()
    assert isinstance(listed, ProviderError)
    assert isinstance(created, OutcomeUnknown)
    assert isinstance(moved, OutcomeUnknown)
    assert all("did not answer in time" in str(error) for error in (listed, created, moved))
