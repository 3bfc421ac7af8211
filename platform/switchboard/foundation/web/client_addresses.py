"""Addresses of clients."""

from ipaddress import IPv6Address, ip_address, ip_network
from urllib.parse import urlsplit


def is_loopback(address: str) -> bool:
    """Return whether a client's address is of this machine."""
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return False


def is_loopback_url(url: str) -> bool:
    """Return whether a URL's host is this machine, by its name or address."""
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return False
    return host == "localhost" or is_loopback(host)


def find_subscriber(address: str) -> str:
    """Return the part of a client's address that identifies a subscriber: of IPv6, the first 64 bits.

    A subscriber receives at least a /64 (RIPE-690, 4.2), and may use another address of it for each request.
    """
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    if not isinstance(parsed, IPv6Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ip_network((parsed, 64), strict=False))
