"""Audio to the far end: a queue of mu-law with marks, keys, and the audio of another call, as a packet each 20 ms."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from typing import Final

from aiortp.cn import build_cn_payload

from switchboard_telephony_sip.media.audio_codecs import CODECS, AudioCodec
from switchboard_telephony_sip.media.digits import EventPacket, check_digits, make_event_packets
from switchboard_telephony_sip.media.frames import FRAME_SAMPLES, SAMPLE_RATE, SILENT_FRAME
from switchboard_telephony_sip.media.rtp import TIMESTAMP_CYCLE, OutgoingStream
from switchboard_telephony_sip.media.session_description import PayloadTypes
from switchboard_telephony_sip.media.tones import make_tones

NOISE_LEVEL: Final = 70
"""Level of the comfort noise that the far end is asked for, in -dBov: a quiet line."""
NOISE_TICKS: Final = 10
"""Ticks between comfort noise packets: often enough to keep the bindings of a NAT."""
MOST_RELAYED: Final = 3
"""Frames of another call that wait; more is delay."""

KeyTick = bytes | tuple[EventPacket, ...]


class PlayQueue:
    """Mu-law to send, and marks between it."""

    def __init__(self, on_mark: Callable[[str], None]) -> None:
        self._on_mark = on_mark
        self._audio = bytearray()
        self._marks: deque[tuple[int, str]] = deque()
        self._taken = 0

    def play(self, mulaw: bytes) -> None:
        self._audio += mulaw

    def mark(self, name: str) -> None:
        self._marks.append((self._taken + len(self._audio), name))

    def clear(self) -> None:
        """Drop the audio, and report all marks."""
        self._taken += len(self._audio)
        self._audio.clear()
        self.report_marks()

    def take(self) -> bytes | None:
        """Return the next 160 bytes, the last ones filled up with silence; None if there is no audio."""
        if not self._audio:
            return None
        frame = bytes(self._audio[:FRAME_SAMPLES])
        del self._audio[:FRAME_SAMPLES]
        self._taken += len(frame)
        return frame.ljust(FRAME_SAMPLES, SILENT_FRAME[:1])

    def report_marks(self) -> None:
        """Report the marks whose audio was sent."""
        while self._marks and self._marks[0][0] <= self._taken:
            self._on_mark(self._marks.popleft()[1])


class OutgoingAudio:
    """Sender of one call. Keys come first, then what is played, then the audio of a joined call, then silence."""

    def __init__(self, on_mark: Callable[[str], None]) -> None:
        self.stream = OutgoingStream()
        self.queue = PlayQueue(on_mark)
        self._relayed: deque[bytes] = deque(maxlen=MOST_RELAYED)
        self._keys: deque[tuple[Iterator[KeyTick], asyncio.Future[None]]] = deque()
        self._types = PayloadTypes({})
        self._codec: AudioCodec | None = None
        self._payload_type = 0
        self._tick_units = FRAME_SAMPLES
        self._silent_ticks = 0

    def configure(self, types: PayloadTypes) -> None:
        """Adopt the payload types of an offer or answer."""
        payload_type, name = next(iter(types.codecs.items()))
        if self._codec is None or self._types.codecs.get(self._payload_type) != name:
            self._codec = CODECS[name].make()
        self._types, self._payload_type = types, payload_type
        self._tick_units = CODECS[name].clock_rate * FRAME_SAMPLES // SAMPLE_RATE

    def relay(self, mulaw: bytes) -> None:
        """Send a frame of a joined call; the oldest one goes when they pile up."""
        self._relayed.append(mulaw)

    def press(self, digits: str) -> asyncio.Future[None]:
        """Send keys after earlier ones; raise `ValueError` for other characters. The result is set at their end."""
        keys = check_digits(digits)
        ticks: Iterator[KeyTick] = make_tones(keys)
        if self._events_type is not None:
            ticks = make_event_packets(keys, self._tick_units)
        done = asyncio.get_running_loop().create_future()
        self._keys.append((ticks, done))
        return done

    def cancel_keys(self) -> None:
        """Cancel all keys that are not sent."""
        for _, done in self._keys:
            done.cancel()
        self._keys.clear()

    def take(self) -> list[bytes]:
        """Return the RTP packets of this tick."""
        tick = self._next_key_tick()
        if tick is None:
            packets = self._pack_audio(self.queue.take())
        elif isinstance(tick, bytes):
            packets = self._pack_audio(tick)
        else:
            packets = self._pack_events(tick)
        self.stream.advance(self._tick_units)
        self.queue.report_marks()
        return packets

    @property
    def _events_type(self) -> int | None:
        rate = self._tick_units * SAMPLE_RATE // FRAME_SAMPLES
        return self._types.events.get(rate)

    def _next_key_tick(self) -> KeyTick | None:
        while self._keys:
            ticks, done = self._keys[0]
            tick = next(ticks, None)
            if tick is not None and not done.cancelled():
                return tick
            self._keys.popleft()
            if not done.done():
                done.set_result(None)
        return None

    def _pack_audio(self, frame: bytes | None) -> list[bytes]:
        relayed = self._relayed.popleft() if self._relayed else None
        frame = frame or relayed
        if frame is None and self._types.noise is not None and self._tick_units == FRAME_SAMPLES:
            # Comfort noise at the beginning of a silence, and every 200 ms.
            is_due = self._silent_ticks % NOISE_TICKS == 0
            self._silent_ticks += 1
            return [self.stream.pack(self._types.noise, build_cn_payload(NOISE_LEVEL))] if is_due else []
        if self._codec is None:
            return []
        marker = self._silent_ticks > 0 or self.stream.packets == 0
        self._silent_ticks = 0
        return [self.stream.pack(self._payload_type, self._codec.encode(frame or SILENT_FRAME), marker=marker)]

    def _pack_events(self, events: tuple[EventPacket, ...]) -> list[bytes]:
        payload_type = self._events_type
        if payload_type is None:
            return []
        self._silent_ticks = 1
        packets = []
        for event in events:
            timestamp = (self.stream.timestamp - event.age * self._tick_units) % TIMESTAMP_CYCLE
            packets.append(self.stream.pack(payload_type, event.payload, marker=event.age == 0, timestamp=timestamp))
        return packets
