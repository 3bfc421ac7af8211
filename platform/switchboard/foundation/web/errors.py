"""Errors of the API: RFC 9457 `application/problem+json`, always with the same keys.

A service raises one of these classes, which define the status and the machine-readable `code`.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError
from typing_extensions import TypedDict

MOVE_RETRY_SECONDS = 60
"""Seconds after which a request is tried again that a move of its organization refused."""
MAX_ERRORS = 50
"""Errors that one response lists."""


class FieldError(TypedDict):
    """One error of a request."""

    field: Annotated[str, Field(description="Name of the field, dotted, such as `contacts.3.phone_number`.")]
    message: Annotated[str, Field(description="Fault of the field, in words.")]


class Problem(BaseModel):
    """The body of every error. Some have further members, such as `alternatives` of a time that is taken."""

    model_config = ConfigDict(extra="allow")

    type: str = Field(description="`about:blank`: the status and the code say it all.")
    title: str = Field(description="The status in words.")
    status: int = Field(description="HTTP status.")
    detail: str = Field(description="What went wrong, for people.")
    code: str = Field(description="What went wrong, for programs.")
    errors: list[FieldError] = Field(description="The faulty fields of a 422; else empty.")
    request_id: str = Field(description="The same as the `X-Request-Id` header; name it when you ask for help.")


class ApiError(Exception):
    """An error with its status and code. `detail` is for people and never holds a secret; `headers` are those of the
    response. `extensions` are further members of the problem document (RFC 9457, section 3.2).
    """

    status: ClassVar[int] = 500
    code: ClassVar[str] = "internal_error"
    title: ClassVar[str] = "Internal server error"
    default_detail: ClassVar[str] = "Something went wrong on our side."

    def __init__(
        self, detail: str | None = None, *, errors: Sequence[FieldError] = (), headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(detail or self.default_detail)
        self.detail = detail or self.default_detail
        self.errors = list(errors)
        self.headers = headers or {}
        self.extensions: Mapping[str, JsonValue] = {}


class AmbiguousLength(ApiError):
    """400: a request with `Content-Length` and `Transfer-Encoding`, which may be two requests to a proxy (RFC 9112,
    section 6.1). The connection is closed.
    """

    status, code, title = 400, "ambiguous_length", "Bad request"
    default_detail = "Send either Content-Length or Transfer-Encoding."

    def __init__(self) -> None:
        super().__init__(headers={"Connection": "close"})


class InvalidCredentials(ApiError):
    """401: a missing or invalid credential. `WWW-Authenticate` says which (RFC 6750 section 3.1), for clients that
    refresh tokens.
    """

    status, code, title = 401, "invalid_credentials", "Unauthorized"
    default_detail = "Send a valid API key or access token: `Authorization: Bearer svc_live_…`."

    def __init__(self, *, was_sent: bool = False) -> None:
        super().__init__(headers={"WWW-Authenticate": 'Bearer error="invalid_token"' if was_sent else "Bearer"})


class InsufficientBalance(ApiError):
    """402: the balance of a prepaid organization is too low."""

    status, code, title = 402, "insufficient_balance", "Payment required"
    default_detail = "The organization's balance does not cover this."


class InsufficientScope(ApiError):
    """403: the credential is valid, but lacks the scope. `purpose` names the part of the request that needs it."""

    status, code, title = 403, "insufficient_scope", "Forbidden"

    def __init__(self, scope: str, *, purpose: str = "This") -> None:
        needed = {"WWW-Authenticate": f'Bearer error="insufficient_scope", scope="{scope}"'}
        super().__init__(f"{purpose} needs the scope {scope}.", headers=needed)


class DestinationNotAllowed(ApiError):
    """403: the organization may not call or text the phone number."""

    status, code, title = 403, "destination_not_allowed", "Forbidden"


class Forbidden(ApiError):
    """403: the caller may not do this."""

    status, code, title = 403, "forbidden", "Forbidden"


class OrganizationSuspended(ApiError):
    """403: the operator of the installation has suspended the organization."""

    status, code, title = 403, "organization_suspended", "Forbidden"
    default_detail = "The operator of this installation has suspended the organization."


class NotFound(ApiError):
    """404: the resource does not exist, or belongs to another organization."""

    status, code, title = 404, "not_found", "Not found"
    default_detail = "There is nothing of that id."


class MethodNotAllowed(ApiError):
    """405: the path does not support the method; `Allow` lists the methods that it supports."""

    status, code, title = 405, "method_not_allowed", "Method not allowed"


class Conflict(ApiError):
    """409: the resource exists already."""

    status, code, title = 409, "conflict", "Conflict"


class InvalidState(ApiError):
    """409: the action does not fit the resource's state."""

    status, code, title = 409, "invalid_state", "Conflict"


class OnDoNotCallList(InvalidState):
    """409: the number may not be called."""

    default_detail = "The number is on the organization's do-not-call list."


class TooManyCalls(InvalidState):
    """409: the organization has as many calls at once as its policy allows."""

    default_detail = "The organization has as many calls running as it may."


class RecipientOptedOut(ApiError):
    """409: the recipient has opted out of text messages."""

    status, code, title = 409, "recipient_opted_out", "Conflict"
    default_detail = "The recipient has opted out."


class SlotTaken(ApiError):
    """409: the time of an appointment is not free any more; `alternatives` has the next free times."""

    status, code, title = 409, "slot_taken", "Conflict"
    default_detail = "The time is not free any more; nothing was booked."

    def __init__(self, alternatives: list[JsonValue]) -> None:
        super().__init__()
        self.extensions = {"alternatives": alternatives}


class IdempotencyInFlight(ApiError):
    """409: the first request with this Idempotency-Key is still running."""

    status, code, title = 409, "idempotency_conflict", "Conflict"
    default_detail = "A request with this Idempotency-Key is still running."


class PayloadTooLarge(ApiError):
    """413: the body is over 8 MiB."""

    status, code, title = 413, "payload_too_large", "Payload too large"
    default_detail = "The body is larger than 8 MiB."


class UnsupportedMediaType(ApiError):
    """415: the body is not JSON."""

    status, code, title = 415, "unsupported_media_type", "Unsupported media type"
    default_detail = "Send the body as `Content-Type: application/json`."


class RangeNotSatisfiable(ApiError):
    """416: the resource has no such range; `Content-Range` says how long it is."""

    status, code, title = 416, "range_not_satisfiable", "Range not satisfiable"
    default_detail = "The recording has no such range of bytes."


class ValidationFailed(ApiError):
    """422: the request is invalid; `errors` names each field."""

    status, code, title = 422, "validation_error", "Unprocessable content"
    default_detail = "The request is not valid."

    @classmethod
    def field(cls, field: str, message: str) -> "ValidationFailed":
        """Return an error for one field, for a rule that needs more than the body."""
        return cls(f"{field}: {message}", errors=[{"field": field, "message": message}])

    @classmethod
    def from_error(cls, error: ValidationError) -> "ValidationFailed":
        """Convert pydantic's errors, without the input's values; at most `MAX_ERRORS`."""
        found: list[FieldError] = []
        for item in error.errors(include_url=False, include_context=False, include_input=False)[:MAX_ERRORS]:
            field = ".".join(str(part) for part in item["loc"]) or "body"
            found.append({"field": field, "message": item["msg"].removeprefix("Value error, ")})
        first = found[0]
        more = f" ({error.error_count() - len(found)} more errors are not listed)"
        detail = f"{first['field']}: {first['message']}"
        return cls(detail + more if error.error_count() > len(found) else detail, errors=found)


class IdempotencyMismatch(ApiError):
    """422: the Idempotency-Key was used for another request."""

    status, code, title = 422, "idempotency_conflict", "Unprocessable content"
    default_detail = "This Idempotency-Key was used with another request."


class OrganizationMoving(ApiError):
    """503: the organization is being moved to another installation, and takes no changes meanwhile."""

    status, code, title = 503, "organization_moving", "Service unavailable"
    default_detail = "The organization is being moved to another installation. It can be read, and takes no changes."

    def __init__(self) -> None:
        super().__init__(headers={"Retry-After": str(MOVE_RETRY_SECONDS)})


class RateLimited(ApiError):
    """429: too many requests; `Retry-After` is the number of seconds to wait."""

    status, code, title = 429, "rate_limited", "Too many requests"
    default_detail = "Too many requests; wait as long as `Retry-After` says."


class OutboundPaused(ApiError):
    """429: calls and text messages are paused, because a limit of the organization is reached."""

    status, code, title = 429, "outbound_paused", "Too many requests"

    def __init__(self, detail: str, *, seconds: int) -> None:
        super().__init__(detail, headers={"Retry-After": str(seconds)})


class SpendLimitReached(ApiError):
    """429: the conversations of a widget cost as much as they may in a day."""

    status, code, title = 429, "spend_limit_reached", "Too many requests"
    default_detail = "The widget has spent what it may spend in a day."


class ProviderFailed(ApiError):
    """502: a provider refused or failed; `detail` is its own message."""

    status, code, title = 502, "provider_error", "Bad gateway"


class Unavailable(ApiError):
    """503: temporarily unavailable, because the database is unreachable or the server is stopping."""

    status, code, title = 503, "unavailable", "Service unavailable"
    default_detail = "The service is not available at the moment; try again."
