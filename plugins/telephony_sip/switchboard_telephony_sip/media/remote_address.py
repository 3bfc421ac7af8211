"""Address of the far end's media: the signaled one, or that of its packets behind a NAT (symmetric RTP, RFC 4961)."""

from typing import Final, NamedTuple

from switchboard_telephony_sip.media.rtp import SEQUENCE_CYCLE, RtpPacket
from switchboard_telephony_sip.media.session_description import Address

LATCH_PACKETS: Final = 3
"""Packets in order of one sender at another address than the signaled one, after which it is the far end."""
MOST_SKIPPED: Final = 16


class LatchCandidate(NamedTuple):
    address: Address
    source: int
    sequence: int
    packets: int


class RemoteAddress:
    """Decides once whose packets belong to a call. Only the signaled address may take it over later.

    A third party that guesses the port and sends before the far end could take over the audio ("RTP bleed"). So the
    signaled address always wins, another one needs packets in order, and with SRTP packets must pass their check.
    """

    def __init__(self) -> None:
        self.target: Address | None = None
        self._signaled: Address | None = None
        self._is_latched = False
        self._candidate: LatchCandidate | None = None

    def expect(self, address: Address | None) -> None:
        """Adopt the address of an offer or answer. The same one again keeps what was latched."""
        if address != self._signaled:
            self._signaled = self.target = address
            self._is_latched, self._candidate = False, None

    def may_be(self, address: Address) -> bool:
        """Say whether packets from this address are worth reading."""
        return not self._is_latched or address in {self.target, self._signaled}

    def accept(self, address: Address, packet: RtpPacket, *, is_authentic: bool) -> bool:
        """Say whether a packet belongs to the call."""
        if address == self._signaled:
            self.target, self._is_latched = address, True
            return True
        if self._is_latched:
            return address == self.target
        if is_authentic or self._is_confirmed(address, packet):
            self.target, self._is_latched = address, True
            return True
        return False

    def _is_confirmed(self, address: Address, packet: RtpPacket) -> bool:
        last = self._candidate
        packets = 1
        if last is not None and last.address == address and last.source == packet.source:
            if not 0 < (packet.sequence - last.sequence) % SEQUENCE_CYCLE <= MOST_SKIPPED:
                return False
            packets = last.packets + 1
        self._candidate = LatchCandidate(address, packet.source, packet.sequence, packets)
        return packets >= LATCH_PACKETS
