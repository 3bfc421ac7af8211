"""Address check on saving: allowed tenant addresses, and a hostile list that opens no connection."""

import socket
from collections.abc import AsyncIterator
from ipaddress import ip_address, ip_network

import pytest
import pytest_asyncio
from switchboard.foundation.outbound import OutboundClient, OutboundError
from switchboard.plugin_sdk import ForbiddenAddress, NetworkPolicy

from tests.fixtures.hostile_urls import HOSTILE_URLS


@pytest_asyncio.fixture
async def client() -> AsyncIterator[OutboundClient]:
    client = OutboundClient(NetworkPolicy())
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
    client = OutboundClient(NetworkPolicy((ip_network("127.0.0.0/8"),)))
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with pytest.raises(OutboundError):
            await client.post(f"http://127.0.0.1:{unused.getsockname()[1]}/", b"", headers={}, seconds=5)
        assert connections == [unused.getsockname()]
    await client.close()


@pytest.mark.parametrize("url", HOSTILE_URLS, ids=ascii)
async def test_hostile_urls_are_refused_without_a_connection(
    client: OutboundClient, connections: list[object], url: str
) -> None:
    with pytest.raises(ForbiddenAddress) as refused:
        client.check_url(url)
    assert "SWITCHBOARD_WEBHOOK_ALLOWED_NETWORKS" in str(refused.value), "what helps"
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
    client = OutboundClient(NetworkPolicy())
    assert client.check_url(url) == stored
    assert client.check_url(stored) == stored


@pytest.mark.parametrize(
    "url", ["http://10.1.2.3/", "http://[::ffff:10.1.2.3]/", "http://localhost:9000/", "http://receiver/"]
)
def test_allowed_networks_are_exempt(url: str) -> None:
    OutboundClient(NetworkPolicy((ip_network("10.0.0.0/8"),))).check_url(url)


@pytest.mark.parametrize(
    "url",
    ["http://192.168.0.1/", "http://[fd00::1]/", "ftp://10.1.2.3/", "http://user@10.1.2.3/", "http://0x0a.1.2.3/"],
)
def test_an_exemption_allows_only_its_network(url: str) -> None:
    with pytest.raises(ForbiddenAddress):
        OutboundClient(NetworkPolicy((ip_network("10.0.0.0/8"),))).check_url(url)


@pytest.mark.parametrize(
    "address", ["8.8.8.8", "1.1.1.1", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "2a00::1", "::ffff:8.8.8.8"]
)
def test_the_table_blocks_no_public_address(address: str) -> None:
    assert NetworkPolicy().is_allowed(ip_address(address))
