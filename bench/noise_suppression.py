"""Benchmark of noise suppression: the ends of turns of `bench/turns` in each noise, without RNNoise and with it.

The same calls without their voices show what voice activity detection takes for a voice: seconds transcribed of each
minute.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from bench._turn_calls import Measurement, NoiseSuppression, measure
from bench._turn_recordings import NOISES, Noise, Recording, load_recordings, mix_calls
from bench.turns import count_cuts, find_wait

LEVELS: Final = (20.0, 10.0, 5.0)
SUPPRESSIONS: Final[tuple[NoiseSuppression, ...]] = ("off", "rnnoise")


def format_row(recordings: Sequence[Recording], measurement: Measurement, noise_alone: Measurement | None) -> str:
    """Format one line of the table, without its name."""
    cuts = sum(map(count_cuts, recordings, measurement.decisions))
    waits = list(map(find_wait, recordings, measurement.decisions))
    p50, p95 = np.percentile([wait * 1000 for wait in waits if wait is not None], (50, 95))
    transcribed = f"{noise_alone.transcribed_seconds / noise_alone.minutes:.1f}" if noise_alone is not None else ""
    return (
        f"{cuts} of {sum(len(recording.pauses) for recording in recordings)} | {p50:.0f}, {p95:.0f} "
        f"| {waits.count(None)} | {transcribed} | {measurement.cpu_seconds / measurement.minutes:.2f} |"
    )


def run() -> None:
    """Print a table of all noises, one line without RNNoise and one with it."""
    recordings = load_recordings()
    print(
        "| noise | RNNoise | cut off | ms to the end, p50, p95 | ends missed | s a minute of noise | CPU s a minute |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- |")
    conditions: list[tuple[float | None, Noise | None]] = [
        (None, None),
        *((level, n) for n in NOISES for level in LEVELS),
    ]
    for level, noise in conditions:
        audio = mix_calls(recordings, level, noise)
        silent_callers = mix_calls(recordings, level, noise, voices=False) if noise is not None else None
        for suppression in SUPPRESSIONS:
            measurement = measure(recordings, audio, "auto", suppression)
            alone = measure(recordings, silent_callers, "silence", suppression) if silent_callers is not None else None
            name = "none" if noise is None else f"{noise}, {level:.0f} dB"
            print(f"| {name} | {suppression} | {format_row(recordings, measurement, alone)}", flush=True)
