"""Requests to Plivo's REST API over one aiohttp session, with deadlines, repeated only where that cannot create
anything twice. Plivo's own SDK is synchronous.
"""

from collections.abc import Mapping
from typing import Final, TypeAlias, TypeVar

import aiohttp
import msgspec
from switchboard.plugin_sdk import OutcomeUnknown, ProviderError
from switchboard.plugin_sdk.retries import (
    ATTEMPT_SECONDS,
    CONNECT_SECONDS,
    CarrierRefusal,
    Response,
    send_with_retries,
    translate_attempt_errors,
)

API: Final = "https://api.plivo.com"
AnswerT = TypeVar("AnswerT")
Parameter: TypeAlias = str | int | bool | list[str]


class PlivoDone(msgspec.Struct):
    """A response of which nothing is used."""


class PlivoClient:
    """Client of one account. Create it in a running event loop and close it once."""

    def __init__(self, auth_id: str, auth_token: str, base_url: str | None) -> None:
        self._account = f"{(base_url or API).rstrip('/')}/v1/Account/{auth_id}"
        self.headers = {"Authorization": aiohttp.encode_basic_auth(auth_id, auth_token)}
        timeout = aiohttp.ClientTimeout(total=ATTEMPT_SECONDS, connect=CONNECT_SECONDS, sock_connect=CONNECT_SECONDS)
        self.session = aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar(), timeout=timeout)

    async def close(self) -> None:
        await self.session.close()

    async def get(self, path: str, answer: type[AnswerT], query: Mapping[str, str | int] | None = None) -> AnswerT:
        """Read an object or a list. Raises `ProviderError`."""
        return await self._request("GET", path, answer, query=query)

    async def post(
        self, path: str, answer: type[AnswerT], given: Mapping[str, Parameter], *, creates: bool = False
    ) -> AnswerT:
        """Update an object or create one. `creates`: the same request, sent again, would create a second one.

        Raises `OutcomeUnknown` where Plivo may have created something and did not say so, else `ProviderError`.
        """
        return await self._request("POST", path, answer, given=given, creates=creates)

    async def delete(self, path: str) -> None:
        """Delete an object. Raises `ProviderError`."""
        await self._request("DELETE", path, PlivoDone)

    async def _request(
        self,
        method: str,
        path: str,
        answer: type[AnswerT],
        *,
        query: Mapping[str, str | int] | None = None,
        given: Mapping[str, Parameter] | None = None,
        creates: bool = False,
    ) -> AnswerT:
        url = f"{self._account}/{path}"

        async def send() -> Response[bytes | ProviderError]:
            with translate_attempt_errors():
                async with self.session.request(
                    method, url, params=query, json=given, headers=self.headers, allow_redirects=False
                ) as response:
                    body = await response.read()
            refused = _translate_refusal(response.status, body) if response.status >= 300 else None
            return Response(response.status, response.headers, refused or body)

        result = await send_with_retries("Plivo", send, creates=creates)
        if isinstance(result, ProviderError):
            raise result
        try:
            return msgspec.json.decode(result or b"{}", type=answer)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise (OutcomeUnknown if creates else ProviderError)("Plivo's answer was not understood") from error


class _Problem(msgspec.Struct):
    error: str = ""


def _translate_refusal(status: int, body: bytes) -> CarrierRefusal:
    """Translate an error, which has a message and no code (https://www.plivo.com/docs/voice/api/response)."""
    try:
        message = msgspec.json.decode(body, type=_Problem).error
    except (msgspec.MsgspecError, UnicodeDecodeError):
        message = ""
    return CarrierRefusal(f"Plivo: {message} ({status})" if message else f"Plivo answered {status}", status)
