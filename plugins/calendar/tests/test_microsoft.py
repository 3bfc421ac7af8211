"""Microsoft 365: the contract, what it takes for busy, and what it writes, against a server that follows its pages."""

from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
import pytest_asyncio
from aiohttp import web
from pydantic import SecretStr, ValidationError
from switchboard.plugin_sdk import (
    CalendarEvent,
    EventChanged,
    EventDraft,
    NetworkPolicy,
    OutcomeUnknown,
    ProviderError,
    ProviderSettings,
)
from switchboard.plugin_sdk.testing import OAuthCalendarContract
from switchboard.plugin_sdk.testing.vendors import VENDORS_ONLY
from switchboard_calendar import microsoft
from switchboard_calendar.microsoft import (
    CHANGES_PAGE_SIZE,
    CHANGES_PAGES,
    KEY_PROPERTY,
    PAGE_SIZE,
    MicrosoftAccount,
    MicrosoftCalendar,
    MicrosoftSettings,
)

from tests.fixtures.graph_server import (
    ACCESS_TOKEN,
    DEFAULT_CALENDAR,
    OTHER_CALENDAR,
    SHARED_CALENDAR,
    WEEK,
    GraphServer,
    repeat,
    run_graph,
)

CALENDAR, HOUR, DAY = DEFAULT_CALENDAR, timedelta(hours=1), timedelta(days=1)
Period = tuple[datetime, datetime]


def create_calendar(
    url: str, *, policy: NetworkPolicy = VENDORS_ONLY, token: str = ACCESS_TOKEN, calendar: str | None = None
) -> MicrosoftCalendar:
    settings = MicrosoftSettings(client_id="6731de76", client_secret=SecretStr("secret"), api_url=url)
    provider = MicrosoftCalendar(settings)
    provider.account = MicrosoftAccount(access_token=SecretStr(token), calendar=calendar)
    provider.network_policy = policy
    return provider


def build_draft(starts_at: datetime, key: UUID | None = None) -> EventDraft:
    return EventDraft(key or uuid4(), starts_at, starts_at + HOUR, "Europe/Berlin", "Visit: Ada", "Tooth: left")


@pytest_asyncio.fixture
async def server() -> AsyncIterator[GraphServer]:
    async with run_graph() as running:
        yield running


@pytest_asyncio.fixture
async def calendar(server: GraphServer) -> AsyncIterator[MicrosoftCalendar]:
    provider = create_calendar(server.url)
    await provider.open()
    yield provider
    await provider.close()


@pytest.fixture
def noon() -> datetime:
    return datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0) + timedelta(days=30)


async def list_busy(
    calendar: MicrosoftCalendar, starts_at: datetime, ends_at: datetime, time_zone: str = "Europe/Berlin"
) -> list[Period]:
    found = await calendar.list_busy(CALENDAR, starts_at, ends_at, time_zone=time_zone)
    return sorted((busy.starts_at, busy.ends_at) for busy in found)


class TestMicrosoft(OAuthCalendarContract[MicrosoftCalendar]):
    """With each answer to a repeated `transactionId` that Graph may give."""

    @pytest.fixture(params=[409, 400, 201])
    def provider(self, server: GraphServer, request: pytest.FixtureRequest) -> MicrosoftCalendar:
        server.duplicate_status = request.param
        self.server = server
        return create_calendar(server.url)

    @pytest.fixture
    def create_at(self) -> Callable[[str], MicrosoftCalendar]:
        return create_calendar

    async def read_text(
        self, provider: MicrosoftCalendar, calendar_id: str, event: CalendarEvent
    ) -> tuple[str, str] | None:
        found = self.server.events[event.id]
        assert found["body"]["contentType"] == "text"
        return found["subject"], found["body"]["content"]


class TestMicrosoftInAnotherCalendar(OAuthCalendarContract[MicrosoftCalendar]):
    """A calendar that is chosen by its name, and whose id has characters of addresses."""

    @pytest.fixture
    def provider(self, server: GraphServer) -> MicrosoftCalendar:
        return create_calendar(server.url, calendar="Practice")

    @pytest.fixture
    def create_at(self) -> Callable[[str], MicrosoftCalendar]:
        return create_calendar


async def test_the_default_calendar_is_first(calendar: MicrosoftCalendar, server: GraphServer) -> None:
    """All pages of the list are read."""
    server.page_size = 1
    found = await calendar.list_calendars()
    assert [(each.id, each.name, each.is_writable) for each in found] == [
        (DEFAULT_CALENDAR, "Calendar", True),
        (OTHER_CALENDAR, "Practice", True),
        (SHARED_CALENDAR, "Holidays", False),
    ]


@pytest.mark.parametrize("chosen", [OTHER_CALENDAR, "Practice"])
async def test_a_chosen_calendar_is_first(server: GraphServer, chosen: str) -> None:
    provider = create_calendar(server.url, calendar=chosen)
    await provider.open()
    assert [each.name for each in await provider.list_calendars()] == ["Practice", "Holidays", "Calendar"]
    await provider.close()


@pytest.mark.parametrize(
    ("chosen", "message"), [("Holidays", "cannot write in the calendar"), ("Nope", "no calendar of this name")]
)
async def test_a_calendar_must_be_there_and_writable(server: GraphServer, chosen: str, message: str) -> None:
    provider = create_calendar(server.url, calendar=chosen)
    await provider.open()
    with pytest.raises(ProviderError, match=message) as refused:
        await provider.check()
    await provider.close()
    assert (refused.value.code, refused.value.retryable) == ("no_calendar", False)


async def test_the_status_of_an_event_decides(calendar: MicrosoftCalendar, server: GraphServer, noon: datetime) -> None:
    """A status that is not on Microsoft's page today is busy."""
    statuses: list[dict[str, Any]] = [
        {"showAs": "free"},
        {"showAs": "workingElsewhere"},
        {"isCancelled": True},
        {"isOrganizer": False, "responseStatus": {"response": "declined", "time": "2027-01-01T00:00:00Z"}},
        {"showAs": "tentative", "responseStatus": {"response": "tentativelyAccepted"}},
        {"showAs": "oof"},
        {"showAs": "unknown", "responseStatus": {"response": "notResponded"}},
        {"showAs": "somethingNew", "responseStatus": None},
    ]
    for number, fields in enumerate(statuses):
        server.add(noon + number * HOUR, noon + (number + 1) * HOUR, **fields)
    server.add(noon + HOUR / 2, noon + HOUR / 2)
    server.add(noon, noon + HOUR, calendar=OTHER_CALENDAR)
    busy = await list_busy(calendar, noon, noon + 9 * HOUR)
    assert busy == [(noon + number * HOUR, noon + (number + 1) * HOUR) for number in (4, 5, 6, 7)]


async def test_occurrences_of_a_series_are_busy(
    calendar: MicrosoftCalendar, server: GraphServer, noon: datetime
) -> None:
    """One is moved, one is deleted, and one is free."""
    moved = {"start": {"dateTime": f"{noon + 2 * WEEK + HOUR:%Y-%m-%dT%H:%M:%S}.0000000", "timeZone": "UTC"}}
    moved["end"] = {"dateTime": f"{noon + 2 * WEEK + 3 * HOUR:%Y-%m-%dT%H:%M:%S}.0000000", "timeZone": "UTC"}
    server.add(noon, noon + HOUR, **repeat(6, {1: None, 2: moved, 3: {"showAs": "free"}}))
    busy = await list_busy(calendar, noon, noon + 5 * WEEK)
    assert busy == [
        (noon, noon + HOUR),
        (noon + 2 * WEEK + HOUR, noon + 2 * WEEK + 3 * HOUR),
        (noon + 4 * WEEK, noon + 4 * WEEK + HOUR),
    ]


@pytest.mark.parametrize(
    ("zone", "starts"),
    [
        ("UTC", "2027-07-05T00:00"),
        ("Europe/Berlin", "2027-07-04T22:00"),
        ("Pacific/Kiritimati", "2027-07-04T10:00"),
        ("Pacific/Honolulu", "2027-07-05T10:00"),
    ],
)
@pytest.mark.parametrize("mailbox", ["Europe/Berlin", "Pacific/Auckland", "America/Los_Angeles"])
async def test_a_day_is_that_of_the_given_zone(
    calendar: MicrosoftCalendar, server: GraphServer, zone: str, starts: str, mailbox: str
) -> None:
    """Whatever zone the mailbox has, also in a window that has only an hour of the day."""
    server.zone = mailbox
    server.add_days("2027-07-05", "2027-07-07")
    begin = datetime.fromisoformat(starts).replace(tzinfo=UTC)
    end = begin + 2 * DAY
    assert await list_busy(calendar, begin - DAY, end + DAY, zone) == [(begin, end)]
    assert await list_busy(calendar, begin, begin + HOUR, zone) == [(begin, end)]
    assert await list_busy(calendar, end - HOUR, end, zone) == [(begin, end)]
    assert await list_busy(calendar, begin - HOUR, begin, zone) == []
    assert await list_busy(calendar, end, end + HOUR, zone) == []


async def test_a_day_has_the_hours_of_its_date(calendar: MicrosoftCalendar, server: GraphServer) -> None:
    """23 hours when daylight saving time begins."""
    server.add_days("2027-03-28", "2027-03-29")
    ((begin, end),) = await list_busy(calendar, datetime(2027, 3, 27, tzinfo=UTC), datetime(2027, 3, 30, tzinfo=UTC))
    assert (begin, end - begin) == (datetime(2027, 3, 27, 23, tzinfo=UTC), 23 * HOUR)


async def test_days_that_are_converted_are_taken_as_they_are(calendar: MicrosoftCalendar, server: GraphServer) -> None:
    """If Graph converted the midnights of the mailbox's zone into UTC one day, as its page on time zones says."""
    begin = datetime(2027, 7, 4, 22, tzinfo=UTC)
    server.add(begin, begin + DAY, isAllDay=True)
    assert await list_busy(calendar, begin, begin + DAY, "America/New_York") == [(begin, begin + DAY)]


async def test_all_pages_are_read(calendar: MicrosoftCalendar, server: GraphServer, noon: datetime) -> None:
    """Pages of the size that is asked for, and smaller ones of the server's own choice."""
    for number in range(PAGE_SIZE + 7):
        server.add(noon + number * HOUR, noon + (number + 1) * HOUR)
    until = noon + (PAGE_SIZE + 7) * HOUR
    assert len(await list_busy(calendar, noon, until)) == PAGE_SIZE + 7
    assert server.count("GET") == 2
    server.page_size = 100
    assert len(await list_busy(calendar, noon, until)) == PAGE_SIZE + 7
    assert server.count("GET") == 2 + 6


async def test_too_many_events_are_never_free(
    calendar: MicrosoftCalendar, server: GraphServer, noon: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(microsoft, "MAX_EVENTS", 10)
    for _ in range(11):
        server.add(noon, noon + HOUR)
    with pytest.raises(ProviderError, match="more than 10 items"):
        await list_busy(calendar, noon, noon + HOUR)


async def test_occurrences_have_no_key(calendar: MicrosoftCalendar, server: GraphServer, noon: datetime) -> None:
    """A series that a person has made of an event keeps its `transactionId`, and is nobody's appointment."""
    event = await calendar.create_event(CALENDAR, build_draft(noon))
    server.edit(event.id, **repeat(2))
    found = await calendar.list_busy(CALENDAR, noon, noon + 2 * WEEK, time_zone="UTC")
    assert [(busy.starts_at, busy.event_key) for busy in found] == [(noon, None), (noon + WEEK, None)]
    current = await calendar.find_event(CALENDAR, event.key)
    assert current is not None
    with pytest.raises(EventChanged):
        await calendar.move_event(CALENDAR, current, noon + HOUR, noon + 2 * HOUR)
    await calendar.cancel_event(CALENDAR, current)
    assert server.events == {}


async def test_an_event_has_what_microsoft_asks_for(
    calendar: MicrosoftCalendar, server: GraphServer, noon: datetime
) -> None:
    draft = build_draft(noon)
    event = await calendar.create_event(CALENDAR, draft)
    made = server.events[event.id]
    assert (made["subject"], made["body"]) == (draft.title, {"contentType": "text", "content": draft.description})
    assert (made["showAs"], made["transactionId"]) == ("busy", str(draft.key))
    assert made["_properties"] == {KEY_PROPERTY: str(draft.key)}
    assert event.version == made["@odata.etag"]


async def test_a_repeated_creation_does_not_ask_again(
    calendar: MicrosoftCalendar, server: GraphServer, noon: datetime
) -> None:
    draft = build_draft(noon)
    event = await calendar.create_event(CALENDAR, draft)
    assert await calendar.create_event(CALENDAR, draft) == event
    assert server.count("POST") == 1


async def test_the_event_of_another_request_may_take_a_moment(
    calendar: MicrosoftCalendar, server: GraphServer, noon: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Graph knows the `transactionId` before the event can be found."""
    monkeypatch.setattr(microsoft, "_WAITS", (0.0, 0.01, 0.01))
    draft = build_draft(noon)
    event = await calendar.create_event(CALENDAR, draft)
    hidden = server.events.pop(event.id)
    searches = 0

    async def show(request: web.Request) -> None:
        nonlocal searches
        searches += "$filter" in request.query
        if searches == 4:
            server.events[event.id] = hidden

    server.before = show
    assert await calendar.create_event(CALENDAR, draft) == event
    assert searches == 4


async def test_a_key_of_a_deleted_event_is_used_up(
    calendar: MicrosoftCalendar, server: GraphServer, noon: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(microsoft, "_WAITS", (0.0, 0.01))
    draft = build_draft(noon)
    event = await calendar.create_event(CALENDAR, draft)
    server.remove(event.id)
    with pytest.raises(EventChanged, match="was deleted in the calendar"):
        await calendar.create_event(CALENDAR, draft)
    assert server.events == {}


async def test_a_copy_is_not_the_event(calendar: MicrosoftCalendar, server: GraphServer, noon: datetime) -> None:
    """Outlook may copy extended properties with an event. The copy is busy, and belongs to nobody."""
    key = uuid4()
    copy = server.add(noon + DAY, noon + DAY + HOUR, _properties={KEY_PROPERTY: str(key)})
    event = await calendar.create_event(CALENDAR, build_draft(noon, key))
    assert event.id == copy["id"], "only an event without a copy is written"
    server.remove(copy["id"])
    event = await calendar.create_event(CALENDAR, build_draft(noon, key))
    again = server.add(noon + DAY, noon + DAY + HOUR, _properties={KEY_PROPERTY: str(key)})
    server.events = {again["id"]: again, **server.events}
    assert await calendar.find_event(CALENDAR, key) == event
    found = await calendar.list_busy(CALENDAR, noon, noon + 2 * DAY, time_zone="UTC")
    assert {(busy.starts_at, busy.event_key) for busy in found} == {(noon, key), (noon + DAY, None)}


async def test_a_persons_change_is_kept(calendar: MicrosoftCalendar, server: GraphServer, noon: datetime) -> None:
    """The condition decides, not the look before: here the person is faster than the move."""
    event = await calendar.create_event(CALENDAR, build_draft(noon))

    async def change(request: web.Request) -> None:
        if request.method == "PATCH":
            server.edit(event.id, subject="Visit: Ada, with child")

    server.before = change
    with pytest.raises(EventChanged):
        await calendar.move_event(CALENDAR, event, noon + HOUR, noon + 2 * HOUR)
    server.before = None
    assert server.events[event.id]["start"]["dateTime"] == f"{noon:%Y-%m-%dT%H:%M:%S}.0000000"
    with pytest.raises(EventChanged):
        await calendar.move_event(CALENDAR, event, noon + HOUR, noon + 2 * HOUR)
    assert server.count("PATCH") == 1, "a change that is known already is not left to Graph alone"
    current = await calendar.find_event(CALENDAR, event.key)
    assert current is not None
    moved = await calendar.move_event(CALENDAR, current, noon + HOUR, noon + 2 * HOUR)
    assert (moved.id, moved.starts_at) == (event.id, noon + HOUR)
    assert server.events[event.id]["subject"] == "Visit: Ada, with child"


async def test_an_event_that_a_person_cancels_is_gone(
    calendar: MicrosoftCalendar, server: GraphServer, noon: datetime
) -> None:
    event = await calendar.create_event(CALENDAR, build_draft(noon))
    server.edit(event.id, isCancelled=True)
    assert await calendar.find_event(CALENDAR, event.key) is None
    with pytest.raises(EventChanged):
        await calendar.move_event(CALENDAR, event, noon + HOUR, noon + 2 * HOUR)
    server.remove(event.id)
    await calendar.cancel_event(CALENDAR, event)


async def test_a_whole_day_becomes_an_hour_again(
    calendar: MicrosoftCalendar, server: GraphServer, noon: datetime
) -> None:
    event = await calendar.create_event(CALENDAR, build_draft(noon))
    server.edit(event.id, isAllDay=True)
    current = await calendar.find_event(CALENDAR, event.key)
    assert current is not None
    await calendar.move_event(CALENDAR, current, noon + HOUR, noon + 2 * HOUR)
    assert server.events[event.id]["isAllDay"] is False


async def drop(request: web.Request) -> web.Response | None:
    """Lose the answer to a write."""
    if request.method != "GET":
        assert request.transport is not None
        request.transport.close()
    return None


async def fail(request: web.Request) -> web.Response | None:
    return web.Response(status=504, text="<html>Gateway timeout</html>") if request.method != "GET" else None


async def babble(request: web.Request) -> web.Response | None:
    return web.Response(status=201, text='{"id": "AAkAL') if request.method in ("POST", "PATCH") else None


@pytest.mark.parametrize("lose", [drop, fail, babble])
async def test_a_lost_answer_is_asked_for_once(
    calendar: MicrosoftCalendar, server: GraphServer, noon: datetime, lose: Any
) -> None:
    server.after = lose
    event = await calendar.create_event(CALENDAR, build_draft(noon))
    assert (event.id, event.starts_at) == (next(iter(server.events)), noon)
    assert (server.count("POST"), server.count("GET")) == (1, 2)
    with pytest.raises(OutcomeUnknown):
        await calendar.move_event(CALENDAR, event, noon + HOUR, noon + 2 * HOUR)
    moved = await calendar.find_event(CALENDAR, event.key)
    assert moved is not None
    assert moved.starts_at == noon + HOUR
    if lose is not babble:
        with pytest.raises(OutcomeUnknown):
            await calendar.cancel_event(CALENDAR, event)
        assert server.events == {}


async def test_a_request_that_was_lost_is_unknown(
    calendar: MicrosoftCalendar, server: GraphServer, noon: datetime
) -> None:
    """Graph has no event yet, but the request may be under way to it."""
    server.before = fail
    with pytest.raises(OutcomeUnknown, match="answered 504"):
        await calendar.create_event(CALENDAR, build_draft(noon))
    assert server.count("POST") == 1


async def test_another_event_in_an_answer_is_not_trusted(
    calendar: MicrosoftCalendar, server: GraphServer, noon: datetime
) -> None:
    event = await calendar.create_event(CALENDAR, build_draft(noon))
    other = server.add(noon, noon + HOUR, transactionId=str(uuid4()))

    async def confuse(request: web.Request) -> web.Response | None:
        shown = {name: value for name, value in other.items() if not name.startswith("_")}
        return web.json_response(shown, status=201) if request.method in ("POST", "PATCH") else None

    server.before = confuse
    with pytest.raises(OutcomeUnknown, match="another event"):
        await calendar.create_event(CALENDAR, build_draft(noon))
    with pytest.raises(OutcomeUnknown, match="another event"):
        await calendar.move_event(CALENDAR, event, noon + HOUR, noon + 2 * HOUR)


class TestChanges:
    async def test_nothing_has_changed_until_something_has(
        self, calendar: MicrosoftCalendar, server: GraphServer, noon: datetime
    ) -> None:
        event_id = server.add(noon, noon + HOUR)["id"]
        first = await calendar.find_changes(CALENDAR, "")
        assert first.has_changed
        again = await calendar.find_changes(CALENDAR, first.cursor)
        assert not again.has_changed
        changes: list[Callable[[], object]] = [
            lambda: server.edit(event_id, subject="Dinner"),
            lambda: server.add(noon + DAY, noon + DAY + HOUR),
            lambda: server.remove(event_id),
        ]
        cursor = again.cursor
        for change in changes:
            change()
            found = await calendar.find_changes(CALENDAR, cursor)
            assert found.has_changed
            found = await calendar.find_changes(CALENDAR, found.cursor)
            assert not found.has_changed
            cursor = found.cursor
        server.add(noon, noon + HOUR, calendar=OTHER_CALENDAR)
        assert len(cursor) < 100

    async def test_a_long_round_goes_on_at_the_next_look(
        self, calendar: MicrosoftCalendar, server: GraphServer, noon: datetime
    ) -> None:
        """Nothing counts as unchanged before all pages are read, and no look reads more than its bound."""
        for number in range(2 * CHANGES_PAGES * CHANGES_PAGE_SIZE + 1):
            server.add(noon + number * HOUR / 60, noon + number * HOUR / 60 + HOUR)
        cursor, looks = "", 0
        while True:
            before = server.count("GET")
            found = await calendar.find_changes(CALENDAR, cursor)
            assert server.count("GET") - before <= CHANGES_PAGES
            cursor = found.cursor
            if not found.has_changed:
                break
            looks += 1
        assert looks == 3
        for each in list(server.events):
            server.edit(each, subject="Dinner")
        looks = 0
        while (found := await calendar.find_changes(CALENDAR, cursor)).has_changed:
            cursor, looks = found.cursor, looks + 1
        assert looks == 3

    async def test_the_last_page_of_a_long_round_may_be_empty(
        self, calendar: MicrosoftCalendar, server: GraphServer
    ) -> None:
        """The events before it are as new as those of a page that has some."""
        link = f"{server.url}/me/calendarView/delta"

        async def answer(request: web.Request) -> web.Response | None:
            is_last = "deltatoken" in request.query_string or len(server.requests) > CHANGES_PAGES
            name, place = ("deltatoken", "deltaLink") if is_last else ("skiptoken", "nextLink")
            return web.json_response({"value": [], f"@odata.{place}": f"{link}?${name}=x"})

        server.before = answer
        first = await calendar.find_changes(CALENDAR, "")
        second = await calendar.find_changes(CALENDAR, first.cursor)
        third = await calendar.find_changes(CALENDAR, second.cursor)
        assert [first.has_changed, second.has_changed, third.has_changed] == [True, True, False]

    async def test_a_token_that_has_expired_begins_again(
        self, calendar: MicrosoftCalendar, server: GraphServer
    ) -> None:
        first = await calendar.find_changes(CALENDAR, "")
        server.tokens.clear()
        found = await calendar.find_changes(CALENDAR, first.cursor)
        assert found.has_changed
        assert not (await calendar.find_changes(CALENDAR, found.cursor)).has_changed

    async def test_a_window_is_replaced_when_it_is_old(self, calendar: MicrosoftCalendar, server: GraphServer) -> None:
        first = await calendar.find_changes(CALENDAR, "")
        day, rest = first.cursor.split(" ", 1)
        for age, is_new in ((29, False), (30, True), (-1, True)):
            begins = datetime.fromisoformat(day).date() - timedelta(days=age)
            found = await calendar.find_changes(CALENDAR, f"{begins} {rest}")
            assert found.has_changed == is_new
            assert found.cursor.startswith(f"{day if is_new else begins} deltatoken ")

    async def test_the_window_is_that_of_every_appointment(
        self, calendar: MicrosoftCalendar, server: GraphServer
    ) -> None:
        """From yesterday to the longest horizon, also when the window is about to be replaced."""
        await calendar.find_changes(CALENDAR, "")
        (window,) = [each["window"] for each in server.tokens.values()]
        now = datetime.now(UTC)
        assert window[0] <= now - DAY
        assert window[1] >= now + timedelta(days=730 + 30)

    @pytest.mark.parametrize(
        "cursor",
        [
            "2027",
            "2027-01-01 deltatoken",
            "soon deltatoken x",
            "2027-01-01 $filter x",
            "2027-01-01 deltatoken a&$top=1",
            "2027-01-01 deltatoken a b",
        ],
    )
    async def test_a_cursor_of_nobody_begins_again(
        self, calendar: MicrosoftCalendar, server: GraphServer, cursor: str
    ) -> None:
        assert (await calendar.find_changes(CALENDAR, cursor)).has_changed
        ((_, path, _),) = server.requests
        assert "startDateTime=" in path

    async def test_a_token_is_too_long_for_a_cursor(self, calendar: MicrosoftCalendar, server: GraphServer) -> None:
        server.token_length = 1_900
        found = await calendar.find_changes(CALENDAR, "")
        assert 1_900 < len(found.cursor) <= 2_000
        assert not (await calendar.find_changes(CALENDAR, found.cursor)).has_changed
        server.token_length = 2_000
        found = await calendar.find_changes(CALENDAR, "")
        assert (found.has_changed, found.cursor) == (True, "")

    async def test_a_token_stays_as_it_is_written(self, calendar: MicrosoftCalendar, server: GraphServer) -> None:
        """With a plus that Graph has escaped, and with one that it has not."""
        link = f"{server.url}/me/calendarView/delta?%24deltatoken=a%2Bb+c%3D%3D"

        async def answer(request: web.Request) -> web.Response | None:
            return web.json_response({"value": [], "@odata.deltaLink": link})

        server.before = answer
        first = await calendar.find_changes(CALENDAR, "")
        await calendar.find_changes(CALENDAR, first.cursor)
        assert server.requests[-1][1].endswith("/calendarView/delta?$deltatoken=a%2Bb+c%3D%3D")

    async def test_a_calendar_without_changes_may_have_changed(
        self, calendar: MicrosoftCalendar, server: GraphServer
    ) -> None:
        async def refuse(request: web.Request) -> web.Response | None:
            error = {"error": {"code": "ErrorInvalidRequest", "message": "Change tracking is not supported."}}
            return web.json_response(error, status=400)

        server.before = refuse
        found = await calendar.find_changes(CALENDAR, "")
        assert (found.has_changed, found.cursor) == (True, "")


class TestSettings:
    def test_accounts_are_connected_at_the_operators_directory(self) -> None:
        settings = MicrosoftSettings(
            client_id="6731de76",
            client_secret=SecretStr("secret"),
            tenant_id="contoso.onmicrosoft.com",
            authority="https://login.microsoftonline.us/",
        )
        service = MicrosoftCalendar(settings).describe_oauth()
        base = "https://login.microsoftonline.us/contoso.onmicrosoft.com/oauth2/v2.0"
        assert (service.authorization_url, service.token_url) == (f"{base}/authorize", f"{base}/token")
        assert (service.client_id, service.client_secret.get_secret_value()) == ("6731de76", "secret")
        assert service.scopes == ("offline_access", "Calendars.ReadWrite")
        assert service.authorization_parameters == {"prompt": "select_account"}
        assert service.revocation_url == ""

    @pytest.mark.parametrize(
        "given",
        [
            {},
            {"client_id": "6731de76"},
            {"client_secret": SecretStr("secret")},
            {"client_id": "", "client_secret": SecretStr("secret")},
            {"client_id": "6731de76", "client_secret": SecretStr("")},
        ],
    )
    def test_a_registration_is_needed(self, given: dict[str, Any]) -> None:
        provider = MicrosoftCalendar(MicrosoftSettings(**given))
        with pytest.raises(ProviderError, match="set client_id and client_secret") as refused:
            provider.describe_oauth()
        assert (refused.value.code, refused.value.retryable) == ("not_configured", False)

    @pytest.mark.parametrize(
        "given", [{"tenant_id": "a/b"}, {"tenant_id": ""}, {"authority": "ftp://x"}, {"api_url": "x"}, {"other": 1}]
    )
    def test_settings_are_validated(self, given: dict[str, Any]) -> None:
        with pytest.raises(ValidationError):
            MicrosoftSettings(**given)

    def test_addresses_are_the_operators(self) -> None:
        schema = MicrosoftSettings.model_json_schema()["properties"]
        assert {name for name, field in schema.items() if field.get("operator_only")} == {"authority", "api_url"}

    async def test_settings_are_checked_without_an_account(self) -> None:
        """A tenant file is checked before anybody has connected a calendar."""
        provider = MicrosoftCalendar(MicrosoftSettings(client_id="6731de76", client_secret=SecretStr("secret")))
        await provider.open()
        await provider.check()
        with pytest.raises(ProviderError, match="connect a calendar first"):
            await provider.list_calendars()
        await provider.close()
        provider = MicrosoftCalendar(MicrosoftSettings(client_id="6731de76"))
        await provider.open()
        with pytest.raises(ProviderError, match="set client_id and client_secret"):
            await provider.check()

    async def test_a_token_is_a_header(self, server: GraphServer) -> None:
        with pytest.raises(ProviderError, match="connect it again"):
            await create_calendar(server.url, token="a\r\nX-Other: 1").open()
        with pytest.raises(ProviderError, match="not open"):
            await create_calendar(server.url).list_calendars()

    async def test_the_address_must_be_public(self, server: GraphServer) -> None:
        provider = create_calendar(server.url, policy=NetworkPolicy())
        await provider.open()
        with pytest.raises(ProviderError, match="must be a public"):
            await provider.check()
        await provider.close()
        assert issubclass(MicrosoftAccount, ProviderSettings)
