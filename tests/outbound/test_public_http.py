"""The HTTP client of plugins for addresses from outside, against servers on two loopback addresses."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import replace

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import web
from aiohttp.test_utils import BaseTestServer, TestServer
from switchboard.plugin_sdk import ForbiddenAddress, NetworkPolicy, PublicHttpClient
from switchboard.plugin_sdk.testing.vendors import VENDORS_ONLY, PrivateServer, serve_private

from tests.outbound.test_outbound_client import Names

CREDENTIAL = {"Authorization": "Bearer secret", "X-Api-Key": "secret", "Range": "bytes=0-1"}
QUICK = aiohttp.ClientTimeout(total=5)


class Storage:
    """A server whose redirects a test sets, by path. `seen` are the headers of each request."""

    def __init__(self) -> None:
        self.moved: dict[str, str] = {}
        self.moved_status = 302
        self.seen: list[Mapping[str, str]] = []
        self.written: list[tuple[str, str, str]] = []

    async def serve(self, request: web.Request) -> web.Response:
        self.seen.append(request.headers)
        self.written.append((request.method, request.path, await request.text()))
        if request.path in self.moved:
            return web.Response(status=self.moved_status, headers={"Location": self.moved[request.path]})
        return web.Response(text="a file")


@pytest.fixture
def storage() -> Storage:
    return Storage()


@pytest_asyncio.fixture
async def server(storage: Storage) -> AsyncIterator[BaseTestServer]:
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", storage.serve)
    async with TestServer(application, host="127.0.0.1") as server:
        yield server


@pytest_asyncio.fixture
async def inside() -> AsyncIterator[PrivateServer]:
    async with serve_private() as private:
        yield private


async def fetch(client: PublicHttpClient, url: str, vendor: aiohttp.ClientSession | None = None) -> str:
    try:
        async with await client.get(url, headers=CREDENTIAL, deadlines=QUICK, vendor=vendor) as response:
            return await response.text()
    finally:
        await client.close()


async def test_a_credential_goes_to_the_first_server_alone(storage: Storage, server: BaseTestServer) -> None:
    """Also where the vendor's own session begins, and for headers that aiohttp does not know as credentials."""
    other = str(server.make_url("/other")).replace("127.0.0.1", "localhost")
    storage.moved = {"/first": "/second", "/second": other}
    async with aiohttp.ClientSession() as session:
        for vendor in (None, session):
            storage.seen.clear()
            assert await fetch(PublicHttpClient(VENDORS_ONLY), str(server.make_url("/first")), vendor) == "a file"
            sent = [[name for name in CREDENTIAL if name in headers] for headers in storage.seen]
            assert sent == [[*CREDENTIAL], [*CREDENTIAL], ["Range"]]


async def test_each_redirect_is_checked(storage: Storage, server: BaseTestServer, inside: PrivateServer) -> None:
    first = str(server.make_url("/first"))
    port = inside.address.rpartition(":")[2]
    for target in (
        inside.address,
        f"http://127.0.0.2.:{port}/",
        "file:///etc/passwd",
        "http://[",
        "ftp://example.com/",
    ):
        storage.moved = {"/first": target}
        with pytest.raises((ForbiddenAddress, aiohttp.InvalidURL)):
            await fetch(PublicHttpClient(VENDORS_ONLY), first)
    own = replace(VENDORS_ONLY, own_url=str(server.make_url("/")))
    with pytest.raises(ForbiddenAddress):
        await fetch(PublicHttpClient(own), str(server.make_url("/metrics")))
    assert inside.requests == []


async def test_a_name_is_checked_when_it_is_dialed(inside: PrivateServer) -> None:
    """A name resolves to a public address for whoever looks first, and to a private one for the connection."""
    port = inside.address.rpartition(":")[2]
    for answers in (["127.0.0.2"], ["93.184.215.14", "127.0.0.2"], ["::ffff:127.0.0.2"]):
        client = PublicHttpClient(NetworkPolicy(), resolver=Names(answers))
        with pytest.raises(ForbiddenAddress):
            await fetch(client, f"http://rebound.example.com:{port}/metrics")
    assert inside.requests == []


async def test_redirects_in_a_circle_end(storage: Storage, server: BaseTestServer) -> None:
    storage.moved = {"/first": "/first"}
    with pytest.raises(aiohttp.TooManyRedirects):
        await fetch(PublicHttpClient(VENDORS_ONLY), str(server.make_url("/first")))
    assert len(storage.seen) == 4


async def send(client: PublicHttpClient, method: str, url: str) -> int:
    try:
        async with await client.request(
            method, url, headers=CREDENTIAL, deadlines=QUICK, content=b"content"
        ) as response:
            return response.status
    finally:
        await client.close()


async def test_a_request_of_any_method_is_repeated_at_its_own_server_alone(
    storage: Storage, server: BaseTestServer
) -> None:
    first = str(server.make_url("/first"))
    other = str(server.make_url("/other")).replace("127.0.0.1", "localhost")
    storage.moved = {"/first": "/second", "/second": other}
    assert await send(PublicHttpClient(VENDORS_ONLY), "PROPFIND", first) == 302
    assert storage.written == [("PROPFIND", "/first", "content"), ("PROPFIND", "/second", "content")]
    assert all("Authorization" in headers for headers in storage.seen)
    storage.moved = {"/first": "/second"}
    assert await send(PublicHttpClient(VENDORS_ONLY), "PUT", first) == 200
    storage.moved_status = 303
    assert await send(PublicHttpClient(VENDORS_ONLY), "PUT", first) == 303


async def test_a_request_of_any_method_is_checked(
    storage: Storage, server: BaseTestServer, inside: PrivateServer
) -> None:
    with pytest.raises(ForbiddenAddress):
        await send(PublicHttpClient(VENDORS_ONLY), "PUT", inside.address)
    storage.moved = {"/first": "http://["}
    with pytest.raises(ForbiddenAddress):
        await send(PublicHttpClient(VENDORS_ONLY), "PUT", str(server.make_url("/first")))
    assert inside.requests == []
