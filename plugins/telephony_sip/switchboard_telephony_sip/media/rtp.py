"""RTP and RTCP (RFC 3550): packets, a stream that is sent, the statistics of one that is received, and reports."""

import random
import secrets
import time
from struct import Struct
from typing import Final, NamedTuple

from aiortp.packet import (
    RtcpByePacket,
    RtcpPacket,
    RtcpReceiverInfo,
    RtcpRrPacket,
    RtcpSdesPacket,
    RtcpSenderInfo,
    RtcpSourceInfo,
    RtcpSrPacket,
)

HEADER: Final = Struct("!BBHII")
VERSION: Final = 2
MAX_DROPOUT: Final = 3000
MAX_MISORDER: Final = 100
"""Bounds of a credible jump of the sequence number (RFC 3550, appendix A.1)."""
SEQUENCE_CYCLE: Final = 1 << 16
TIMESTAMP_CYCLE: Final = 1 << 32
NTP_EPOCH: Final = 2_208_988_800
"""Seconds from 1900 to 1970."""
CANONICAL_NAME: Final = 1
REPORT_SECONDS: Final = 5.0


class RtpPacket(NamedTuple):
    payload_type: int
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
    return RtpPacket(kind & 0x7F, sequence, timestamp, source, data[start:end])


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


class RtcpReporter:
    """Reports to the far end of one call, and what its reports say."""

    def __init__(self) -> None:
        self.round_trip_ms: float | None = None
        self.remote_loss_share: float | None = None
        self._last_report: tuple[int, float] | None = None
        self.next_at = 0.0

    def schedule(self, now: float) -> None:
        """Set the time of the next report: five seconds from now, more or less (RFC 3550, 6.2)."""
        self.next_at = now + REPORT_SECONDS * random.uniform(0.5, 1.5)  # noqa: S311

    def make_report(self, sent: OutgoingStream, received: IncomingStream | None, now: float) -> bytes:
        """Return a sender or receiver report with the canonical name. `now` is in seconds of a monotonic clock."""
        last, at = self._last_report or (0, now)
        delay = min(int((now - at) * 65536), TIMESTAMP_CYCLE - 1)
        blocks = [received.report(last, delay)] if received else []
        report: RtcpSrPacket | RtcpRrPacket
        if sent.packets:
            info = RtcpSenderInfo(_read_ntp_clock(), sent.timestamp, sent.packets, sent.octets % TIMESTAMP_CYCLE)
            report = RtcpSrPacket(sent.source, info, blocks)
        else:
            report = RtcpRrPacket(sent.source, blocks)
        name = RtcpSourceInfo(sent.source, [(CANONICAL_NAME, f"{sent.source:08x}".encode())])
        return bytes(report) + bytes(RtcpSdesPacket([name]))

    def make_goodbye(self, sent: OutgoingStream) -> bytes:
        """Return the last packet of a call."""
        return bytes(RtcpRrPacket(sent.source)) + bytes(RtcpByePacket([sent.source]))

    def take(self, data: bytes, sent: OutgoingStream, now: float) -> None:
        """Read a packet of the far end; one that cannot be parsed is ignored."""
        try:
            packets = RtcpPacket.parse(data)
        except ValueError:
            return
        for packet in packets:
            if isinstance(packet, RtcpSrPacket):
                self._last_report = (packet.sender_info.ntp_timestamp >> 16 & 0xFFFFFFFF, now)
            if isinstance(packet, RtcpSrPacket | RtcpRrPacket):
                for block in packet.reports:
                    if block.ssrc == sent.source:
                        self._take_block(block)

    def _take_block(self, block: RtcpReceiverInfo) -> None:
        self.remote_loss_share = block.fraction_lost / 256
        if block.lsr:
            elapsed = ((_read_ntp_clock() >> 16) - block.lsr - block.dlsr) % TIMESTAMP_CYCLE
            # More than ten seconds is a wrong clock.
            if elapsed < 10 * 65536:
                self.round_trip_ms = elapsed * 1000 / 65536


def _read_ntp_clock() -> int:
    """Return the time in units of 2^-32 seconds since 1900."""
    return int((time.time() + NTP_EPOCH) * (1 << 32)) & 0xFFFFFFFFFFFFFFFF
