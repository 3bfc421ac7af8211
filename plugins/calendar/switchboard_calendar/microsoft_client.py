"""Requests to Microsoft Graph v1.0, and the parts of its answers that are read.

Described at https://learn.microsoft.com/graph/api/resources/event and the pages that it links to (read on 2026-11-29).
An answer is a resource, or a collection `{"value": […], "@odata.nextLink": …}`
(https://learn.microsoft.com/graph/paging); an error is `{"error": {"code": …, "message": …, "innerError": {…}}}`
(https://learn.microsoft.com/graph/errors).
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Final, Generic, Literal, TypeVar
from urllib.parse import quote
from uuid import UUID

from pydantic import AwareDatetime, BaseModel, BeforeValidator, Field, JsonValue
from switchboard.plugin_sdk import (
    AccountRefused,
    JsonObject,
    NetworkPolicy,
    OutcomeUnknown,
    ProviderError,
    PublicHttpClient,
)
from yarl import URL

from switchboard_calendar.transport import (
    ModelT,
    ServerResponse,
    VendorRefusal,
    create_unreadable,
    exchange,
    parse_answer,
)

PREFERENCES: Final = ('IdType="ImmutableId"', 'outlook.timezone="UTC"')
"""Preferences of every request: ids that stay if an event is moved to another folder
(https://learn.microsoft.com/graph/outlook-immutable-id), and times in UTC
(https://learn.microsoft.com/graph/api/event-get)."""
SINGLE: Final = "singleInstance"
_DONE: Final = frozenset((200, 201, 204))
_UNDONE: Final = frozenset((501, 503, 505, 507, 509))
"""Statuses of 500 and more with which Graph says that it has done nothing."""
_RETRYABLE: Final = frozenset((408, 409, 412, 423, 425, 429))
"""Statuses below 500 after which the same request may succeed. Graph answers 412 to requests without a condition, too,
if its own data change meanwhile."""
_NO_MAILBOX: Final = frozenset(("mailboxnotenabledforrestapi", "mailboxnotsupportedforrestapi"))
_MAX_DEPTH: Final = 8
_MAX_SHOWN: Final = 300
_NO_JSON: Final = "it is not JSON of Microsoft Graph"
ItemT = TypeVar("ItemT", bound=BaseModel)


def _read_time(value: object) -> datetime:
    """Return the `dateTime` of a dateTimeTimeZone, which has seven decimals and no offset, as a time in UTC."""
    if not isinstance(value, str):
        raise ValueError("must be a text")
    moment = datetime.fromisoformat(value)
    if moment.tzinfo is not None:
        raise ValueError("must have no offset")
    return moment.replace(tzinfo=UTC)


class GraphTime(BaseModel):
    """A dateTimeTimeZone in UTC (https://learn.microsoft.com/graph/api/resources/datetimetimezone), the zone that every
    request asks for.
    """

    moment: Annotated[datetime, BeforeValidator(_read_time)] = Field(alias="dateTime")
    zone: Literal["UTC"] = Field(alias="timeZone")


class GraphResponseStatus(BaseModel):
    """The user's answer to an invitation (https://learn.microsoft.com/graph/api/resources/responsestatus)."""

    response: str | None = None


class GraphEvent(BaseModel):
    """An event (https://learn.microsoft.com/graph/api/resources/event). `kind` is its `type`."""

    id: str = Field(min_length=1, max_length=1000)
    start: GraphTime
    end: GraphTime
    kind: str | None = Field(None, alias="type")
    show_as: str | None = Field(None, alias="showAs")
    is_all_day: bool | None = Field(None, alias="isAllDay")
    is_canceled: bool | None = Field(None, alias="isCancelled")
    response_status: GraphResponseStatus | None = Field(None, alias="responseStatus")
    transaction_id: str | None = Field(None, alias="transactionId")

    @property
    def key(self) -> UUID | None:
        """Key of the event that the platform has written; None for other events and for occurrences of a series."""
        if self.kind not in (None, SINGLE):
            return None
        try:
            return UUID(self.transaction_id or "")
        except ValueError:
            return None


class GraphVersionedEvent(GraphEvent):
    """An event with its version, which is written as `W/"…"`."""

    etag: str = Field(alias="@odata.etag", min_length=1, max_length=1000)


class GraphCalendar(BaseModel):
    """A calendar of a mailbox (https://learn.microsoft.com/graph/api/resources/calendar)."""

    id: str = Field(min_length=1, max_length=1000)
    name: str | None = None
    can_edit: bool | None = Field(None, alias="canEdit")
    is_default: bool | None = Field(None, alias="isDefaultCalendar")


class GraphChange(BaseModel):
    """Something that has changed in a calendar. It is not read, because any change is one."""


class GraphSubscription(BaseModel):
    """A subscription to changes (https://learn.microsoft.com/graph/api/resources/subscription)."""

    id: str = Field(min_length=1, max_length=1000)
    expires_at: AwareDatetime = Field(alias="expirationDateTime")


class GraphNotification(BaseModel):
    """A notification of a change (https://learn.microsoft.com/graph/api/resources/changenotification)."""

    client_state: str = Field("", alias="clientState")


class GraphNotifications(BaseModel):
    """Notifications of one request; each is of a subscription with the address of the request."""

    value: list[GraphNotification]


class GraphPage(BaseModel, Generic[ItemT]):
    """A page of a collection. `delta_link` is on the last page of a round of changes only."""

    value: list[ItemT]
    next_link: str | None = Field(None, alias="@odata.nextLink")
    delta_link: str | None = Field(None, alias="@odata.deltaLink")


class GraphRefusal(VendorRefusal):
    """An error of Graph's; `codes` are those of the error and of its inner errors, in lower case."""

    def __init__(self, message: str, response: ServerResponse, codes: frozenset[str], *, retryable: bool) -> None:
        super().__init__(message, response, retryable=retryable)
        self.codes = codes


class GraphClient:
    """Requests with the access token of one account. The token goes to the origin of `url` alone."""

    def __init__(self, url: str, access_token: str, policy: NetworkPolicy) -> None:
        self._url = URL(url)
        self._authorization = f"Bearer {access_token}"
        self._http = PublicHttpClient(policy)

    async def close(self) -> None:
        """Close every connection."""
        await self._http.close()

    def build_url(self, *path: str, query: Mapping[str, str] | None = None) -> URL:
        """Return the address of a resource. Ids in `path` may have any character."""
        joined = "/".join(quote(part, safe="") for part in path)
        url = URL(f"{str(self._url).rstrip('/')}/{joined}", encoded=True)
        return url if query is None else url.with_query(query)

    def resolve(self, link: str) -> URL:
        """Return the address of a next page. Raises `ProviderError` if it is at another server."""
        try:
            found = URL(link, encoded=True)
            is_own = found.origin() == self._url.origin()
        except ValueError:
            raise create_unreadable("its next page is at no address") from None
        if not is_own:
            raise create_unreadable("its next page is at another server")
        return found

    async def read(self, model: type[ModelT], url: URL, *, page_size: int | None = None) -> ModelT:
        """Return the answer to a GET request. `page_size` is the most items of a page, where `$top` is not supported.

        Raises `GraphRefusal` and `ProviderError`.
        """
        wishes = PREFERENCES if page_size is None else (*PREFERENCES, f"odata.maxpagesize={page_size}")
        response = await exchange(self._http, "GET", url, headers=self._build_headers(wishes))
        _require_success(response)
        return parse_answer(model, response, otherwise=_NO_JSON)

    async def write(
        self, model: type[ModelT], method: str, url: URL, body: JsonObject, *, version: str | None = None
    ) -> ModelT:
        """Return the answer to a request with a body, which is done only if the resource has `version`, an ETag.

        Raises `OutcomeUnknown` if Graph may have done it without confirming it, `GraphRefusal` if it has not, and
        `ProviderError`.
        """
        headers = {**self._build_headers(PREFERENCES), "Content-Type": "application/json"}
        if version is not None:
            headers["If-Match"] = version
        response = await self._change(method, url, headers, json.dumps(body).encode())
        try:
            return parse_answer(model, response, otherwise=_NO_JSON)
        except ProviderError as error:
            raise OutcomeUnknown(error.message, code=error.code) from None

    async def delete(self, url: URL) -> None:
        """Delete a resource. Raises as `write` does."""
        await self._change("DELETE", url, self._build_headers(PREFERENCES), None)

    async def _change(self, method: str, url: URL, headers: Mapping[str, str], content: bytes | None) -> ServerResponse:
        try:
            response = await exchange(self._http, method, url, headers=headers, content=content, writes=True)
        except ProviderError as error:
            if error.code == "unreadable":
                raise OutcomeUnknown(error.message, code=error.code) from None
            raise
        status = response.status
        if status == 408 or (status >= 500 and status not in _UNDONE):
            raise OutcomeUnknown(_describe(status, response, frozenset()), code=str(status))
        _require_success(response)
        return response

    def _build_headers(self, preferences: tuple[str, ...]) -> dict[str, str]:
        return {
            "Authorization": self._authorization,
            "Accept": "application/json",
            "Prefer": ", ".join(preferences),
        }


def _require_success(response: ServerResponse) -> None:
    status = response.status
    if status in _DONE:
        return
    if status == 401:
        raise AccountRefused("Microsoft refuses the access to the account; connect the calendar again")
    codes = _list_codes(response.body)
    raise GraphRefusal(
        _describe(status, response, codes),
        response,
        codes,
        retryable=status >= 500 or status in _RETRYABLE,
    )


def _describe(status: int, response: ServerResponse, codes: frozenset[str]) -> str:
    if codes & _NO_MAILBOX:
        return "the account has no mailbox at Exchange Online or Outlook.com; it needs a license with one"
    if status == 403:
        return (
            "Microsoft does not allow this to the account: it needs the right to change the calendar and the "
            "permission Calendars.ReadWrite, and policies of its organization may exclude the application"
        )
    if status == 404:
        return "the mailbox has no such calendar any more; connect the calendar again"
    if 300 <= status < 400:
        return f"Microsoft redirects to {response.headers.get('Location', 'nowhere')[:_MAX_SHOWN]}; check api_url"
    message = _read_message(response.body)
    return f"Microsoft answered {status}: {message}" if message else f"Microsoft answered {status}"


def _read_error(body: bytes) -> dict[str, JsonValue]:
    """Return the member `error` of an answer; empty for anything else."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    error = found.get("error") if isinstance(found, dict) else None
    return error if isinstance(error, dict) else {}


def _read_message(body: bytes) -> str:
    message = _read_error(body).get("message")
    return message.strip().rstrip(".")[:_MAX_SHOWN] if isinstance(message, str) else ""


def _list_codes(body: bytes) -> frozenset[str]:
    """List the codes of an error and of its inner errors, whose name is written in two ways."""
    error: JsonValue = _read_error(body)
    codes: set[str] = set()
    for _ in range(_MAX_DEPTH):
        if not isinstance(error, dict):
            break
        code = error.get("code")
        if isinstance(code, str):
            codes.add(code.lower())
        error = error.get("innerError", error.get("innererror"))
    return frozenset(codes)
