"""Sending: every address is decided again on the socket that is about to connect; one deadline for all; no redirects, cookies or proxies."""

import asyncio
import ipaddress
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from types import SimpleNamespace
from typing import Literal

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.typedefs import LooseHeaders
from yarl import URL

from switchboard.foundation.outbound.addresses import ForbiddenAddress, Network, check_url, is_allowed, is_exempt

READ_LIMIT = 4096
CHECKED_URLS = 4096
LOOK_UP_SECONDS = 1.5
NAMES_KEPT_SECONDS = 10
DRAIN_SECONDS = 0.25
ErrorKind = Literal["timeout", "connection", "tls", "forbidden_address", "invalid_response"]
MESSAGES: Mapping[ErrorKind, str] = {
    "timeout": "no answer in time",
    "connection": "the connection failed",
    "tls": "the certificate is not valid",
    "forbidden_address": "destination address is not allowed",
    "invalid_response": "the answer is not valid HTTP",
}


class OutboundError(Exception):
    """A request got no answer. The message is one constant sentence a kind, fit for tenants' eyes.

    `stale` when a connection that had been used before was closed without a byte of an answer: most likely the receiver never saw the request.
    """

    def __init__(self, kind: ErrorKind, *, stale: bool = False) -> None:
        super().__init__(MESSAGES[kind])
        self.kind = kind
        self.stale = stale


class _Refused(OSError):
    """Raised where a socket would be made, so that aiohttp takes it for a failed connection."""


class _Resolver(AbstractResolver):
    """Refuses a name as soon as one of its addresses is forbidden, unless the operator vouches for another of them."""

    def __init__(self, resolver: AbstractResolver, exempt: Sequence[Network]) -> None:
        self._resolver = resolver
        self._exempt = exempt

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found = [
            (answer, ipaddress.ip_address(answer["host"]))
            for answer in await self._resolver.resolve(host, port, family)
        ]
        allowed = [answer for answer, address in found if is_allowed(address, self._exempt)]
        vouched = any(is_exempt(address, self._exempt) for _, address in found)
        if not allowed or (len(allowed) < len(found) and not vouched):
            raise _Refused("destination address is not allowed")
        return allowed

    async def close(self) -> None:
        await self._resolver.close()


@dataclass(frozen=True, slots=True)
class OutboundAnswer:
    """An answer: its status, and at most as much of its body as was asked for (never decompressed)."""

    status: int
    body: bytes


class OutboundClient:
    """One aiohttp session for all requests of a process.

    `own_url` is the platform's public address, to which no request may go. `resolver` is a test's; None asks the system's name servers.
    """

    def __init__(
        self,
        allowed_networks: Sequence[Network],
        *,
        own_url: str | None = None,
        resolver: AbstractResolver | None = None,
    ) -> None:
        self._exempt = tuple(allowed_networks)
        self._own = None if own_url is None else _place(URL(own_url))
        self._resolver = resolver
        self._session: aiohttp.ClientSession | None = None
        self._check = lru_cache(CHECKED_URLS)(self._parse)

    def check_url(self, url: str) -> str:
        """The URL as it will be sent, to be kept. Raises `ForbiddenAddress`."""
        return str(self._check(url))

    def _parse(self, url: str) -> URL:
        checked = check_url(url, self._exempt)
        if _place(checked) == self._own:
            raise ForbiddenAddress
        return checked

    async def post(
        self, url: str, body: bytes, *, headers: Mapping[str, str], seconds: float, read_limit: int = READ_LIMIT
    ) -> OutboundAnswer:
        """POST. `seconds` are for everything from the name look-up to the body's end. Raises `OutboundError`.

        With a `read_limit` of 0 the status is all that counts: whatever goes wrong with the body afterwards does not matter.
        """
        return await self.request("POST", url, body, headers=headers, seconds=seconds, read_limit=read_limit)

    async def request(
        self,
        method: str,
        url: str,
        body: bytes | None,
        *,
        headers: Mapping[str, str],
        seconds: float,
        read_limit: int = READ_LIMIT,
    ) -> OutboundAnswer:
        """Send any request, likewise."""
        try:
            checked = self._check(url)
        except ForbiddenAddress:
            raise OutboundError("forbidden_address") from None
        given: LooseHeaders = {"Accept-Encoding": "identity", **headers}
        deadline = aiohttp.ClientTimeout(total=seconds)
        reused: list[bool] = []
        sending = self._open().request(
            method, checked, data=body, headers=given, timeout=deadline, allow_redirects=False, trace_request_ctx=reused
        )
        try:
            async with sending as response:
                return OutboundAnswer(
                    response.status, await (_read(response, read_limit) if read_limit else _drain(response))
                )
        except TimeoutError:
            raise OutboundError("timeout") from None
        except (aiohttp.ClientConnectorCertificateError, aiohttp.ClientSSLError):
            raise OutboundError("tls") from None
        except aiohttp.ClientConnectorError as error:
            raise OutboundError("forbidden_address" if isinstance(error.os_error, _Refused) else "connection") from None
        except (aiohttp.ClientResponseError, aiohttp.ClientPayloadError, aiohttp.InvalidURL, ValueError):
            raise OutboundError("invalid_response") from None
        except (aiohttp.ClientError, OSError):
            raise OutboundError("connection", stale=bool(reused)) from None

    async def close(self) -> None:
        """Close every connection."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            # Not the default resolver: its few threads would all be held by names whose servers do not answer.
            names = self._resolver or aiohttp.AsyncResolver(timeout=LOOK_UP_SECONDS, tries=2)
            # No limit: a slot must not be waited for on the receiver's time; callers bound their own concurrency.
            connector = aiohttp.TCPConnector(
                limit=0,
                ttl_dns_cache=NAMES_KEPT_SECONDS,
                resolver=_Resolver(names, self._exempt),
                socket_factory=self._socket,
            )
            reuse = aiohttp.TraceConfig()
            reuse.on_connection_reuseconn.append(_note_reuse)
            self._session = aiohttp.ClientSession(
                connector=connector, cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False, trust_env=False,
                requote_redirect_url=False, trace_configs=[reuse],
            )  # fmt: skip
        return self._session

    def _socket(self, info: aiohttp.AddrInfoType) -> socket.socket:
        """The second gate: the address that is really dialled."""
        family, kind, protocol, _, address = info
        if not is_allowed(ipaddress.ip_address(str(address[0])), self._exempt):
            raise _Refused("destination address is not allowed")
        return socket.socket(family=family, type=kind, proto=protocol)


async def _note_reuse(
    _session: aiohttp.ClientSession, context: SimpleNamespace, _: aiohttp.TraceConnectionReuseconnParams
) -> None:
    context.trace_request_ctx.append(True)


def _place(url: URL) -> tuple[str | None, int | None]:
    return (url.host or "").rstrip(".").lower(), url.port


async def _drain(response: aiohttp.ClientResponse) -> bytes:
    """Nobody wants the body; a short one that comes soon is read, so that the connection can be used again."""
    if not response.content.at_eof():
        with suppress(TimeoutError, aiohttp.ClientPayloadError):
            async with asyncio.timeout(DRAIN_SECONDS):
                await _read(response, READ_LIMIT)
    return b""


async def _read(response: aiohttp.ClientResponse, limit: int) -> bytes:
    """The start of a body. The status has decided already, so a body that breaks off is taken as far as it came."""
    body = b""
    try:
        while len(body) < limit and (chunk := await response.content.read(limit - len(body))):
            body += chunk
    except aiohttp.ClientPayloadError:
        return body
    if len(body) == limit:
        response.close()
    return body
