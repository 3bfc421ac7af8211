"""The HTTP client of plugins for addresses that come from outside: a callback, an answer of a vendor's, a redirect."""

from collections.abc import Mapping
from typing import Final

import aiohttp
from aiohttp.abc import AbstractResolver
from yarl import URL

from switchboard.plugin_sdk.public_addresses import ForbiddenAddress, NetworkPolicy, RefusedConnection

MAX_REDIRECTS: Final = 3
PASSED_ON: Final = ("Accept", "Range")
"""Headers that another server than the first one gets, too. A credential is not among them."""
_REDIRECTS: Final = frozenset((301, 302, 303, 307, 308))
_SEE_OTHER: Final = 303


class PublicHttpClient:
    """Requests that reach public addresses only, at each redirect.

    Create it with the `network_policy` of the provider, in `open()`, and close it in `close()`. Connections open on
    first use. Tests pass their own `resolver`.
    """

    def __init__(self, policy: NetworkPolicy, *, resolver: AbstractResolver | None = None) -> None:
        self._policy = policy
        self._resolver = resolver
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        """Close every connection."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        deadlines: aiohttp.ClientTimeout,
        content: bytes | None = None,
    ) -> aiohttp.ClientResponse:
        """Send a request of any method, and return the response. The caller closes it.

        At most `MAX_REDIRECTS` redirects are followed, with the same method, headers, and content, and only at the
        server of `url`: neither a credential nor content reaches another one. The response is a redirect if it names
        another server, or if the status is 303, which asks for another method.

        Raises `ForbiddenAddress`, `aiohttp.ClientError`, and `TimeoutError`.
        """
        target = self._policy.check_url(url)
        for _ in range(MAX_REDIRECTS + 1):
            answer = await self._send_checked(method, target, headers, deadlines, content)
            location = answer.headers.get("Location")
            if answer.status not in _REDIRECTS or answer.status == _SEE_OTHER or location is None:
                return answer
            try:
                moved = _join(target, location)
            except ForbiddenAddress:
                answer.close()
                raise
            if moved.origin() != target.origin():
                return answer
            answer.close()
            target = moved
        raise aiohttp.TooManyRedirects(answer.request_info, answer.history)

    async def get(
        self,
        url: str,
        *,
        headers: Mapping[str, str],
        deadlines: aiohttp.ClientTimeout,
        vendor: aiohttp.ClientSession | None = None,
    ) -> aiohttp.ClientResponse:
        """Return the response to a GET request, after at most `MAX_REDIRECTS` redirects. The caller closes it.

        `vendor` is the session of the vendor's API, for a `url` of that API, whose address is the plugin's own or the
        operator's. It is not checked, and a redirect to another server leaves the session. `headers` go to the server
        of `url` alone, except for those in `PASSED_ON`.

        Raises `ForbiddenAddress`, `aiohttp.ClientError`, and `TimeoutError`.
        """
        first = target = self._policy.check_url(url) if vendor is None else URL(url)
        for _ in range(MAX_REDIRECTS + 1):
            is_first = target.origin() == first.origin()
            given = headers if is_first else {name: value for name, value in headers.items() if name in PASSED_ON}
            if vendor is not None and is_first:
                answer = await vendor.get(target, headers=given, timeout=deadlines, allow_redirects=False)
            else:
                answer = await self._send_checked("GET", target, given, deadlines)
            location = answer.headers.get("Location")
            if answer.status not in _REDIRECTS or location is None:
                return answer
            answer.close()
            target = _join(target, location)
        raise aiohttp.TooManyRedirects(answer.request_info, answer.history)

    async def _send_checked(
        self,
        method: str,
        target: URL,
        headers: Mapping[str, str],
        deadlines: aiohttp.ClientTimeout,
        content: bytes | None = None,
    ) -> aiohttp.ClientResponse:
        checked = self._policy.check_url(str(target))
        if self._session is None:
            connector = self._policy.create_connector(self._resolver)
            self._session = aiohttp.ClientSession(
                connector=connector, cookie_jar=aiohttp.DummyCookieJar(), trust_env=False
            )
        try:
            return await self._session.request(
                method, checked, headers=headers, timeout=deadlines, data=content, allow_redirects=False
            )
        except aiohttp.ClientConnectorError as error:
            if isinstance(error.os_error, RefusedConnection):
                raise ForbiddenAddress from None
            raise


def _join(target: URL, location: str) -> URL:
    try:
        joined = target.join(URL(location))
        joined.origin()
    except ValueError:
        raise ForbiddenAddress from None
    return joined
