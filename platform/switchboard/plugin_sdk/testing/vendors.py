"""Vendors that fail, as servers on this machine."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, closing, suppress
from dataclasses import dataclass, field
from ipaddress import ip_network
from typing import Final

import aiohttp
import pytest
from aiohttp import web

from switchboard.plugin_sdk.public_addresses import NetworkPolicy

NONSENSE = b"<html>This is not what the vendor's documentation says.</html>"
WAIT_SECONDS = 17
LIMITED = (
    b"HTTP/1.1 429 Too Many Requests\r\nContent-Type: application/json\r\nRetry-After: %d\r\n"
    b"Content-Length: 2\r\nConnection: close\r\n\r\n{}"
)
RESPONSE = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s"

PRIVATE_HOST: Final = "127.0.0.2"
VENDORS_ONLY: Final = NetworkPolicy((ip_network("127.0.0.1/32"),))
"""Policy that allows the vendors of tests, which are on 127.0.0.1, and nothing else of this machine."""


@dataclass(slots=True)
class PrivateServer:
    """A server that requests to addresses from outside must not reach; the first line of each request."""

    address: str = ""
    requests: list[str] = field(default_factory=list)

    async def answer(self, reader: asyncio.StreamReader) -> bytes:
        """Answer one request with a metric."""
        self.requests.append((await reader.readline()).decode(errors="replace"))
        return b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\ncalls_total 1\n"


@asynccontextmanager
async def serve_private(host: str = PRIVATE_HOST) -> AsyncIterator[PrivateServer]:
    """Run a server on a private address. The test is skipped on a machine with one loopback address."""
    private = PrivateServer()
    async with AsyncExitStack() as stack:
        try:
            private.address = await stack.enter_async_context(_listen(private.answer, host))
        except OSError:
            pytest.skip(f"{host} is not an address of this machine")
        yield private


def serve_nonsense() -> AbstractAsyncContextManager[str]:
    """Run a server that answers every request with a page; yield its address."""
    return _serve_response(RESPONSE % (len(NONSENSE), NONSENSE))


def serve_limit() -> AbstractAsyncContextManager[str]:
    """Run a server that answers every request with 429, and asks for `WAIT_SECONDS` without another; yield its
    address.
    """
    return _serve_response(LIMITED % WAIT_SECONDS)


def _serve_response(response: bytes) -> AbstractAsyncContextManager[str]:
    async def answer(reader: asyncio.StreamReader) -> bytes:
        await reader.readuntil(b"\r\n\r\n")
        return response

    return _listen(answer)


@asynccontextmanager
async def serve_changed(vendor: str, change: Callable[[bytes], bytes]) -> AsyncIterator[str]:
    """Run a server that passes requests on to a vendor's, and changes the body of each successful response; yield its
    address.
    """

    async def pass_on(request: web.Request) -> web.Response:
        headers = {name: value for name, value in request.headers.items() if name not in ("Host", "Accept-Encoding")}
        async with (
            aiohttp.ClientSession(auto_decompress=False) as session,
            session.request(
                request.method, vendor + request.path_qs, data=await request.read(), headers=headers
            ) as response,
        ):
            body = await response.read()
            body = change(body) if response.status == web.HTTPOk.status_code else body
            return web.Response(status=response.status, body=body, content_type=response.content_type)

    runner = web.AppRunner(application := web.Application(), access_log=None)
    application.router.add_route("*", "/{path:.*}", pass_on)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def serve_silence() -> AsyncIterator[str]:
    """Run a server that reads requests and never answers; yield its address."""
    released = asyncio.Event()

    async def wait(_reader: asyncio.StreamReader) -> bytes:
        await released.wait()
        return b""

    async with _listen(wait) as address:
        try:
            yield address
        finally:
            released.set()


async def find_closed_address() -> str:
    """Return an address at which nothing listens."""
    async with serve_silence() as address:
        return address


@asynccontextmanager
async def _listen(
    answer: Callable[[asyncio.StreamReader], Awaitable[bytes]], host: str = "127.0.0.1"
) -> AsyncIterator[str]:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with closing(writer), suppress(OSError, asyncio.IncompleteReadError):  # the client may be gone
            writer.write(await answer(reader))
            await writer.drain()

    server = await asyncio.start_server(handle, host, 0)
    async with server:
        yield f"http://{host}:{server.sockets[0].getsockname()[1]}"
