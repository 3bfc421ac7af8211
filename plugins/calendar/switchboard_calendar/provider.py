"""Calendar `caldav`: a calendar of any server that speaks CalDAV (RFC 4791)."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Annotated, Final, TypeVar
from uuid import UUID

from pydantic import AfterValidator, Field, SecretStr
from switchboard.plugin_sdk import (
    BusyTime,
    CalendarChanges,
    CalendarEvent,
    CalendarProvider,
    EventChanged,
    EventDraft,
    OutcomeUnknown,
    ProviderError,
    ProviderSettings,
    RemoteCalendar,
)
from yarl import URL

from switchboard_calendar import dav
from switchboard_calendar.addresses import check_address
from switchboard_calendar.busy_times import Window, list_busy_times, load_libraries
from switchboard_calendar.discovery import Discovery, describe_calendar, discover
from switchboard_calendar.event_text import (
    UnreadableEvent,
    build_event,
    has_moved,
    load_zone,
    move_event_text,
    read_appointment,
)
from switchboard_calendar.transport import (
    NOT_FOUND,
    DavClient,
    DavResponse,
    create_refusal,
    create_unreadable,
)

ResultT = TypeVar("ResultT")
CONFLICT_STATUSES: Final = (403, 409)
PRECONDITION_FAILED: Final = 412
GONE: Final = (NOT_FOUND, 410)
MAX_CURSOR_LENGTH: Final = 2000
_XML: Final = {"Content-Type": "application/xml; charset=utf-8", "Depth": "1"}
_EVENT: Final = {"Content-Type": "text/calendar; charset=utf-8"}
_SERVER_MARGIN: Final = timedelta(days=1)
"""Added to both ends of a window when the server is asked, whose zone of days and floating times may be another one."""
_reader: Final = ThreadPoolExecutor(1, "calendar-reader")
"""Reads events beside the event loop. One thread, because icalendar keeps zones for the whole process."""


class CalDAVAccount(ProviderSettings):
    """Access to a calendar at a CalDAV server."""

    url: Annotated[str, AfterValidator(check_address)] = Field(
        max_length=2048, description="Address of the calendar or of its server, such as https://dav.example.com."
    )
    username: str = Field(max_length=320, description="User name at the server, often the email address.")
    password: SecretStr = Field(
        max_length=1024, description="Password, or a password for apps if the account has a second factor."
    )
    calendar: str | None = Field(
        None,
        max_length=2048,
        description="Name or address of the calendar. Without one, the first that can be written.",
    )


class CalDAVCalendar(CalendarProvider[ProviderSettings]):
    """A calendar at a CalDAV server.

    An event of the platform is the object `<key>.ics` with the key as its UID. The server itself decides conflicts, by
    `If-None-Match` and `If-Match`.
    """

    name = "caldav"
    title = "CalDAV"
    Account = CalDAVAccount
    account: CalDAVAccount

    def __init__(self, settings: ProviderSettings) -> None:
        super().__init__(settings)
        self._opened: DavClient | None = None
        self._known: dict[str, Discovery] = {}

    async def open(self) -> None:
        account = self.account
        if not isinstance(account, CalDAVAccount):
            return  # an operator names the provider before a user connects a calendar
        password = account.password.get_secret_value()
        if ":" in account.username:
            raise ProviderError("a user name cannot contain a colon; correct it", retryable=False)
        await _read_aside(load_libraries)
        self._opened = DavClient(account.url, account.username, password, self.network_policy)

    async def close(self) -> None:
        if self._opened is not None:
            await self._opened.close()
            self._opened = None

    async def check(self) -> None:
        """Check that the calendar is there and can be written to. Without an account there is nothing to check."""
        if self._opened is None:
            return
        if not (await self.list_calendars())[0].is_writable:
            raise ProviderError("the account may not write to the calendar; check its rights", retryable=False)

    async def list_calendars(self) -> Sequence[RemoteCalendar]:
        client = self._client
        found = await discover(client)
        for calendar in found.calendars:
            self._known[calendar.id] = Discovery([calendar], found.addresses)
        wanted = self.account.calendar
        if not wanted:
            return found.calendars
        path = client.resolve(wanted).raw_path.rstrip("/") if wanted.startswith(("/", "http://", "https://")) else None
        chosen = [each for each in found.calendars if each.name == wanted or each.id.rstrip("/") == path]
        if not chosen:
            raise ProviderError("the server has no calendar of this name or address", retryable=False)
        return [chosen[0], *(each for each in found.calendars if each is not chosen[0])]

    async def list_busy(
        self, calendar_id: str, starts_at: datetime, ends_at: datetime, *, time_zone: str
    ) -> Sequence[BusyTime]:
        known = await self._describe(calendar_id)
        addresses = known.addresses | {self.account.username.lower()}
        window = Window(starts_at, ends_at, load_zone(known.calendars[0].time_zone, time_zone), addresses)
        query = dav.build_window_query(starts_at - _SERVER_MARGIN, ends_at + _SERVER_MARGIN)
        response = await self._report(calendar_id, query)
        return await _read_aside(lambda: list_busy_times(_list_texts(response), window))

    async def find_changes(self, calendar_id: str, cursor: str) -> CalendarChanges:
        """Compare the sync token of the calendar (RFC 6578, section 4), or the version that older servers have in its
        place, with those of the last time.
        """
        names = (dav.SYNC_TOKEN, dav.CTAG)
        response = await self._client.send(
            "PROPFIND", self._get_url(calendar_id), headers={**_XML, "Depth": "0"}, content=dav.build_propfind(names)
        )
        resources = await asyncio.to_thread(response.parse_resources)
        found = [f"{name} {text}" for name in names for each in resources[:1] if (text := each.get_text(name))]
        if not found or len(found[0]) > MAX_CURSOR_LENGTH:
            return CalendarChanges(True, "")
        return CalendarChanges(found[0] != cursor, found[0])

    async def create_event(self, calendar_id: str, draft: EventDraft) -> CalendarEvent:
        url, content = self._get_url(calendar_id, draft.key), build_event(draft, datetime.now(UTC))
        headers = {**_EVENT, "If-None-Match": "*"}
        try:
            response = await self._client.send("PUT", url, headers=headers, content=content, writes=True)
        except OutcomeUnknown:
            # The server may have written the event and not said so: it is asked once.
            if (found := await self._find_or_none(calendar_id, draft.key)) is None:
                raise
            return found
        has_uid = response.status in CONFLICT_STATUSES and dav.has_condition(response.body, "no-uid-conflict")
        if response.status == PRECONDITION_FAILED or has_uid:
            if (found := await self.find_event(calendar_id, draft.key)) is None:
                raise EventChanged("the event was canceled in the calendar")
            return found
        if response.status >= 300:
            raise create_refusal(response)
        if version := response.headers.get("ETag"):
            return CalendarEvent(draft.key, url.raw_path, version, draft.starts_at, draft.ends_at)
        return await self._find_written(calendar_id, draft.key)

    async def find_event(self, calendar_id: str, key: UUID) -> CalendarEvent | None:
        url = self._get_url(calendar_id, key)
        response = await self._client.send("GET", url)
        if response.status not in GONE:
            return await self._read_event(calendar_id, response, key)
        # Another client, or the server, may have given it another name.
        named = await self._report(calendar_id, dav.build_uid_query(key))
        for each in await asyncio.to_thread(named.parse_resources):
            if str(key) in each.get_text(dav.CALENDAR_DATA).lower():
                moved = await self._client.send("GET", self._client.resolve(each.href, url))
                if moved.status not in GONE:
                    return await self._read_event(calendar_id, moved, key)
        return None

    async def move_event(
        self, calendar_id: str, event: CalendarEvent, starts_at: datetime, ends_at: datetime
    ) -> CalendarEvent:
        url = self._client.resolve(event.id)
        current = await self._client.send("GET", url)
        if current.status in GONE:
            raise EventChanged("the event was deleted in the calendar")
        version = _get_version(current)
        if version != event.version:
            raise EventChanged
        moved_at = datetime.now(UTC)
        content = await _read_aside(partial(move_event_text, _decode(current), event.key, starts_at, ends_at, moved_at))
        headers = {**_EVENT, "If-Match": version}
        response = await self._client.send("PUT", url, headers=headers, content=content, writes=True)
        if response.status == PRECONDITION_FAILED:
            # aiohttp repeats a PUT whose connection was lost, so the version may be the one that it has written.
            return await self._find_moved(url, event, (starts_at, ends_at, moved_at))
        if response.status in GONE:
            raise EventChanged("the event was deleted in the calendar")
        if response.status >= 300:
            raise create_refusal(response)
        if written := response.headers.get("ETag"):
            return CalendarEvent(event.key, event.id, written, starts_at, ends_at)
        return await self._find_written(calendar_id, event.key)

    async def cancel_event(self, calendar_id: str, event: CalendarEvent) -> None:
        # Another client may have given the event another name, under which it is canceled, too.
        if await self._delete(event.id):
            return
        if (found := await self.find_event(calendar_id, event.key)) is not None:
            await self._delete(found.id)

    async def _delete(self, event_id: str) -> bool:
        """Delete an object and return True; False if there is none."""
        response = await self._client.send("DELETE", self._client.resolve(event_id), writes=True)
        if response.status >= 300 and response.status not in GONE:
            raise create_refusal(response)
        return response.status not in GONE

    @property
    def _client(self) -> DavClient:
        if self._opened is None:
            raise ProviderError("connect a calendar first: there is no account", retryable=False)
        return self._opened

    def _get_url(self, calendar_id: str, key: UUID | None = None) -> URL:
        folder = self._client.resolve(calendar_id)
        folder = folder if folder.path.endswith("/") else folder.with_path(f"{folder.raw_path}/", encoded=True)
        return folder if key is None else folder.join(URL(f"{key}.ics"))

    async def _describe(self, calendar_id: str) -> Discovery:
        """Return what is known of a calendar; the server is asked once."""
        if calendar_id not in self._known:
            self._known[calendar_id] = await describe_calendar(self._client, self._get_url(calendar_id))
        return self._known[calendar_id]

    async def _report(self, calendar_id: str, query: bytes) -> DavResponse:
        return await self._client.send("REPORT", self._get_url(calendar_id), headers=_XML, content=query)

    async def _read_event(self, calendar_id: str, response: DavResponse, key: UUID) -> CalendarEvent | None:
        if response.status != 200:
            raise create_refusal(response)
        version, text = _get_version(response), _decode(response)
        zone = known.calendars[0].time_zone if (known := self._known.get(calendar_id)) else None
        found = await _read_aside(lambda: read_appointment(text, key, zone))
        if found is None:
            raise create_unreadable("an event has another UID than its name says")
        if found.is_canceled:
            return None
        return CalendarEvent(key, response.url.raw_path, version, found.starts_at, found.ends_at)

    async def _find_moved(
        self, url: URL, event: CalendarEvent, moved: tuple[datetime, datetime, datetime]
    ) -> CalendarEvent:
        """Return an event that this move has written. Raises `EventChanged` if somebody else has changed it."""
        starts_at, ends_at, moved_at = moved
        current = await self._client.send("GET", url)
        if current.status != 200 or not has_moved(_decode(current), event.key, starts_at, ends_at, moved_at):
            raise EventChanged
        return CalendarEvent(event.key, event.id, _get_version(current), starts_at, ends_at)

    async def _find_written(self, calendar_id: str, key: UUID) -> CalendarEvent:
        """Return an event that was written just now, for servers that do not say its version."""
        try:
            found = await self.find_event(calendar_id, key)
        except ProviderError as error:
            raise OutcomeUnknown(f"the event was written, but then {error.message}") from error
        if found is None:
            raise EventChanged("the event was deleted in the calendar")
        return found

    async def _find_or_none(self, calendar_id: str, key: UUID) -> CalendarEvent | None:
        try:
            return await self.find_event(calendar_id, key)
        except ProviderError:
            return None


def _get_version(response: DavResponse) -> str:
    if not (version := response.headers.get("ETag", "")):
        raise create_unreadable("an event has no version (ETag)")
    return version


def _decode(response: DavResponse) -> str:
    try:
        return response.body.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise create_unreadable("an event is not UTF-8") from None


def _list_texts(response: DavResponse) -> list[str]:
    """List the calendar objects of a response. Raises `ProviderError` if any of them is missing."""
    texts = []
    for each in response.parse_resources():
        if each.status == NOT_FOUND:
            continue  # it was deleted while the server answered
        if each.status >= 300 or dav.CALENDAR_DATA in each.failed:
            raise create_unreadable("it is not complete")
        if not (text := each.get_text(dav.CALENDAR_DATA)):
            raise create_unreadable("an event has no text")
        texts.append(text)
    return texts


async def _read_aside(work: Callable[[], ResultT]) -> ResultT:
    """Run work on iCalendar text in the thread of the reader. Raises `ProviderError`."""
    try:
        return await asyncio.get_running_loop().run_in_executor(_reader, work)
    except UnreadableEvent as fault:
        raise create_unreadable(str(fault)) from None
