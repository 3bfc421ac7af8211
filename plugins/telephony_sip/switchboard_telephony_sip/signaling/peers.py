"""Addresses of SIP: the gateway's own, and those of the trunks and telephones with which it speaks."""

import asyncio
import ipaddress
import socket
from dataclasses import dataclass, replace
from typing import Literal

from aiosipua.headers import SipUri
from aiosipua.utils import format_addr

TransportName = Literal["udp", "tcp", "tls"]
DEFAULT_PORT, DEFAULT_TLS_PORT = 5060, 5061
RESOLVE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class TlsCertificate:
    """Paths of a certificate chain and of its private key, both in PEM."""

    chain: str
    private_key: str


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """A transport and address on which the gateway receives SIP; TLS needs a certificate."""

    transport: TransportName
    host: str
    port: int
    certificate: TlsCertificate | None = None


@dataclass(frozen=True, slots=True)
class Peer:
    """The address to which a message goes, or from which it came; `host` has no brackets."""

    transport: TransportName
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.transport}:{format_addr(self.host, self.port)}"


class PeerUnreachable(Exception):
    """A peer does not answer, or a message could not be sent: no such host, refused connection, failed TLS handshake,
    or a lost connection.
    """


def is_ip_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def is_private_address(host: str) -> bool:
    """Return whether a host is an address that another network cannot reach."""
    return is_ip_address(host) and ipaddress.ip_address(host).is_private


def read_peer(uri: SipUri, default: TransportName = "udp") -> Peer:
    """Return the address that a SIP URI names (RFC 3263, section 4.1, without NAPTR and SRV)."""
    named = (uri.params.get("transport") or "").lower()
    transport: TransportName = default
    if uri.scheme == "sips" or named == "tls":
        transport = "tls"
    elif named in ("udp", "tcp"):
        transport = "tcp" if named == "tcp" else "udp"
    host = (uri.params.get("maddr") or uri.host).strip().strip("[]")
    return Peer(transport, host, uri.port or (DEFAULT_TLS_PORT if transport == "tls" else DEFAULT_PORT))


async def resolve_peer(peer: Peer) -> Peer:
    """Return the peer with an IP address (A or AAAA). TLS keeps the name, which the certificate must have.

    Raises `PeerUnreachable` for a name without an address.
    """
    if peer.transport == "tls" or is_ip_address(peer.host):
        return peer
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(RESOLVE_SECONDS):
            found = await loop.getaddrinfo(peer.host, peer.port, type=socket.SOCK_DGRAM)
    except (OSError, TimeoutError, UnicodeError) as error:
        raise PeerUnreachable(f"{peer.host} has no address: {error}") from error
    return replace(peer, host=str(found[0][4][0]))
