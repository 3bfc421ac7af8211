"""Requests to addresses that tenants chose: hostile ones reach nothing, hostile answers cost nothing."""

import asyncio
import gzip
import socket
from collections.abc import AsyncIterator
from ipaddress import ip_address, ip_network

import pytest
import pytest_asyncio
from aiohttp import web
from aiohttp.abc import AbstractResolver, ResolveResult
from switchboard.outbound import ForbiddenAddress, OutboundClient, OutboundError
from switchboard.outbound.addresses import is_allowed

LITERALS = [
    "http://127.0.0.1/",
    "http://0.0.0.0/",
    "http://0/",
    "http://10.0.0.5/",
    "http://172.16.0.1/",
    "http://192.168.1.1/",
    "http://100.64.0.1/",
    "http://100.100.100.200/",
    "http://169.254.169.254/latest/meta-data/",
    "http://169.254.170.2/",
    "http://168.63.129.16/",
    "http://192.0.0.192/",
    "http://198.18.0.1/",
    "http://224.0.0.1/",
    "http://240.0.0.1/",
    "http://255.255.255.255/",
    "http://192.88.99.1/",
    "http://203.0.113.1/",
    "http://[::1]/",
    "http://[::]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://[0:0:0:0:0:ffff:7f00:0001]/",
    "http://[::127.0.0.1]/",
    "http://[64:ff9b::7f00:1]/",
    "http://[64:ff9b::a9fe:a9fe]/",
    "http://[64:ff9b:1::a00:1]/",
    "http://[2002:7f00:1::]/",
    "http://[fe80::1%25lo]/",
    "http://[fd00:ec2::254]/",
    "http://[fec0::1]/",
    "http://[ff02::1]/",
    "http://[2001:0:4136:e378:8000:63bf:3fff:fdd2]/",
    "http://[2001:db8::1]/",
    "http://[3fff::1]/",
    "http://[5f00::1]/",
    "http://[100::1]/",
    "http://2130706433/",
    "http://2852039166/",
    "http://0x7f000001/",
    "http://0x7f.0.0.1/",
    "http://0177.0.0.1/",
    "http://017700000001/",
    "http://127.1/",
    "http://127.0.1/",
    "http://127.0.0.1./",
    "http://①②⑦.⓪.⓪.①/",
    "http://127。0。0。1/",
    "http://ⓛocalhost/",
    "http://١٢٧.٠.٠.١/",
    "http://127.0.0.1%E3%80%82/",
    "http://example.com@127.0.0.1/",
    "http://user:pass@example.com/",
    "http://example.com\\@127.0.0.1/",
    "http://127.0.0.1\\@example.com/",
    "http://example.com%00@127.0.0.1/",
    "http:127.0.0.1/",
    "http:///127.0.0.1/",
    "//127.0.0.1/",
    "file:///etc/passwd",
    "gopher://127.0.0.1:6379/_INFO",
    "ftp://127.0.0.1/",
    "unix:///var/run/docker.sock",
    "javascript:alert(1)",
    "ws://127.0.0.1/",
    "http://",
    "http://localhost/",
    "http://LOCALHOST./",
    "http://foo.localhost/",
    "http://intranet/",
    "http://printer.local/",
    "http://db.internal/",
    "http://example.com:0/",
    "http://example.com:99999/",
]
HOSTILE = [*LITERALS, "", "http://1.1.1.1 &@127.0.0.1# @3.3.3.3/", "http://127.0.0.1\t:80/", "http://example.com/" + "x" * 2049]
NAMES = ["127.0.0.1", "10.0.0.1", "::ffff:10.0.0.1", "64:ff9b::a00:1", "169.254.169.254", "fe80::1"]


class Answering(AbstractResolver):
    """A resolver that answers what a test says."""

    def __init__(self, *addresses: str) -> None:
        self._addresses = addresses

    async def resolve(self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET) -> list[ResolveResult]:
        return [
            ResolveResult(hostname=host, host=address, port=port, family=socket.AF_INET6 if ":" in address else socket.AF_INET, proto=0, flags=0)
            for address in self._addresses
        ]

    async def close(self) -> None:
        """Nothing to close."""


class Receiver:
    """A server on this machine that counts who reaches it."""

    def __init__(self) -> None:
        self.requests: list[web.Request] = []
        self.url = ""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(request)
        match request.path:
            case "/redirect":
                return web.Response(status=int(request.query["code"]), headers={"Location": "/elsewhere"})
            case "/drip":
                response = web.StreamResponse()
                await response.prepare(request)
                while True:
                    await response.write(b"x")
                    await asyncio.sleep(0.05)
            case "/bomb":
                return web.Response(body=gzip.compress(bytes(50_000_000)), headers={"Content-Encoding": "gzip"})
            case "/cookie":
                return web.Response(headers={"Set-Cookie": "a=b"})
        return web.Response(status=202, body=b"y" * 10_000)


@pytest_asyncio.fixture
async def receiver() -> AsyncIterator[Receiver]:
    receiver, application = Receiver(), web.Application()
    application.router.add_route("*", "/{path:.*}", receiver.answer)
    runner = web.AppRunner(application, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    receiver.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield receiver
    await runner.cleanup()


@pytest_asyncio.fixture
async def client() -> AsyncIterator[OutboundClient]:
    client = OutboundClient([ip_network("127.0.0.0/8")])
    yield client
    await client.close()


@pytest.mark.parametrize("url", HOSTILE)
async def test_a_hostile_address_is_refused_when_it_is_given_and_when_it_is_sent_to(url: str) -> None:
    client = OutboundClient([])
    with pytest.raises(ForbiddenAddress, match="must be a public http or https address"):
        client.check_url(url)
    with pytest.raises(OutboundError) as refused:
        await client.post(url, b"{}", headers={}, seconds=2)
    assert refused.value.kind == "forbidden_address"
    await client.close()


@pytest.mark.parametrize("address", NAMES)
async def test_a_name_that_resolves_to_a_private_address_reaches_nothing(receiver: Receiver, address: str) -> None:
    port = receiver.url.rpartition(":")[2]
    client = OutboundClient([], resolver=Answering(address))
    with pytest.raises(OutboundError) as refused:
        await client.post(f"http://rebound.example.com:{port}/", b"", headers={}, seconds=2)
    assert refused.value.kind == "forbidden_address"
    assert receiver.requests == []
    await client.close()


async def test_the_decision_is_on_the_address_that_is_dialled_not_on_the_one_that_was_checked(receiver: Receiver) -> None:
    port = receiver.url.rpartition(":")[2]
    client = OutboundClient([], resolver=Answering("10.255.255.1", "127.0.0.1"))
    with pytest.raises(OutboundError):
        await client.post(f"http://mixed.example.com:{port}/", b"", headers={}, seconds=2)
    assert receiver.requests == []
    await client.close()


@pytest.mark.parametrize("url", ["https://example.com/hook", "http://example.com:8080/a?b=c", "https://1.1.1.1/", "https://[2606:4700::1111]/"])
def test_public_addresses_are_taken(url: str) -> None:
    assert OutboundClient([]).check_url(url) == url


@pytest.mark.parametrize("address", ["8.8.8.8", "1.1.1.1", "::ffff:8.8.8.8", "2606:4700:4700::1111"])
def test_public_ips_are_allowed(address: str) -> None:
    assert is_allowed(ip_address(address), [])


async def test_an_exempt_network_is_reached_and_little_is_read(receiver: Receiver, client: OutboundClient) -> None:
    answer = await client.post(f"{receiver.url}/ok", b'{"a":1}', headers={"X-Test": "1"}, seconds=5)
    assert (answer.status, len(answer.body)) == (202, 4096)
    assert receiver.requests[0].headers["X-Test"] == "1"


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
async def test_redirects_are_not_followed(receiver: Receiver, client: OutboundClient, code: int) -> None:
    assert (await client.post(f"{receiver.url}/redirect?code={code}", b"", headers={}, seconds=5)).status == code
    assert len(receiver.requests) == 1


async def test_one_deadline_covers_a_body_that_drips(receiver: Receiver, client: OutboundClient) -> None:
    with pytest.raises(OutboundError) as late:
        await client.post(f"{receiver.url}/drip", b"", headers={}, seconds=0.5)
    assert late.value.kind == "timeout"


async def test_a_compressed_bomb_is_not_unpacked(receiver: Receiver, client: OutboundClient) -> None:
    assert len((await client.post(f"{receiver.url}/bomb", b"", headers={}, seconds=5)).body) <= 4096


async def test_cookies_are_not_kept(receiver: Receiver, client: OutboundClient) -> None:
    for _ in range(2):
        await client.post(f"{receiver.url}/cookie", b"", headers={}, seconds=5)
    assert "Cookie" not in receiver.requests[1].headers


async def test_nobody_there_is_a_failed_connection(client: OutboundClient) -> None:
    with pytest.raises(OutboundError) as failed:
        await client.post("http://127.0.0.1:9/", b"", headers={}, seconds=2)
    assert failed.value.kind == "connection"
