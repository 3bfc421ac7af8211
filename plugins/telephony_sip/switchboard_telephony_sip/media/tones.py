"""Keys as tones in the audio (ITU-T Q.23 and Q.24), for lines without telephone events."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt
from switchboard.plugin_sdk.audio import decode_audio, encode_audio

from switchboard_telephony_sip.media.digits import GAP_TICKS, PAUSES, PRESS_TICKS
from switchboard_telephony_sip.media.frames import FRAME_SAMPLES, SAMPLE_RATE, SILENT_FRAME

ROWS: Final = (697, 770, 852, 941)
COLUMNS: Final = (1209, 1336, 1477, 1633)
KEYS: Final = ("123A", "456B", "789C", "*0#D")
AMPLITUDE: Final = 7000
"""Amplitude of each of the two tones: about -13 dBFS."""
LEAST_POWER: Final = 300.0**2
"""Mean square below which a frame has no key: about -41 dBFS."""
LEAST_SHARE: Final = 0.8
"""Share of a frame's power that its two tones have; speech has harmonics beside them."""
MOST_TWIST: Final = 8.0
"""Ratio of the powers of the two tones: 9 dB."""
MOST_NEIGHBOR: Final = 0.3
"""Power of a second tone of a group, as a share of the first."""
HOP: Final = FRAME_SAMPLES // 2
"""Windows of a frame's length overlap by half, so that a tone of 40 ms fills two of them wherever it begins."""
RELEASE_WINDOWS: Final = 3
"""Windows without a key after which it is released: a press is not two because of a click in it."""
TOLERANCE: Final = (0.988, 1.0, 1.012)
"""Frequencies beside the nominal one: Q.24 wants keys that are 1.5 % off."""


_BANK: Final[npt.NDArray[np.complex64]] = np.exp(
    np.outer(
        [frequency * factor for frequency in ROWS + COLUMNS for factor in TOLERANCE],
        -2j * np.pi * np.arange(FRAME_SAMPLES) / SAMPLE_RATE,
    )
).astype(np.complex64)


class ToneDetector:
    """Finds keys in frames of 20 ms. A key is a pair of tones in two windows in a row."""

    def __init__(self) -> None:
        self._rest = np.zeros(HOP, np.float32)
        self._candidate: str | None = None
        self._pressed: str | None = None
        self._misses = 0

    def take(self, mulaw: bytes) -> str | None:
        """Return the key that begins in this frame of 160 bytes, None for all others."""
        frame = decode_audio(mulaw, "mulaw").astype(np.float32)
        before = np.concatenate((self._rest, frame[:HOP]))
        self._rest = frame[HOP:]
        return self._follow(find_key(before)) or self._follow(find_key(frame))

    def _follow(self, key: str | None) -> str | None:
        is_confirmed = key is not None and key == self._candidate
        self._candidate = key
        if self._pressed is not None:
            self._misses = 0 if key == self._pressed else self._misses + 1
            if self._misses < RELEASE_WINDOWS:
                return None
            self._pressed = None
        if not is_confirmed:
            return None
        self._pressed, self._misses = key, 0
        return key


def find_key(samples: npt.NDArray[np.float32]) -> str | None:
    """Return the key whose two tones a window of 160 samples consists of."""
    power = float(np.dot(samples, samples)) / FRAME_SAMPLES
    if power < LEAST_POWER:
        return None
    # A sine of amplitude a has the mean square a*a/2, and |sum| = a*n/2 in its bin.
    powers = (2 * np.abs(_BANK @ samples) ** 2 / FRAME_SAMPLES**2).reshape(8, len(TOLERANCE)).max(axis=1)
    row, column = int(np.argmax(powers[:4])), int(np.argmax(powers[4:]))
    low, high = float(powers[row]), float(powers[4 + column])
    if low + high < LEAST_SHARE * power or max(low, high) > MOST_TWIST * min(low, high):
        return None
    if np.sort(powers[:4])[-2] > MOST_NEIGHBOR * low or np.sort(powers[4:])[-2] > MOST_NEIGHBOR * high:
        return None
    return KEYS[row][column]


def make_tones(keys: str) -> Iterator[bytes]:
    """Yield the frames of 160 bytes of mu-law that keys and pauses take."""
    for key in keys:
        if key in PAUSES:
            yield from [SILENT_FRAME] * PAUSES[key]
            continue
        tone = _make_tone(key)
        yield from (tone[start : start + FRAME_SAMPLES] for start in range(0, len(tone), FRAME_SAMPLES))
        yield from [SILENT_FRAME] * GAP_TICKS


@lru_cache(maxsize=16)
def _make_tone(key: str) -> bytes:
    row = next(row for row, keys in enumerate(KEYS) if key in keys)
    return make_sines((ROWS[row], COLUMNS[KEYS[row].index(key)]), AMPLITUDE, PRESS_TICKS * FRAME_SAMPLES)


def make_sines(frequencies: Sequence[int], amplitude: int, samples: int) -> bytes:
    """Return the sum of sines, each of this frequency in hertz and this amplitude, as mu-law."""
    times = np.arange(samples) / SAMPLE_RATE
    wave = sum((np.sin(2 * np.pi * frequency * times) for frequency in frequencies), np.zeros(samples))
    return encode_audio((amplitude * wave).astype(np.int16), "mulaw")
