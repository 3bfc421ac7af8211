"""Adaptive jitter buffer: puts received packets in order, and gives a frame each 20 ms, whatever the network did.

Positions are samples at 8 kHz on the sender's timeline. The delay follows the network: all packets of the last four
seconds but the latest few would have come in time. It grows at once, by a concealed frame, and shrinks slowly, by
leaving out a quiet frame.
"""

import random
from bisect import bisect_left
from collections import deque
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt
from switchboard.plugin_sdk.audio import decode_audio, encode_audio

from switchboard_telephony_sip.media.audio_codecs import AudioCodec
from switchboard_telephony_sip.media.frames import FRAME_SAMPLES, SAMPLE_RATE

WINDOW: Final = 200
"""Packets whose delay is remembered."""
LATE_IN_WINDOW: Final = 2
"""Packets of a window that may come too late."""
MARGIN: Final = 40
"""Samples (5 ms) of delay beside the jitter, for the scheduling of processes."""
MAX_JITTER: Final = 1600
"""Samples (200 ms) of jitter that is waited for; later packets are lost."""
MOST_LATE_IN_ROW: Final = 5
"""Packets that may come too late one after the other before the timeline begins again."""
RESYNC: Final = 4000
"""Samples (half a second) by which a timestamp may be off its time before the timeline begins again."""
GROW, SHRINK = -80, FRAME_SAMPLES + 80
PATIENT_TICKS, LONG_TICKS = 25, 100
"""Ticks with too much delay after which a quiet frame, and then any frame, is left out."""
QUIET: Final = 0x30
"""Steps of mu-law below which the peak of a quiet frame is: about -31 dBFS."""
MOST_PACKETS: Final = 128
_MAGNITUDES: Final = bytes(0x7F - (code & 0x7F) for code in range(256))
SILENT_LEVEL: Final = 127
"""Level of comfort noise that is silence, in -dBov."""

_HISTORY_FRAMES: Final = 3
_SHORTEST_PITCH, _LONGEST_PITCH = 40, 120
_TEMPLATE: Final = 160
_KEEP, _END = 80, 480
"""Samples of a loss at full volume, and samples after which it is silent: 10 ms and 60 ms, as in G.711 Appendix I."""

Wave = npt.NDArray[np.float32]


class Concealer:
    """Packet-loss concealment as in G.711 Appendix I: the last pitch period is repeated and fades.

    Unlike the appendix it delays nothing: the seam at the beginning of a loss relies on the signal's period. Only a
    loss costs time; other frames pass as they are.
    """

    def __init__(self) -> None:
        self._history: deque[bytes] = deque(maxlen=_HISTORY_FRAMES)
        self._period: Wave | None = None
        self._concealed = 0

    def pass_frame(self, mulaw: bytes) -> bytes:
        """Return a received frame, whose beginning is blended with the concealment of a loss before it."""
        if self._concealed:
            mulaw = self._blend(mulaw)
            self._concealed, self._period = 0, None
        self._history.append(mulaw)
        return mulaw

    def conceal(self, samples: int) -> bytes:
        """Return mu-law for samples that did not come."""
        if self._concealed >= _END:
            return b"\xff" * samples
        if not self._concealed:
            self._period = self._find_period()
        wave = self._continue(samples)
        self._concealed += samples
        return encode_audio(wave.astype(np.int16), "mulaw")

    def _continue(self, samples: int) -> Wave:
        if self._period is None:
            return np.zeros(samples, np.float32)
        times = np.arange(self._concealed, self._concealed + samples)
        fade = np.clip(1 - (times - _KEEP) / (_END - _KEEP), 0, 1).astype(np.float32)
        return self._period[times % len(self._period)] * fade

    def _blend(self, mulaw: bytes) -> bytes:
        samples = min(len(mulaw), 32 if self._concealed <= 160 else 80)
        ramp = np.linspace(0, 1, samples, dtype=np.float32)
        wave = decode_audio(mulaw[:samples], "mulaw") * ramp + self._continue(samples) * (1 - ramp)
        return encode_audio(wave.astype(np.int16), "mulaw") + mulaw[samples:]

    def _find_period(self) -> Wave | None:
        """Return the last pitch period, its end bent so that it joins its beginning; None without enough history."""
        history = decode_audio(b"".join(self._history), "mulaw").astype(np.float32)
        if len(history) < _TEMPLATE + _LONGEST_PITCH + _LONGEST_PITCH // 4:
            return None
        template = history[-_TEMPLATE:]
        first = len(history) - _TEMPLATE - _LONGEST_PITCH
        windows = np.lib.stride_tricks.sliding_window_view(history[first:-_SHORTEST_PITCH], _TEMPLATE)
        scores = windows @ template / (np.sqrt(np.einsum("ij,ij->i", windows, windows)) + 1)
        pitch = _LONGEST_PITCH - int(np.argmax(scores))
        seam = pitch // 4
        period = history[-pitch:].copy()
        ramp = np.linspace(0, 1, seam, dtype=np.float32)
        period[-seam:] = period[-seam:] * (1 - ramp) + history[-pitch - seam : -pitch] * ramp
        return period


def make_noise(level: int, samples: int) -> bytes:
    """Return comfort noise as mu-law. `level` is in -dBov (RFC 3389): 0 is the loudest, 127 silence."""
    if level >= SILENT_LEVEL:
        return b"\xff" * samples
    noise = _noise_of_level(level)
    start = random.randrange(len(noise) - samples)  # noqa: S311 - noise needs no secrecy
    return noise[start : start + samples]


@lru_cache(maxsize=8)
def _noise_of_level(level: int) -> bytes:
    volume = min(32768 * 10 ** (-level / 20), 8000)
    wave = np.random.default_rng(level).normal(0, volume, SAMPLE_RATE)
    return encode_audio(np.clip(wave, -32768, 32767).astype(np.int16), "mulaw")


@dataclass(slots=True)
class Fragment:
    """Payload of a packet, decoded when its time comes, because codecs need their packets in order."""

    payload: bytes
    codec: AudioCodec


class PlayoutBuffer:
    """Jitter buffer of one stream."""

    def __init__(self) -> None:
        self.late = 0
        self._concealer = Concealer()
        self._positions: list[int] = []
        self._fragments: dict[int, Fragment] = {}
        self._head: int | None = None
        self._carry = b""
        self._transits: deque[float] = deque(maxlen=WINDOW)
        self._measured = 0
        self._base = self._target = 0.0
        self._excess = 0
        self._late_in_row = 0
        self._heard: int | None = None
        self._noise: tuple[int, int] | None = None

    @property
    def delay_ms(self) -> float:
        """Delay that the buffer adds, in milliseconds."""
        return (self._target + MARGIN + FRAME_SAMPLES / 2) * 1000 / SAMPLE_RATE

    def reset(self) -> None:
        """Begin with another timeline: another sender, or one that began again."""
        self._positions.clear()
        self._fragments.clear()
        self._noise, self._heard = None, None
        self._begin_timeline()

    def _begin_timeline(self) -> None:
        self._transits.clear()
        self._head, self._carry, self._measured = None, b"", 0

    def put(self, position: int, fragment: Fragment, arrival: float) -> None:
        """Take a packet that arrived at `arrival`, in seconds."""
        transit = arrival * SAMPLE_RATE - position
        self._measure(transit)
        if self._head is not None and position + FRAME_SAMPLES // 2 <= self._head:
            self.late += 1
            if self._heard is not None and position < self._heard:
                return  # What followed it was heard.
            self._late_in_row += 1
            if self._late_in_row == MOST_LATE_IN_ROW:
                # More than jitter: the sender's timeline has moved. A burst is heard from its first packet.
                self._begin_timeline()
                self._measure(transit)
        else:
            self._late_in_row = 0
        if position in self._fragments or len(self._positions) >= MOST_PACKETS:
            return
        self._fragments[position] = fragment
        if not self._positions or position > self._positions[-1]:
            self._positions.append(position)
        else:
            self._positions.insert(bisect_left(self._positions, position), position)

    def put_silence(self, position: int, level: int = SILENT_LEVEL) -> None:
        """Fill with comfort noise of this level, in -dBov, from `position` until audio follows."""
        start = self._noise[0] if self._noise else position
        self._noise = (start, level)

    def take(self, now: float) -> bytes:
        """Return the 160 bytes of mu-law to hear at `now`, in seconds."""
        wanted = now * SAMPLE_RATE - self._base - self._target - MARGIN
        if self._head is None:
            if not self._positions or self._positions[0] > wanted:
                return self._fill(FRAME_SAMPLES) if self._noise else self._concealer.conceal(FRAME_SAMPLES)
            self._head = self._positions[0]
        if self._transits:
            lag = wanted - (self._head - len(self._carry))
            if lag < GROW:
                # The head waits with or without packets: one that went on would find all later packets late.
                return self._fill(FRAME_SAMPLES)
            self._shrink(lag)
        return self._collect()

    def _measure(self, transit: float) -> None:
        if self._transits and abs(transit - self._transits[-1]) > RESYNC:
            self.reset()
        self._transits.append(transit)
        self._measured += 1
        # Sorting 200 numbers takes 10 microseconds: seldom, but at once when a packet is later than expected.
        if self._measured < 20 or self._measured % 16 == 0 or transit > self._base + self._target:
            ordered = sorted(self._transits)
            self._base = ordered[0]
            self._target = min(ordered[-1 - min(LATE_IN_WINDOW, len(ordered) // 50)] - self._base, MAX_JITTER)

    def _shrink(self, lag: float) -> None:
        """Leave out a frame when the delay was too long for half a second, preferably a quiet one."""
        self._excess = self._excess + 1 if lag > SHRINK else 0
        if self._excess < PATIENT_TICKS:
            return
        frame = self._collect()
        if self._excess < LONG_TICKS and max(frame.translate(_MAGNITUDES)) > QUIET:
            self._carry = frame + self._carry
        else:
            self._excess = 0

    def _collect(self) -> bytes:
        """Return the next frame of the timeline, whose packets may be longer or shorter than a frame."""
        while len(self._carry) < FRAME_SAMPLES:
            self._carry += self._advance(FRAME_SAMPLES - len(self._carry))
        frame, self._carry = self._carry[:FRAME_SAMPLES], self._carry[FRAME_SAMPLES:]
        return frame

    def _advance(self, samples: int) -> bytes:
        """Return the audio of the next packet, or at most `samples` for a gap before it."""
        head = self._head or 0
        while self._positions and self._positions[0] <= head:
            position = self._positions.pop(0)
            fragment = self._fragments.pop(position)
            audio = fragment.codec.decode(fragment.payload)[head - position :]
            if audio:
                if self._noise and self._noise[0] <= position:
                    self._noise = None
                self._head = self._heard = head + len(audio)
                return self._concealer.pass_frame(audio)
        if self._positions:
            following = self._fragments[self._positions[0]]
            gap = self._positions[0] - head
            if gap == FRAME_SAMPLES and (audio := following.codec.recover(following.payload)):
                self._head = self._heard = head + len(audio)
                return self._concealer.pass_frame(audio)
            samples = min(samples, gap)
        self._head = head + samples
        return self._fill(samples)

    def _fill(self, samples: int) -> bytes:
        if self._noise and (self._head is None or self._noise[0] <= self._head):
            return make_noise(self._noise[1], samples)
        return self._concealer.conceal(samples)
