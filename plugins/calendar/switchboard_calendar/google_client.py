"""Requests to the Google Calendar API v3, and the parts of its answers that are read.

The API is described at https://developers.google.com/workspace/calendar/api/v3/reference, its errors at
https://developers.google.com/workspace/calendar/api/guides/errors (read on 2026-11-29). An error is
`{"error": {"code": 403, "message": …, "errors": [{"domain": …, "reason": …, "message": …}]}}`; newer ones have
`details` with a `reason`, too.
"""

import json
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, tzinfo
from typing import Annotated, Final
from urllib.parse import quote

from pydantic import BaseModel, Field, Strict
from switchboard.plugin_sdk import (
    AccountRefused,
    JsonObject,
    NetworkPolicy,
    OutcomeUnknown,
    ProviderError,
    PublicHttpClient,
)
from yarl import URL

from switchboard_calendar.event_text import load_zone
from switchboard_calendar.transport import (
    ModelT,
    ServerResponse,
    VendorRefusal,
    create_unreadable,
    exchange,
    parse_answer,
)

CANCELED: Final = "cancelled"
"""Google's spelling of the status of an event that was deleted."""
LIMITS: Final = frozenset(("rateLimitExceeded", "userRateLimitExceeded", "quotaExceeded", "dailyLimitExceeded"))
"""Reasons of a 403 that asks to send less (https://developers.google.com/workspace/calendar/api/guides/quota)."""
_UNGRANTED: Final = frozenset(("insufficientPermissions", "ACCESS_TOKEN_SCOPE_INSUFFICIENT"))
_TURNED_OFF: Final = frozenset(("accessNotConfigured", "SERVICE_DISABLED"))
_NO_ORGANIZER: Final = "forbiddenForNonOrganizer"
_PUSH: Final = "push."
"""Begins the reasons for refusing the address of a notification channel. One of them, `push.webhookUrlUnauthorized`,
comes with 401, although the access token is good."""
_MAX_SHOWN: Final = 300
_NO_JSON: Final = "it is not JSON of Google's"
_WRITABLE: Final = frozenset(("writer", "owner"))


class GoogleTime(BaseModel):
    """Beginning or end of an event: a day, or a moment (`EventDateTime`)."""

    day: Annotated[date, Strict()] | None = Field(None, alias="date")
    moment: Annotated[datetime, Strict()] | None = Field(None, alias="dateTime")
    time_zone: str | None = Field(None, alias="timeZone")

    def resolve(self, zone: tzinfo) -> datetime:
        """Return the moment in UTC; that of a day is its midnight in `zone`. Raises `ProviderError`."""
        moment = self.moment
        if moment is None:
            if self.day is None:
                raise create_unreadable("an event has no time")
            moment = datetime.combine(self.day, time.min)
        elif moment.tzinfo is None:
            if self.time_zone is None:
                raise create_unreadable("the time of an event has no zone")
            zone = load_zone(self.time_zone)
        try:
            return (moment if moment.tzinfo is not None else moment.replace(tzinfo=zone)).astimezone(UTC)
        except OverflowError:
            raise create_unreadable("the time of an event is out of range") from None


class GoogleAttendee(BaseModel):
    """An attendee. `is_self` marks the entry of the calendar's own user."""

    is_self: bool = Field(False, alias="self")
    response: str = Field("needsAction", alias="responseStatus")


class GoogleEvent(BaseModel):
    """An event, or an occurrence of a recurring one. A deleted event may have nothing but its id."""

    id: str
    etag: str = ""
    status: str = "confirmed"
    transparency: str = "opaque"
    type: str = Field("default", alias="eventType")
    start: GoogleTime | None = None
    end: GoogleTime | None = None
    attendees: list[GoogleAttendee] = []
    recurrence: list[str] = []
    series_id: str | None = Field(None, alias="recurringEventId")

    def read_period(self, zone: tzinfo) -> tuple[datetime, datetime]:
        """Return beginning and end in UTC, with days in `zone`. Raises `ProviderError`."""
        if self.start is None or self.end is None:
            raise create_unreadable("an event has no time")
        return self.start.resolve(zone), self.end.resolve(zone)


class GoogleEventPage(BaseModel):
    """A page of events. The last one has no token of a next page. `time_zone` is that of the calendar."""

    items: list[GoogleEvent] = []
    next_page: str = Field("", alias="nextPageToken")
    time_zone: str | None = Field(None, alias="timeZone")


class GoogleEventId(BaseModel):
    """An event of which nothing but the id was asked for."""

    id: str


class GoogleChangePage(BaseModel):
    """A page of the ids of events that have changed. The last one has a sync token."""

    items: list[GoogleEventId] = []
    next_page: str = Field("", alias="nextPageToken")
    sync_token: str = Field("", alias="nextSyncToken")


class GoogleChannel(BaseModel):
    """A notification channel. `resource_id` is that of what it watches, `expiration` a time in milliseconds
    (https://developers.google.com/workspace/calendar/api/v3/reference/events/watch).
    """

    id: str = Field(min_length=1, max_length=64)
    resource_id: str = Field(alias="resourceId", min_length=1, max_length=500)
    expiration: int = Field(ge=0, lt=10**14)

    @property
    def expires_at(self) -> datetime:
        """The end of the channel, in UTC."""
        return datetime.fromtimestamp(self.expiration / 1000, UTC)


class GoogleCalendarEntry(BaseModel):
    """A calendar in the list of a user."""

    id: str = Field(min_length=1, max_length=1024, pattern=r"[^./]")
    summary: str = ""
    own_name: str = Field("", alias="summaryOverride")
    time_zone: str = Field("", alias="timeZone")
    role: str = Field("", alias="accessRole")
    is_primary: bool = Field(False, alias="primary")
    is_hidden: bool = Field(False, alias="hidden")

    @property
    def name(self) -> str:
        """Name that the user sees."""
        return self.own_name or self.summary or self.id

    @property
    def is_writable(self) -> bool:
        """Predicate: the user may write events."""
        return self.role in _WRITABLE


class GoogleCalendarPage(BaseModel):
    """A page of the list of calendars."""

    items: list[GoogleCalendarEntry] = []
    next_page: str = Field("", alias="nextPageToken")


class GoogleClient:
    """Requests with one access token, which goes to the origin of `url` alone."""

    def __init__(self, url: str, access_token: str, policy: NetworkPolicy) -> None:
        self._url = url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {access_token}", "Accept": "application/json"}
        self._http = PublicHttpClient(policy)

    async def close(self) -> None:
        """Close every connection."""
        await self._http.close()

    async def read(self, model: type[ModelT], *path: str, query: Mapping[str, str] | None = None) -> ModelT:
        """Return the answer to a GET request. Raises `VendorRefusal` and `ProviderError`."""
        response = await exchange(self._http, "GET", self._build_url(path, query), headers=self._headers)
        _require_success(response)
        return parse_answer(model, response, otherwise=_NO_JSON)

    async def write(
        self,
        model: type[ModelT],
        method: str,
        *path: str,
        body: JsonObject,
        query: Mapping[str, str] | None = None,
        version: str | None = None,
    ) -> ModelT:
        """Write a resource, and return it; with a `version`, only if the resource still has it.

        Raises `OutcomeUnknown` if Google may have done it without confirming it, `VendorRefusal` if it has not, and
        `ProviderError`.
        """
        headers = {**self._headers, "Content-Type": "application/json"}
        if version is not None:
            headers["If-Match"] = version
        response = await self._send_change(method, path, query, headers, json.dumps(body).encode())
        try:
            return parse_answer(model, response, otherwise=_NO_JSON)
        except ProviderError as error:
            raise OutcomeUnknown(error.message, code=error.code) from None

    async def delete(self, *path: str, query: Mapping[str, str]) -> None:
        """Send a DELETE request. Raises as `write` does."""
        await self._send_change("DELETE", path, query, self._headers, None)

    async def stop(self, channel: JsonObject) -> None:
        """Stop a notification channel. Raises as `write` does."""
        headers = {**self._headers, "Content-Type": "application/json"}
        await self._send_change("POST", ("channels", "stop"), None, headers, json.dumps(channel).encode())

    async def _send_change(
        self,
        method: str,
        path: tuple[str, ...],
        query: Mapping[str, str] | None,
        headers: Mapping[str, str],
        content: bytes | None,
    ) -> ServerResponse:
        url = self._build_url(path, query)
        try:
            response = await exchange(self._http, method, url, headers=headers, content=content, writes=True)
        except ProviderError as error:
            if error.code == "unreadable":
                raise OutcomeUnknown(error.message, code=error.code) from None
            raise
        if response.status >= 500 or response.status == 408:
            raise OutcomeUnknown(_describe(response, *_read_error(response.body)), code=str(response.status))
        _require_success(response)
        return response

    def _build_url(self, path: tuple[str, ...], query: Mapping[str, str] | None) -> URL:
        # Ids of calendars have characters such as "#" and "@".
        place = "/".join(quote(part, safe="") for part in path)
        return URL(f"{self._url}/{place}", encoded=True).with_query({**(query or {}), "prettyPrint": "false"})


def _require_success(response: ServerResponse) -> None:
    status = response.status
    if status in (200, 201, 204):
        return
    reasons, message = _read_error(response.body)
    if status == 401 and not any(reason.startswith(_PUSH) for reason in reasons):
        raise AccountRefused("Google does not take the access token any more; connect the calendar again")
    raise VendorRefusal(
        _describe(response, reasons, message),
        response,
        retryable=status >= 500 or status in (408, 429) or bool(reasons & LIMITS),
    )


def _describe(response: ServerResponse, reasons: frozenset[str], message: str) -> str:
    status = response.status
    if 300 <= status < 400:
        return f"Google redirects to {response.headers.get('Location', 'nowhere')[:_MAX_SHOWN]}; check api_url"
    if status == 403 and reasons & _UNGRANTED:
        return "the consent at Google lacks a right; connect the calendar again, and allow everything that is asked for"
    if status == 403 and reasons & _TURNED_OFF:
        return "the Google Calendar API is off in the application's project; enable it in the Google Cloud console"
    if status == 403 and _NO_ORGANIZER in reasons:
        return "only the organizer may change the event; change it in the organizer's calendar"
    if status == 403 and not reasons & LIMITS:
        return "Google does not allow this to the account; it needs the right to change events of the calendar"
    return f"Google answered {status}: {message}" if message else f"Google answered {status}"


def _read_error(body: bytes) -> tuple[frozenset[str], str]:
    """Return the reasons and the message of an error; empty ones for anything else."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return frozenset(), ""
    error = found.get("error") if isinstance(found, dict) else None
    if not isinstance(error, dict):
        return frozenset(), ""
    lists = [each for each in (error.get("errors"), error.get("details")) if isinstance(each, list)]
    reasons = [each.get("reason") for entries in lists for each in entries if isinstance(each, dict)]
    message = error.get("message")
    shown = message.strip().rstrip(".")[:_MAX_SHOWN] if isinstance(message, str) else ""
    return frozenset(reason for reason in reasons if isinstance(reason, str)), shown
