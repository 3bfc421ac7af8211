"""CalDAV with real servers: the contract, discovery, and other clients' changes."""

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import icalendar
import pytest
import pytest_asyncio
from pydantic import SecretStr, ValidationError
from switchboard.plugin_sdk import (
    CalendarEvent,
    EventChanged,
    EventDraft,
    NetworkPolicy,
    ProviderError,
    ProviderSettings,
)
from switchboard.plugin_sdk.testing import CalendarContract
from switchboard.plugin_sdk.testing.vendors import VENDORS_ONLY
from switchboard_calendar.provider import CalDAVAccount, CalDAVCalendar

from tests.fixtures.caldav_servers import PASSWORD, USERNAME, CalDAVServer, run_radicale, run_xandikos

NOON = datetime(2027, 3, 3, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def create_calendar(url: str, *, policy: NetworkPolicy = VENDORS_ONLY, **account: Any) -> CalDAVCalendar:
    given = {"username": USERNAME, **account}
    password = SecretStr(given.pop("password", PASSWORD))
    provider = CalDAVCalendar(ProviderSettings())
    provider.account = CalDAVAccount(url=url, password=password, **given)
    provider.network_policy = policy
    return provider


@pytest_asyncio.fixture(scope="session")
async def radicale(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[CalDAVServer]:
    async with run_radicale(tmp_path_factory.mktemp("radicale")) as server:
        yield server


@pytest_asyncio.fixture(scope="session")
async def xandikos(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[CalDAVServer]:
    async with run_xandikos(tmp_path_factory.mktemp("xandikos")) as server:
        yield server


class CalDAVContract(CalendarContract[CalDAVCalendar]):
    @pytest.fixture
    def server(self) -> CalDAVServer:
        raise NotImplementedError

    @pytest.fixture
    def provider(self, server: CalDAVServer) -> CalDAVCalendar:
        return create_calendar(server.url)

    @pytest.fixture
    def create_at(self) -> Callable[[str], CalDAVCalendar]:
        return create_calendar

    @pytest.fixture(autouse=True)
    def _read_at(self, server: CalDAVServer) -> None:
        self.server_read = server

    async def read_text(
        self, provider: CalDAVCalendar, calendar_id: str, event: CalendarEvent
    ) -> tuple[str, str] | None:
        (found,) = icalendar.Calendar.from_ical(await self.server_read.get(event.id)).walk("VEVENT")
        return str(found["SUMMARY"]), str(found["DESCRIPTION"])


class TestRadicale(CalDAVContract):
    @pytest.fixture
    def server(self, radicale: CalDAVServer) -> CalDAVServer:
        return radicale


class TestXandikos(CalDAVContract):
    @pytest.fixture
    def server(self, xandikos: CalDAVServer) -> CalDAVServer:
        return xandikos


@pytest_asyncio.fixture
async def radicale_calendar(radicale: CalDAVServer) -> AsyncIterator[CalDAVCalendar]:
    provider = create_calendar(radicale.url)
    await provider.open()
    yield provider
    await provider.close()


async def list_ids(url: str, **account: Any) -> list[str]:
    provider = create_calendar(url, **account)
    await provider.open()
    try:
        await provider.check()
        return [calendar.id for calendar in await provider.list_calendars()]
    finally:
        await provider.close()


async def test_a_calendar_is_found_from_each_address(radicale: CalDAVServer, xandikos: CalDAVServer) -> None:
    """The server, the principal, the home, and the calendar itself."""
    await radicale.create_calendar("other")
    path = "/ada/appointments/"
    assert await list_ids(radicale.url + path) == [path]
    for address in ("", "/", "/ada/", "/.well-known/caldav"):
        assert path in await list_ids(radicale.url + address), address
    for wanted in ("Appointments", path, radicale.url + path):
        assert (await list_ids(radicale.url, calendar=wanted))[0] == "/ada/appointments/" or wanted == "Appointments"
    for address in ("", "/user/", "/user/calendars/", "/user/calendars/calendar/"):
        assert await list_ids(xandikos.url + address) == ["/user/calendars/calendar/"], address
    with pytest.raises(ProviderError, match="no calendar of this name"):
        await list_ids(radicale.url, calendar="Holidays")


async def test_a_wrong_password_is_refused_for_good(radicale: CalDAVServer) -> None:
    with pytest.raises(ProviderError, match="refuses the user name or the password") as refused:
        await list_ids(radicale.url, password="wrong")
    assert (refused.value.code, refused.value.retryable) == ("account_refused", False)


async def test_what_others_have_added_stays(radicale_calendar: CalDAVCalendar, radicale: CalDAVServer) -> None:
    """A person has added an alarm, a guest, a zone, and a property that nobody knows."""
    calendar_id = "/ada/appointments/"
    event = await radicale_calendar.create_event(
        calendar_id, EventDraft(uuid4(), NOON, NOON + HOUR, "Europe/Berlin", "Visit")
    )
    text = await radicale.get(event.id)
    added = (
        'ATTENDEE;CN="Bob, the builder";PARTSTAT=ACCEPTED:mailto:bob@example.com\r\n'
        'X-COLOR;X-A="b:c":red\\, green\r\n'
        "BEGIN:VALARM\r\nACTION:DISPLAY\r\nDESCRIPTION:Soon\r\nTRIGGER:-PT15M\r\nDURATION:PT5M\r\nREPEAT:1\r\n"
        "END:VALARM\r\n"
    )
    lines = [line for line in text.split("\r\n") if not line.startswith("DT")]
    local = "DTSTAMP:20270101T000000Z\r\nDTSTART;TZID=Europe/Berlin:20270304T100000\r\nDURATION:PT2H\r\n"
    await radicale.put(event.id, "\r\n".join(lines).replace("END:VEVENT", f"{local}{added}END:VEVENT"))
    with pytest.raises(EventChanged):
        await radicale_calendar.move_event(calendar_id, event, NOON, NOON + HOUR)
    changed = await radicale_calendar.find_event(calendar_id, event.key)
    assert changed is not None
    assert (changed.starts_at, changed.ends_at) == (NOON.replace(day=4, hour=9), NOON.replace(day=4, hour=11))
    before = await radicale.get(event.id)
    moved = await radicale_calendar.move_event(calendar_id, changed, NOON + HOUR, NOON + 2 * HOUR)
    assert await radicale_calendar.find_event(calendar_id, event.key) == moved
    after = await radicale.get(event.id)
    volatile = ("DTSTART", "DTEND", "DURATION:PT2H", "SEQUENCE", "DTSTAMP", "LAST-MODIFIED")
    kept = [[line for line in text.splitlines() if not line.startswith(volatile)] for text in (before, after)]
    assert sorted(kept[0]) == sorted(kept[1])
    assert "SEQUENCE:1" in after
    assert "DTSTART:20270303T130000Z" in after
    await radicale_calendar.cancel_event(calendar_id, moved)


async def test_an_event_that_a_person_has_canceled_is_gone(
    radicale_calendar: CalDAVCalendar, radicale: CalDAVServer
) -> None:
    calendar_id = "/ada/appointments/"
    draft = EventDraft(uuid4(), NOON, NOON + HOUR, "Europe/Berlin", "Visit")
    event = await radicale_calendar.create_event(calendar_id, draft)
    await radicale.put(event.id, (await radicale.get(event.id)).replace("STATUS:CONFIRMED", "STATUS:CANCELLED"))
    assert await radicale_calendar.find_event(calendar_id, event.key) is None
    with pytest.raises(EventChanged):
        await radicale_calendar.create_event(calendar_id, draft)
    await radicale_calendar.cancel_event(calendar_id, event)
    assert (await radicale_calendar.create_event(calendar_id, draft)).key == event.key


async def test_an_event_that_has_become_a_series_is_not_moved(
    radicale_calendar: CalDAVCalendar, radicale: CalDAVServer
) -> None:
    calendar_id = "/ada/appointments/"
    event = await radicale_calendar.create_event(calendar_id, EventDraft(uuid4(), NOON, NOON + HOUR, "UTC", "Visit"))
    await radicale.put(event.id, (await radicale.get(event.id)).replace("STATUS:", "RRULE:FREQ=DAILY\r\nSTATUS:"))
    series = await radicale_calendar.find_event(calendar_id, event.key)
    assert series is not None
    with pytest.raises(ProviderError, match="made a series of it"):
        await radicale_calendar.move_event(calendar_id, series, NOON, NOON + HOUR)
    await radicale_calendar.cancel_event(calendar_id, series)


async def test_an_event_is_found_under_another_name(radicale_calendar: CalDAVCalendar, radicale: CalDAVServer) -> None:
    key = UUID("a3c7a6c8-93a1-4f4e-8d1f-0b6f5d1c2e3f")
    event = f"BEGIN:VEVENT\r\nUID:{key}\r\nDTSTAMP:20270101T000000Z\r\nDTSTART;VALUE=DATE:20270303\r\nEND:VEVENT\r\n"
    text = f"BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//Tests//EN\r\n{event}END:VCALENDAR\r\n"
    await radicale.put("/ada/appointments/renamed.ics", text)
    found = await radicale_calendar.find_event("/ada/appointments/", key)
    assert found is not None
    assert found.id == "/ada/appointments/renamed.ics"
    assert (found.starts_at, found.ends_at) == (NOON.replace(hour=0), NOON.replace(day=4, hour=0))
    under_its_name = replace(found, id=f"/ada/appointments/{key}.ics")
    await radicale_calendar.cancel_event("/ada/appointments/", under_its_name)
    assert await radicale_calendar.find_event("/ada/appointments/", key) is None


async def test_private_addresses_are_refused(radicale: CalDAVServer) -> None:
    provider = create_calendar(radicale.url, policy=NetworkPolicy())
    await provider.open()
    with pytest.raises(ProviderError, match="must be a public") as refused:
        await provider.list_calendars()
    await provider.close()
    assert not refused.value.retryable


@pytest.mark.parametrize("name", ["radicale", "xandikos"])
async def test_changes_of_people_are_found(request: pytest.FixtureRequest, name: str) -> None:
    """New, changed, and deleted events, and none, by the sync token of the calendar."""
    server: CalDAVServer = request.getfixturevalue(name)
    provider = create_calendar(server.url)
    await provider.open()
    calendar_id = (await provider.list_calendars())[0].id
    event = await provider.create_event(calendar_id, EventDraft(uuid4(), NOON, NOON + HOUR, "UTC", "Visit"))
    changes = await provider.find_changes(calendar_id, "")
    assert changes.has_changed
    assert changes.cursor.startswith("{DAV:}sync-token ")
    assert not (await provider.find_changes(calendar_id, changes.cursor)).has_changed
    text = await server.get(event.id)
    for _ in range(2):
        await server.put(event.id, text := text.replace("Visit", "Visit of Ada"))
        changed = await provider.find_changes(calendar_id, changes.cursor)
        assert changed.has_changed
        changes = await provider.find_changes(calendar_id, changed.cursor)
        assert not changes.has_changed
    await provider.cancel_event(calendar_id, event)
    assert (await provider.find_changes(calendar_id, changes.cursor)).has_changed
    await provider.close()


@pytest.mark.parametrize("url", ["ftp://example.com", "https://ada:secret@example.com", "example.com", "https://[", ""])
def test_an_address_must_be_one_of_the_web(url: str) -> None:
    with pytest.raises(ValidationError, match="must be an http"):
        create_calendar(url)


async def test_without_an_account_there_is_nothing_to_check() -> None:
    """An operator may name the provider before a user connects a calendar."""
    calendar = CalDAVCalendar(ProviderSettings())
    await calendar.open()
    await calendar.check()
    with pytest.raises(ProviderError, match="connect a calendar first"):
        await calendar.list_calendars()
