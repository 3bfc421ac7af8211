"""Index of the networks of trunks: the sender of every datagram is looked up."""

from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Generic, TypeVar

LineT = TypeVar("LineT")
Network = IPv4Network | IPv6Network


def read_networks(texts: Iterable[str]) -> list[Network]:
    """Return addresses and networks as networks."""
    return [ip_network(text, strict=False) for text in texts]


class TrunkAddresses(Generic[LineT]):
    """Lines by their networks. A lookup takes a step for each length of prefixes, however many lines there are."""

    def __init__(self, lines: Iterable[tuple[LineT, Iterable[Network]]]) -> None:
        self._lines: list[LineT] = []
        self._places: dict[tuple[int, int], dict[int, list[int]]] = {}
        for place, (line, networks) in enumerate(lines):
            self._lines.append(line)
            for network in networks:
                unused = network.max_prefixlen - network.prefixlen
                found = self._places.setdefault((network.version, unused), {})
                found.setdefault(int(network.network_address) >> unused, []).append(place)

    def find(self, host: str) -> list[LineT]:
        """Return the lines that have an address, in their order."""
        try:
            address = ip_address(host)
        except ValueError:
            return []
        number, places = int(address), set[int]()
        for (version, unused), found in self._places.items():
            if version == address.version:
                places.update(found.get(number >> unused, ()))
        return [self._lines[place] for place in sorted(places)]
