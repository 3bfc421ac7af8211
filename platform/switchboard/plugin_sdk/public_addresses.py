"""Addresses that come from outside: which ones may be requested, checked as text and again when they are dialed.

The table of networks is our own, because Python's `is_global` differs between versions and allows metadata services.
"""

import ipaddress
import re
import socket
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import TypeAlias

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network

MAX_URL_LENGTH, MAX_NAME_LENGTH = 2048, 253
LOOK_UP_SECONDS = 1.5
NAMES_KEPT_SECONDS = 10
LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")

DENIED_V4 = tuple(
    IPv4Network(text)
    for text in (
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "168.63.129.16/32", "169.254.0.0/16",
        "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24",
        "192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4",
        "240.0.0.0/4",
    )
)  # fmt: skip
ALLOWED_V6 = IPv6Network("2000::/3")
DENIED_V6 = tuple(
    IPv6Network(text) for text in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "2620:4f:8000::/48")
)
DENIED_NAMES = ("localhost", "local", "internal", "localdomain", "home.arpa", "test", "invalid", "onion")


class ForbiddenAddress(Exception):
    """The address is private, reserved, or invalid. The message is constant: details would help to explore the
    network.
    """

    def __init__(self) -> None:
        super().__init__(
            "must be a public http or https address; the operator can allow private networks with "
            "SWITCHBOARD_WEBHOOK_ALLOWED_NETWORKS"
        )


class RefusedConnection(OSError):
    """Raised instead of creating a socket, so that aiohttp treats it as a failed connection: `os_error` of its
    `ClientConnectorError`.
    """

    def __init__(self) -> None:
        super().__init__("destination address is not allowed")


@dataclass(frozen=True, slots=True)
class NetworkPolicy:
    """The operator's rules for addresses that come from outside.

    `allowed_networks` are exempt from the rule against private addresses (`SWITCHBOARD_WEBHOOK_ALLOWED_NETWORKS`).
    `own_url` is the platform's public address, to which no request may go.
    """

    allowed_networks: tuple[Network, ...] = ()
    own_url: str | None = None

    def check_url(self, text: str) -> URL:
        """Return the address in the form that will be requested. Raises `ForbiddenAddress`."""
        url = _parse_url(text)
        host = url.raw_host or ""
        try:
            is_allowed = self.is_allowed(ipaddress.ip_address(host))
        except ValueError:
            is_allowed = _is_public_name(host.rstrip(".").lower(), allows_local=bool(self.allowed_networks))
        if not is_allowed or (self.own_url is not None and _place(url) == _place(URL(self.own_url))):
            raise ForbiddenAddress
        return url

    def is_exempt(self, address: Address) -> bool:
        """Return whether the operator has exempted an address."""
        if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        return any(address in network for network in self.allowed_networks if network.version == address.version)

    def is_allowed(self, address: Address) -> bool:
        """Return whether a request may go to an address."""
        if isinstance(address, IPv6Address):
            if address.scope_id is not None:
                return False
            if address.ipv4_mapped is not None:
                address = address.ipv4_mapped
        if self.is_exempt(address):
            return True
        if isinstance(address, IPv4Address):
            return not any(address in network for network in DENIED_V4)
        return address in ALLOWED_V6 and not any(address in network for network in DENIED_V6)

    def create_connector(self, resolver: AbstractResolver | None = None) -> aiohttp.TCPConnector:
        """Create a connector that checks each address that is really dialed: a name may resolve differently from one
        moment to the next. Its connections fail with `RefusedConnection`.

        Tests pass their own `resolver`; None asks the system's name servers.
        """
        # Not the default resolver: names whose servers do not answer would block its few threads.
        names = resolver or aiohttp.AsyncResolver(timeout=LOOK_UP_SECONDS, tries=2)
        # No limit: waiting for a slot must not use up the receiver's time; callers bound their own concurrency.
        return aiohttp.TCPConnector(
            limit=0,
            ttl_dns_cache=NAMES_KEPT_SECONDS,
            resolver=_Resolver(names, self),
            socket_factory=self._create_socket,
        )

    def _create_socket(self, info: aiohttp.AddrInfoType) -> socket.socket:
        family, kind, protocol, _, address = info
        if not self.is_allowed(ipaddress.ip_address(str(address[0]))):
            raise RefusedConnection
        return socket.socket(family=family, type=kind, proto=protocol)


class _Resolver(AbstractResolver):
    """Refuses a name if any of its addresses is forbidden, unless the operator has exempted another one of them."""

    def __init__(self, resolver: AbstractResolver, policy: NetworkPolicy) -> None:
        self._resolver = resolver
        self._policy = policy

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found = [
            (answer, ipaddress.ip_address(answer["host"]))
            for answer in await self._resolver.resolve(host, port, family)
        ]
        allowed = [answer for answer, address in found if self._policy.is_allowed(address)]
        vouched = any(self._policy.is_exempt(address) for _, address in found)
        if not allowed or (len(allowed) < len(found) and not vouched):
            raise RefusedConnection
        return allowed

    async def close(self) -> None:
        await self._resolver.close()


def _parse_url(text: str) -> URL:
    """Parse an address with the parser that will send the request. Raises `ForbiddenAddress`."""
    if len(text) > MAX_URL_LENGTH or re.search(r"[\x00-\x20\x7f\\]", text):
        raise ForbiddenAddress
    try:
        url = URL(text).with_fragment(None)
        host, shown, port = url.raw_host, url.host, url.port
    except (ValueError, TypeError):
        raise ForbiddenAddress from None
    if url.scheme not in ("http", "https") or not host or url.user is not None or url.password is not None or not port:
        raise ForbiddenAddress
    if "@" in url.authority or "%" in url.authority:
        raise ForbiddenAddress
    # Some resolvers accept digits of other scripts as an address.
    if any(letter.isnumeric() and not letter.isascii() for letter in shown or ""):
        raise ForbiddenAddress
    return url


def _is_public_name(name: str, *, allows_local: bool) -> bool:
    labels = name.split(".")
    looks_numeric = bool(re.fullmatch(r"\d+|0x[0-9a-f]*", labels[-1]))
    if looks_numeric or len(name) > MAX_NAME_LENGTH or not all(LABEL.fullmatch(label) for label in labels):
        return False
    is_local = len(labels) == 1 or any(name == denied or name.endswith(f".{denied}") for denied in DENIED_NAMES)
    return allows_local or not is_local


def _place(url: URL) -> tuple[str | None, int | None]:
    return (url.host or "").rstrip(".").lower(), url.port
