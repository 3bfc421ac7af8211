"""Errors of the client: every one is a `SwitchboardError`."""

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import TypeAlias

from pydantic import BaseModel, Field
from pydantic import ValidationError as InvalidModel

Headers: TypeAlias = Mapping[str, str]


class SwitchboardError(Exception):
    """Base class of the client's errors."""


class ConnectionFailed(SwitchboardError):
    """The server could not be reached, or did not respond in time."""


class InvalidResponse(SwitchboardError):
    """A response that this version cannot read, such as a proxy's page."""


class InvalidSignature(SwitchboardError):
    """A webhook request that the server did not sign with the secret, or that is too old."""


class FieldError(BaseModel):
    """One error of a request: the field (dotted, such as `contacts.3.phone_number`) and a message."""

    field: str
    message: str


class Problem(BaseModel):
    """The body of every error (RFC 9457); a proxy's error page has none of the fields."""

    detail: str = ""
    code: str = ""
    errors: list[FieldError] = Field(default_factory=list)
    request_id: str = ""


@dataclass(eq=False)
class ApiError(SwitchboardError):
    """An error response. `code` is for programs, such as `insufficient_balance`; quote `request_id` in a bug report."""

    status: int
    code: str
    detail: str
    errors: list[FieldError]
    request_id: str

    def __str__(self) -> str:
        faults = "; ".join(f"{error.field}: {error.message}" for error in self.errors)
        parts = [f"{self.status} {self.code}".strip(), self.detail, faults, self.request_id and f"({self.request_id})"]
        return " ".join(part for part in parts if part)


class AuthenticationError(ApiError):
    """401: the API key is missing, wrong, or revoked."""


class PermissionDeniedError(ApiError):
    """403: the API key lacks a scope, or the organization may not do this."""


class NotFoundError(ApiError):
    """404: the resource does not exist."""


class ConflictError(ApiError):
    """409: the action does not fit the resource's state."""


class ValidationError(ApiError):
    """422: `errors` names the faulty fields."""


class RateLimitError(ApiError):
    """429: too many requests, also after the retries."""


class ServerError(ApiError):
    """5xx: the server failed, also after the retries."""


CLASSES = {
    401: AuthenticationError,
    403: PermissionDeniedError,
    404: NotFoundError,
    409: ConflictError,
    422: ValidationError,
    429: RateLimitError,
}


def parse_problem(content: bytes) -> Problem:
    """Parse the body of an error; a body that is none has empty fields."""
    try:
        return Problem.model_validate_json(content)
    except InvalidModel:
        return Problem()


def create_error(status: int, headers: Headers, content: bytes) -> ApiError:
    """Create the error of a response."""
    problem = parse_problem(content)
    kind = CLASSES.get(status, ServerError if status >= HTTPStatus.INTERNAL_SERVER_ERROR else ApiError)
    return kind(
        status=status,
        code=problem.code,
        detail=problem.detail,
        errors=problem.errors,
        request_id=problem.request_id or headers.get("X-Request-Id", ""),
    )
