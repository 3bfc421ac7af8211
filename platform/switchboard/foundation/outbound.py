"""The HTTP client for tenant-supplied addresses: webhooks, forward webhooks, automation requests.

It sends requests: each address is checked again on the connecting socket, with one deadline for everything, and
without redirects, cookies, or proxies.
"""

import asyncio
import hashlib
import hmac
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from http import HTTPStatus
from types import SimpleNamespace
from typing import Literal

import aiohttp
from aiohttp.abc import AbstractResolver
from aiohttp.typedefs import LooseHeaders
from opentelemetry import trace
from opentelemetry.trace import SpanKind

from switchboard.foundation.observability import traces
from switchboard.foundation.web.errors import ValidationFailed
from switchboard.plugin_sdk.public_addresses import ForbiddenAddress, NetworkPolicy, RefusedConnection

READ_LIMIT = 4096
CHECKED_URLS = 4096
DRAIN_SECONDS = 0.25
ErrorKind = Literal["timeout", "connection", "tls", "forbidden_address", "invalid_response"]
MESSAGES: Mapping[ErrorKind, str] = {
    "timeout": "no response in time",
    "connection": "the connection failed",
    "tls": "the certificate is not valid",
    "forbidden_address": "destination address is not allowed",
    "invalid_response": "the response is not valid HTTP",
}


class OutboundError(Exception):
    """A request without a response. The message is one constant sentence per kind, fit for tenants.

    `stale`: a reused connection was closed without a byte of a response, so the receiver most likely never saw the
    request.
    """

    def __init__(self, kind: ErrorKind, *, stale: bool = False) -> None:
        super().__init__(MESSAGES[kind])
        self.kind = kind
        self.stale = stale


@dataclass(frozen=True, slots=True)
class OutboundAnswer:
    """A response: its status, and at most the requested part of its body (never decompressed)."""

    status: int
    body: bytes


class OutboundClient:
    """One aiohttp session for all requests of a process.

    Tests pass their own `resolver`; None asks the system's name servers.
    """

    def __init__(self, policy: NetworkPolicy, *, resolver: AbstractResolver | None = None) -> None:
        self._policy = policy
        self._resolver = resolver
        self._session: aiohttp.ClientSession | None = None
        self._check = lru_cache(CHECKED_URLS)(policy.check_url)

    def check_url(self, url: str) -> str:
        """Return the URL in the form that will be sent. Raises `ForbiddenAddress`."""
        return str(self._check(url))

    async def post(
        self, url: str, body: bytes, *, headers: Mapping[str, str], seconds: float, read_limit: int = READ_LIMIT
    ) -> OutboundAnswer:
        """Send a POST. `seconds` covers everything from the name look-up to the end of the body. Raises
        `OutboundError`.

        With a `read_limit` of 0 only the status counts: errors in the body are ignored.
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
        """Send a request with any method, like `post`. The receiver gets the current trace as `traceparent`."""
        with traces.span(method, {"http.request.method": method}, kind=SpanKind.CLIENT) as span:
            try:
                answer = await self._send(method, url, body, headers=headers, seconds=seconds, read_limit=read_limit)
            except OutboundError as error:
                span.set_attribute("switchboard.outbound.error", error.kind)
                raise
            span.set_attribute("http.response.status_code", answer.status)
            if answer.status >= HTTPStatus.BAD_REQUEST:
                traces.fail(span, str(answer.status))
            return answer

    async def _send(
        self, method: str, url: str, body: bytes | None, *, headers: Mapping[str, str], seconds: float, read_limit: int
    ) -> OutboundAnswer:
        try:
            checked = self._check(url)
        except ForbiddenAddress:
            raise OutboundError("forbidden_address") from None
        trace.get_current_span().set_attribute("server.address", checked.host or "")
        given: LooseHeaders = {"Accept-Encoding": "identity", **headers, **traces.build_trace_headers()}
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
            is_refused = isinstance(error.os_error, RefusedConnection)
            raise OutboundError("forbidden_address" if is_refused else "connection") from None
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
            reuse = aiohttp.TraceConfig()
            reuse.on_connection_reuseconn.append(_note_reuse)
            self._session = aiohttp.ClientSession(
                connector=self._policy.create_connector(self._resolver),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                trust_env=False,
                requote_redirect_url=False,
                trace_configs=[reuse],
            )
        return self._session


async def _note_reuse(
    _session: aiohttp.ClientSession, context: SimpleNamespace, _: aiohttp.TraceConnectionReuseconnParams
) -> None:
    context.trace_request_ctx.append(True)


async def _drain(response: aiohttp.ClientResponse) -> bytes:
    """Read a short body that comes soon and discard it, so that the connection can be reused."""
    if not response.content.at_eof():
        with suppress(TimeoutError, aiohttp.ClientPayloadError):
            async with asyncio.timeout(DRAIN_SECONDS):
                await _read(response, READ_LIMIT)
    return b""


async def _read(response: aiohttp.ClientResponse, limit: int) -> bytes:
    """Read the start of a body. The status has decided already, so a body that breaks off is used as far as it came."""
    body = b""
    try:
        while len(body) < limit and (chunk := await response.content.read(limit - len(body))):
            body += chunk
    except aiohttp.ClientPayloadError:
        return body
    if len(body) == limit:
        response.close()
    return body


# Signatures of outgoing requests.


def signature_headers(body: bytes, *secrets: str, timestamp: int | None = None) -> dict[str, str]:
    """Return the headers of a request signed now, or at another Unix time.

    The signature is `t=<timestamp>,v1=<hex HMAC-SHA256 of "<timestamp>.<body>">`, with one `v1` per secret, keyed with
    the whole secret; without a secret it has no `v1`.
    """
    moment = int(time.time()) if timestamp is None else timestamp
    signed = str(moment).encode() + b"." + body
    parts = [f"v1={hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()}" for secret in secrets]
    return {
        "Content-Type": "application/json",
        "X-Webhook-Timestamp": str(moment),
        "X-Webhook-Signature": ",".join([f"t={moment}", *parts]),
    }


# Field type of an address in requests.


def validate_public_url(outbound: OutboundClient, url: str | None, *, field: str) -> str | None:
    """Return the address to save; None without one. Raises `ValidationFailed` for an address that requests may not go
    to.
    """
    try:
        return None if url is None else outbound.check_url(url)
    except ForbiddenAddress as error:
        raise ValidationFailed.field(field, str(error)) from None
