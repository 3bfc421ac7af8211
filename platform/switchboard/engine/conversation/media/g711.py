"""G.711: mu-law and A-law to 16-bit samples and back, by table (ITU-T G.711). `audioop` left the standard library in 3.13."""

import numpy as np
import numpy.typing as npt

from switchboard.plugin_sdk import Encoding

Samples = npt.NDArray[np.int16]
SILENCE = {"mulaw": 0xFF, "alaw": 0xD5}


def _mulaw_table() -> Samples:
    codes = ~np.arange(256, dtype=np.uint8)
    exponent, mantissa = (codes >> 4 & 7).astype(np.int32), (codes & 15).astype(np.int32)
    magnitude = ((mantissa << 3) + 132 << exponent) - 132
    return np.where(codes & 128, -magnitude, magnitude).astype(np.int16)


def _alaw_table() -> Samples:
    codes = np.arange(256, dtype=np.uint8) ^ 0x55
    exponent, mantissa = (codes >> 4 & 7).astype(np.int32), (codes & 15).astype(np.int32)
    magnitude = np.where(exponent == 0, (mantissa << 4) + 8, (mantissa << 4) + 264 << np.maximum(exponent - 1, 0))
    return np.where(codes & 128, magnitude, -magnitude).astype(np.int16)


def _encoder(decoder: Samples) -> npt.NDArray[np.uint8]:
    """For each of the 65 536 samples the code whose sample is nearest, found between the decoded samples in order."""
    order = np.argsort(decoder, kind="stable").astype(np.uint8)
    levels = decoder[order].astype(np.int32)
    samples = np.arange(-32768, 32768, dtype=np.int32)
    above = np.clip(np.searchsorted(levels, samples), 1, 255)
    nearer_below = samples - levels[above - 1] <= levels[above] - samples
    codes = order[np.where(nearer_below, above - 1, above)]
    return np.roll(codes, -32768)


_DECODE = {"mulaw": _mulaw_table(), "alaw": _alaw_table()}
_ENCODE = {name: _encoder(table) for name, table in _DECODE.items()}


def decode(audio: bytes | bytearray | memoryview, encoding: Encoding) -> Samples:
    """The samples of G.711 or of 16-bit little-endian PCM."""
    if encoding == "pcm16":
        return np.frombuffer(audio, dtype="<i2")
    return _DECODE[encoding].take(np.frombuffer(audio, dtype=np.uint8))


def encode(samples: Samples, encoding: Encoding) -> bytes:
    """G.711, or 16-bit little-endian PCM, of samples."""
    if encoding == "pcm16":
        return samples.astype("<i2", copy=False).tobytes()
    return _ENCODE[encoding].take(samples.view(np.uint16)).tobytes()
