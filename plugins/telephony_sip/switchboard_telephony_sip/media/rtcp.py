"""RTCP (RFC 3550): reports to the far end, and what its reports say."""

import random
import time
from typing import Final

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

from switchboard_telephony_sip.media.rtp import TIMESTAMP_CYCLE, IncomingStream, OutgoingStream

NTP_EPOCH: Final = 2_208_988_800
"""Seconds from 1900 to 1970."""
CANONICAL_NAME: Final = 1
REPORT_SECONDS: Final = 5.0


class RtcpReporter:
    """Reports of one call."""

    def __init__(self) -> None:
        self.round_trip_ms: float | None = None
        self.remote_loss_share: float | None = None
        self._last_report: tuple[int, float] | None = None
        self._next_at = 0.0

    def schedule(self, now: float) -> None:
        """Set the time of the next report: five seconds from now, more or less (RFC 3550, 6.2)."""
        self._next_at = now + REPORT_SECONDS * random.uniform(0.5, 1.5)  # noqa: S311

    def is_due(self, now: float) -> bool:
        """Return whether it is time for a report."""
        return now >= self._next_at

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
