"""Features of Smart Turn: Whisper's log-mel spectrogram of 8 seconds at 16 kHz.

The constants are those of `WhisperFeatureExtractor` (Hugging Face Transformers) with `chunk_length=8`, which the model
was trained on. Arithmetic in 32 bits takes 4.5 ms, and the original's in 64 bits 20 ms; features differ by less than
0.00001.
"""

from typing import Final

import numpy as np
import numpy.typing as npt
import soxr

Floats = npt.NDArray[np.float32]
SOURCE_RATE: Final = 8000
RATE: Final = 16_000
SAMPLES: Final = 8 * RATE
FRAME, HOP, MELS = 400, 160, 80
MEL_FLOOR: Final = 1e-10
DYNAMIC_RANGE: Final = 8.0
"""Decades below the loudest value at which the spectrogram is cut."""


def compute_features(audio: bytes) -> Floats:
    """Return the features of 16-bit PCM at 8 kHz, shape (80, 800). Shorter audio is padded with silence before it."""
    samples = np.frombuffer(audio, dtype="<i2").astype(np.float32) / np.float32(32768)
    samples = np.asarray(soxr.resample(samples, SOURCE_RATE, RATE, quality="HQ"), dtype=np.float32)[-SAMPLES:]
    samples = np.pad(samples, (SAMPLES - len(samples), 0))
    samples = (samples - samples.mean()) / np.sqrt(samples.var() + np.float32(1e-7))
    padded = np.pad(samples, FRAME // 2, mode="reflect")
    frames = np.lib.stride_tricks.sliding_window_view(padded, FRAME)[: SAMPLES + 1 - HOP : HOP]
    power = np.square(np.abs(np.fft.rfft(frames * WINDOW, axis=1)))
    logs = np.log10(np.maximum(MEL_FILTERS @ power.T, np.float32(MEL_FLOOR)))
    return np.asarray((np.maximum(logs, logs.max() - DYNAMIC_RANGE) + 4) / 4, dtype=np.float32)


def _build_mel_filters() -> Floats:
    """Build triangular filters of equal area, shape (80, 201)."""
    # Slaney's mel scale: linear up to 1000 Hz, logarithmic above.
    highest = 15 + float(np.log(RATE / 2 / 1000)) * 27 / float(np.log(6.4))
    mels = np.linspace(0, highest, MELS + 2)
    edges = np.where(mels < 15, 200 * mels / 3, 1000 * np.exp(np.log(6.4) / 27 * (mels - 15)))
    bins = np.linspace(0, RATE / 2, FRAME // 2 + 1)
    widths = np.diff(edges)
    slopes = edges[:, None] - bins[None, :]
    rising, falling = -slopes[:-2] / widths[:-1, None], slopes[2:] / widths[1:, None]
    filters = np.maximum(0, np.minimum(rising, falling)) * (2 / (edges[2:] - edges[:-2]))[:, None]
    return np.asarray(filters, dtype=np.float32)


WINDOW: Final[Floats] = np.hanning(FRAME + 1)[:-1].astype(np.float32)
MEL_FILTERS: Final[Floats] = _build_mel_filters()
