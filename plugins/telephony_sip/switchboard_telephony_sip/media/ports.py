"""Addresses and ports of media: pairs of UDP sockets, for RTP and for RTCP."""

import errno
import random
import socket
from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple

DEFAULT_PORTS: Final = range(10_000, 20_000)


class NoFreePorts(Exception):
    """All ports of the range are in use: 503 Service Unavailable."""


class SocketPair(NamedTuple):
    """Sockets of one call: RTP on an even port, RTCP on the next one."""

    media: socket.socket
    control: socket.socket
    port: int


class PortPool:
    """Free even ports of a range, in random order, which makes them hard to guess. A port rests after its call."""

    def __init__(self, host: str, ports: Sequence[int] = DEFAULT_PORTS) -> None:
        self._host = host
        free = [port for port in ports if port % 2 == 0 and port + 1 in ports]
        random.shuffle(free)
        self._free = deque(free)

    @property
    def free(self) -> int:
        return len(self._free)

    def open_pair(self) -> SocketPair:
        """Return bound sockets; raise `NoFreePorts`."""
        for _ in range(len(self._free)):
            port = self._free.popleft()
            try:
                return self._bind(port)
            except OSError as error:
                self._free.append(port)
                if error.errno != errno.EADDRINUSE:
                    raise
        raise NoFreePorts(f"no two free ports in a row on {self._host}")

    def give_back(self, port: int) -> None:
        self._free.append(port)

    def _bind(self, port: int) -> SocketPair:
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        sockets: list[socket.socket] = []
        try:
            for number in (port, port + 1):
                sockets.append(socket.socket(family, socket.SOCK_DGRAM))
                sockets[-1].setblocking(False)
                sockets[-1].bind((self._host, number))
        except OSError:
            for opened in sockets:
                opened.close()
            raise
        return SocketPair(sockets[0], sockets[1], port)
