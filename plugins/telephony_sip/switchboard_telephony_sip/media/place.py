"""Place of a process's media: its address, its ports and sockets, and its timer."""

import asyncio
import errno
import ipaddress
import random
import socket
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Final, Self

from switchboard_telephony_sip.media.frames import FRAME_SECONDS
from switchboard_telephony_sip.media.session_description import Address

MOST_MISSED_TICKS: Final = 10
"""Ticks that are made up for after the process was held up; longer gaps are left out."""

DEFAULT_PORTS: Final = range(10_000, 20_000)

Tick = Callable[[float], None]
OnDatagram = Callable[[bytes, Address], None]


class NoFreePorts(Exception):
    """All ports of the range are in use: 503 Service Unavailable."""


class MediaPacer:
    """Calls each participant every 20 ms with the time that the tick was due, in seconds of `time.monotonic`.

    Each call runs in a callback of its own of the event loop, so that the failure of one stops no other.
    """

    def __init__(self) -> None:
        self._participants: dict[object, Tick] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0

    def add(self, participant: object, tick: Tick) -> None:
        self._participants[participant] = tick
        if self._timer is None:
            self._due = time.monotonic()
            self._schedule()

    def remove(self, participant: object) -> None:
        self._participants.pop(participant, None)

    def _schedule(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(max(0.0, self._due + FRAME_SECONDS - time.monotonic()), self._run)

    def _run(self) -> None:
        if not self._participants:
            self._timer = None
            return
        behind = int((time.monotonic() - self._due) / FRAME_SECONDS)
        if behind > MOST_MISSED_TICKS:
            self._due += (behind - 1) * FRAME_SECONDS
        self._due += FRAME_SECONDS
        loop = asyncio.get_running_loop()
        for tick in self._participants.values():
            loop.call_soon(tick, self._due)
        self._schedule()


class PortPool:
    """Free even ports of a range, in random order, which makes them hard to guess. A port rests after its call."""

    def __init__(self, host: str, ports: Sequence[int]) -> None:
        self._host = host
        free = [port for port in ports if port % 2 == 0 and port + 1 in ports]
        random.shuffle(free)
        self._free = deque(free)

    @property
    def free(self) -> int:
        """Number of free pairs of ports."""
        return len(self._free)

    def open_pair(self) -> tuple[int, list[socket.socket]]:
        """Return an even port, and sockets bound to it, for RTP, and to the next one, for RTCP.

        Raises `NoFreePorts`.
        """
        for _ in range(len(self._free)):
            port = self._free.popleft()
            try:
                return port, self._bind(port)
            except OSError as error:
                self._free.append(port)
                if error.errno != errno.EADDRINUSE:
                    raise
        raise NoFreePorts(f"no two free ports in a row on {self._host}")

    def give_back(self, port: int) -> None:
        self._free.append(port)

    def _bind(self, port: int) -> list[socket.socket]:
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        sockets = []
        with ExitStack() as closing:
            for number in (port, port + 1):
                sockets.append(closing.enter_context(socket.socket(family, socket.SOCK_DGRAM)))
                sockets[-1].setblocking(False)
                sockets[-1].bind((self._host, number))
            closing.pop_all()
        return sockets


class MediaPlace:
    """One for all calls of a process.

    `bind_host`: IPv4 or IPv6 address to listen on. `advertised_host`: address in session descriptions, where it
    differs, as behind a NAT or with `0.0.0.0`. `ports`: range of UDP ports; a call takes two.
    """

    def __init__(
        self, bind_host: str, *, advertised_host: str | None = None, ports: Sequence[int] = DEFAULT_PORTS
    ) -> None:
        self.advertised_host = str(ipaddress.ip_address(advertised_host or bind_host))
        if ipaddress.ip_address(self.advertised_host).is_unspecified:
            raise ValueError(f"media on {bind_host} needs the address that the far end sends to: advertised_host")
        self.ports = PortPool(bind_host, ports)
        self.pacer = MediaPacer()


class DatagramReceiver(asyncio.DatagramProtocol):
    """Protocol that hands over each datagram with the host and port of its sender."""

    def __init__(self) -> None:
        self.on_datagram: OnDatagram | None = None
        self.is_closed = asyncio.Event()

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        if self.on_datagram is not None:
            self.on_datagram(data, (addr[0], addr[1]))

    def error_received(self, exc: Exception) -> None:
        """Ignore ICMP errors: the far end may not listen yet, and a dead one is found by its silence."""

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_closed.set()


class MediaSockets:
    """RTP and RTCP sockets of a call."""

    def __init__(
        self, pool: PortPool, port: int, ends: Sequence[tuple[asyncio.DatagramTransport, DatagramReceiver]]
    ) -> None:
        self.port = port
        self._pool, self._ends = pool, ends
        (self._media, _), (self._control, _) = ends

    @classmethod
    async def open(cls, pool: PortPool) -> Self:
        """Bind two ports of the pool; raise `NoFreePorts`."""
        port, pair = pool.open_pair()
        loop = asyncio.get_running_loop()
        return cls(pool, port, [await loop.create_datagram_endpoint(DatagramReceiver, sock=own) for own in pair])

    def receive(self, on_media: OnDatagram, on_control: OnDatagram) -> None:
        for (_, receiver), on_datagram in zip(self._ends, (on_media, on_control), strict=True):
            receiver.on_datagram = on_datagram

    @property
    def is_closed(self) -> bool:
        return self._media.is_closing()

    def send_media(self, data: bytes, address: Address) -> None:
        self._media.sendto(data, address)

    def send_control(self, data: bytes, address: Address) -> None:
        self._control.sendto(data, address)

    async def close(self) -> None:
        """Close both sockets and give their ports back; again without effect."""
        if self.is_closed:
            return
        for transport, _ in self._ends:
            transport.close()
        for _, receiver in self._ends:
            await receiver.is_closed.wait()
        self._pool.give_back(self.port)
