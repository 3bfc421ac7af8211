"""Address check on saving: allowed tenant addresses, and a hostile list that opens no connection."""

import socket
from collections.abc import AsyncIterator
from ipaddress import ip_address, ip_network

import pytest
import pytest_asyncio
from switchboard.foundation.outbound import ForbiddenAddress, OutboundClient, OutboundError
from switchboard.foundation.outbound.addresses import is_allowed

LITERAL = [
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
    "http://[::1%25]/",
    "http://[fd00:ec2::254]/",
    "http://[fec0::1]/",
    "http://[ff02::1]/",
    "http://[2001:0:4136:e378:8000:63bf:3fff:fdd2]/",
    "http://[2001:db8::1]/",
    "http://[3fff::1]/",
    "http://[5f00::1]/",
    "http://[100::1]/",
]
NUMERIC = [
    "http://2130706433/",
    "http://2852039166/",
    "http://0x7f000001/",
    "http://0x7f.0.0.1/",
    "http://0X7F.0.0.1/",
    "http://0177.0.0.1/",
    "http://017700000001/",
    "http://127.1/",
    "http://127.0.1/",
    "http://127.0.0.1./",
    "http://127.0.0.0x1/",
]
INTERNATIONAL = [
    "http://①②⑦.⓪.⓪.①/",
    "http://127。0。0。1/",
    "http://ⓛocalhost/",
    "http://١٢٧.٠.٠.١/",
    "http://127.0.0.1%E3%80%82/",
]
PARSING = [
    *[
        "http://example.com@127.0.0.1/",
        "http://127.0.0.1#@example.com/",
        "http://example.com\\@127.0.0.1/",
        "http://127.0.0.1\\@example.com/",
    ],
    *[
        "http://example.com%00@127.0.0.1/",
        "http://127.0.0.1%2f@example.com/",
        "http:127.0.0.1/",
        "http:///127.0.0.1/",
        "http:\\\\127.0.0.1\\",
        "//127.0.0.1/",
    ],
    *["http://user@example.com/", "http://:pass@example.com/", "http://example.com:0/", "http://example.com:65536/"],
    *["http://example.com:80:80/", "http://[::1", "http://example..com/", "http://-example.com/", "http://xn--/"],
    "http://1.1.1.1 &@127.0.0.1# @3.3.3.3/",
    "http://127.0.0.1\t:80/",
    "http://example.com\r\nHost: 127.0.0.1/",
    "http://example.com\x00/",
    " http://example.com/",
    "http://" + "a" * 64 + ".com/",
    "http://" + "a." * 130 + "com/",
]
SCHEMES = [
    *[
        "file:///etc/passwd",
        "gopher://127.0.0.1:6379/_INFO",
        "ftp://127.0.0.1/",
        "unix:///var/run/docker.sock",
        "javascript:alert(1)",
    ],
    *["ws://127.0.0.1/", "https+unix://x", "http://", "example.com"],
    "",
    "https://example.com/" + "a" * 2029,
]
NAMES = [
    "http://localhost/",
    "http://LOCALHOST./",
    "http://foo.localhost/",
    "http://metadata.google.internal/",
    "http://printer.local/",
    "http://intranet/",
    "http://router.home.arpa/",
    "http://x.localdomain/",
    "http://x.test/",
    "http://x.invalid/",
    "http://x.onion/",
]
HOSTILE = LITERAL + NUMERIC + INTERNATIONAL + PARSING + SCHEMES + NAMES


@pytest_asyncio.fixture
async def client() -> AsyncIterator[OutboundClient]:
    client = OutboundClient(())
    yield client
    await client.close()


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Record every connection that this process starts."""
    seen: list[object] = []
    connect = socket.socket.connect

    def record(self: socket.socket, address: tuple[str, int]) -> None:
        seen.append(address)
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", record)
    return seen


async def test_every_connection_is_recorded(connections: list[object]) -> None:
    """Otherwise the list below would prove nothing."""
    client = OutboundClient([ip_network("127.0.0.0/8")])
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with pytest.raises(OutboundError):
            await client.post(f"http://127.0.0.1:{unused.getsockname()[1]}/", b"", headers={}, seconds=5)
        assert connections == [unused.getsockname()]
    await client.close()


@pytest.mark.parametrize("url", HOSTILE, ids=ascii)
async def test_hostile_urls_are_refused_without_a_connection(
    client: OutboundClient, connections: list[object], url: str
) -> None:
    with pytest.raises(ForbiddenAddress) as refused:
        client.check_url(url)
    assert str(refused.value) == "must be a public http or https address"
    with pytest.raises(OutboundError) as failed:
        await client.post(url, b"", headers={}, seconds=5)
    assert (failed.value.kind, str(failed.value)) == ("forbidden_address", "destination address is not allowed")
    assert connections == []


@pytest.mark.parametrize(
    ("url", "stored"),
    [
        ("https://example.com", "https://example.com"),
        ("https://EXAMPLE.com:443/a?b=c#d", "https://example.com/a?b=c"),
        ("http://example.com:8080/hook", "http://example.com:8080/hook"),
        ("https://example.com/a%2Fb?x=%20", "https://example.com/a%2Fb?x=%20"),
        ("https://bücher.example.com/", "https://xn--bcher-kva.example.com/"),
        ("https://日本語.jp/", "https://xn--wgv71a119e.jp/"),
        ("https://my_hook.example.com/", "https://my_hook.example.com/"),
        ("https://example.com./", "https://example.com./"),
        ("http://@example.com/", "http://example.com/"),
        ("http://8.8.8.8/", "http://8.8.8.8/"),
        ("http://172.32.0.1/", "http://172.32.0.1/"),
        ("http://[2606:4700::1111]:81/", "http://[2606:4700::1111]:81/"),
        ("http://[::ffff:8.8.8.8]/", "http://[::ffff:808:808]/"),
        ("https://3com.example/", "https://3com.example/"),
    ],
)
def test_public_urls_are_stored_as_sent(url: str, stored: str) -> None:
    client = OutboundClient(())
    assert client.check_url(url) == stored
    assert client.check_url(stored) == stored


@pytest.mark.parametrize(
    "url", ["http://10.1.2.3/", "http://[::ffff:10.1.2.3]/", "http://localhost:9000/", "http://receiver/"]
)
def test_allowed_networks_are_exempt(url: str) -> None:
    OutboundClient([ip_network("10.0.0.0/8")]).check_url(url)


@pytest.mark.parametrize(
    "url",
    ["http://192.168.0.1/", "http://[fd00::1]/", "ftp://10.1.2.3/", "http://user@10.1.2.3/", "http://0x0a.1.2.3/"],
)
def test_an_exemption_allows_only_its_network(url: str) -> None:
    with pytest.raises(ForbiddenAddress):
        OutboundClient([ip_network("10.0.0.0/8")]).check_url(url)


@pytest.mark.parametrize(
    "address", ["8.8.8.8", "1.1.1.1", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "2a00::1", "::ffff:8.8.8.8"]
)
def test_the_table_blocks_no_public_address(address: str) -> None:
    assert is_allowed(ip_address(address), ())
