"""RTP packets (RFC 3550): their header, a stream that is sent, and the statistics of one that is received."""

import secrets
from struct import Struct
from typing import Final, NamedTuple

from aiortp.packet import RtcpReceiverInfo

HEADER: Final = Struct("!BBHII")
VERSION: Final = 2
MAX_DROPOUT: Final = 3000
MAX_MISORDER: Final = 100
"""Bounds of a credible jump of the sequence number (RFC 3550, appendix A.1)."""
SEQUENCE_CYCLE: Final = 1 << 16
TIMESTAMP_CYCLE: Final = 1 << 32


class RtpPacket(NamedTuple):
    payload_type: int
    marker: bool
    sequence: int
    timestamp: int
    source: int
    payload: bytes


def parse_rtp(data: bytes) -> RtpPacket | None:
    """Parse a datagram; None if it is not an RTP packet. Contributing sources and header extensions are skipped."""
    if len(data) < HEADER.size:
        return None
    flags, kind, sequence, timestamp, source = HEADER.unpack_from(data)
    start, end = HEADER.size + 4 * (flags & 0x0F), len(data)
    if flags & 0x10:
        start += 4 + 4 * int.from_bytes(data[start + 2 : start + 4])
    if flags & 0x20:
        end -= data[-1] or end
    if flags >> 6 != VERSION or start > end:
        return None
    return RtpPacket(kind & 0x7F, kind > 0x7F, sequence, timestamp, source, data[start:end])


def is_rtcp(data: bytes) -> bool:
    """Tell an RTCP packet from an RTP packet on the same port (RFC 5761, section 4)."""
    return len(data) > 1 and 192 <= data[1] <= 223


class OutgoingStream:
    """Header fields and counters of a stream that is sent."""

    def __init__(self) -> None:
        self.source = secrets.randbits(32)
        self.timestamp = secrets.randbits(32)
        self.packets = 0
        self.octets = 0
        self._sequence = secrets.randbits(16)

    def pack(self, payload_type: int, payload: bytes, *, marker: bool = False, timestamp: int | None = None) -> bytes:
        """Return the next packet; `timestamp` differs from the stream's in the packets of one digit."""
        header = HEADER.pack(
            VERSION << 6,
            payload_type | marker << 7,
            self._sequence,
            self.timestamp if timestamp is None else timestamp,
            self.source,
        )
        self._sequence = (self._sequence + 1) % SEQUENCE_CYCLE
        self.packets += 1
        self.octets += len(payload)
        return header + payload

    def advance(self, units: int) -> None:
        """Move on by a frame, in units of the codec's clock."""
        self.timestamp = (self.timestamp + units) % TIMESTAMP_CYCLE


class IncomingStream:
    """Sequence numbers, losses, and jitter of one received stream (RFC 3550, appendices A.1, A.3, and A.8)."""

    def __init__(self, packet: RtpPacket) -> None:
        self.source = packet.source
        self.received = 0
        self._first = self._highest = packet.sequence - 1
        self._suspect: int | None = None
        self._transit: float | None = None
        self.jitter = 0.0
        """Jitter, in units of the clock."""
        self._reported = (0, 0)

    def accept(self, packet: RtpPacket) -> bool:
        """Count a packet. False if its sequence number is not credible, until the next one continues it."""
        distance = (packet.sequence - self._highest) % SEQUENCE_CYCLE
        if distance < MAX_DROPOUT:
            self._highest += distance
        elif distance <= SEQUENCE_CYCLE - MAX_MISORDER:
            if packet.sequence != self._suspect:
                self._suspect = (packet.sequence + 1) % SEQUENCE_CYCLE
                return False
            # Two in a row: the sender began again.
            self._first += packet.sequence - 1 - self._highest
            self._highest = packet.sequence
        self._suspect = None
        self.received += 1
        return True

    def measure_jitter(self, packet: RtpPacket, arrival: float, clock_rate: int) -> None:
        """Update the jitter with a packet that arrived at this time, in seconds."""
        transit = arrival * clock_rate - packet.timestamp
        if self._transit is not None:
            difference = abs(transit - self._transit)
            # A jump of more than a second is a new timeline, not jitter.
            if difference < clock_rate:
                self.jitter += (difference - self.jitter) / 16
        self._transit = transit

    @property
    def expected(self) -> int:
        return self._highest - self._first

    def report(self, last_report: int, delay: int) -> RtcpReceiverInfo:
        """Return the report block since the last one, with its LSR and DLSR (RFC 3550, 6.4.1)."""
        expected, received = self.expected - self._reported[0], self.received - self._reported[1]
        self._reported = (self.expected, self.received)
        share = max(0, expected - received) * 256 // expected if expected > 0 else 0
        return RtcpReceiverInfo(
            ssrc=self.source,
            fraction_lost=min(share, 255),
            packets_lost=min(max(0, self.expected - self.received), 0x7FFFFF),
            highest_sequence=self._highest % TIMESTAMP_CYCLE,
            jitter=int(self.jitter),
            lsr=last_report,
            dlsr=delay,
        )
