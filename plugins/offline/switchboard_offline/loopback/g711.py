"""G.711 mu-law, by tables."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

FRAME_BYTES: Final = 160
"""20 ms."""
SILENCE: Final = b"\xff" * FRAME_BYTES
VOICED: Final = 0x20
"""A peak of about -38 dB below full scale: above a line's noise, below anybody's voice."""
_LOUDNESS: Final = bytes(~code & 0x7F for code in range(256))
_BIAS: Final = 132
_CLIP: Final = 32_635


def _all_codes() -> NDArray[np.uint8]:
    """The code of each 16-bit sample, indexed by the sample read as unsigned."""
    samples = np.arange(65_536).astype(np.uint16).view(np.int16).astype(np.int32)
    biased = np.minimum(np.abs(samples), _CLIP) + _BIAS
    exponent = np.floor(np.log2(biased)).astype(np.int32) - 7
    mantissa = (biased >> (exponent + 3)) & 0x0F
    sign = np.where(samples < 0, 0x80, 0)
    codes: NDArray[np.uint8] = (~(sign | (exponent << 4) | mantissa) & 0xFF).astype(np.uint8)
    return codes


def _all_samples() -> NDArray[np.int16]:
    """The sample of each code."""
    codes = ~np.arange(256, dtype=np.uint8)
    exponent, mantissa = (codes >> 4 & 7).astype(np.int32), (codes & 15).astype(np.int32)
    magnitude = ((mantissa << 3) + _BIAS << exponent) - _BIAS
    return np.where(codes & 128, -magnitude, magnitude).astype("<i2")


_CODES: Final = _all_codes()


def encode(pcm: bytes) -> bytes:
    """16-bit little-endian samples to mu-law."""
    codes: NDArray[np.uint8] = _CODES[np.frombuffer(pcm, "<u2")]
    return codes.tobytes()


_SAMPLES: Final = _all_samples()


def decode(audio: bytes) -> bytes:
    """Mu-law to 16-bit little-endian samples."""
    return _SAMPLES.take(np.frombuffer(audio, np.uint8)).tobytes()


def voiced(frame: bytes) -> bool:
    """Whether anything can be heard in the frame."""
    return max(frame.translate(_LOUDNESS), default=0) >= VOICED


def frames(audio: bytes) -> list[bytes]:
    """Cut audio into frames of 20 ms, the last one filled up with silence."""
    return [audio[at : at + FRAME_BYTES].ljust(FRAME_BYTES, b"\xff") for at in range(0, len(audio), FRAME_BYTES)]
