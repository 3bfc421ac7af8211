"""A connection that a client or a proxy keeps stays open between requests."""

import asyncio
from urllib.parse import urlsplit

import pytest

from tests.fixtures.app import LivePlatform

HYPERCORN_DEFAULT_SECONDS = 5
REQUEST = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"


async def wait_for_end(reader: asyncio.StreamReader, seconds: float) -> None:
    """Raises `TimeoutError` if the server does not close the connection."""
    async with asyncio.timeout(seconds):
        while await reader.read(65_536):
            pass


async def test_an_idle_connection_serves_the_next_request(live: LivePlatform) -> None:
    url = urlsplit(live.runtime.settings.base_url)
    reader, writer = await asyncio.open_connection(url.hostname, url.port)
    writer.write(REQUEST)
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
    with pytest.raises(TimeoutError):
        await wait_for_end(reader, HYPERCORN_DEFAULT_SECONDS + 1)
    writer.write(REQUEST)
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
    writer.close()
    await writer.wait_closed()
