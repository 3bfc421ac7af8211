"""Mu-law (ITU-T G.711), for the carrier's side of the line."""

import numpy as np
import numpy.typing as npt

Samples = npt.NDArray[np.int32]
BIAS, CLIP = 132, 32_635


def decode(audio: bytes) -> Samples:
    """The samples of mu-law."""
    codes = ~np.frombuffer(audio, dtype=np.uint8)
    magnitude = (((codes & 15).astype(np.int32) << 3) + BIAS << (codes >> 4 & 7).astype(np.int32)) - BIAS
    return np.where(codes & 128, -magnitude, magnitude)


def encode(pcm: bytes) -> bytes:
    """Mu-law of 16-bit little-endian samples."""
    samples = np.frombuffer(pcm, dtype="<i2").astype(np.int32)
    magnitude = np.minimum(np.abs(samples), CLIP) + BIAS
    exponent = np.floor(np.log2(magnitude)).astype(np.int32) - 7
    mantissa = magnitude >> exponent + 3 & 15
    codes = ~((samples < 0) << 7 | exponent << 4 | mantissa)
    return bytes(codes.astype(np.uint8))
