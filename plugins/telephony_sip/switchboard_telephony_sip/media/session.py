"""Audio of one SIP call: session description, sockets, and the frames of both directions."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple, Self

from switchboard_telephony_sip.media.digits import parse_info_digit
from switchboard_telephony_sip.media.incoming import IncomingAudio
from switchboard_telephony_sip.media.outgoing import OutgoingAudio
from switchboard_telephony_sip.media.place import MediaPlace, MediaSockets
from switchboard_telephony_sip.media.rtp import SEQUENCE_CYCLE, RtcpReporter, RtpPacket, is_rtcp, parse_rtp
from switchboard_telephony_sip.media.session_description import Address, AgreedMedia, MediaNegotiator, MediaPreferences
from switchboard_telephony_sip.media.srtp import SrtpContext

PACKET_MS: Final = 20.0
ASSUMED_ROUND_TRIP_MS: Final = 40.0
"""Round trip that the opinion score assumes before the far end reported."""
BEST_RATING: Final = 93.2
"""Rating R of a line with the default values of ITU-T G.107, but for its delay and losses."""
LOSS_ROBUSTNESS: Final = 25.1
"""Bpl of G.711 with packet-loss concealment (ITU-T G.113, appendix I). The other codecs are rated like it."""
MOST_IMPAIRMENT: Final = 95.0
LATCH_PACKETS: Final = 3
"""Packets in order of one sender at another address than the signaled one, after which it is the far end."""
MOST_SKIPPED: Final = 16


@dataclass(frozen=True, slots=True)
class MediaQuality:
    """Quality of the audio that was received, and what the far end reported about the audio sent to it.

    Shares are from 0 to 1. `loss_share`: packets that never came. `late_share`: packets that came after their time.
    `jitter_ms`: RFC 3550's estimate. `round_trip_ms`: None before the far end reported. `remote_loss_share`: losses
    that the far end reported. `mos`: mean opinion score, from 1 to 4.4, by the E-model (ITU-T G.107).
    """

    packets_received: int
    loss_share: float
    late_share: float
    jitter_ms: float
    round_trip_ms: float | None
    remote_loss_share: float | None
    mos: float


def estimate_mos(loss_share: float, delay_ms: float) -> float:
    """Return the mean opinion score of G.711 with this share of lost packets, at random, and one-way delay."""
    loss = 100 * loss_share
    impairment = MOST_IMPAIRMENT * loss / (loss + LOSS_ROBUSTNESS)
    # The delay impairment of G.107 in the common approximation of Cole and Rosenbluth (2001).
    delay = 0.024 * delay_ms + (0.11 * (delay_ms - 177.3) if delay_ms > 177.3 else 0)
    rating = min(max(BEST_RATING - impairment - delay, 0), 100)
    return round(min(max(1 + 0.035 * rating + rating * (rating - 60) * (100 - rating) * 7e-6, 1), 4.5), 2)


class LatchCandidate(NamedTuple):
    address: Address
    source: int
    sequence: int
    packets: int


class RemoteAddress:
    """Address of the far end's media: the signaled one, or that of its packets behind a NAT (symmetric RTP, RFC 4961).

    It is decided once whose packets belong to a call. Only the signaled address may take it over later.

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


def _ignore(_: object) -> None:
    pass


class MediaSession:
    """Audio of one call, as mu-law at 8 kHz in both directions whatever the line's codec is.

    `on_audio` gets 160 bytes every 20 ms from the first agreement on, silence where nothing came. `on_digit` gets each
    key once. `on_mark` gets the marks in order, when the audio before them was sent or cleared.
    """

    def __init__(self, place: MediaPlace, preferences: MediaPreferences, sockets: MediaSockets) -> None:
        self.on_audio: Callable[[bytes], None]
        self.on_digit: Callable[[str], None]
        self.on_mark: Callable[[str], None]
        self.detach()
        self.partner: MediaSession | None = None
        self._place = place
        self._sockets = sockets
        self._negotiator = MediaNegotiator((place.advertised_host, sockets.port), preferences)
        self._agreed: AgreedMedia | None = None
        self._remote = RemoteAddress()
        self._control_address: Address | None = None
        self._srtp: SrtpContext | None = None
        self._incoming = IncomingAudio(self._report_digit)
        self._outgoing = OutgoingAudio(self._report_mark)
        self._reporter = RtcpReporter()
        self._last_packet = time.monotonic()

    @classmethod
    async def open(cls, place: MediaPlace, preferences: MediaPreferences) -> Self:
        """Bind two ports; raise `NoFreePorts`."""
        sockets = await MediaSockets.open(place.ports)
        session = cls(place, preferences, sockets)
        sockets.receive(session._take_media, session._take_control)
        return session

    def detach(self) -> None:
        """Report nothing from now on."""
        self.on_audio = self.on_digit = self.on_mark = _ignore

    def create_offer(self) -> str:
        """Return an offer, the first or a later one."""
        return self._negotiator.create_offer()

    def renew_offer(self) -> str:
        """Return an offer that goes on from what was agreed on, in both directions."""
        return self._negotiator.renew_offer()

    def accept_answer(self, sdp: str) -> None:
        """Adopt the answer to our last offer; raise `NoCommonMedia`."""
        self._adopt(self._negotiator.accept_answer(sdp))

    def answer(self, offer: str) -> str:
        """Return the answer to the first or a later offer; raise `NoCommonMedia`, which changes nothing."""
        answer, agreed = self._negotiator.answer(offer)
        self._adopt(agreed)
        return answer

    def play(self, mulaw: bytes) -> None:
        """Queue audio of any length; it is sent in real time."""
        self._outgoing.queue.play(mulaw)

    def clear(self) -> None:
        """Drop queued audio. Marks come back at once."""
        self._outgoing.queue.clear()

    def mark(self, name: str) -> None:
        """Queue a mark behind the audio."""
        self._outgoing.queue.mark(name)

    def press(self, digits: str) -> asyncio.Future[None]:
        """Press keys, `w` waits half a second; raise `ValueError`. The result is set when they were sent.

        They go as telephone events where those were agreed on, otherwise as tones.
        """
        return self._outgoing.press(digits)

    def relay(self, mulaw: bytes) -> None:
        """Send a frame of a joined call, unless something is played."""
        self._outgoing.relay(mulaw)

    def take_info_digit(self, body: str) -> None:
        """Take the body of a SIP INFO request with a key."""
        if digit := parse_info_digit(body):
            self._report_digit(digit)

    def join(self, other: "MediaSession") -> None:
        """Connect two calls: the audio and keys of each go to the other, too. What is played comes first."""
        self.leave()
        other.leave()
        self.partner, other.partner = other, self

    def leave(self) -> None:
        """Separate the calls."""
        if self.partner is not None:
            self.partner.partner = None
            self.partner = None

    @property
    def is_silent_for(self) -> float:
        """Seconds since the last packet of the far end, or since the beginning."""
        return time.monotonic() - self._last_packet

    @property
    def is_encrypted(self) -> bool:
        return self._srtp is not None

    @property
    def quality(self) -> MediaQuality:
        incoming, reporter = self._incoming, self._reporter
        expected = max(incoming.expected, 1)
        loss = max(0, incoming.expected - incoming.received) / expected
        late = min(incoming.playout.late / expected, 1 - loss)
        round_trip = ASSUMED_ROUND_TRIP_MS if reporter.round_trip_ms is None else reporter.round_trip_ms
        return MediaQuality(
            packets_received=incoming.received,
            loss_share=loss,
            late_share=late,
            jitter_ms=incoming.jitter_ms,
            round_trip_ms=reporter.round_trip_ms,
            remote_loss_share=reporter.remote_loss_share,
            mos=estimate_mos(loss + late, round_trip / 2 + incoming.playout.delay_ms + PACKET_MS),
        )

    async def close(self) -> None:
        """Say goodbye in RTCP, and give the ports back; again without effect."""
        if self._sockets.is_closed:
            return
        self._place.pacer.remove(self)
        self.leave()
        self._outgoing.cancel_keys()
        if self._agreed is not None:
            self._send_control(self._reporter.make_goodbye(self._outgoing.stream))
        await self._sockets.close()

    def _adopt(self, agreed: AgreedMedia) -> None:
        if self._agreed is None:
            self._last_packet = time.monotonic()
            self._reporter.schedule(self._last_packet)
            self._place.pacer.add(self, self._tick)
        self._agreed = agreed
        self._remote.expect(agreed.address)
        self._control_address = agreed.control_address
        self._incoming.configure(agreed.incoming)
        self._outgoing.configure(agreed.outgoing)
        if agreed.srtp is None:
            self._srtp = None
        elif self._srtp is None:
            self._srtp = SrtpContext(agreed.srtp)
        else:
            self._srtp.change_keys(agreed.srtp)

    def _tick(self, now: float) -> None:
        """Pass on 20 ms of both directions. `now` is the time that they are due, in seconds."""
        agreed = self._agreed
        if agreed is None or self._sockets.is_closed:
            return
        packets = self._outgoing.take()
        if self._remote.target is not None and agreed.direction in {"sendrecv", "sendonly"}:
            for packet in packets:
                data = packet if self._srtp is None else self._srtp.protect(packet, is_control=False)
                self._sockets.send_media(data, self._remote.target)
        if now >= self._reporter.next_at:
            self._reporter.schedule(now)
            self._send_control(self._reporter.make_report(self._outgoing.stream, self._incoming.stream, now))
        frame = self._incoming.take(now)
        if self.partner is not None:
            self.partner.relay(frame)
        self.on_audio(frame)

    def _take_media(self, data: bytes, address: Address) -> None:
        if is_rtcp(data):
            self._take_control(data, address)
            return
        agreed, srtp = self._agreed, self._srtp
        if agreed is None or agreed.direction in {"sendonly", "inactive"} or not self._remote.may_be(address):
            return
        plain = data if srtp is None else srtp.unprotect(data, is_control=False)
        packet = parse_rtp(plain) if plain is not None else None
        if packet is None or not self._incoming.knows(packet.payload_type):
            return
        if not self._remote.accept(address, packet, is_authentic=srtp is not None):
            return
        now = time.monotonic()
        if self._incoming.put(packet, now):
            self._last_packet = now

    def _take_control(self, data: bytes, address: Address) -> None:
        target = self._remote.target
        if self._agreed is None or target is None or address[0] != target[0]:
            return
        plain = data if self._srtp is None else self._srtp.unprotect(data, is_control=True)
        if plain is not None:
            self._control_address = address
            self._reporter.take(plain, self._outgoing.stream, time.monotonic())

    def _send_control(self, packet: bytes) -> None:
        agreed, target = self._agreed, self._remote.target
        if agreed is None or target is None:
            return
        if self._srtp is not None:
            packet = self._srtp.protect(packet, is_control=True)
        if agreed.shares_port:
            self._sockets.send_media(packet, target)
            return
        known = self._control_address
        # Behind a NAT the signaled address cannot be reached, and the port beside the latched one is the best guess.
        is_usable = known is not None and known[0] == target[0]
        self._sockets.send_control(packet, known if known and is_usable else (target[0], target[1] + 1))

    def _report_mark(self, name: str) -> None:
        self.on_mark(name)

    def _report_digit(self, digit: str) -> None:
        if self.partner is not None:
            self.partner.press(digit)
        self.on_digit(digit)
