"""RNNoise, Xiph.Org's recurrent network that removes noise from voices, by its library in the wheel of pyrnnoise.

The library works on frames of 10 ms at 48 kHz, as 32-bit floats in the range of 16-bit samples (`rnnoise.h`).
Telephone audio is resampled to that rate and back by a windowed sinc: soxr's streams hold 40 to 300 ms of audio back
between these rates. The output is 13 ms late: RNNoise looks 10 ms ahead, and the filters take 3 ms.
"""

import ctypes
import sys
import weakref
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from switchboard.plugin_sdk.audio import Samples

Floats = npt.NDArray[np.float32]

FRAME: Final = 80
"""Samples of 10 ms at 8 kHz."""
FACTOR: Final = 6
WIDE_FRAME: Final = FRAME * FACTOR
PHASE_TAPS: Final = 24
TAPS: Final = PHASE_TAPS * FACTOR
"""Length of the filter at 48 kHz. The images of what a telephone transmits, up to 3.4 kHz, are 57 dB below it."""
KAISER_BETA: Final = 5.65
FILE_NAME: Final = "librnnoise.dylib" if sys.platform == "darwin" else "librnnoise.so"
RNNOISE_MISSING: Final = "RNNoise is not installed on this server: pip install --no-deps pyrnnoise==0.4.5"


class RNNoiseMissing(Exception):
    """The library is not installed."""


def find_rnnoise() -> Path | None:
    """Return the path of the library without importing pyrnnoise, None if it is not installed."""
    found = find_spec("pyrnnoise")
    paths = [Path(folder) / FILE_NAME for folder in (found and found.submodule_search_locations) or ()]
    return next((path for path in paths if path.is_file()), None)


def _load_library() -> ctypes.CDLL:
    if (path := find_rnnoise()) is None:
        raise RNNoiseMissing(RNNOISE_MISSING)
    library = ctypes.CDLL(str(path))
    library.rnnoise_create.argtypes = [ctypes.c_void_p]
    library.rnnoise_create.restype = ctypes.c_void_p
    library.rnnoise_destroy.argtypes = [ctypes.c_void_p]
    library.rnnoise_process_frame.argtypes = [ctypes.c_void_p] * 3
    library.rnnoise_process_frame.restype = ctypes.c_float
    return library


def _design_filter() -> Floats:
    moments = np.arange(TAPS) - (TAPS - 1) / 2
    taps = np.sinc(moments / FACTOR) * np.kaiser(TAPS, KAISER_BETA)
    return np.asarray(taps / taps.sum(), dtype=np.float32)


LOW_PASS: Final = _design_filter()
PHASES: Final = np.ascontiguousarray(LOW_PASS.reshape(PHASE_TAPS, FACTOR)[::-1] * FACTOR)


class RNNoiseStream:
    """RNNoise for one speaker. Raises `RNNoiseMissing` if the library is not installed."""

    def __init__(self) -> None:
        self._library = _load_library()
        self._state = self._library.rnnoise_create(None)
        weakref.finalize(self, self._library.rnnoise_destroy, self._state)
        self._narrow: Floats = np.zeros(PHASE_TAPS - 1, dtype=np.float32)
        self._wide: Floats = np.zeros(TAPS - FACTOR, dtype=np.float32)

    def suppress(self, samples: Samples) -> Samples:
        """Return whole frames at 8 kHz without their noise. The interpreter's lock is free while the network runs.

        Raises `ValueError` for a part of a frame: the library would write beyond it.
        """
        if len(samples) % FRAME:
            raise ValueError(f"{len(samples)} samples are not whole frames")
        wide = self._upsample(samples.astype(np.float32))
        for address in range(wide.ctypes.data, wide.ctypes.data + wide.nbytes, WIDE_FRAME * wide.itemsize):
            self._library.rnnoise_process_frame(self._state, address, address)
        return np.clip(np.rint(self._downsample(wide)), -32768, 32767).astype(np.int16)

    def _upsample(self, samples: Floats) -> Floats:
        heard = np.concatenate([self._narrow, samples])
        self._narrow = heard[-len(self._narrow) :]
        return np.ascontiguousarray((np.lib.stride_tricks.sliding_window_view(heard, PHASE_TAPS) @ PHASES).ravel())

    def _downsample(self, samples: Floats) -> Floats:
        heard = np.concatenate([self._wide, samples])
        self._wide = heard[-len(self._wide) :]
        return np.asarray(np.lib.stride_tricks.sliding_window_view(heard, TAPS)[::FACTOR] @ LOW_PASS)
