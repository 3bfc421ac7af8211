"""The far end's audio in `bench.sip`: one UDP socket that talks to every call of the gateway."""

import asyncio
import socket
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from switchboard_telephony_sip.media.frames import FRAME_SECONDS
from switchboard_telephony_sip.media.rtp import OutgoingStream, is_rtcp, parse_rtp

SO_TIMESTAMPNS: Final = 35
"""Linux's option for the kernel's time of arrival (socket(7)), which this Python does not name."""
TIMESPEC: Final = struct.Struct("qq")
GONE_SECONDS: Final = 0.2
"""A call that sends nothing for so long is over."""
Source = tuple[str, int]


@dataclass(slots=True)
class FarCall:
    """One call: what it sends, and when its packets came."""

    number: int
    stream: OutgoingStream = field(default_factory=OutgoingStream)
    last_at: float = 0.0
    arrivals: list[tuple[float, int]] = field(default_factory=list)

    def measure_lateness(self) -> list[float]:
        """Return the lateness of each packet in milliseconds: its arrival beside its RTP timestamp, above the
        earliest of the call.
        """
        first = self.arrivals[0][1]
        late = [arrival * 1000 - (timestamp - first) % (1 << 32) / 8 for arrival, timestamp in self.arrivals]
        return [value - min(late) for value in late]


class FarAudio:
    """Sends speech to each call every 20 ms, from its first packet until it ends, and notes what comes."""

    def __init__(self, payload_type: int, payloads: Sequence[bytes]) -> None:
        self._payload_type, self._payloads = payload_type, payloads
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self._socket.setblocking(False)
        self._socket.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        self._calls: dict[tuple[Source, int], FarCall] = {}
        self._opened = 0
        self.finished: list[FarCall] = []

    @property
    def port(self) -> int:
        port: int = self._socket.getsockname()[1]
        return port

    @property
    def live(self) -> int:
        return len(self._calls)

    def start(self) -> None:
        """Listen in the running loop."""
        asyncio.get_running_loop().add_reader(self._socket, self._receive)

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._socket)
        self._socket.close()

    def _receive(self) -> None:
        while True:
            try:
                data, control, _, source = self._socket.recvmsg(2048, 64)
            except BlockingIOError:
                return
            packet = None if is_rtcp(data) else parse_rtp(data)
            if packet is None:
                continue
            seconds, nanoseconds = TIMESPEC.unpack(control[0][2])
            key = source, packet.source
            call = self._calls.get(key)
            if call is None:
                self._opened += 1
                call = self._calls[key] = FarCall(self._opened)
                asyncio.get_running_loop().call_soon(self._send, key, time.monotonic())
            call.last_at = time.monotonic()
            call.arrivals.append((seconds + nanoseconds / 1e9, packet.timestamp))

    def _send(self, key: tuple[Source, int], due: float) -> None:
        call = self._calls[key]
        if time.monotonic() - call.last_at > GONE_SECONDS:
            self.finished.append(self._calls.pop(key))
            return
        payload = self._payloads[(call.number + call.stream.packets) % len(self._payloads)]
        self._socket.sendto(call.stream.pack(self._payload_type, payload), key[0])
        call.stream.advance(160)
        loop = asyncio.get_running_loop()
        loop.call_at(loop.time() + due + FRAME_SECONDS - time.monotonic(), self._send, key, due + FRAME_SECONDS)
