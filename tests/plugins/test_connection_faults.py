"""Failed connections in words."""

import socket
from collections.abc import AsyncIterator

import aiohttp
import pytest
from aiohttp import web
from aiohttp.abc import AbstractResolver, ResolveResult
from switchboard.plugin_sdk.connection_faults import describe_connection_fault


class NamelessResolver(AbstractResolver):
    """Resolver that knows no name."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        raise OSError(None, "Domain name not found")

    async def close(self) -> None:
        """Close nothing."""


@pytest.fixture
async def port() -> AsyncIterator[int]:
    async def answer(request: web.BaseRequest) -> web.Response:
        return web.Response(status=404)

    runner = web.ServerRunner(web.Server(answer))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield int(runner.addresses[0][1])
    await runner.cleanup()


async def test_a_failed_connection_is_described_with_what_to_do(port: int) -> None:
    faults = {
        "http://api.example.invalid/": "no server has the name api.example.invalid; check the address",
        "http://127.0.0.1:9/": "nothing listens at 127.0.0.1:9; check the address, and that the server runs",
        f"https://127.0.0.1:{port}/": f"there is no secure connection to 127.0.0.1:{port}; check the address",
        f"http://127.0.0.1:{port}/": "it answered 404; check the address",
        "http://[": "the address is not valid",
    }
    connector = aiohttp.TCPConnector(resolver=NamelessResolver())
    async with aiohttp.ClientSession(connector=connector, raise_for_status=True) as session:
        for address, words in faults.items():
            with pytest.raises(aiohttp.ClientError) as failure:
                await session.get(address)
            assert describe_connection_fault(failure.value).startswith(words)
    assert describe_connection_fault(TimeoutError()).startswith("it did not answer in time")
