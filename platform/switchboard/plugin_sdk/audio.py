"""Audio formats that providers and the call engine exchange, and G.711 conversion between them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

Encoding = Literal["pcm16", "mulaw", "alaw"]
Samples: TypeAlias = npt.NDArray[np.int16]


@dataclass(frozen=True, slots=True)
class AudioFormat:
    """Mono audio format.

    `encoding`: `pcm16` is signed 16-bit little-endian PCM; `mulaw` and `alaw` are G.711, one byte per sample.
    `sample_rate`: samples per second.
    """

    encoding: Encoding
    sample_rate: int

    @property
    def bytes_per_second(self) -> int:
        return self.sample_rate * (2 if self.encoding == "pcm16" else 1)


PHONE_PCM = AudioFormat("pcm16", 8000)
PHONE_MULAW = AudioFormat("mulaw", 8000)


@dataclass(frozen=True, slots=True)
class Word:
    """One spoken word with its start and end, in milliseconds from the start of the audio it came with."""

    text: str
    start_ms: int
    end_ms: int


def decode_audio(audio: bytes | bytearray | memoryview, encoding: Encoding) -> Samples:
    """Return the 16-bit samples of `audio`."""
    if encoding == "pcm16":
        return np.frombuffer(audio, dtype="<i2")
    return _SAMPLES[encoding].take(np.frombuffer(audio, dtype=np.uint8))


def encode_audio(samples: Samples, encoding: Encoding) -> bytes:
    """Return 16-bit samples as audio of this encoding."""
    if encoding == "pcm16":
        return samples.astype("<i2", copy=False).tobytes()
    return _CODES[encoding].take(samples.view(np.uint16)).tobytes()


def transcode_audio(audio: bytes | bytearray | memoryview, source: Encoding, target: Encoding) -> bytes:
    """Convert audio from one encoding to another, at the same sample rate."""
    return encode_audio(decode_audio(audio, source), target)


# G.711 (ITU-T Recommendation G.711, tables 1 and 2), bit-exact with `ulaw_compress` and `alaw_compress` of the ITU-T
# Software Tool Library (Recommendation G.191). Both directions are table lookups, because every call converts
# 50 frames a second. Python's own `audioop` left the standard library in 3.13, and its mu-law encoder rounds
# negative samples away from zero.

SILENCE_CODE: Final[Mapping[Encoding, int]] = {"mulaw": 0xFF, "alaw": 0xD5}
"""G.711 code of a silent sample."""

_MULAW_BIAS: Final = 33
_MULAW_MAX: Final = 0x1FFF
_EVEN_BITS: Final = 0x55
"""A-law inverts every second bit of a code on the line."""


def _magnitudes() -> tuple[npt.NDArray[np.int32], npt.NDArray[np.bool_]]:
    """Return magnitude and sign of each 16-bit sample, ordered by the sample read as unsigned.

    As in G.191, the magnitude of a negative sample is its one's complement.
    """
    samples = np.arange(65_536, dtype=np.uint16).view(np.int16).astype(np.int32)
    return np.where(samples < 0, ~samples, samples), samples < 0


def _segments(values: npt.NDArray[np.int32], shift: int) -> npt.NDArray[np.int32]:
    """Return the position of each value's highest bit above `shift`, at least 0."""
    highest = np.frexp(np.maximum(values, 1))[1].astype(np.int32) - 1
    return np.maximum(highest - shift, 0)


def _mulaw_codes() -> npt.NDArray[np.uint8]:
    magnitudes, negative = _magnitudes()
    biased = np.minimum((magnitudes >> 2) + _MULAW_BIAS, _MULAW_MAX)
    segments = _segments(biased, 5)
    codes = segments << 4 | (biased >> (segments + 1)) & 15
    signed: npt.NDArray[np.int32] = ~np.where(negative, codes | 0x80, codes)
    return (signed & 0xFF).astype(np.uint8)


def _alaw_codes() -> npt.NDArray[np.uint8]:
    magnitudes, negative = _magnitudes()
    values = magnitudes >> 4
    # The first two segments have the same step; from the second on, the highest bit is implied.
    segments = _segments(values, 3)
    codes = segments << 4 | (values >> np.maximum(segments - 1, 0)) & 15
    return (np.where(negative, codes, codes | 0x80) ^ _EVEN_BITS).astype(np.uint8)


def _mulaw_samples() -> Samples:
    codes = ~np.arange(256, dtype=np.uint8)
    segments, steps = (codes >> 4 & 7).astype(np.int32), (codes & 15).astype(np.int32)
    magnitudes = ((2 * steps + _MULAW_BIAS << segments) - _MULAW_BIAS) << 2
    return np.where(codes & 0x80, -magnitudes, magnitudes).astype(np.int16)


def _alaw_samples() -> Samples:
    codes = np.arange(256, dtype=np.uint8) ^ _EVEN_BITS
    segments, steps = (codes >> 4 & 7).astype(np.int32), (codes & 15).astype(np.int32)
    implied = np.where(segments > 0, 264, 8)
    magnitudes = (steps << 4) + implied << np.maximum(segments - 1, 0)
    return np.where(codes & 0x80, magnitudes, -magnitudes).astype(np.int16)


_SAMPLES: Final[Mapping[Encoding, Samples]] = {"mulaw": _mulaw_samples(), "alaw": _alaw_samples()}
"""Sample of each code."""
_CODES: Final[Mapping[Encoding, npt.NDArray[np.uint8]]] = {"mulaw": _mulaw_codes(), "alaw": _alaw_codes()}
"""Code of each sample, indexed by the sample read as unsigned."""
