"""Calendar `microsoft`: Microsoft 365 and Outlook.com, over Microsoft Graph v1.0."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, Final
from urllib.parse import parse_qsl, unquote, urlsplit
from uuid import UUID
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, Field, SecretStr, ValidationError
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
    InvalidCallback,
    JsonObject,
    OAuthAccount,
    OAuthCalendarProvider,
    OAuthService,
    OutcomeUnknown,
    ProviderError,
    ProviderSettings,
    RemoteCalendar,
)
from yarl import URL

from switchboard_calendar.addresses import check_address
from switchboard_calendar.microsoft_client import (
    SINGLE,
    GraphCalendar,
    GraphChange,
    GraphClient,
    GraphEvent,
    GraphNotifications,
    GraphPage,
    GraphRefusal,
    GraphSubscription,
    GraphVersionedEvent,
    ItemT,
)
from switchboard_calendar.transport import create_unreadable

SCOPES: Final = ("offline_access", "Calendars.ReadWrite")
"""A refresh token, and the least permission with which events are written
(https://learn.microsoft.com/graph/api/calendar-post-events)."""
KEY_PROPERTY: Final = "String {9d0b7a52-3c1e-4f8e-8a57-6c2f1f5d4b90} Name SwitchboardEvent"
"""Extended property that has the key of an event, because `transactionId` cannot be searched for."""
PAGE_SIZE: Final = 500
"""Events of a page; at most 1 000 (https://learn.microsoft.com/graph/api/calendar-list-calendarview)."""
MAX_EVENTS: Final = 10_000
MAX_PAGES: Final = 60
MAX_CALENDARS: Final = 1_000
CHANGES_PAGE_SIZE: Final = 100
"""Events of a page of changes. They come with all their fields, because `$select` is not supported there."""
CHANGES_PAGES: Final = 4
"""Pages of changes that one look reads; the next look goes on where it has stopped."""
WATCHED: Final = timedelta(days=770)
"""Length of the window in which changes are looked for: the longest horizon of appointment types, and `RENEWED`."""
RENEWED: Final = timedelta(days=30)
"""Age at which the window is replaced by one that begins today, which costs a look at all events."""
MAX_CURSOR: Final = 2_000
SUBSCRIBED: Final = timedelta(minutes=4_200)
"""Life of a subscription. Pages of Microsoft's say that one to Outlook's events lasts at most 4 230 minutes
(https://learn.microsoft.com/graph/outlook-change-notifications-overview), or 10 080
(https://learn.microsoft.com/graph/api/resources/subscription)."""
MAX_VALIDATION: Final = 4_000
"""Characters of a validation token. Microsoft names no bound."""
FREE: Final = ("free", "workingElsewhere")
DUPLICATE: Final = "errorduplicatetransactionid"
"""Code for a `transactionId` that another creation has used, with 400 or 409. Microsoft's pages do not have it; clients
in public repositories handle it."""
CONFLICT: Final = "errorirresolvableconflict"
_FIELDS: Final = "id,start,end,type,showAs,isAllDay,isCancelled,responseStatus,transactionId"
_WAITS: Final = (0.0, 0.5, 1.0, 2.0)
"""Seconds before each look for an event that another request is writing."""
_DAY: Final = timedelta(days=1)
_GONE: Final = (404, 410)
_UNSUPPORTED: Final = (400, 405, 501)
_EXPIRED: Final = (400, 404, 410)
_TOKEN: Final = re.compile(r"[!-%'-~]+")


class MicrosoftSettings(ProviderSettings):
    """The operator's application in Microsoft Entra ID."""

    client_id: str | None = Field(None, max_length=200, description="Application (client) ID of the registration.")
    client_secret: SecretStr | None = Field(
        None, max_length=1024, description="Value of a client secret of the registration, which has an end date."
    )
    tenant_id: str = Field(
        "common",
        max_length=200,
        pattern=r"^[A-Za-z0-9.-]+$",
        description="Directory whose accounts are connected: its ID or domain, or common, organizations, or consumers.",
    )
    authority: Annotated[str, AfterValidator(check_address)] = Field(
        "https://login.microsoftonline.com",
        description="Address of Entra ID in a national cloud.",
        json_schema_extra=OPERATOR_ONLY,
    )
    api_url: Annotated[str, AfterValidator(check_address)] = Field(
        "https://graph.microsoft.com/v1.0",
        description="Address of Microsoft Graph in a national cloud.",
        json_schema_extra=OPERATOR_ONLY,
    )


class MicrosoftAccount(OAuthAccount):
    """A mailbox at Microsoft 365 or Outlook.com."""

    calendar: str | None = Field(
        None, max_length=1000, description="Name or id of the calendar; without one, the mailbox's default calendar."
    )


@dataclass(frozen=True, slots=True)
class ChangesCursor:
    """Position in the changes of a window that begins on a day. `kind` is the name of the token's parameter without
    `$`: deltatoken at the end of a round, skiptoken within one.
    """

    begins: date
    kind: str
    token: str

    @classmethod
    def from_text(cls, text: str) -> "ChangesCursor | None":
        """Read a cursor; None if it is no cursor of this calendar."""
        parts = text.split(" ", 2)
        if len(parts) != 3 or parts[1] not in ("deltatoken", "skiptoken") or not _TOKEN.fullmatch(parts[2]):
            return None
        try:
            return cls(date.fromisoformat(parts[0]), parts[1], parts[2])
        except ValueError:
            return None

    def __str__(self) -> str:
        return f"{self.begins.isoformat()} {self.kind} {self.token}"


class MicrosoftCalendar(OAuthCalendarProvider[MicrosoftSettings]):
    """A mailbox's calendar.

    The event's key is its `transactionId`, which makes a repeated creation harmless
    (https://learn.microsoft.com/graph/api/resources/event), and an extended property by which the event is found
    (https://learn.microsoft.com/graph/api/singlevaluelegacyextendedproperty-get). Its version is its ETag. Times are
    written in UTC: Graph takes only some of the IANA zones, and Outlook shows an event in the reader's own zone.
    """

    name = "microsoft"
    title = "Microsoft 365"
    Settings = MicrosoftSettings
    settings: MicrosoftSettings
    Account = MicrosoftAccount
    account: MicrosoftAccount

    def __init__(self, settings: MicrosoftSettings) -> None:
        super().__init__(settings)
        self._opened: GraphClient | None = None

    def describe_oauth(self) -> OAuthService:
        """Return the endpoints of the authorization code flow
        (https://learn.microsoft.com/entra/identity-platform/v2-oauth2-auth-code-flow).

        Entra ID has no endpoint for revocation (RFC 7009): its pages name none
        (https://learn.microsoft.com/entra/identity-platform/v2-protocols-oidc), and `revokeSignInSessions` would end
        all sessions of the user (https://learn.microsoft.com/graph/api/user-revokesigninsessions).
        """
        settings = self.settings
        if not settings.client_id or settings.client_secret is None or not settings.client_secret.get_secret_value():
            raise ProviderError(
                "there is no application for Microsoft 365; register an application in Microsoft Entra ID, and set "
                "client_id and client_secret for microsoft",
                code="not_configured",
                retryable=False,
            )
        base = f"{settings.authority.rstrip('/')}/{settings.tenant_id}/oauth2/v2.0"
        return OAuthService(
            authorization_url=f"{base}/authorize",
            token_url=f"{base}/token",
            client_id=settings.client_id,
            client_secret=settings.client_secret,
            scopes=SCOPES,
            authorization_parameters={"prompt": "select_account"},
        )

    async def open(self) -> None:
        """Get ready for requests. Without an account only `describe_oauth` and `check` serve."""
        account = self.account
        if not isinstance(account, MicrosoftAccount):
            return
        token = account.access_token.get_secret_value()
        if not token.isascii() or not token.isprintable():
            raise ProviderError("an access token has letters and digits only; connect it again", retryable=False)
        self._opened = GraphClient(self.settings.api_url, token, self.network_policy)

    async def close(self) -> None:
        if self._opened is not None:
            await self._opened.close()
            self._opened = None

    async def check(self) -> None:
        """Check the token, and that the calendar can be read; without an account, that there is a registration."""
        if not isinstance(self.account, MicrosoftAccount):
            self.describe_oauth()
            return
        calendars = await self.list_calendars()
        now = datetime.now(UTC)
        await self.list_busy(calendars[0].id, now, now + _DAY, time_zone="UTC")

    async def list_calendars(self) -> Sequence[RemoteCalendar]:
        """List the mailbox's calendars (https://learn.microsoft.com/graph/api/user-list-calendars): the chosen one
        first, else the default calendar, and then those that can be written.

        Raises `ProviderError` if there is none to write in, or none as chosen.
        """
        url = self._client.build_url("me", "calendars", query={"$top": "100"})
        found = await self._list_pages(GraphPage[GraphCalendar], url, most=MAX_CALENDARS)
        wanted = self.account.calendar
        if wanted is None:
            ordered = sorted(found, key=lambda each: (not each.can_edit, not each.is_default))
        else:
            chosen = [each for each in found if each.id == wanted] or [each for each in found if each.name == wanted]
            if not chosen:
                message = "the mailbox has no calendar of this name; check it"
                raise ProviderError(message, code="no_calendar", retryable=False)
            ordered = [chosen[0], *(each for each in found if each is not chosen[0])]
        if not ordered or not ordered[0].can_edit:
            message = "the account cannot write in the calendar; choose another one, or ask its owner for the right"
            raise ProviderError(message, code="no_calendar", retryable=False)
        return [
            RemoteCalendar(each.id, each.name or each.id, is_writable=bool(each.can_edit))
            for each in {each.id: each for each in ordered}.values()
        ]

    async def list_busy(
        self, calendar_id: str, starts_at: datetime, ends_at: datetime, *, time_zone: str
    ) -> Sequence[BusyTime]:
        """List busy times (https://learn.microsoft.com/graph/api/calendar-list-calendarview), where Graph has expanded
        recurring events.

        A day of an event that lasts all day is that of `time_zone`: Graph has a date at midnight for it, whatever zone
        is asked for. So a day more is read at both ends.
        """
        query = {
            "startDateTime": _format(starts_at - _DAY),
            "endDateTime": _format(ends_at + _DAY),
            "$select": _FIELDS,
            "$top": str(PAGE_SIZE),
        }
        url = self._client.build_url("me", "calendars", calendar_id, "calendarView", query=query)
        found = await self._list_pages(GraphPage[GraphEvent], url, most=MAX_EVENTS)
        busy: list[BusyTime] = []
        for event in found:
            begin, end = _find_period(event, ZoneInfo(time_zone))
            if begin < ends_at and end > starts_at and begin < end and _is_busy(event):
                busy.append(BusyTime(begin, end, event.key))
        return busy

    async def find_changes(self, calendar_id: str, cursor: str) -> CalendarChanges:
        """Look for changes in a window of `WATCHED` from yesterday on
        (https://learn.microsoft.com/graph/delta-query-events).

        The cursor has the first day of the window and the token alone of the link that Graph gives for the next look.
        A window that is older than `RENEWED`, and a token that has expired
        (https://learn.microsoft.com/graph/delta-query-overview), begin a new window.
        """
        today = datetime.now(UTC).date()
        position = ChangesCursor.from_text(cursor)
        if position is not None and timedelta() <= today - position.begins < RENEWED:
            parameter = f"${position.kind}={position.token}"
            url = URL(f"{self._build_changes_url(calendar_id)}?{parameter}", encoded=True)
            try:
                return await self._read_changes(url, position.begins, is_new=position.kind == "skiptoken")
            except GraphRefusal as refusal:
                if refusal.status not in _EXPIRED:
                    raise
        start = datetime.combine(today, time(), UTC) - _DAY
        window = {"startDateTime": _format(start), "endDateTime": _format(start + WATCHED)}
        try:
            url = self._build_changes_url(calendar_id).with_query(window)
            return await self._read_changes(url, today, is_new=True)
        except GraphRefusal as refusal:
            # The reference has changes of the default calendar only; Graph may refuse those of others.
            if refusal.status not in _UNSUPPORTED:
                raise
            return CalendarChanges(True, "")

    async def watch(self, calendar_id: str, address: str, secret: str, *, current: str | None = None) -> CalendarWatch:
        """Renew the current subscription (https://learn.microsoft.com/graph/api/subscription-update), or create one
        (https://learn.microsoft.com/graph/api/subscription-post-subscriptions).

        There are none for one calendar: the events are those of the whole mailbox
        (https://learn.microsoft.com/graph/outlook-change-notifications-overview). Graph asks the address at once.
        """
        expiration = _format(datetime.now(UTC) + SUBSCRIBED)
        if current is not None:
            url = self._client.build_url("subscriptions", current)
            try:
                renewed = await self._client.write(GraphSubscription, "PATCH", url, {"expirationDateTime": expiration})
                return CalendarWatch(renewed.id, renewed.expires_at)
            except GraphRefusal as refusal:
                if refusal.status not in _GONE:
                    raise
        body: JsonObject = {
            "changeType": "created,updated,deleted",
            "notificationUrl": address,
            "resource": "me/events",
            "expirationDateTime": expiration,
            "clientState": secret,
        }
        url = self._client.build_url("subscriptions")
        made = await self._client.write(GraphSubscription, "POST", url, body)
        return CalendarWatch(made.id, made.expires_at)

    async def end_watch(self, watch_id: str) -> None:
        """Delete a subscription (https://learn.microsoft.com/graph/api/subscription-delete)."""
        try:
            await self._client.delete(self._client.build_url("subscriptions", watch_id))
        except GraphRefusal as refusal:
            if refusal.status not in _GONE:
                raise

    def read_report(self, request: CallbackRequest) -> ChangeReport:
        """Read notifications, or return the token of a request that checks the address
        (https://learn.microsoft.com/graph/change-notifications-delivery-webhooks).
        """
        token = dict(parse_qsl(urlsplit(request.url).query)).get("validationToken")
        if token is not None:
            return ChangeReport(None, CallbackReply(token[:MAX_VALIDATION].encode()))
        try:
            found = GraphNotifications.model_validate_json(request.body).value
        except (ValidationError, RecursionError):
            raise InvalidCallback("the body is no list of notifications") from None
        return ChangeReport(found[0].client_state if found else "", CallbackReply(status=202))

    async def create_event(self, calendar_id: str, draft: EventDraft) -> CalendarEvent:
        """Write an event (https://learn.microsoft.com/graph/api/calendar-post-events) with its key as `transactionId`,
        by which Graph refuses, or answers with the first event, if the request is repeated or made concurrently.
        """
        if (found := await self.find_event(calendar_id, draft.key)) is not None:
            return found
        url = self._build_event_url(calendar_id)
        try:
            made = await self._client.write(GraphVersionedEvent, "POST", url, _build_body(draft))
        except OutcomeUnknown:
            # Graph may have written the event and not said so: it is asked once.
            if (written := await self._find_or_none(calendar_id, draft.key)) is None:
                raise
            return written
        except GraphRefusal as refusal:
            if DUPLICATE not in refusal.codes:
                raise
            return await self._wait_for_event(calendar_id, draft.key)
        if made.is_canceled:
            raise EventChanged
        if made.transaction_id is not None and made.key != draft.key:
            raise OutcomeUnknown("Microsoft has answered with another event")
        return _build_event(draft.key, made)

    async def find_event(self, calendar_id: str, key: UUID) -> CalendarEvent | None:
        """Find an event by its extended property
        (https://learn.microsoft.com/graph/api/singlevaluelegacyextendedproperty-get).

        A copy that a person has made in Outlook may have the property, too: the event with the `transactionId` comes
        first.
        """
        condition = f"singleValueExtendedProperties/Any(ep: ep/id eq '{KEY_PROPERTY}' and ep/value eq '{key}')"
        url = self._build_event_url(calendar_id, query={"$filter": condition, "$select": _FIELDS})
        found = await self._list_pages(GraphPage[GraphVersionedEvent], url, most=PAGE_SIZE)
        active = [each for each in found if not each.is_canceled]
        active.sort(key=lambda each: each.key != key)
        return _build_event(key, active[0]) if active else None

    async def move_event(
        self, calendar_id: str, event: CalendarEvent, starts_at: datetime, ends_at: datetime
    ) -> CalendarEvent:
        """Change the times of an event (https://learn.microsoft.com/graph/api/event-update) if it has the version.

        A series that a person has made of an event is not moved.
        """
        url = self._build_event_url(calendar_id, event.id)
        body: JsonObject = {"start": _build_time(starts_at), "end": _build_time(ends_at), "isAllDay": False}
        try:
            current = await self._client.read(GraphVersionedEvent, url.with_query({"$select": _FIELDS}))
        except GraphRefusal as refusal:
            if refusal.status in _GONE:
                raise EventChanged from refusal
            raise
        if current.etag != event.version or current.is_canceled or current.kind not in (None, SINGLE):
            raise EventChanged
        try:
            moved = await self._client.write(GraphVersionedEvent, "PATCH", url, body, version=event.version)
        except GraphRefusal as refusal:
            if refusal.status in (*_GONE, 412) or CONFLICT in refusal.codes:
                raise EventChanged from refusal
            raise
        if moved.key not in (None, event.key):
            raise OutcomeUnknown("Microsoft has moved the event, but its answer is of another event")
        return _build_event(event.key, moved)

    async def cancel_event(self, calendar_id: str, event: CalendarEvent) -> None:
        """Delete an event (https://learn.microsoft.com/graph/api/event-delete); people that somebody has invited to it
        get a cancellation.
        """
        try:
            await self._client.delete(self._build_event_url(calendar_id, event.id))
        except GraphRefusal as refusal:
            if refusal.status not in _GONE:
                raise

    @property
    def _client(self) -> GraphClient:
        if not isinstance(self.account, MicrosoftAccount):
            raise ProviderError("connect a calendar first: there is no account", retryable=False)
        if self._opened is None:
            raise ProviderError("the calendar is not open")
        return self._opened

    def _build_event_url(self, calendar_id: str, *event_id: str, query: dict[str, str] | None = None) -> URL:
        return self._client.build_url("me", "calendars", calendar_id, "events", *event_id, query=query)

    def _build_changes_url(self, calendar_id: str) -> URL:
        return self._client.build_url("me", "calendars", calendar_id, "calendarView", "delta")

    async def _list_pages(self, model: type[GraphPage[ItemT]], url: URL, *, most: int) -> list[ItemT]:
        """List the items of all pages (https://learn.microsoft.com/graph/paging). Raises `ProviderError` if there are
        more than `most`, or more than `MAX_PAGES` pages.
        """
        found: list[ItemT] = []
        for _ in range(MAX_PAGES):
            page = await self._client.read(model, url)
            found.extend(page.value)
            if len(found) > most:
                raise create_unreadable(f"there are more than {most} items")
            if page.next_link is None:
                return found
            url = self._client.resolve(page.next_link)
        raise create_unreadable(f"there are more than {MAX_PAGES} pages")

    async def _read_changes(self, url: URL, begins: date, *, is_new: bool) -> CalendarChanges:
        """Read pages of changes up to the end of the round, or to the bound of one look.

        `is_new`: the changes before the position are not known, because the window is read for the first time.
        """
        has_changed = is_new
        for _ in range(CHANGES_PAGES):
            page = await self._client.read(GraphPage[GraphChange], url, page_size=CHANGES_PAGE_SIZE)
            has_changed = has_changed or bool(page.value)
            if page.delta_link is not None:
                return _build_changes(has_changed, begins, "deltatoken", page.delta_link)
            if page.next_link is None:
                raise create_unreadable("it has no link for the next changes")
            url = self._client.resolve(page.next_link)
        return _build_changes(True, begins, "skiptoken", str(url))

    async def _find_or_none(self, calendar_id: str, key: UUID) -> CalendarEvent | None:
        try:
            return await self.find_event(calendar_id, key)
        except ProviderError:
            return None

    async def _wait_for_event(self, calendar_id: str, key: UUID) -> CalendarEvent:
        """Return the event that another creation has written, which may take a moment. Raises `EventChanged` if it does
        not appear: somebody has deleted it.
        """
        for wait in _WAITS:
            await asyncio.sleep(wait)
            if (found := await self.find_event(calendar_id, key)) is not None:
                return found
        raise EventChanged("the event was deleted in the calendar, and Microsoft writes no other one with its key")


def _build_changes(has_changed: bool, begins: date, kind: str, link: str) -> CalendarChanges:
    """Build the result of a look from the link for the next one, whose token stays as it is written there. A token that
    is too long for a cursor is left out, so that the next look begins a new window.
    """
    try:
        parameters = [each.partition("=") for each in urlsplit(link).query.split("&")]
    except ValueError:
        raise create_unreadable("the link for the next changes is no address") from None
    token = next((value for name, _, value in parameters if unquote(name).lower() == f"${kind}"), "")
    if _TOKEN.fullmatch(token) is None:
        raise create_unreadable("the link for the next changes has no token")
    cursor = str(ChangesCursor(begins, kind, token))
    return CalendarChanges(has_changed, cursor) if len(cursor) <= MAX_CURSOR else CalendarChanges(True, "")


def _is_busy(event: GraphEvent) -> bool:
    """Return whether an event takes its time. A status that Microsoft adds one day is busy."""
    status = event.response_status
    is_declined = status is not None and status.response == "declined"
    return not (event.is_canceled or is_declined or event.show_as in FREE)


def _find_period(event: GraphEvent, zone: ZoneInfo) -> tuple[datetime, datetime]:
    """Return the beginning and the end of an event in UTC. Raises `ProviderError` if it ends before it starts."""
    begin, end = event.start.moment, event.end.moment
    if event.is_all_day and begin.time() == end.time() == time():
        begin, end = (each.replace(tzinfo=zone).astimezone(UTC) for each in (begin, end))
    if end < begin:
        raise create_unreadable("an event ends before it starts")
    return begin, end


def _build_event(key: UUID, event: GraphVersionedEvent) -> CalendarEvent:
    return CalendarEvent(key, event.id, event.etag, event.start.moment, event.end.moment)


def _build_body(draft: EventDraft) -> JsonObject:
    return {
        "subject": draft.title,
        "body": {"contentType": "text", "content": draft.description},
        "start": _build_time(draft.starts_at),
        "end": _build_time(draft.ends_at),
        "showAs": "busy",
        "transactionId": str(draft.key),
        "singleValueExtendedProperties": [{"id": KEY_PROPERTY, "value": str(draft.key)}],
    }


def _build_time(moment: datetime) -> JsonObject:
    return {"dateTime": f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%S}", "timeZone": "UTC"}


def _format(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%S}Z"
