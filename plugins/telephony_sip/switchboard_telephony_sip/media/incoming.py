"""Audio from the far end: packets in, frames of mu-law and keys out."""

from collections.abc import Callable

from aiortp.cn import parse_cn_payload

from switchboard_telephony_sip.media.audio_codecs import CODECS, AudioCodec
from switchboard_telephony_sip.media.digits import DigitReceiver
from switchboard_telephony_sip.media.frames import SAMPLE_RATE
from switchboard_telephony_sip.media.playout import Fragment, PlayoutBuffer
from switchboard_telephony_sip.media.rtp import TIMESTAMP_CYCLE, IncomingStream, RtpPacket
from switchboard_telephony_sip.media.session_description import PayloadTypes
from switchboard_telephony_sip.media.tones import ToneDetector
from switchboard_telephony_sip.settings import CodecName


class IncomingAudio:
    """Receiver of one call. It finds keys in the audio only where no telephone events were agreed on."""

    def __init__(self, on_digit: Callable[[str], None]) -> None:
        self.stream: IncomingStream | None = None
        self.clock_rate = SAMPLE_RATE
        self._on_digit = on_digit
        self._types = PayloadTypes({})
        self._codecs: dict[CodecName, AudioCodec] = {}
        self.playout = PlayoutBuffer()
        self._digits = DigitReceiver()
        self._tones: ToneDetector | None = None
        self._event_rates: dict[int, int] = {}
        self._units = 0
        self._timestamp = 0
        self._past = (0, 0)

    def configure(self, types: PayloadTypes) -> None:
        """Adopt the payload types of an offer or answer."""
        self._types = types
        self._event_rates = {payload_type: rate for rate, payload_type in types.events.items()}
        if types.events:
            self._tones = None
        elif self._tones is None:
            self._tones = ToneDetector()

    def knows(self, payload_type: int) -> bool:
        types = self._types
        return payload_type in types.codecs or payload_type in self._event_rates or payload_type == types.noise

    def put(self, packet: RtpPacket, arrival: float) -> bool:
        """Take a packet of a known payload type that arrived at `arrival`, in seconds. False if it is not credible."""
        stream = self.stream
        if stream is None or stream.source != packet.source:
            self._past = (self.expected, self.received)
            stream = self.stream = IncomingStream(packet)
            self.playout.reset()
            self._digits = DigitReceiver()
            self._timestamp, self._units = packet.timestamp, 0
        if not stream.accept(packet):
            return False
        name = self._types.codecs.get(packet.payload_type)
        if name is not None:
            self.clock_rate = CODECS[name].clock_rate
            stream.measure_jitter(packet, arrival, self.clock_rate)
            if name not in self._codecs:
                self._codecs[name] = CODECS[name].make()
            fragment = Fragment(packet.payload, self._codecs[name])
            self.playout.put(self._locate(packet.timestamp), fragment, arrival)
        elif packet.payload_type == self._types.noise:
            self.playout.put_silence(self._locate(packet.timestamp), parse_cn_payload(packet.payload))
        else:
            self.playout.put_silence(self._locate(packet.timestamp))
            if digit := self._digits.take(packet):
                self._on_digit(digit)
        return True

    def take(self, now: float) -> bytes:
        """Return the 160 bytes of mu-law to hear at `now`, in seconds."""
        frame = self.playout.take(now)
        if self._tones is not None and (digit := self._tones.take(frame)):
            self._on_digit(digit)
        return frame

    @property
    def expected(self) -> int:
        """Packets that the far end sent, of all its streams."""
        return self._past[0] + (self.stream.expected if self.stream else 0)

    @property
    def received(self) -> int:
        return self._past[1] + (self.stream.received if self.stream else 0)

    @property
    def jitter_ms(self) -> float:
        return self.stream.jitter * 1000 / self.clock_rate if self.stream else 0.0

    def _locate(self, timestamp: int) -> int:
        """Return a timestamp as a position in samples at 8 kHz that does not wrap around."""
        half = TIMESTAMP_CYCLE // 2
        self._units += (timestamp - self._timestamp + half) % TIMESTAMP_CYCLE - half
        self._timestamp = timestamp
        return self._units * SAMPLE_RATE // self.clock_rate
