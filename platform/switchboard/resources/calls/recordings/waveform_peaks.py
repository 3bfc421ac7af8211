"""Peaks of both sides of a recording, for drawing its waveform."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from switchboard.engine.conversation.media.recording import RATE
from switchboard.resources.calls.models import Call
from switchboard.resources.calls.recordings.archive import RecordingArchive
from switchboard.resources.stored_files import StoredObject, run_in_thread

LOUDEST = 32768


@dataclass(frozen=True, slots=True)
class Peaks:
    """Greatest amplitude, from 0 to 1, of each part of a recording that was divided into equal parts."""

    seconds: float
    caller: tuple[float, ...]
    agent: tuple[float, ...]


async def measure_peaks(archive: RecordingArchive, call: Call, parts: int) -> Peaks | None:
    """Measure a call's recording, in a thread; None if the store does not have it.

    Raises `ObjectStoreAway` and `FileDamaged`.
    """
    stored = await archive.find(call)
    return await run_in_thread(_measure, archive, stored, parts) if stored is not None else None


def _measure(archive: RecordingArchive, stored: StoredObject, parts: int) -> Peaks:
    audio = archive.open_audio(stored)
    bounds = np.linspace(0, audio.frames, min(parts, audio.frames) + 1, dtype=np.int64)
    peaks = [
        np.abs(audio.read(int(begin), int(end - begin)).astype(np.int32)).max(axis=0, initial=0) / LOUDEST
        for begin, end in pairwise(bounds)
    ]
    return Peaks(audio.frames / RATE, tuple(float(peak[0]) for peak in peaks), tuple(float(peak[1]) for peak in peaks))
