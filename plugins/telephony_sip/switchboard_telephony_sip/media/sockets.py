"""UDP sockets of one call in the event loop."""

import asyncio
import socket
from collections.abc import Callable
from typing import Self

from switchboard_telephony_sip.media.ports import PortPool
from switchboard_telephony_sip.media.session_description import Address

OnDatagram = Callable[[bytes, Address], None]


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

    def __init__(self, pool: PortPool, port: int) -> None:
        self.port = port
        self._pool = pool
        self._receivers = (DatagramReceiver(), DatagramReceiver())
        self._transports: list[asyncio.DatagramTransport] = []

    @classmethod
    async def open(cls, pool: PortPool) -> Self:
        """Bind two ports of the pool; raise `NoFreePorts`."""
        pair = pool.open_pair()
        sockets = cls(pool, pair.port)
        for receiver, opened in zip(sockets._receivers, (pair.media, pair.control), strict=True):
            sockets._transports.append(await _attach(receiver, opened))
        return sockets

    def receive(self, on_media: OnDatagram, on_control: OnDatagram) -> None:
        self._receivers[0].on_datagram, self._receivers[1].on_datagram = on_media, on_control

    @property
    def is_closed(self) -> bool:
        return self._transports[0].is_closing()

    def send_media(self, data: bytes, address: Address) -> None:
        self._transports[0].sendto(data, address)

    def send_control(self, data: bytes, address: Address) -> None:
        self._transports[1].sendto(data, address)

    async def close(self) -> None:
        """Close both sockets and give their ports back; again without effect."""
        if self.is_closed:
            return
        for transport in self._transports:
            transport.close()
        for receiver in self._receivers:
            await receiver.is_closed.wait()
        self._pool.give_back(self.port)


async def _attach(receiver: DatagramReceiver, opened: socket.socket) -> asyncio.DatagramTransport:
    transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(lambda: receiver, sock=opened)
    return transport
