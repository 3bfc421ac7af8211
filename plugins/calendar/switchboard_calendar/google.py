"""Calendar `google`: a calendar of a Google account, over the Google Calendar API v3."""

import asyncio
import html
import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Annotated, Final, TypeVar
from uuid import UUID, uuid4

from pydantic import AfterValidator, BaseModel, Field, SecretStr
from switchboard.plugin_sdk import (
    OPERATOR_ONLY,
    BusyTime,
    CalendarChanges,
    CalendarEvent,
    CalendarWatch,
    CallbackReply,
    CallbackRequest,
    ChangeReport,
    EventChanged,
    EventDraft,
    JsonObject,
    OAuthAccount,
    OAuthCalendarProvider,
    OAuthService,
    OutcomeUnknown,
    ProviderError,
    ProviderSettings,
    RemoteCalendar,
)

from switchboard_calendar.addresses import check_address
from switchboard_calendar.event_text import load_zone
from switchboard_calendar.google_client import (
    CANCELED,
    GoogleCalendarEntry,
    GoogleCalendarPage,
    GoogleChangePage,
    GoogleChannel,
    GoogleClient,
    GoogleEvent,
    GoogleEventPage,
)
from switchboard_calendar.transport import NOT_FOUND, VendorRefusal, create_unreadable

SCOPES: Final = (
    "https://www.googleapis.com/auth/calendar.events",
    "https://www.googleapis.com/auth/calendar.calendarlist.readonly",
)
"""Narrowest scopes that serve: events of all calendars that the user may change, shared ones included, and the list of
calendars (https://developers.google.com/workspace/calendar/api/auth). Busy times are read from the events, which the
first one includes, so none for free/busy is needed."""
PAGE_SIZE: Final = 2500
"""Events of a page: the most that Google sends."""
MAX_EVENTS: Final = 20_000
MAX_PAGES: Final = 20
"""Pages may be shorter than asked for, and even empty."""
MAX_SYNC_PAGES: Final = 8
CALENDAR_PAGE_SIZE: Final = 250
MAX_CALENDAR_PAGES: Final = 8
MAX_CURSOR_LENGTH: Final = 2000
FREE_TYPES: Final = frozenset(("workingLocation", "birthday"))
"""Types of events that say where somebody works, or whose birthday it is, and leave the time free. Focus time and
absences are opaque (https://developers.google.com/workspace/calendar/api/guides/calendar-status)."""
GONE: Final = (NOT_FOUND, 410)
EXPIRED: Final = (400, 410)
"""Statuses for a sync token that has expired (410), or that Google does not know (400)."""
CONFLICT, PRECONDITION_FAILED = 409, 412
CHANNEL_SECONDS: Final = "604800"
"""Life of a notification channel: a week, which is also what Google takes without it
(https://developers.google.com/workspace/calendar/api/v3/reference/events/watch)."""
_EVENT_FIELDS: Final = "id,etag,status,start,end,recurrence,recurringEventId"
_BUSY_FIELDS: Final = (
    "timeZone,nextPageToken,items(id,status,transparency,eventType,start,end,recurringEventId,"
    "attendees(self,responseStatus))"
)
_CHANGE_FIELDS: Final = "nextPageToken,nextSyncToken,items(id)"
_CALENDAR_FIELDS: Final = "nextPageToken,items(id,summary,summaryOverride,timeZone,accessRole,primary,hidden)"
_SILENT: Final = {"sendUpdates": "none"}
_MARGIN: Final = timedelta(days=1)
"""Added to both ends of a window when Google is asked, because days have no zone there."""
_KEY: Final = re.compile(r"[0-9a-f]{32}")
_Address = Annotated[str, AfterValidator(check_address)]
_PageT = TypeVar("_PageT", bound=BaseModel)


class GoogleCalendarSettings(ProviderSettings):
    """The application at Google by which users connect their calendars."""

    client_id: str | None = Field(
        None, max_length=512, description="Client ID of the OAuth client, of the type web application."
    )
    client_secret: SecretStr | None = Field(None, max_length=512, description="Client secret of the OAuth client.")
    api_url: _Address = Field(
        "https://www.googleapis.com/calendar/v3",
        description="Address of the Google Calendar API.",
        json_schema_extra=OPERATOR_ONLY,
    )
    accounts_url: _Address = Field(
        "https://accounts.google.com",
        description="Address at which users give their consent.",
        json_schema_extra=OPERATOR_ONLY,
    )
    grants_url: _Address = Field(
        "https://oauth2.googleapis.com",
        description="Address of the endpoints that issue and revoke tokens.",
        json_schema_extra=OPERATOR_ONLY,
    )


class GoogleCalendarAccount(OAuthAccount):
    """Access to a calendar of a Google account."""

    calendar: str | None = Field(
        None, max_length=1024, description="Name or ID of the calendar. Without one, the primary calendar."
    )


class GoogleCalendar(OAuthCalendarProvider[GoogleCalendarSettings]):
    """A calendar of a Google account.

    The id of an event is its key, in hexadecimal digits: Google takes ids of the letters a to v and of digits, and
    guarantees that a second event with an id is refused
    (https://developers.google.com/workspace/calendar/api/guides/version-resources).
    """

    name = "google"
    title = "Google Calendar"
    Settings = GoogleCalendarSettings
    settings: GoogleCalendarSettings
    Account = GoogleCalendarAccount
    account: GoogleCalendarAccount

    def __init__(self, settings: GoogleCalendarSettings) -> None:
        super().__init__(settings)
        self._opened: GoogleClient | None = None

    def describe_oauth(self) -> OAuthService:
        """Return Google's addresses, and the operator's application.

        https://developers.google.com/identity/protocols/oauth2/web-server: `access_type=offline` asks for a refresh
        token, and `prompt=consent` for a new one each time that a user connects.
        """
        settings = self.settings
        if not settings.client_id or settings.client_secret is None or not settings.client_secret.get_secret_value():
            raise ProviderError(
                "there is no application for Google Calendar; register an application and set client_id and "
                "client_secret for google",
                code="not_registered",
                retryable=False,
            )
        grants_url = settings.grants_url.rstrip("/")
        return OAuthService(
            authorization_url=f"{settings.accounts_url.rstrip('/')}/o/oauth2/v2/auth",
            token_url=f"{grants_url}/token",
            revocation_url=f"{grants_url}/revoke",
            client_id=settings.client_id,
            client_secret=settings.client_secret,
            scopes=SCOPES,
            authorization_parameters={"access_type": "offline", "prompt": "consent"},
        )

    async def open(self) -> None:
        account = self.account
        if not isinstance(account, GoogleCalendarAccount):
            return  # an operator checks the application before a user connects a calendar
        token = account.access_token.get_secret_value()
        if not token.isascii() or not token.isprintable():
            raise ProviderError("the access token cannot be sent; connect the calendar again", retryable=False)
        await asyncio.to_thread(load_zone)
        self._opened = GoogleClient(self.settings.api_url, token, self.network_policy)

    async def close(self) -> None:
        if self._opened is not None:
            await self._opened.close()
            self._opened = None

    async def check(self) -> None:
        """Find the calendar, and check that its events can be read and written. Without an account, check that there is
        an application.

        Users may give their consent to one scope and not to the other, so both are used.
        """
        if self._opened is None:
            self.describe_oauth()
            return
        calendar = (await self.list_calendars())[0]
        if not calendar.is_writable:
            raise ProviderError("the account may not write to the calendar; check its rights", retryable=False)
        await self._read_zone(calendar.id)

    async def list_calendars(self) -> Sequence[RemoteCalendar]:
        """List the calendars of the user, the primary or the chosen one first
        (https://developers.google.com/workspace/calendar/api/v3/reference/calendarList/list).
        """
        entries = await self._list_entries()
        wanted = self.account.calendar
        chosen = _choose(entries, wanted) if wanted else None
        shown = [each for each in entries if each is chosen or each.is_primary or not each.is_hidden]
        if not shown:
            raise ProviderError("the account has no calendar", code="no_calendar", retryable=False)
        shown.sort(key=lambda each: (each is not chosen, not each.is_primary, not each.is_writable))
        return [RemoteCalendar(each.id, each.name, _find_zone(each.time_zone), each.is_writable) for each in shown]

    async def list_busy(
        self, calendar_id: str, starts_at: datetime, ends_at: datetime, *, time_zone: str
    ) -> Sequence[BusyTime]:
        """List the busy times of events
        (https://developers.google.com/workspace/calendar/api/v3/reference/events/list).

        `singleEvents` makes Google list the occurrences of recurring events, and `maxAttendees` leaves out all
        attendees but the user, of events that have several.
        """
        query = {
            "singleEvents": "true",
            "maxAttendees": "1",
            "maxResults": str(PAGE_SIZE),
            "timeMin": _format(starts_at - _MARGIN),
            "timeMax": _format(ends_at + _MARGIN),
            "fields": _BUSY_FIELDS,
        }
        found: list[BusyTime] = []
        count, page = 0, GoogleEventPage()
        for _ in range(MAX_PAGES):
            page = await self._read_page(GoogleEventPage, calendar_id, query, page.next_page)
            count += len(page.items)
            if count > MAX_EVENTS:
                break
            zone = load_zone(page.time_zone, time_zone)
            for event in page.items:
                if _is_free(event):
                    continue
                begin, end = event.read_period(zone)
                if begin < ends_at and end > starts_at and begin < end:
                    found.append(BusyTime(begin, end, _find_key(event)))
            if not page.next_page:
                return found
        raise create_unreadable(f"there are more than {MAX_EVENTS} events")

    async def find_changes(self, calendar_id: str, cursor: str) -> CalendarChanges:
        """Return whether events have changed since a sync token
        (https://developers.google.com/workspace/calendar/api/guides/sync).

        The first token costs a list of the ids of all events that have not ended; a recurring event counts once.
        """
        query = {"maxResults": str(PAGE_SIZE), "fields": _CHANGE_FIELDS}
        if cursor:
            try:
                return await self._list_changes(calendar_id, {**query, "syncToken": cursor})
            except VendorRefusal as refusal:
                if refusal.status not in EXPIRED:
                    raise
        first = await self._list_changes(calendar_id, {**query, "timeMin": _format(datetime.now(UTC))})
        return CalendarChanges(True, first.cursor)

    async def watch(self, calendar_id: str, address: str, secret: str, *, current: str | None = None) -> CalendarWatch:
        """Open a notification channel, for a week, and close the current one: a channel cannot be renewed
        (https://developers.google.com/workspace/calendar/api/guides/push).
        """
        body: JsonObject = {
            "id": str(uuid4()),
            "type": "web_hook",
            "address": address,
            "token": secret,
            "params": {"ttl": CHANNEL_SECONDS},
        }
        channel = await self._client.write(
            GoogleChannel, "POST", "calendars", calendar_id, "events", "watch", body=body
        )
        if current is not None:
            with suppress(ProviderError):  # it ends by itself
                await self.end_watch(current)
        return CalendarWatch(f"{channel.id} {channel.resource_id}", channel.expires_at)

    async def end_watch(self, watch_id: str) -> None:
        """Close a channel (https://developers.google.com/workspace/calendar/api/v3/reference/channels/stop)."""
        channel_id, _, resource_id = watch_id.partition(" ")
        try:
            await self._client.stop({"id": channel_id, "resourceId": resource_id})
        except VendorRefusal as refusal:
            if refusal.status not in GONE:
                raise

    def read_report(self, request: CallbackRequest) -> ChangeReport:
        """Read the headers of a notification, which has no body. The first one of a channel reports no change."""
        is_first = request.headers.get("x-goog-resource-state") == "sync"
        return ChangeReport(None if is_first else request.headers.get("x-goog-channel-token", ""), CallbackReply())

    async def create_event(self, calendar_id: str, draft: EventDraft) -> CalendarEvent:
        """Insert an event (https://developers.google.com/workspace/calendar/api/v3/reference/events/insert).

        Nobody is notified: the caller has no address. The description is HTML there, so it is escaped.
        """
        body: JsonObject = {
            "id": draft.key.hex,
            "summary": draft.title,
            "description": html.escape(draft.description, quote=False),
            "start": {"dateTime": _format(draft.starts_at), "timeZone": draft.time_zone},
            "end": {"dateTime": _format(draft.ends_at), "timeZone": draft.time_zone},
        }
        query = {**_SILENT, "fields": _EVENT_FIELDS}
        try:
            event = await self._client.write(
                GoogleEvent, "POST", "calendars", calendar_id, "events", body=body, query=query
            )
        except OutcomeUnknown:
            # Google may have written the event and not said so: it is asked once.
            if (found := await self._find_or_none(calendar_id, draft.key)) is None:
                raise
            return found
        except VendorRefusal as refusal:
            if refusal.status == CONFLICT:
                if (other := await self.find_event(calendar_id, draft.key)) is None:
                    raise EventChanged("the event was canceled in the calendar") from None
                return other
            if refusal.status == NOT_FOUND:
                raise _create_missing() from None
            raise
        return _describe_written(event, draft.key)

    async def find_event(self, calendar_id: str, key: UUID) -> CalendarEvent | None:
        """Get the event whose id is a key
        (https://developers.google.com/workspace/calendar/api/v3/reference/events/get).

        Google returns deleted events, too, until they disappear.
        """
        event = await self._get(calendar_id, key)
        if event is None:
            return None
        zone: tzinfo = UTC
        if event.start is not None and event.start.day is not None:
            zone = load_zone(await self._read_zone(calendar_id))
        return _describe_event(event, key, zone)

    async def move_event(
        self, calendar_id: str, event: CalendarEvent, starts_at: datetime, ends_at: datetime
    ) -> CalendarEvent:
        """Patch the times of an event, if it has the given version
        (https://developers.google.com/workspace/calendar/api/v3/reference/events/patch).

        It is read before, because a series would be moved as a whole.
        """
        current = await self._get(calendar_id, event.key)
        if current is None:
            raise EventChanged("the event was deleted in the calendar")
        if current.etag != event.version:
            raise EventChanged
        if current.recurrence or current.series_id is not None:
            raise ProviderError(
                "somebody has made a series of the event; move it in Google Calendar", code="series", retryable=False
            )
        # A day would stay beside the time: a patch changes the fields that it has.
        body: JsonObject = {
            "start": {"date": None, "dateTime": _format(starts_at)},
            "end": {"date": None, "dateTime": _format(ends_at)},
        }
        query = {**_SILENT, "fields": _EVENT_FIELDS}
        path = ("calendars", calendar_id, "events", event.key.hex)
        try:
            moved = await self._client.write(GoogleEvent, "PATCH", *path, body=body, query=query, version=event.version)
        except VendorRefusal as refusal:
            if refusal.status in (*GONE, PRECONDITION_FAILED):
                raise EventChanged from None
            raise
        return _describe_written(moved, event.key)

    async def cancel_event(self, calendar_id: str, event: CalendarEvent) -> None:
        """Delete an event (https://developers.google.com/workspace/calendar/api/v3/reference/events/delete)."""
        try:
            await self._client.delete("calendars", calendar_id, "events", event.key.hex, query=_SILENT)
        except VendorRefusal as refusal:
            if refusal.status not in GONE:
                raise

    @property
    def _client(self) -> GoogleClient:
        if self._opened is None:
            raise ProviderError("connect a calendar first: there is no account", retryable=False)
        return self._opened

    async def _list_entries(self) -> list[GoogleCalendarEntry]:
        query = {"maxResults": str(CALENDAR_PAGE_SIZE), "showHidden": "true", "fields": _CALENDAR_FIELDS}
        entries: list[GoogleCalendarEntry] = []
        page = GoogleCalendarPage()
        for _ in range(MAX_CALENDAR_PAGES):
            given = {**query, "pageToken": page.next_page} if page.next_page else query
            page = await self._client.read(GoogleCalendarPage, "users", "me", "calendarList", query=given)
            entries.extend(page.items)
            if not page.next_page:
                return entries
        raise create_unreadable(f"there are more than {MAX_CALENDAR_PAGES * CALENDAR_PAGE_SIZE} calendars")

    async def _read_page(self, model: type[_PageT], calendar_id: str, query: dict[str, str], page_token: str) -> _PageT:
        given = {**query, "pageToken": page_token} if page_token else query
        try:
            return await self._client.read(model, "calendars", calendar_id, "events", query=given)
        except VendorRefusal as refusal:
            if refusal.status == NOT_FOUND:
                raise _create_missing() from None
            raise

    async def _list_changes(self, calendar_id: str, query: dict[str, str]) -> CalendarChanges:
        """Return whether a list has events, and the sync token after it; without one, if the list is too long."""
        has_changed, page = False, GoogleChangePage()
        for _ in range(MAX_SYNC_PAGES):
            page = await self._read_page(GoogleChangePage, calendar_id, query, page.next_page)
            has_changed = has_changed or bool(page.items)
            if not page.next_page:
                break
        if page.next_page or not 0 < len(page.sync_token) <= MAX_CURSOR_LENGTH:
            return CalendarChanges(True, "")
        return CalendarChanges(has_changed, page.sync_token)

    async def _read_zone(self, calendar_id: str) -> str | None:
        """Return the zone of a calendar. Raises `ProviderError` if the account cannot read it."""
        query = {"maxResults": "1", "fields": "timeZone"}
        return (await self._read_page(GoogleEventPage, calendar_id, query, "")).time_zone

    async def _get(self, calendar_id: str, key: UUID) -> GoogleEvent | None:
        """Return an event; None if it is deleted or was never there. Raises `ProviderError` without the calendar."""
        query = {"maxAttendees": "1", "fields": _EVENT_FIELDS}
        try:
            event = await self._client.read(GoogleEvent, "calendars", calendar_id, "events", key.hex, query=query)
        except VendorRefusal as refusal:
            if refusal.status not in GONE:
                raise
            # Google answers 404 for a calendar that is missing, too, whose events must not be taken for deleted.
            await self._read_zone(calendar_id)
            return None
        if event.id != key.hex:
            raise create_unreadable("it is another event")
        return None if event.status == CANCELED else event

    async def _find_or_none(self, calendar_id: str, key: UUID) -> CalendarEvent | None:
        try:
            return await self.find_event(calendar_id, key)
        except ProviderError:
            return None


def _choose(entries: Sequence[GoogleCalendarEntry], wanted: str) -> GoogleCalendarEntry:
    """Return the calendar with an id, or with a name. Raises `ProviderError`."""
    for entry in (*(each for each in entries if each.id == wanted), *(each for each in entries if each.name == wanted)):
        return entry
    raise ProviderError("the account has no calendar of this name or ID", code="no_calendar", retryable=False)


def _create_missing() -> ProviderError:
    return ProviderError(
        "the calendar was deleted, or the account has no right to it any more", code="no_calendar", retryable=False
    )


def _find_zone(name: str) -> str | None:
    return name if name and str(load_zone(name)) == name else None


def _is_free(event: GoogleEvent) -> bool:
    """Return whether an event leaves its time free."""
    if event.status == CANCELED or event.transparency == "transparent" or event.type in FREE_TYPES:
        return True
    return any(each.is_self and each.response == "declined" for each in event.attendees)


def _find_key(event: GoogleEvent) -> UUID | None:
    """Return the key that is the id of an event, or of its series; None for an event of somebody else."""
    found = _KEY.fullmatch(event.series_id or event.id)
    return None if found is None else UUID(found[0])


def _describe_event(event: GoogleEvent, key: UUID, zone: tzinfo) -> CalendarEvent:
    if not event.etag:
        raise create_unreadable("an event has no version (etag)")
    return CalendarEvent(key, event.id, event.etag, *event.read_period(zone))


def _describe_written(event: GoogleEvent, key: UUID) -> CalendarEvent:
    """Return an event that Google has written just now. Raises `OutcomeUnknown` if the answer is of something else."""
    if event.status == CANCELED:
        raise EventChanged("the event was deleted in the calendar")
    try:
        if event.id != key.hex:
            raise create_unreadable("it is another event")
        return _describe_event(event, key, UTC)
    except ProviderError as error:
        raise OutcomeUnknown(f"the event was written, but {error.message}", code=error.code) from None


def _format(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%S}Z"
