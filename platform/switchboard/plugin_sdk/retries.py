"""Deadlines and retries for carriers' HTTP APIs, whose responses a caller waits for."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

import aiohttp

from switchboard.plugin_sdk.connection_faults import describe_connection_fault
from switchboard.plugin_sdk.provider import OutcomeUnknown, ProviderError

ATTEMPTS: Final = 3
CONNECT_SECONDS: Final = 4.0
ATTEMPT_SECONDS: Final = 10.0
ALL_SECONDS: Final = 20.0
"""Bound on all attempts together; the platform waits 30 seconds for a carrier."""
BACKOFF_SECONDS: Final = 0.4
LONGEST_WAIT_SECONDS: Final = 5.0
"""A vendor that asks for a longer wait is not asked again."""
TOO_MANY_REQUESTS: Final = 429

ResultT = TypeVar("ResultT")


class ConnectionFailed(Exception):
    """No connection to the vendor was made, so the vendor has not seen the request. The message is the reason."""


class NoResponse(Exception):
    """The request may have reached the vendor, but no response came. The message is the reason."""


class CarrierRefusal(ProviderError):
    """A carrier's response with a status of 400 or more. Without a code of the carrier's, `code` is the status."""

    def __init__(self, message: str, status: int, code: str = "") -> None:
        retryable = status >= 500 or status in (408, TOO_MANY_REQUESTS)
        super().__init__(message, code=code or str(status), retryable=retryable)
        self.status = status


def is_missing(error: ProviderError) -> bool:
    """Return whether the object of a request does not exist, or no longer does."""
    return isinstance(error, CarrierRefusal) and error.status == 404


def allow_another_carrier(error: ProviderError) -> ProviderError:
    """Return the error of a call that was not placed: another carrier may be able to place the call if the refusal is
    because of the account (its credential, balance, or permissions).
    """
    if isinstance(error, CarrierRefusal) and error.status in (401, 402, 403):
        return ProviderError(error.message, code=error.code)
    return error


@contextmanager
def ignore_missing() -> Iterator[None]:
    """Ignore the refusal of a request whose object does not exist, or no longer does."""
    try:
        yield
    except CarrierRefusal as error:
        if not is_missing(error):
            raise


@contextmanager
def translate_attempt_errors() -> Iterator[None]:
    """Translate aiohttp's errors of an attempt to `ConnectionFailed` and `NoResponse`."""
    try:
        yield
    except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
        # Without a connection the vendor has not seen the request.
        raise ConnectionFailed(describe_connection_fault(error)) from error
    except (aiohttp.ClientError, TimeoutError) as error:
        raise NoResponse(describe_connection_fault(error)) from error


@dataclass(frozen=True, slots=True)
class Response(Generic[ResultT]):
    """A vendor's response of any status. `result` is returned to the caller if no other attempt follows."""

    status: int
    headers: Mapping[str, str]
    result: ResultT


async def send_with_retries(vendor: str, send: Callable[[], Awaitable[Response[ResultT]]], *, creates: bool) -> ResultT:
    """Send a request up to `ATTEMPTS` times, within `ALL_SECONDS`, and return the result of the last response.

    `send` makes one attempt, and raises `ConnectionFailed` or `NoResponse` for an attempt without a response. `creates`
    says that the same request, sent again, creates a second object (a call, a text message): such a request is only
    repeated when the vendor has certainly done nothing, that is when no connection was made or the status is 429.
    Others are also repeated after a 5xx and a lost connection. A `Retry-After` of up to `LONGEST_WAIT_SECONDS` is
    respected.

    Raises `ProviderError` where the vendor has not seen the request or the request creates nothing, and
    `OutcomeUnknown` where the vendor may have created something and did not say so. `vendor` names it in the message.
    """
    lost = OutcomeUnknown if creates else ProviderError
    try:
        async with asyncio.timeout(ALL_SECONDS):
            return await _send_until_final(vendor, send, creates=creates, lost=lost)
    except TimeoutError:
        raise lost(f"{vendor} did not answer in time") from None


async def _send_until_final(
    vendor: str, send: Callable[[], Awaitable[Response[ResultT]]], *, creates: bool, lost: type[ProviderError]
) -> ResultT:
    for attempt in range(1, ATTEMPTS + 1):
        is_last, wait = attempt == ATTEMPTS, 0.0
        try:
            response = await send()
        except ConnectionFailed as error:
            if is_last:
                raise ProviderError(f"{vendor} cannot be reached: {error}") from error
        except NoResponse as error:
            if is_last or creates:
                raise lost(f"{vendor} did not answer: {error}") from error
        else:
            wait = read_retry_after(response.headers.get("Retry-After")) or 0.0
            # A request answered 429 has done nothing; one answered 5xx may have.
            is_repeatable = response.status == TOO_MANY_REQUESTS or (response.status >= 500 and not creates)
            if not is_repeatable or is_last or wait > LONGEST_WAIT_SECONDS:
                return response.result
        # Exponential backoff with jitter.
        longest = BACKOFF_SECONDS * 2 ** (attempt - 1)
        await asyncio.sleep(max(wait, random.uniform(longest / 2, longest)))  # noqa: S311  jitter
    raise AssertionError  # pragma: no cover  the last attempt returns or raises


def read_retry_after(value: str | None) -> float | None:
    """Return the seconds of a `Retry-After` header (RFC 9110, section 10.2.3); None without one or for a date."""
    return float(value) if value is not None and value.strip().isdecimal() else None
