"""cal.com: the contract, what it takes for busy, and what it refuses, against a server that follows its API's pages."""

import random
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
import pytest_asyncio
from aiohttp import web
from pydantic import SecretStr, ValidationError
from switchboard.plugin_sdk import (
    EventChanged,
    EventDraft,
    NetworkPolicy,
    OutcomeUnknown,
    ProviderError,
    ProviderSettings,
    TimeTaken,
)
from switchboard.plugin_sdk.testing import CalendarContract
from switchboard.plugin_sdk.testing.vendors import VENDORS_ONLY
from switchboard_calendar.calcom import PAGE_SIZE, CalcomAccount, CalcomCalendar

from tests.fixtures.calcom_server import API_KEY, EVENT_TYPE_ID, CalcomServer, find_keys, run_calcom

CALENDAR, HOUR = str(EVENT_TYPE_ID), timedelta(hours=1)


def create_calendar(url: str, *, policy: NetworkPolicy = VENDORS_ONLY, **account: Any) -> CalcomCalendar:
    given = {
        "api_key": SecretStr(API_KEY),
        "event_type_id": EVENT_TYPE_ID,
        "attendee_email": "desk@example.com",
        **account,
    }
    provider = CalcomCalendar(ProviderSettings())
    provider.account = CalcomAccount(url=url, **given)
    provider.network_policy = policy
    return provider


def build_draft(starts_at: datetime, *, key: UUID | None = None, minutes: int = 60, **more: str) -> EventDraft:
    ends_at = starts_at + timedelta(minutes=minutes)
    return EventDraft(key or uuid4(), starts_at, ends_at, "Europe/Berlin", "Visit: Ada", **more)


@pytest_asyncio.fixture
async def server() -> AsyncIterator[CalcomServer]:
    async with run_calcom() as running:
        yield running


@pytest_asyncio.fixture
async def calendar(server: CalcomServer) -> AsyncIterator[CalcomCalendar]:
    provider = create_calendar(server.url)
    await provider.open()
    yield provider
    await provider.close()


@pytest.fixture
def noon() -> datetime:
    return datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0) + timedelta(days=30)


class TestCalcom(CalendarContract[CalcomCalendar]):
    @pytest.fixture
    def provider(self, server: CalcomServer) -> CalcomCalendar:
        return create_calendar(server.url)

    @pytest.fixture
    def create_at(self) -> Callable[[str], CalcomCalendar]:
        return create_calendar

    @pytest.fixture
    def noon(self) -> datetime:
        """cal.com offers no time that is more than a year away."""
        today = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0)
        return today + timedelta(days=random.randrange(30, 300))


async def test_a_moved_booking_is_the_same_event(
    calendar: CalcomCalendar, server: CalcomServer, noon: datetime
) -> None:
    """Also to a time that overlaps its own, and again."""
    event = await calendar.create_event(CALENDAR, build_draft(noon))
    for minutes in (15, 120, -45):
        start = noon + timedelta(minutes=minutes)
        moved = await calendar.move_event(CALENDAR, event, start, start + HOUR)
        assert (moved.id, moved.key, moved.starts_at, moved.ends_at) == (event.id, event.key, start, start + HOUR)
        assert moved.version != event.version
        assert await calendar.find_event(CALENDAR, event.key) == moved
        assert find_keys(server) == [event.key]
        with pytest.raises(EventChanged):
            await calendar.move_event(CALENDAR, event, noon + 9 * HOUR, noon + 10 * HOUR)
        event = moved


async def test_what_cal_com_does_not_offer_is_busy(
    calendar: CalcomCalendar, server: CalcomServer, noon: datetime
) -> None:
    """Times of the host's calendars, bookings of others, and the platform's own, which have their key."""
    server.busy.append((noon, noon + HOUR / 2))
    server.book(noon + 2 * HOUR)
    key = uuid4()
    await calendar.create_event(CALENDAR, build_draft(noon + 4 * HOUR, key=key))
    found = await calendar.list_busy(CALENDAR, noon - HOUR, noon + 6 * HOUR, time_zone="UTC")
    assert sorted((busy.starts_at, busy.ends_at, busy.event_key) for busy in found) == [
        (noon, noon + HOUR / 2, None),
        (noon + 2 * HOUR, noon + 3 * HOUR, None),
        (noon + 4 * HOUR, noon + 5 * HOUR, key),
    ]
    before = datetime.now(UTC) - 3 * HOUR
    (past,) = await calendar.list_busy(CALENDAR, before, before + HOUR, time_zone="UTC")
    assert (past.starts_at, past.ends_at) == (before, before + HOUR)
    far = datetime.now(UTC) + timedelta(days=400)
    (late,) = await calendar.list_busy(CALENDAR, far, far + HOUR, time_zone="UTC")
    assert (late.starts_at, late.ends_at) == (far, far + HOUR)


async def test_a_short_gap_is_busy(calendar: CalcomCalendar, server: CalcomServer, noon: datetime) -> None:
    """Half an hour between two bookings is free, but no booking of an hour fits."""
    server.busy.extend([(noon - HOUR, noon), (noon + HOUR / 2, noon + 2 * HOUR)])
    (busy,) = await calendar.list_busy(CALENDAR, noon - HOUR, noon + 2 * HOUR, time_zone="UTC")
    assert (busy.starts_at, busy.ends_at) == (noon - HOUR, noon + 2 * HOUR)


async def test_a_taken_time_is_refused(calendar: CalcomCalendar, server: CalcomServer, noon: datetime) -> None:
    """For a creation and for a move, and with a message that cal.com does not have today."""
    event = await calendar.create_event(CALENDAR, build_draft(noon + 5 * HOUR))
    server.book(noon)
    with pytest.raises(TimeTaken):
        await calendar.create_event(CALENDAR, build_draft(noon + HOUR / 2))
    with pytest.raises(TimeTaken):
        await calendar.move_event(CALENDAR, event, noon, noon + HOUR)
    with pytest.raises(TimeTaken):
        await calendar.create_event(CALENDAR, build_draft(noon + timedelta(days=400)))

    async def refuse(request: web.Request) -> web.Response | None:
        message = {"status": "error", "error": {"code": "BadRequestException", "message": "Not today."}}
        return web.json_response(message, status=400) if request.method == "POST" else None

    server.before = refuse
    with pytest.raises(TimeTaken):
        await calendar.create_event(CALENDAR, build_draft(noon))
    with pytest.raises(ProviderError, match=r"cal\.com answered 400: Not today$") as refused:
        await calendar.create_event(CALENDAR, build_draft(noon + 2 * HOUR))
    assert not refused.value.retryable
    assert not isinstance(refused.value, TimeTaken)
    assert find_keys(server) == [event.key]


async def test_the_booking_of_another_caller_is_not_returned(
    calendar: CalcomCalendar, server: CalcomServer, noon: datetime
) -> None:
    """cal.com may answer with the booking that the attendee has at the time, and all callers are one attendee."""
    other = server.book(noon, {"switchboard_event": str(uuid4())})

    async def repeat(request: web.Request) -> web.Response | None:
        return web.json_response({"status": "success", "data": other}, status=201) if request.method == "POST" else None

    server.before = repeat
    with pytest.raises(TimeTaken):
        await calendar.create_event(CALENDAR, build_draft(noon))


async def test_a_version_without_metadata_is_not_trusted(
    calendar: CalcomCalendar, server: CalcomServer, noon: datetime
) -> None:
    """A booking that cannot be found again must not be said to be refused."""
    other = server.book(noon)
    del other["metadata"]

    async def repeat(request: web.Request) -> web.Response | None:
        return web.json_response({"status": "success", "data": other}, status=201) if request.method == "POST" else None

    server.before = repeat
    with pytest.raises(OutcomeUnknown, match="has no metadata"):
        await calendar.create_event(CALENDAR, build_draft(noon))


async def test_a_booking_has_what_cal_com_asks_for(
    calendar: CalcomCalendar, server: CalcomServer, noon: datetime
) -> None:
    draft = build_draft(noon, description="+493012345\nTooth: left", attendee_name="Ada", attendee_phone="+493012345")
    server.event_type = {"bookingFields": [{"type": "phone", "slug": "attendeePhoneNumber", "required": True}]}
    event = await calendar.create_event(CALENDAR, draft)
    made = server.bookings[event.version]
    assert made["attendees"] == [
        {
            "name": "Ada",
            "email": "desk@example.com",
            "timeZone": "Europe/Berlin",
            "language": "en",
            "phoneNumber": "+493012345",
        }
    ]
    assert made["bookingFieldsResponses"]["notes"] == draft.description
    server.event_type = {
        "bookingFields": [{"type": "title", "slug": "title", "required": True}, {"slug": "attendeePhoneNumber"}]
    }
    await calendar.list_calendars()
    event = await calendar.create_event(CALENDAR, build_draft(noon + 2 * HOUR, attendee_phone="+493012345"))
    made = server.bookings[event.version]
    assert made["bookingFieldsResponses"]["title"] == "Visit: Ada"
    assert made["attendees"][0]["name"] == "Visit: Ada"
    assert "phoneNumber" not in made["attendees"][0]


async def test_another_length_is_refused(calendar: CalcomCalendar, server: CalcomServer, noon: datetime) -> None:
    with pytest.raises(ProviderError, match="last 60 minutes; give the appointment type the same length") as refused:
        await calendar.create_event(CALENDAR, build_draft(noon, minutes=30))
    assert not refused.value.retryable
    assert server.bookings == {}


async def test_a_booking_is_found_among_many(calendar: CalcomCalendar, server: CalcomServer, noon: datetime) -> None:
    event = await calendar.create_event(CALENDAR, build_draft(noon))
    for _ in range(PAGE_SIZE + 10):
        server.book(noon + 2 * HOUR)
    assert await calendar.find_event(CALENDAR, event.key) == event
    for _ in range(7 * PAGE_SIZE):
        server.book(noon + 2 * HOUR)
    with pytest.raises(ProviderError, match="more than 1800 open bookings"):
        await calendar.find_event(CALENDAR, uuid4())


async def test_the_host_may_cancel_and_move(calendar: CalcomCalendar, server: CalcomServer, noon: datetime) -> None:
    event = await calendar.create_event(CALENDAR, build_draft(noon))
    server.cancel(event.version)
    assert await calendar.find_event(CALENDAR, event.key) is None
    with pytest.raises(EventChanged):
        await calendar.move_event(CALENDAR, event, noon + HOUR, noon + 2 * HOUR)
    await calendar.cancel_event(CALENDAR, event)
    server.book(noon + 3 * HOUR, {"switchboard_event": str(event.key)})
    assert find_keys(server) == [event.key]
    await calendar.cancel_event(CALENDAR, event)
    assert find_keys(server) == []


async def test_a_booking_that_is_canceled_at_the_same_time_is_gone(
    calendar: CalcomCalendar, server: CalcomServer, noon: datetime
) -> None:
    event = await calendar.create_event(CALENDAR, build_draft(noon))

    async def cancel(request: web.Request) -> web.Response | None:
        if request.path.endswith("/cancel"):
            server.cancel(event.version)
        return None

    server.before = cancel
    await calendar.cancel_event(CALENDAR, event)
    assert find_keys(server) == []


async def test_changes_of_bookings_are_found(calendar: CalcomCalendar, server: CalcomServer, noon: datetime) -> None:
    """New, moved, and canceled ones of this event type, by whoever it was, and none."""
    changes = await calendar.find_changes(CALENDAR, "")
    assert changes.has_changed
    assert changes.cursor, "also without any booking"
    old = server.book(noon + 9 * HOUR, updatedAt="2026-01-01T00:00:00.000Z")
    never = server.book(noon + 12 * HOUR, updatedAt=None)
    event = await calendar.create_event(CALENDAR, build_draft(noon))

    async def do_nothing() -> None:
        await calendar.find_event(CALENDAR, event.key)

    async def move() -> None:
        await calendar.move_event(CALENDAR, event, noon + HOUR, noon + 2 * HOUR)

    async def book() -> None:
        server.book(noon + 5 * HOUR)

    async def book_elsewhere() -> None:
        server.book(noon + 5 * HOUR, eventTypeId=9)

    async def cancel() -> None:
        server.cancel(old["uid"])

    async def change_late() -> None:
        """Make a change visible whose moment is before that of another one."""
        moment = datetime.now(UTC) - timedelta(seconds=90)
        never["updatedAt"] = f"{moment:%Y-%m-%dT%H:%M:%S}.123Z"

    for change, has_changed in (
        (do_nothing, True),
        (do_nothing, False),
        (move, True),
        (do_nothing, False),
        (book, True),
        (book_elsewhere, False),
        (cancel, True),
        (do_nothing, False),
        (change_late, True),
        (do_nothing, False),
    ):
        await change()
        changes = await calendar.find_changes(CALENDAR, changes.cursor)
        assert changes.has_changed is has_changed, change
    count = len(server.requests)
    await calendar.find_changes(CALENDAR, changes.cursor)
    assert len(server.requests) == count + 1


async def test_an_answer_without_moments_may_be_any_change(
    calendar: CalcomCalendar, server: CalcomServer, noon: datetime
) -> None:
    """Versions of cal.com that do not say when a booking has changed."""
    del server.book(noon)["updatedAt"]

    async def answer(request: web.Request) -> web.Response:
        return web.json_response({"status": "success", "data": list(server.bookings.values())})

    server.before = answer
    for cursor in ("", "2027-01-01T00:00:00Z x", "2027-01-01T00:00:00 x", "x"):
        changes = await calendar.find_changes(CALENDAR, cursor)
        assert (changes.has_changed, changes.cursor) == (True, "")


async def drop(request: web.Request) -> web.Response | None:
    """Lose the answer to a write."""
    if request.method == "POST":
        assert request.transport is not None
        request.transport.close()
    return None


async def fail(request: web.Request) -> web.Response | None:
    return web.Response(status=502, text="<html>Bad gateway</html>") if request.method == "POST" else None


async def babble(request: web.Request) -> web.Response | None:
    return web.Response(text="<html>Welcome</html>") if request.method == "POST" else None


@pytest.mark.parametrize("lose", [drop, fail, babble])
async def test_a_lost_answer_is_asked_for_once(
    calendar: CalcomCalendar, server: CalcomServer, noon: datetime, lose: Any
) -> None:
    server.after = lose
    event = await calendar.create_event(CALENDAR, build_draft(noon))
    assert (event.version, event.starts_at) == (server.list_active()[0]["uid"], noon)
    assert [method for method, _, _ in server.requests].count("POST") == 1
    with pytest.raises(OutcomeUnknown):
        await calendar.move_event(CALENDAR, event, noon + HOUR, noon + 2 * HOUR)
    moved = await calendar.find_event(CALENDAR, event.key)
    assert moved is not None
    assert moved.starts_at == noon + HOUR
    with pytest.raises(OutcomeUnknown):
        await calendar.cancel_event(CALENDAR, event)
    assert find_keys(server) == []


async def test_a_request_that_was_lost_is_unknown(
    calendar: CalcomCalendar, server: CalcomServer, noon: datetime
) -> None:
    """cal.com has no booking yet, but the request may be under way to it."""
    server.before = fail
    with pytest.raises(OutcomeUnknown, match="answered 502"):
        await calendar.create_event(CALENDAR, build_draft(noon))
    assert [path for method, path, _ in server.requests if method == "POST"] == ["/v2/bookings"]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"recurrence": {"interval": 1, "occurrences": 4, "frequency": "weekly"}}, "repeats its bookings"),
        ({"seats": {"seatsPerTimeSlot": 4, "showAttendeeInfo": False}}, "offers seats"),
        ({"schedulingType": "roundRobin"}, "shares its bookings among hosts"),
        ({"confirmationPolicy": {"type": "always"}}, "asks the host to confirm"),
        ({"price": 2000}, "takes money"),
        ({"bookerActiveBookingsLimit": {"maximumActiveBookings": 1}}, "limits the bookings of an attendee"),
        ({"requiresBookerEmailVerification": True}, "verifies the attendee's email address"),
        ({"bookingFields": [{"slug": "insurance", "type": "text", "required": True}]}, "not asked for: insurance"),
    ],
)
async def test_an_event_type_must_make_appointments(
    calendar: CalcomCalendar, server: CalcomServer, changed: dict[str, Any], message: str
) -> None:
    await calendar.check()
    server.event_type = changed
    with pytest.raises(ProviderError, match=message) as refused:
        await calendar.check()
    assert (refused.value.code, refused.value.retryable) == ("unsupported_event_type", False)


async def open_and_check(url: str, **account: Any) -> None:
    provider = create_calendar(url, **account)
    await provider.open()
    try:
        await provider.check()
    finally:
        await provider.close()


async def test_the_check_says_what_to_correct(server: CalcomServer) -> None:
    await open_and_check(server.url)
    await open_and_check(f"{server.url}/")
    for account, message in (
        ({"api_key": SecretStr("cal_other")}, "refuses the API key"),
        ({"event_type_id": 9}, "no event type 9 of the API key's user"),
        ({"policy": NetworkPolicy()}, "must be a public"),
    ):
        with pytest.raises(ProviderError, match=message) as refused:
            await open_and_check(server.url, **account)
        assert not refused.value.retryable
    with pytest.raises(ProviderError, match="no event type 4711"):
        await open_and_check(server.url.removesuffix("/v2"))


async def test_an_api_key_is_a_header(server: CalcomServer) -> None:
    with pytest.raises(ProviderError, match="copy it again"):
        await create_calendar(server.url, api_key=SecretStr("cal\r\nX-Other: 1")).open()


async def test_without_an_account_there_is_nothing_to_check() -> None:
    """An operator may name the provider before a user connects a calendar."""
    calendar = CalcomCalendar(ProviderSettings())
    await calendar.open()
    await calendar.check()
    with pytest.raises(ProviderError, match="connect a calendar first"):
        await calendar.list_calendars()


async def test_another_event_type_is_refused(calendar: CalcomCalendar, server: CalcomServer, noon: datetime) -> None:
    with pytest.raises(ProviderError, match="another event type"):
        await calendar.create_event("9", build_draft(noon))
    assert server.requests == []


@pytest.mark.parametrize(
    "account", [{"attendee_email": "desk"}, {"event_type_id": 0}, {"url": "ftp://cal.example.com"}, {"other": 1}]
)
def test_an_account_is_validated(account: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        create_calendar("https://api.cal.com/v2", **account) if "url" not in account else CalcomAccount(
            api_key=SecretStr(API_KEY), event_type_id=1, attendee_email="desk@example.com", **account
        )
