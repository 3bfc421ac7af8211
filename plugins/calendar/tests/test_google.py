"""Google Calendar: the contract, what it takes for busy, and changes of people, against a server that follows its
API's pages.
"""

import html
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
import pytest_asyncio
from pydantic import SecretStr, ValidationError
from switchboard.plugin_sdk import (
    CalendarEvent,
    EventChanged,
    EventDraft,
    NetworkPolicy,
    ProviderError,
    RemoteCalendar,
)
from switchboard.plugin_sdk.testing import OAuthCalendarContract
from switchboard.plugin_sdk.testing.vendors import VENDORS_ONLY
from switchboard_calendar.google import (
    MAX_EVENTS,
    MAX_SYNC_PAGES,
    GoogleCalendar,
    GoogleCalendarAccount,
    GoogleCalendarSettings,
)

from tests.fixtures.google_calendar_server import (
    ACCESS_TOKEN,
    HOLIDAYS,
    PRIMARY,
    SHARED,
    GoogleServer,
    run_google,
)

NOON, HOUR = datetime(2027, 3, 3, 12, tzinfo=UTC), timedelta(hours=1)
MIDNIGHT = datetime(2027, 3, 2, 23, tzinfo=UTC)
"""The midnight of NOON's day in Berlin."""
DAY = timedelta(days=1)


def create_calendar(url: str, *, policy: NetworkPolicy = VENDORS_ONLY, **account: Any) -> GoogleCalendar:
    settings = GoogleCalendarSettings(client_id="desk.apps.googleusercontent.com", client_secret="secret", api_url=url)
    provider = GoogleCalendar(settings)
    provider.account = GoogleCalendarAccount(**{"access_token": SecretStr(ACCESS_TOKEN), **account})
    provider.network_policy = policy
    return provider


def build_draft(starts_at: datetime = NOON, *, key: UUID | None = None, **more: str) -> EventDraft:
    return EventDraft(key or uuid4(), starts_at, starts_at + HOUR, "Europe/Berlin", "Visit: Ada", **more)


@pytest_asyncio.fixture
async def server() -> AsyncIterator[GoogleServer]:
    async with run_google() as running:
        yield running


@pytest_asyncio.fixture
async def calendar(server: GoogleServer) -> AsyncIterator[GoogleCalendar]:
    provider = create_calendar(server.url)
    await provider.open()
    yield provider
    await provider.close()


async def list_times(
    calendar: GoogleCalendar, begin: datetime = MIDNIGHT, end: datetime = MIDNIGHT + DAY, zone: str = "UTC"
) -> list[tuple[datetime, datetime, UUID | None]]:
    found = await calendar.list_busy(PRIMARY, begin, end, time_zone=zone)
    return sorted(((busy.starts_at, busy.ends_at, busy.event_key) for busy in found), key=lambda busy: busy[:2])


class TestGoogle(OAuthCalendarContract[GoogleCalendar]):
    @pytest.fixture
    def provider(self, server: GoogleServer) -> GoogleCalendar:
        return create_calendar(server.url)

    @pytest.fixture
    def create_at(self) -> Callable[[str], GoogleCalendar]:
        return create_calendar

    @pytest.fixture(autouse=True)
    def _read_at(self, server: GoogleServer) -> None:
        self.server_read = server

    async def read_text(
        self, provider: GoogleCalendar, calendar_id: str, event: CalendarEvent
    ) -> tuple[str, str] | None:
        found = self.server_read.events[calendar_id][event.id]
        assert "<" not in found["description"], "Google shows a description as HTML"
        return found["summary"], html.unescape(found["description"])


def test_an_application_must_be_registered() -> None:
    service = create_calendar("https://www.googleapis.com/calendar/v3").describe_oauth()
    assert (service.authorization_url, service.token_url, service.revocation_url) == (
        "https://accounts.google.com/o/oauth2/v2/auth",
        "https://oauth2.googleapis.com/token",
        "https://oauth2.googleapis.com/revoke",
    )
    assert service.authorization_parameters == {"access_type": "offline", "prompt": "consent"}
    for settings in ({}, {"client_id": "desk"}, {"client_secret": "secret"}, {"client_id": "", "client_secret": "x"}):
        with pytest.raises(ProviderError, match="set client_id and client_secret for google") as refused:
            GoogleCalendar(GoogleCalendarSettings(**settings)).describe_oauth()
        assert not refused.value.retryable


async def test_the_primary_calendar_is_first(server: GoogleServer) -> None:
    """Or the one with the chosen name or ID, also if it is hidden, and on another page."""
    server.page_size = 2
    server.add_calendar("c_old@group.calendar.google.com", "Old desk", hidden=True)
    server.calendars[SHARED]["summaryOverride"] = "Reception"
    first = RemoteCalendar(PRIMARY, PRIMARY, "Europe/Berlin", True)
    reception = RemoteCalendar(SHARED, "Reception", "America/New_York", True)
    holidays = RemoteCalendar(HOLIDAYS, "Holidays in Germany", "Europe/Berlin", False)
    for wanted, expected in (
        (None, [first, reception, holidays]),
        ("Reception", [reception, first, holidays]),
        (SHARED, [reception, first, holidays]),
        ("Old desk", [RemoteCalendar("c_old@group.calendar.google.com", "Old desk", "Europe/Berlin"), first]),
    ):
        provider = create_calendar(server.url, calendar=wanted)
        await provider.open()
        assert list(await provider.list_calendars())[: len(expected)] == expected
        await provider.close()


async def test_what_leaves_its_time_free(calendar: GoogleCalendar, server: GoogleServer) -> None:
    """Transparent and deleted events, declined invitations, and types of events that are no appointments."""
    others = [{"email": f"{number}@example.com", "responseStatus": "declined"} for number in range(30)]

    def invite(response: str) -> list[dict[str, Any]]:
        return [*others, {"email": PRIMARY, "self": True, "responseStatus": response}]

    server.put(NOON, NOON + HOUR, transparency="transparent")
    server.put(NOON, NOON + HOUR, attendees=invite("declined"))
    server.put(NOON, NOON + HOUR, eventType="workingLocation")
    server.put("2027-03-03", "2027-03-04", eventType="birthday")
    server.put(NOON, NOON)
    server.delete(server.put(NOON, NOON + HOUR)["id"])
    assert await list_times(calendar) == []
    opaque: list[dict[str, Any]] = [
        {"attendees": others},
        {"attendees": invite("needsAction")},
        {"attendees": invite("tentative")},
        {"status": "tentative"},
        {"eventType": "focusTime", "transparency": "opaque"},
        {"eventType": "outOfOffice"},
        {"eventType": "fromGmail"},
        {"eventType": "of 2030"},
    ]
    for number, more in enumerate(opaque):
        begin = MIDNIGHT + number * HOUR
        server.put(begin, begin + HOUR, **more)
    assert await list_times(calendar) == [
        (MIDNIGHT + number * HOUR, MIDNIGHT + (number + 1) * HOUR, None) for number in range(8)
    ]


async def test_days_are_those_of_the_calendar(calendar: GoogleCalendar, server: GoogleServer) -> None:
    """From midnight to midnight in its zone, also where a clock changes, and whatever zone was asked for."""
    server.put("2027-03-03", "2027-03-04")
    for zone in ("UTC", "Asia/Kathmandu"):
        assert await list_times(calendar, zone=zone) == [(MIDNIGHT, MIDNIGHT + DAY, None)]
    assert await list_times(calendar, MIDNIGHT - HOUR, MIDNIGHT) == []
    assert await list_times(calendar, MIDNIGHT + DAY, MIDNIGHT + DAY + HOUR) == []
    server.put("2027-03-28", "2027-03-29")
    spring = datetime(2027, 3, 27, 23, tzinfo=UTC)
    assert await list_times(calendar, spring, spring + DAY) == [(spring, spring + 23 * HOUR, None)]


async def test_occurrences_are_busy(calendar: GoogleCalendar, server: GoogleServer) -> None:
    """Each at its local time, except for one that was deleted, and one that was moved."""
    series = server.put(NOON - 28 * DAY, NOON - 28 * DAY + HOUR, recurrence=["RRULE:FREQ=WEEKLY"], id="weekly0")
    for day, change in ((7, {"status": "cancelled"}), (14, {})):
        original = {"dateTime": f"2027-03-{3 + day}T13:00:00+01:00"}
        server.put(
            NOON + day * DAY + 3 * HOUR,
            NOON + day * DAY + 4 * HOUR,
            id=f"exception{day}",
            recurringEventId=series["id"],
            originalStartTime=original,
            **change,
        )
    found = await list_times(calendar, NOON - HOUR, NOON + 30 * DAY)
    assert [begin for begin, _, _ in found] == [
        NOON,
        NOON + 14 * DAY + 3 * HOUR,
        NOON + 21 * DAY,
        datetime(2027, 3, 31, 11, tzinfo=UTC),
    ]


async def test_all_pages_are_read(calendar: GoogleCalendar, server: GoogleServer) -> None:
    """Google sends fewer events than asked for, as it likes."""
    server.page_size = 3
    for number in range(8):
        server.put(NOON + number * HOUR / 8, NOON + (number + 1) * HOUR / 8)
    event = await calendar.create_event(PRIMARY, build_draft(NOON + HOUR))
    found = await list_times(calendar)
    assert len(found) == 9
    assert found[-1] == (NOON + HOUR, NOON + 2 * HOUR, event.key)
    assert [query.get("pageToken", "")[:3] for method, _, query in server.requests if method == "GET"] == [
        "", "CiA", "CiA",
    ]  # fmt: skip


async def test_a_calendar_with_too_many_events_is_never_free(calendar: GoogleCalendar, server: GoogleServer) -> None:
    for _ in range(MAX_EVENTS + 1):
        server.put(NOON, NOON + HOUR)
    with pytest.raises(ProviderError, match="more than 20000 events"):
        await list_times(calendar)
    server.events[PRIMARY].clear()
    server.page_size = 1
    for _ in range(30):
        server.put(NOON, NOON + HOUR)
    with pytest.raises(ProviderError, match="more than 20000 events"):
        await list_times(calendar)


async def test_an_event_says_what_it_is(calendar: GoogleCalendar, server: GoogleServer) -> None:
    """And nobody is notified, which the server checks."""
    draft = build_draft(description="+493012345\nTooth: <left> & right")
    event = await calendar.create_event(PRIMARY, draft)
    made = server.events[PRIMARY][draft.key.hex]
    assert event == CalendarEvent(draft.key, draft.key.hex, made["etag"], NOON, NOON + HOUR)
    assert made["description"] == "+493012345\nTooth: &lt;left&gt; &amp; right"
    assert made["start"] == {"dateTime": "2027-03-03T12:00:00Z", "timeZone": "Europe/Berlin"}
    assert "attendees" not in made


async def test_what_others_have_added_stays(calendar: GoogleCalendar, server: GoogleServer) -> None:
    """A person has made a whole day of it, added a guest and a color, and moved it: it is moved from there."""
    event = await calendar.create_event(PRIMARY, build_draft())
    guests = [{"email": "bob@example.com", "responseStatus": "accepted"}]
    server.change(event.id, attendees=guests, start={"date": "2027-03-04"}, end={"date": "2027-03-05"}, location="Here")
    with pytest.raises(EventChanged):
        await calendar.move_event(PRIMARY, event, NOON, NOON + HOUR)
    changed = await calendar.find_event(PRIMARY, event.key)
    assert changed is not None
    assert (changed.starts_at, changed.ends_at) == (MIDNIGHT + DAY, MIDNIGHT + 2 * DAY)
    moved = await calendar.move_event(PRIMARY, changed, NOON + HOUR, NOON + 3 * HOUR)
    assert await calendar.find_event(PRIMARY, event.key) == moved
    kept = server.events[PRIMARY][event.id]
    assert (kept["attendees"], kept["location"], kept["summary"]) == (guests, "Here", "Visit: Ada")
    assert kept["start"] == {"dateTime": "2027-03-03T13:00:00Z"}


async def test_a_change_between_reading_and_moving_is_kept(calendar: GoogleCalendar, server: GoogleServer) -> None:
    event = await calendar.create_event(PRIMARY, build_draft())

    async def change(request: Any) -> None:
        if request.method == "PATCH":
            server.change(event.id, summary="Mine")

    server.before = change
    with pytest.raises(EventChanged):
        await calendar.move_event(PRIMARY, event, NOON + HOUR, NOON + 2 * HOUR)
    assert server.events[PRIMARY][event.id]["start"]["dateTime"] == "2027-03-03T12:00:00Z"


async def test_an_event_that_a_person_has_deleted_is_gone(calendar: GoogleCalendar, server: GoogleServer) -> None:
    """Google keeps its id, and later nothing of it. It does not take another event with the id meanwhile."""
    draft = build_draft()
    event = await calendar.create_event(PRIMARY, draft)
    server.delete(event.id)
    assert await calendar.find_event(PRIMARY, event.key) is None
    for _ in range(2):
        with pytest.raises(EventChanged):
            await calendar.move_event(PRIMARY, event, NOON + HOUR, NOON + 2 * HOUR)
        await calendar.cancel_event(PRIMARY, event)
        if event.id in server.events[PRIMARY]:
            with pytest.raises(EventChanged, match="was canceled"):
                await calendar.create_event(PRIMARY, draft)
            del server.events[PRIMARY][event.id]
    assert await calendar.find_event(PRIMARY, event.key) is None
    assert (await calendar.create_event(PRIMARY, draft)).key == event.key


async def test_a_missing_calendar_has_no_deleted_events(calendar: GoogleCalendar, server: GoogleServer) -> None:
    """Somebody has ended the sharing of the calendar: its appointments were not canceled."""
    draft = build_draft()
    event = await calendar.create_event(SHARED, draft)
    del server.calendars[SHARED]
    for attempt in (
        calendar.find_event(SHARED, event.key),
        calendar.move_event(SHARED, event, NOON + HOUR, NOON + 2 * HOUR),
        calendar.list_busy(SHARED, NOON, NOON + HOUR, time_zone="UTC"),
        calendar.find_changes(SHARED, ""),
        calendar.create_event(SHARED, draft),
    ):
        with pytest.raises(ProviderError, match="deleted, or the account has no right") as refused:
            await attempt
        assert (refused.value.code, refused.value.retryable) == ("no_calendar", False)


async def test_an_event_that_has_become_a_series_is_not_moved(calendar: GoogleCalendar, server: GoogleServer) -> None:
    event = await calendar.create_event(PRIMARY, build_draft())
    server.change(event.id, recurrence=["RRULE:FREQ=DAILY;COUNT=3"])
    series = await calendar.find_event(PRIMARY, event.key)
    assert series is not None
    assert await list_times(calendar, NOON, NOON + 5 * DAY) == [
        (NOON + day * DAY, NOON + day * DAY + HOUR, event.key) for day in range(3)
    ]
    with pytest.raises(ProviderError, match="made a series of the event") as refused:
        await calendar.move_event(PRIMARY, series, NOON + HOUR, NOON + 2 * HOUR)
    assert not refused.value.retryable
    await calendar.cancel_event(PRIMARY, series)
    assert await list_times(calendar, NOON, NOON + 5 * DAY) == []


async def test_ids_of_calendars_are_one_part_of_the_address(calendar: GoogleCalendar, server: GoogleServer) -> None:
    """Those of holidays have a number sign."""
    server.put("2027-03-03", "2027-03-04", HOLIDAYS)
    (busy,) = await calendar.list_busy(HOLIDAYS, MIDNIGHT, MIDNIGHT + DAY, time_zone="UTC")
    assert busy.starts_at == MIDNIGHT
    assert server.requests[-1][1] == f"/calendar/v3/calendars/{HOLIDAYS}/events"
    with pytest.raises(ProviderError, match="right to change events") as refused:
        await calendar.create_event(HOLIDAYS, build_draft())
    assert not refused.value.retryable


async def test_changes_of_people_are_found(calendar: GoogleCalendar, server: GoogleServer) -> None:
    """New, changed, and deleted events, and none."""
    past = datetime.now(UTC) - timedelta(days=400)
    for number in range(5):
        server.put(past + number * DAY, past + number * DAY + HOUR)
    coming = datetime.now(UTC).replace(microsecond=0) + DAY
    event = server.put(coming, coming + HOUR)
    changes = await calendar.find_changes(PRIMARY, "")
    assert changes.has_changed
    for change, has_changed in (
        (lambda: None, False),
        (lambda: server.put(coming, coming + HOUR), True),
        (lambda: None, False),
        (lambda: server.change(event["id"], summary="Moved"), True),
        (lambda: server.put(coming, coming + HOUR, SHARED), False),
        (lambda: server.delete(event["id"]), True),
        (lambda: None, False),
    ):
        change()
        changes = await calendar.find_changes(PRIMARY, changes.cursor)
        assert changes.has_changed is has_changed
        assert changes.cursor
    first = server.requests[0][2]
    assert (first["maxResults"], first["fields"]) == ("2500", "nextPageToken,nextSyncToken,items(id)")
    assert abs(datetime.fromisoformat(first["timeMin"]) - datetime.now(UTC)) < timedelta(minutes=1)
    assert len(server.requests) == 8


async def test_sync_tokens_expire(calendar: GoogleCalendar, server: GoogleServer) -> None:
    """Another list is read then, whose token is good for the next time."""
    cursor = (await calendar.find_changes(PRIMARY, "")).cursor
    server.expire_tokens()
    changes = await calendar.find_changes(PRIMARY, cursor)
    assert changes.has_changed
    assert changes.cursor != cursor
    assert not (await calendar.find_changes(PRIMARY, changes.cursor)).has_changed


async def test_a_list_of_many_pages_has_one_token(calendar: GoogleCalendar, server: GoogleServer) -> None:
    """A list that is too long to read has none, so everything may have changed each time."""
    coming = datetime.now(UTC) + DAY
    server.page_size = 2
    for _ in range(2 * MAX_SYNC_PAGES):
        server.put(coming, coming + HOUR)
    changes = await calendar.find_changes(PRIMARY, "")
    assert changes.cursor
    assert not (await calendar.find_changes(PRIMARY, changes.cursor)).has_changed
    for _ in range(2 * MAX_SYNC_PAGES + 1):
        server.put(coming, coming + HOUR)
    changes = await calendar.find_changes(PRIMARY, changes.cursor)
    assert (changes.has_changed, changes.cursor) == (True, "")
    assert len(server.requests) == MAX_SYNC_PAGES + 1 + MAX_SYNC_PAGES


@pytest.mark.parametrize(
    ("account", "scopes", "message"),
    [
        ({"access_token": SecretStr("other")}, None, "does not take the access token"),
        ({"calendar": "Sales"}, None, "no calendar of this name or ID"),
        ({"calendar": HOLIDAYS}, None, "may not write to the calendar"),
        ({"policy": NetworkPolicy()}, None, "must be a public"),
        ({}, {"calendar.events"}, "allow everything that is asked for"),
        ({}, {"calendar.calendarlist.readonly"}, "allow everything that is asked for"),
    ],
)
async def test_the_check_says_what_to_correct(
    server: GoogleServer, account: dict[str, Any], scopes: set[str] | None, message: str
) -> None:
    """Users may give their consent to a part of what is asked for."""
    server.scopes = server.scopes if scopes is None else scopes
    provider = create_calendar(server.url, **account)
    await provider.open()
    with pytest.raises(ProviderError, match=message) as refused:
        await provider.check()
    await provider.close()
    assert not refused.value.retryable


async def test_an_access_token_is_a_header() -> None:
    with pytest.raises(ProviderError, match="connect the calendar again"):
        await create_calendar("https://google.example.com", access_token=SecretStr("ya29\r\nX-Other: 1")).open()


async def test_an_application_is_checked_without_an_account() -> None:
    """An operator sets it before any user connects a calendar."""
    registered = GoogleCalendar(GoogleCalendarSettings(client_id="desk", client_secret="secret"))
    for provider in (registered, GoogleCalendar(GoogleCalendarSettings())):
        await provider.open()
        if provider is registered:
            await provider.check()
        else:
            with pytest.raises(ProviderError, match="register an application"):
                await provider.check()
        with pytest.raises(ProviderError, match="connect a calendar first") as refused:
            await provider.list_calendars()
        assert not refused.value.retryable
        await provider.close()


@pytest.mark.parametrize("settings", [{"api_url": "ftp://google.example.com"}, {"grants_url": "x"}, {"other": 1}])
def test_settings_are_validated(settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        GoogleCalendarSettings(**settings)
