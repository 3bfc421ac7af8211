"""Requests to a calendar server whose address a user has given."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

import aiohttp
from pydantic import BaseModel, ValidationError
from switchboard.plugin_sdk import (
    AccountRefused,
    ForbiddenAddress,
    NetworkPolicy,
    OutcomeUnknown,
    ProviderError,
    PublicHttpClient,
)
from switchboard.plugin_sdk.connection_faults import describe_connection_fault
from switchboard.plugin_sdk.retries import read_retry_after
from yarl import URL

from switchboard_calendar.dav import Resource, UnreadableDocument, parse_multistatus

ModelT = TypeVar("ModelT", bound=BaseModel)
DEADLINES: Final = aiohttp.ClientTimeout(total=15, sock_connect=4)
MAX_RESPONSE_BYTES: Final = 4 * 2**20
"""Most bytes of a response: ten thousand events of 400 bytes."""
MULTISTATUS, NOT_FOUND = 207, 404
_CHUNK_BYTES: Final = 2**16
_BASIC: Final = "basic"
_MAX_SHOWN: Final = 200
_UNDONE: Final = frozenset((501, 503, 505, 507))
"""Statuses of 500 and more with which a server says that it has done nothing."""


@dataclass(frozen=True, slots=True)
class ServerResponse:
    """A response that has been read: `url` is the address after redirects."""

    url: URL
    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class DavResponse:
    """A response that has been read: `url` is the address after redirects."""

    method: str
    url: URL
    status: int
    headers: Mapping[str, str]
    body: bytes

    def parse_resources(self) -> list[Resource]:
        """Return the resources of a multistatus response. Raises `ProviderError`."""
        if self.status != MULTISTATUS:
            raise create_refusal(self)
        try:
            return parse_multistatus(self.body)
        except UnreadableDocument as fault:
            raise create_unreadable(str(fault)) from None


class DavClient:
    """Requests to one server, with the credential of one account.

    The credential, and everything else, goes to the origin of the account's address alone.
    """

    def __init__(self, url: str, username: str, password: str, policy: NetworkPolicy) -> None:
        self.url = URL(url)
        self._authorization = f"Basic {base64.b64encode(f'{username}:{password}'.encode()).decode()}"
        self._http = PublicHttpClient(policy)

    async def close(self) -> None:
        """Close every connection."""
        await self._http.close()

    def resolve(self, href: str, base: URL | None = None) -> URL:
        """Return the address of a reference of the server's. Raises `ProviderError` if it is at another server."""
        try:
            found = (base or self.url).join(URL(href)).with_fragment(None)
            is_own = found.origin() == self.url.origin()
        except ValueError:
            raise create_unreadable("it has an invalid address") from None
        if not is_own:
            raise ProviderError(
                f"the calendars are at {str(found.origin())[:_MAX_SHOWN]}; give this address for the calendar",
                code="other_server",
                retryable=False,
            )
        return found

    async def send(
        self,
        method: str,
        url: URL,
        *,
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
        writes: bool = False,
    ) -> DavResponse:
        """Send a request and return the response, whatever its status, except for 401 and for a redirect elsewhere.

        Raises `OutcomeUnknown` if the request `writes` and its outcome is not known, and `ProviderError`.
        """
        given = {"Authorization": self._authorization, **(headers or {})}
        answer = await exchange(self._http, method, url, headers=given, content=content, writes=writes)
        response = DavResponse(method, answer.url, answer.status, answer.headers, answer.body)
        if response.status == 401 or 300 <= response.status < 400:
            raise create_refusal(response)
        if writes and response.status >= 500 and response.status not in _UNDONE:
            raise OutcomeUnknown(f"the calendar server answered {response.status}", code=str(response.status))
        return response


async def exchange(
    http: PublicHttpClient,
    method: str,
    url: URL,
    *,
    headers: Mapping[str, str],
    content: bytes | None = None,
    writes: bool = False,
) -> ServerResponse:
    """Send a request and return the response, whatever its status.

    Raises `OutcomeUnknown` if the request `writes` and no response came, and `ProviderError`.
    """
    lost = OutcomeUnknown if writes else ProviderError
    given = {"Accept-Encoding": "identity", **headers}
    try:
        answer = await http.request(method, str(url), headers=given, deadlines=DEADLINES, content=content)
        async with answer:
            body = await _read(answer)
    except ForbiddenAddress as error:
        raise ProviderError(f"the calendar's address {error}", code="forbidden_address", retryable=False) from None
    except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL) as error:
        raise ProviderError(f"the calendar server cannot be reached: {describe_connection_fault(error)}") from error
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
        raise lost(f"the calendar server did not answer: {describe_connection_fault(error)}") from error
    return ServerResponse(answer.url, answer.status, answer.headers, body)


async def _read(answer: aiohttp.ClientResponse) -> bytes:
    """Read the body. Raises `ProviderError` if it is too long or compressed."""
    if answer.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise create_unreadable("it is compressed")
    body = bytearray()
    async for chunk in answer.content.iter_chunked(_CHUNK_BYTES):
        body += chunk
        if len(body) > MAX_RESPONSE_BYTES:
            raise create_unreadable(f"it is longer than {MAX_RESPONSE_BYTES // 2**20} MiB")
    return bytes(body)


class VendorRefusal(ProviderError):
    """A response with an error; `status` is that of the response."""

    def __init__(self, message: str, response: ServerResponse, *, retryable: bool) -> None:
        wait = read_retry_after(response.headers.get("Retry-After"))
        super().__init__(message, code=str(response.status), retryable=retryable, retry_after_seconds=wait)
        self.status = response.status


def parse_answer(model: type[ModelT], response: ServerResponse, *, otherwise: str) -> ModelT:
    """Return the body of a response as a model. Raises `ProviderError`, which says `otherwise` for what is no JSON."""
    try:
        return model.model_validate_json(response.body)
    except (ValidationError, RecursionError) as fault:
        place = ""
        if isinstance(fault, ValidationError):
            place = ".".join(str(part) for part in fault.errors()[0]["loc"])[:_MAX_SHOWN]
        raise create_unreadable(f"its field {place} is not as described" if place else otherwise) from None


def create_unreadable(reason: str) -> ProviderError:
    """Create the error for an answer that cannot be read."""
    return ProviderError(f"the calendar server's answer cannot be read: {reason}", code="unreadable", retryable=False)


def create_refusal(response: DavResponse) -> ProviderError:
    """Create the error for a response that does not have what was asked for."""
    status, retryable = response.status, response.status >= 500 or response.status in (408, 423, 425, 429)
    if status == 401:
        return AccountRefused(_describe_401(response.headers.get("WWW-Authenticate", "")))
    if status == 403:
        message = "the calendar server does not allow this to the account; check its rights to the calendar"
    elif 300 <= status < 400:
        message = f"the calendar server redirects to {_describe_target(response)}; give this address for the calendar"
    elif status == NOT_FOUND:
        message = "the calendar server has nothing at this address; check it"
    elif status < 300:
        message = f"the server answered {status} to {response.method}: it is no CalDAV server; check the address"
    else:
        message = f"the calendar server answered {status} to {response.method}"
    wait = read_retry_after(response.headers.get("Retry-After"))
    return ProviderError(message, code=str(status), retryable=retryable, retry_after_seconds=wait)


def _describe_401(challenge: str) -> str:
    if challenge.strip() and _BASIC not in challenge.lower():
        scheme = challenge.split(maxsplit=1)[0][:_MAX_SHOWN]
        return f"the calendar server asks for a sign-in with {scheme}; only Basic is supported, so allow it there"
    return (
        "the calendar server refuses the user name or the password; check them. Accounts with a second factor need a "
        "password for apps"
    )


def _describe_target(response: DavResponse) -> str:
    try:
        return str(response.url.join(URL(response.headers.get("Location", ""))))[:_MAX_SHOWN]
    except ValueError:
        return "an invalid address"
