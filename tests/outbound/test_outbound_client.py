"""Address check on connecting, and sending, against a receiver on this machine that counts its connections."""

import asyncio
import gzip
import socket
import ssl
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from ipaddress import ip_network
from pathlib import Path

import pytest
import pytest_asyncio
from aiohttp import AsyncResolver
from aiohttp.abc import AbstractResolver, ResolveResult
from switchboard.foundation.outbound import OutboundClient, OutboundError
from switchboard.plugin_sdk import ForbiddenAddress, NetworkPolicy

from tests.fixtures.servers import write_self_signed

LOOPBACK = NetworkPolicy((ip_network("127.0.0.0/8"),))
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Receiver:
    """Answers every request on 127.0.0.1 with these bytes; None drips an endless body."""

    def __init__(self) -> None:
        self.answer: bytes | None = OK
        self.connections = 0
        self.requests: list[bytes] = []
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = next(
                    (
                        int(line.split(b":")[1])
                        for line in head.split(b"\r\n")
                        if line.lower().startswith(b"content-length:")
                    ),
                    0,
                )
                self.requests.append(head + await reader.readexactly(length))
                if self.answer is None:
                    await _drip(writer)
                else:
                    writer.write(self.answer)
                    await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            return
        finally:
            writer.close()


async def _drip(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    while True:
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.01)


@pytest_asyncio.fixture
async def receiver() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    server = await asyncio.start_server(receiver.serve, "127.0.0.1", 0)
    receiver.port = server.sockets[0].getsockname()[1]
    yield receiver
    server.close()


class Names(AbstractResolver):
    """Answers look-ups from a list, the last one repeated."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self._answers = list(answers)

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        addresses = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if not addresses:
            raise OSError("no such name")
        return [
            ResolveResult(
                hostname=host,
                host=text,
                port=port,
                family=socket.AF_INET6 if ":" in text else socket.AF_INET,
                proto=0,
                flags=0,
            )
            for text in addresses
        ]

    async def close(self) -> None:
        """Succeed: nothing is open."""


@pytest_asyncio.fixture
async def client() -> AsyncIterator[OutboundClient]:
    """A client that may reach this machine."""
    client = OutboundClient(LOOPBACK)
    yield client
    await client.close()


async def get_failure_kind(client: OutboundClient, url: str, *, seconds: float = 5) -> str:
    with pytest.raises(OutboundError) as failed:
        await client.post(url, b"{}", headers={}, seconds=seconds)
    return failed.value.kind


async def test_a_response_has_its_status_and_the_start_of_its_body(client: OutboundClient, receiver: Receiver) -> None:
    response = await client.post(
        f"http://127.0.0.1:{receiver.port}/hook?a=b", b'{"a":1}', headers={"X-Name": "v"}, seconds=5
    )
    assert (response.status, response.body) == (200, b"ok")
    (request,) = receiver.requests
    assert request.startswith(b"POST /hook?a=b HTTP/1.1\r\n")
    assert request.endswith(b'{"a":1}')
    assert b"X-Name: v\r\n" in request


@pytest.mark.parametrize(
    "answers",
    [
        ["127.0.0.1"],
        ["93.184.215.14", "10.0.0.1"],
        ["::ffff:127.0.0.1"],
        ["64:ff9b::7f00:1"],
        ["fe80::1"],
        ["169.254.169.254"],
    ],
    ids=str,
)
async def test_a_name_with_a_private_address_is_refused_without_a_connection(
    receiver: Receiver, answers: list[str]
) -> None:
    client = OutboundClient(NetworkPolicy(), resolver=Names(answers))
    assert await get_failure_kind(client, f"http://looks-public.example.com:{receiver.port}/") == "forbidden_address"
    await client.close()
    assert receiver.connections == 0


async def test_a_name_rebound_between_two_lookups_is_refused(receiver: Receiver) -> None:
    """Public at the first look-up, this machine when it is dialed."""
    names = Names(["93.184.215.14"], ["127.0.0.1"])
    client = OutboundClient(NetworkPolicy(), resolver=names)
    url = client.check_url(f"http://rebound.example.com:{receiver.port}/")
    await names.resolve("rebound.example.com")
    assert await get_failure_kind(client, url) == "forbidden_address"
    await client.close()
    assert receiver.connections == 0


async def test_a_name_with_several_addresses_connects_to_the_allowed_one(receiver: Receiver) -> None:
    client = OutboundClient(LOOPBACK, resolver=Names(["::1", "127.0.0.1"]))
    assert (await client.post(f"http://localhost:{receiver.port}/", b"", headers={}, seconds=5)).status == 200
    await client.close()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize(
    "target", ["http://127.0.0.1:{port}/else", "http://169.254.169.254/", "file:///etc/passwd", "https://example.com/"]
)
async def test_redirects_are_returned_and_not_followed(
    client: OutboundClient, receiver: Receiver, status: int, target: str
) -> None:
    location = target.format(port=receiver.port).encode()
    receiver.answer = b"HTTP/1.1 %d Moved\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n" % (status, location)
    assert (await client.post(f"http://127.0.0.1:{receiver.port}/", b"", headers={}, seconds=5)).status == status
    assert len(receiver.requests) == 1


async def test_a_slow_body_is_cut_at_the_deadline(client: OutboundClient, receiver: Receiver) -> None:
    receiver.answer = None
    started = asyncio.get_running_loop().time()
    assert await get_failure_kind(client, f"http://127.0.0.1:{receiver.port}/", seconds=0.2) == "timeout"
    assert asyncio.get_running_loop().time() - started < 10


async def test_a_body_is_read_to_its_limit_and_no_further(client: OutboundClient, receiver: Receiver) -> None:
    receiver.answer = b"HTTP/1.1 200 OK\r\nContent-Length: 9000000000\r\n\r\n" + b"x" * 100_000
    url = f"http://127.0.0.1:{receiver.port}/"
    assert len((await client.post(url, b"", headers={}, seconds=5)).body) == 4096
    assert len((await client.post(url, b"", headers={}, seconds=5, read_limit=65_536)).body) == 65_536
    assert receiver.connections == 2


async def test_a_compressed_body_stays_compressed(client: OutboundClient, receiver: Receiver) -> None:
    bomb = gzip.compress(bytes(3_000_000))[:4096]
    receiver.answer = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(bomb) + bomb
    assert (await client.post(f"http://127.0.0.1:{receiver.port}/", b"", headers={}, seconds=5)).body == bomb
    assert b"Accept-Encoding: identity\r\n" in receiver.requests[0]


async def test_cookies_are_not_kept(client: OutboundClient, receiver: Receiver) -> None:
    receiver.answer = b"HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\nContent-Length: 0\r\n\r\n"
    for _ in range(2):
        await client.post(f"http://127.0.0.1:{receiver.port}/", b"", headers={}, seconds=5)
    assert b"cookie" not in receiver.requests[1].lower()


async def test_a_proxy_from_the_environment_is_not_used(
    client: OutboundClient, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    assert (await client.post(f"http://127.0.0.1:{receiver.port}/", b"", headers={}, seconds=5)).status == 200


async def test_failures_are_classified(client: OutboundClient, receiver: Receiver) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        assert await get_failure_kind(client, f"http://127.0.0.1:{unused.getsockname()[1]}/") == "connection"
    receiver.answer = b"nonsense\r\n\r\n"
    assert await get_failure_kind(client, f"http://127.0.0.1:{receiver.port}/") == "invalid_response"
    unknown = OutboundClient(NetworkPolicy(), resolver=Names([]))
    assert await get_failure_kind(unknown, "http://unknown.example.com/") == "connection"
    await unknown.close()


def create_self_signed_context(folder: Path) -> ssl.SSLContext:
    """A server with a self-signed certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(write_self_signed(folder))
    return context


async def test_an_untrusted_certificate_is_refused(client: OutboundClient, receiver: Receiver, tmp_path: Path) -> None:
    server = await asyncio.start_server(receiver.serve, "127.0.0.1", 0, ssl=create_self_signed_context(tmp_path))
    assert await get_failure_kind(client, f"https://localhost:{server.sockets[0].getsockname()[1]}/") == "tls"
    assert receiver.requests == []
    server.close()


class _SilentNameServer(asyncio.DatagramProtocol):
    """A name server that never answers."""


async def test_unresponsive_name_servers_delay_no_other_request(receiver: Receiver) -> None:
    loop = asyncio.get_running_loop()
    silent, _ = await loop.create_datagram_endpoint(_SilentNameServer, local_addr=("127.0.0.1", 0))
    port = silent.get_extra_info("sockname")[1]
    names = AsyncResolver(nameservers=["127.0.0.1"], udp_port=port, timeout=0.5, tries=1)
    client = OutboundClient(LOOPBACK, resolver=names)
    lookups = [
        asyncio.create_task(get_failure_kind(client, f"http://n{number}.example.com/", seconds=2))
        for number in range(200)
    ]
    started = loop.time()
    await asyncio.sleep(0.05)
    assert (await client.post(f"http://127.0.0.1:{receiver.port}/", b"", headers={}, seconds=1)).status == 200
    assert set(await asyncio.gather(*lookups)) <= {"connection", "timeout"}
    assert loop.time() - started < 4
    await client.close()
    silent.close()


async def test_endless_headers_are_an_error(client: OutboundClient, receiver: Receiver) -> None:
    receiver.answer = (
        b"HTTP/1.1 200 OK\r\n"
        + b"X-Padding: "
        + b"x" * 4000
        + b"\r\n"
        + b"".join(b"X-%d: y\r\n" % n for n in range(200_000))
    )
    assert await get_failure_kind(client, f"http://127.0.0.1:{receiver.port}/") == "invalid_response"


async def test_an_unneeded_body_is_not_awaited(client: OutboundClient, receiver: Receiver) -> None:
    receiver.answer = None
    response = await client.post(f"http://127.0.0.1:{receiver.port}/", b"", headers={}, seconds=5, read_limit=0)
    assert (response.status, response.body) == (200, b"")


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:8080/x", "http://voice.example.com:8080/", "https://voice.example.com/"]
)
def test_the_platforms_own_address_is_refused(url: str) -> None:
    client = OutboundClient(replace(LOOPBACK, own_url=url))
    with pytest.raises(ForbiddenAddress):
        client.check_url(url.replace("voice", "VOICE"))
    assert client.check_url("http://127.0.0.1:8081/")
