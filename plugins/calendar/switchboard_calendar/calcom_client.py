"""Requests to cal.com's API v2, and the parts of its answers that are read.

The API is described at https://cal.com/docs/api-reference/v2 and in the repository calcom/cal.com, whose
`docs/api-reference/v2/openapi.json` is made from its classes (read on 2026-11-29). Each endpoint has a version of its
own in the header `cal-api-version`. An answer is `{"status": "success", "data": …}`, and an error
`{"status": "error", "error": {"code": …, "message": …}}`.
"""

import json
from collections.abc import Mapping
from datetime import UTC
from typing import Annotated, Final, Generic, Literal, TypeVar
from uuid import UUID

from pydantic import AfterValidator, AwareDatetime, BaseModel, Field, JsonValue
from switchboard.plugin_sdk import (
    AccountRefused,
    JsonObject,
    NetworkPolicy,
    OutcomeUnknown,
    ProviderError,
    PublicHttpClient,
)
from yarl import URL

from switchboard_calendar.transport import ModelT, ServerResponse, VendorRefusal, exchange, parse_answer

BOOKINGS_VERSION: Final = "2024-08-13"
"""`cal-api-version` of bookings (https://cal.com/docs/api-reference/v2/bookings/create-a-booking)."""
EVENT_TYPES_VERSION: Final = "2024-06-14"
"""`cal-api-version` of event types (https://cal.com/docs/api-reference/v2/event-types/get-an-event-type)."""
SLOTS_VERSION: Final = "2024-09-04"
"""`cal-api-version` of slots (https://cal.com/docs/api-reference/v2/slots)."""
KEY_FIELD: Final = "switchboard_event"
"""Name in a booking's metadata of the key of its event."""
DataT = TypeVar("DataT")
Moment = Annotated[AwareDatetime, AfterValidator(lambda moment: moment.astimezone(UTC))]
_MAX_SHOWN: Final = 300
_NO_JSON: Final = "it is not JSON of cal.com; check the address"


class CalcomEnvelope(BaseModel, Generic[DataT]):
    """A successful answer."""

    status: Literal["success"]
    data: DataT


class CalcomPages(BaseModel):
    """Position of a page in a list."""

    has_next: bool = Field(alias="hasNextPage")


class CalcomBookingField(BaseModel):
    """A question that an event type asks."""

    slug: str = ""
    type: str = ""
    required: bool = False


class CalcomEventType(BaseModel):
    """An event type. Features that are off are missing, None, or `{"disabled": true}`."""

    id: int
    title: str
    minutes: int = Field(alias="lengthInMinutes", ge=1)
    fields: list[CalcomBookingField] = Field(default=[], alias="bookingFields")
    recurrence: JsonValue = None
    seats: JsonValue = None
    confirmation: JsonValue = Field(None, alias="confirmationPolicy")
    booker_limit: JsonValue = Field(None, alias="bookerActiveBookingsLimit")
    verifies_email: bool | None = Field(None, alias="requiresBookerEmailVerification")
    price: float | None = None
    scheduling: str | None = Field(None, alias="schedulingType")


class CalcomSlot(BaseModel):
    """A time that can be booked, as `format=range` has it."""

    start: Moment
    end: Moment


class CalcomBooking(BaseModel):
    """A booking. Its `status` is accepted, pending, rejected, or canceled (with two l)."""

    uid: str = Field(pattern=r"^[A-Za-z0-9_-]{1,200}$")
    status: str
    start: Moment
    end: Moment
    metadata: dict[str, JsonValue] | None = None

    @property
    def key(self) -> UUID | None:
        """Key of the event that the platform has written; None for a booking of somebody else."""
        try:
            return UUID(str((self.metadata or {}).get(KEY_FIELD)))
        except ValueError:
            return None

    @property
    def is_active(self) -> bool:
        """Predicate: the booking takes its time."""
        return not self.status.startswith(("cancel", "reject"))


class CalcomBookingPage(CalcomEnvelope[list[CalcomBooking]]):
    """A page of bookings."""

    pagination: CalcomPages


class CalcomUpdate(BaseModel):
    """A booking of which nothing but the moment of its last change is read."""

    uid: str
    updated_at: Moment | None = Field(None, alias="updatedAt")


class CalcomUpdatePage(CalcomEnvelope[list[CalcomUpdate]]):
    """A page of changed bookings."""


class CalcomClient:
    """Requests with one API key. The key goes to the origin of `url` alone."""

    def __init__(self, url: str, api_key: str, policy: NetworkPolicy) -> None:
        self._url = URL(url)
        self._authorization = f"Bearer {api_key}"
        self._http = PublicHttpClient(policy)

    async def close(self) -> None:
        """Close every connection."""
        await self._http.close()

    async def read(
        self, model: type[ModelT], version: str, *path: str, query: Mapping[str, str] | None = None
    ) -> ModelT:
        """Return the answer to a GET request. Raises `VendorRefusal` and `ProviderError`."""
        url = self._build_url(path).with_query(query)
        response = await exchange(self._http, "GET", url, headers=self._build_headers(version))
        _require_success(response)
        return parse_answer(model, response, otherwise=_NO_JSON)

    async def write(self, model: type[ModelT], version: str, *path: str, body: JsonObject) -> ModelT:
        """Return the answer to a POST request.

        Raises `OutcomeUnknown` if cal.com may have done it without confirming it, `VendorRefusal` if it has not, and
        `ProviderError`.
        """
        headers = {**self._build_headers(version), "Content-Type": "application/json"}
        content = json.dumps(body).encode()
        try:
            response = await exchange(
                self._http, "POST", self._build_url(path), headers=headers, content=content, writes=True
            )
            if response.status >= 500 or response.status == 408:
                # A booking may have been made before the failure, such as that of a message about it.
                raise OutcomeUnknown(_describe(response), code=str(response.status))
            _require_success(response)
            return parse_answer(model, response, otherwise=_NO_JSON)
        except ProviderError as error:
            if error.code == "unreadable":
                raise OutcomeUnknown(error.message, code=error.code) from None
            raise

    def _build_url(self, path: tuple[str, ...]) -> URL:
        url = self._url
        for part in path:
            url = url.joinpath(part)
        return url

    def _build_headers(self, version: str) -> dict[str, str]:
        return {"Authorization": self._authorization, "cal-api-version": version, "Accept": "application/json"}


def _require_success(response: ServerResponse) -> None:
    status = response.status
    if status in (200, 201):
        return
    if status == 401:
        raise AccountRefused("cal.com refuses the API key; check it and its end date in cal.com's settings")
    raise VendorRefusal(
        _describe(response),
        response,
        retryable=status >= 500 or status in (408, 429),
    )


def _describe(response: ServerResponse) -> str:
    status = response.status
    if status == 403:
        return "cal.com does not allow this to the API key; its user must own the event type"
    if 300 <= status < 400:
        return f"cal.com redirects to {response.headers.get('Location', 'nowhere')[:_MAX_SHOWN]}; give this address"
    message = _read_message(response.body)
    return f"cal.com answered {status}: {message}" if message else f"cal.com answered {status}"


def _read_message(body: bytes) -> str:
    """Return the message of an error; empty for anything else."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    # Some errors come without the envelope, as {"statusCode": 400, "message": …}.
    error = found.get("error", found) if isinstance(found, dict) else None
    message = (error if isinstance(error, dict) else found).get("message") if isinstance(found, dict) else None
    return message.strip().rstrip(".")[:_MAX_SHOWN] if isinstance(message, str) else ""
