"""The HTTP client of plugins for addresses that come from outside: a callback, an answer of a vendor's, a redirect."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

import aiohttp
from aiohttp.abc import AbstractResolver
from yarl import URL

from switchboard.plugin_sdk.public_addresses import ForbiddenAddress, NetworkPolicy, RefusedConnection

MAX_REDIRECTS: Final = 3
PASSED_ON: Final = ("Accept", "Range")
"""Headers that another server than the first one gets, too. A credential is not among them."""
_REDIRECTS: Final = frozenset(
    (
        HTTPStatus.MOVED_PERMANENTLY,
        HTTPStatus.FOUND,
        HTTPStatus.SEE_OTHER,
        HTTPStatus.TEMPORARY_REDIRECT,
        HTTPStatus.PERMANENT_REDIRECT,
    )
)


class PublicHttpClient:
    """GET requests that reach public addresses only, at each redirect.

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

    async def get(
        self,
        url: str,
        *,
        headers: Mapping[str, str],
        deadlines: aiohttp.ClientTimeout,
        vendor: aiohttp.ClientSession | None = None,
    ) -> aiohttp.ClientResponse:
        """Return the response, after at most `MAX_REDIRECTS` redirects. The caller closes it.

        `vendor` is the session of the vendor's API, for a `url` of that API, whose address is the plugin's own or the
        operator's. It is not checked, and a redirect to another server leaves the session. `headers` go to the server
        of `url` alone, except for those in `PASSED_ON`.

        Raises `ForbiddenAddress`, `aiohttp.ClientError`, and `TimeoutError`.
        """
        first = target = self._policy.check_url(url) if vendor is None else URL(url)
        for _ in range(MAX_REDIRECTS + 1):
            answer = await self._request(target, first, headers, deadlines, vendor)
            location = answer.headers.get("Location")
            if answer.status not in _REDIRECTS or location is None:
                return answer
            answer.close()
            target = _join(target, location)
        raise aiohttp.TooManyRedirects(answer.request_info, answer.history)

    async def _request(
        self,
        target: URL,
        first: URL,
        headers: Mapping[str, str],
        deadlines: aiohttp.ClientTimeout,
        vendor: aiohttp.ClientSession | None,
    ) -> aiohttp.ClientResponse:
        is_first = target.origin() == first.origin()
        given = headers if is_first else {name: value for name, value in headers.items() if name in PASSED_ON}
        if vendor is not None and is_first:
            return await vendor.get(target, headers=given, timeout=deadlines, allow_redirects=False)
        checked = self._policy.check_url(str(target))
        try:
            return await self._open().get(checked, headers=given, timeout=deadlines, allow_redirects=False)
        except aiohttp.ClientConnectorError as error:
            if isinstance(error.os_error, RefusedConnection):
                raise ForbiddenAddress from None
            raise

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=self._policy.create_connector(self._resolver),
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=False,
            )
        return self._session


def _join(target: URL, location: str) -> URL:
    try:
        joined = target.join(URL(location))
        joined.origin()
    except ValueError:
        raise ForbiddenAddress from None
    return joined
