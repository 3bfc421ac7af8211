"""HTTP client of the Twilio SDK: one aiohttp session, with deadlines, repeating only what cannot create
anything twice.
"""

import importlib
import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import aiohttp
from switchboard.plugin_sdk.retries import (
    ATTEMPT_SECONDS,
    CONNECT_SECONDS,
    Response,
    send_with_retries,
    translate_attempt_errors,
)

# A POST to a resource updates it, and does no more when repeated; one to a collection creates another object each time.
_RESOURCE: Final = re.compile(r"/[A-Z]{2}[0-9a-fA-F]{32}(\.json)?$")


class TwilioHttpClient:
    """HTTP client as the SDK expects it. Create it in a running event loop and close it once."""

    is_async = True

    def __init__(self, base_url: str | None) -> None:
        self._base_url = base_url.rstrip("/") if base_url else None
        # Not imported at the top, because it brings the SDK's synchronous client with it.
        self._response = importlib.import_module("twilio.http.response").Response
        timeout = aiohttp.ClientTimeout(total=ATTEMPT_SECONDS, connect=CONNECT_SECONDS, sock_connect=CONNECT_SECONDS)
        self.session = aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar(), timeout=timeout)

    async def close(self) -> None:
        await self.session.close()

    def resolve_url(self, url: str) -> str:
        """Return a URL of one of Twilio's hosts, moved to `base_url` where that is set."""
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
        """Send one request of the SDK and return its response, of any status.

        Raises `OutcomeUnknown` where Twilio may have created something and did not say so, else `ProviderError`.
        """
        all_headers = {**(headers or {}), **({"Authorization": aiohttp.encode_basic_auth(*auth)} if auth else {})}
        if params:
            url = f"{url}{'&' if '?' in url else '?'}{urlencode(params, doseq=True)}"
        url, body = self.resolve_url(url), urlencode(data or {}, doseq=True) or None
        creates = method.upper() == "POST" and _RESOURCE.search(urlsplit(url).path) is None

        async def send() -> Response[Any]:
            with translate_attempt_errors():
                async with self.session.request(
                    method.upper(), url, data=body, headers=all_headers, allow_redirects=False
                ) as response:
                    text = await response.text(errors="replace")
                    result = self._response(response.status, text, response.headers)
                    return Response(response.status, response.headers, result)

        return await send_with_retries("Twilio", send, creates=creates)
