"""The SDK's requests over one session of aiohttp, with deadlines, and repeated only where that cannot do anything twice."""

import asyncio
import importlib
import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import aiohttp
from switchboard.plugin_sdk import OutcomeUnknown, ProviderError
from switchboard.plugin_sdk.retries import (
    ALL_SECONDS,
    ATTEMPT_SECONDS,
    ATTEMPTS,
    CONNECT_SECONDS,
    LONGEST_WAIT_SECONDS,
    pause,
    retry_after,
)

# A POST to a resource changes it, and does no more when repeated; one to a collection makes something anew each time.
_RESOURCE: Final = re.compile(r"/[A-Z]{2}[0-9a-fA-F]{32}(\.json)?$")


class Http:
    """What the SDK calls an HTTP client. Open one in a running loop, close it once."""

    is_async = True

    def __init__(self, base_url: str | None) -> None:
        self._base_url = base_url.rstrip("/") if base_url else None
        # Not at the top: it brings the SDK's synchronous client with it.
        self._response = importlib.import_module("twilio.http.response").Response
        timeout = aiohttp.ClientTimeout(total=ATTEMPT_SECONDS, connect=CONNECT_SECONDS, sock_connect=CONNECT_SECONDS)
        self.session = aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar(), timeout=timeout)

    async def close(self) -> None:
        await self.session.close()

    def address(self, url: str) -> str:
        """Where a request to one of Twilio's hosts really goes."""
        if self._base_url is None:
            return url
        parts = urlsplit(url)
        return f"{self._base_url}{parts.path}{'?' + parts.query if parts.query else ''}"

    async def request(  # noqa: PLR0917  the SDK's signature
        self,
        method: str,
        url: str,
        params: Mapping[str, object] | None = None,
        data: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
        auth: tuple[str, str] | None = None,
        **_: object,
    ) -> Any:
        """One request of the SDK's. Raises `OutcomeUnknown` where Twilio may have made something and did not say so, else `ProviderError`."""
        sent = {**(headers or {}), **({"Authorization": aiohttp.encode_basic_auth(*auth)} if auth else {})}
        if params:
            url = f"{url}{'&' if '?' in url else '?'}{urlencode(params, doseq=True)}"
        request = _Request(method.upper(), self.address(url), urlencode(data or {}, doseq=True) or None, sent)
        try:
            async with asyncio.timeout(ALL_SECONDS):
                return await self._persist(request)
        except TimeoutError:
            raise request.lost("did not answer in time") from None

    async def _persist(self, request: "_Request") -> Any:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                response = await self._send(request)
            except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
                # No connection, so Twilio has heard nothing.
                if attempt == ATTEMPTS:
                    raise ProviderError(f"Twilio cannot be reached: {error or type(error).__name__}") from error
                await pause(attempt)
            except (aiohttp.ClientError, TimeoutError) as error:
                if attempt == ATTEMPTS or request.creates:
                    raise request.lost(f"did not answer: {error or type(error).__name__}") from error
                await pause(attempt)
            else:
                wait = retry_after(response.headers)
                # A 429 has done nothing; a 5xx may have.
                again = response.status_code == 429 or (response.status_code >= 500 and not request.creates)
                if not again or attempt == ATTEMPTS or wait > LONGEST_WAIT_SECONDS:
                    return response
                await pause(attempt, wait)
        raise AssertionError  # pragma: no cover  the last attempt returns or raises

    async def _send(self, request: "_Request") -> Any:
        async with self.session.request(
            request.method, request.url, data=request.body, headers=request.headers, allow_redirects=False
        ) as answer:
            return self._response(answer.status, await answer.text(errors="replace"), answer.headers)


class _Request:
    def __init__(self, method: str, url: str, body: str | None, headers: Mapping[str, str]) -> None:
        self.method, self.url, self.body, self.headers = method, url, body, headers
        self.creates = method == "POST" and _RESOURCE.search(urlsplit(url).path) is None

    def lost(self, what: str) -> ProviderError:
        """What to raise for a request whose answer never came."""
        return OutcomeUnknown(f"Twilio {what}") if self.creates else ProviderError(f"Twilio {what}")
