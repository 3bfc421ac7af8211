"""Peaks of both sides of a recording, for drawing its waveform."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from switchboard.engine.conversation.media.recording import HEADER
from switchboard.engine.conversation.media.stereo_mixer import RATE
from switchboard.plugin_sdk.audio import Samples

LOUDEST = 32768


@dataclass(frozen=True, slots=True)
class Peaks:
    """Greatest amplitude, from 0 to 1, of each part of a recording that was divided into equal parts."""

    seconds: float
    caller: tuple[float, ...]
    agent: tuple[float, ...]


async def measure_peaks(path: Path, parts: int) -> Peaks:
    """Measure a recording written by `conversation/media/recording.py`, in a thread: an hour has 115 MB.

    Raises `OSError`.
    """
    return await asyncio.to_thread(_measure, path, parts)


def _measure(path: Path, parts: int) -> Peaks:
    if path.stat().st_size < HEADER.size + 4:
        return Peaks(0.0, (), ())
    count = (path.stat().st_size - HEADER.size) // 4
    frames = np.memmap(path, dtype="<i2", mode="r", offset=HEADER.size, shape=(count, 2))
    begins = np.linspace(0, count, min(parts, count), endpoint=False, dtype=np.int64)
    return Peaks(count / RATE, _peaks(frames[:, 0], begins), _peaks(frames[:, 1], begins))


def _peaks(samples: Samples, begins: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> tuple[float, ...]:
    high = np.maximum.reduceat(samples, begins).astype(np.int32)
    low = np.minimum.reduceat(samples, begins).astype(np.int32)
    return tuple(float(peak) for peak in np.maximum(high, -low) / LOUDEST)
