"""Benchmark of the ends of turns: recorded people on the telephone, in eight languages, clean and with noise.

Each recording is one turn, with its inner pauses. A turn that is taken for over before its last voice is a false
cut-off. The modes of `turn_detection` run in the call engine, on the path of a call (`_turn_calls.py`). Pipecat's
default runs in an environment of its own (`_pipecat_turns.py`), on the same audio. `turn_recordings/README.md` says
where the recordings are from.
"""

import base64
import json
import subprocess
from collections.abc import Sequence
from typing import Final, Literal

import numpy as np
from switchboard.plugin_sdk.audio import decode_audio

from bench._turn_calls import Measurement, measure
from bench._turn_recordings import RATE, Recording, load_recordings, mix_calls
from bench.latency import install_pipecat

MODES: Final[tuple[Literal["silence", "text", "audio", "auto"], ...]] = ("silence", "text", "audio", "auto")
LEVELS: Final = (None, 20.0, 10.0, 5.0)
END_TOLERANCE_SECONDS: Final = 0.1
"""The end of a last voice that fades away is not known better than this."""


def measure_pipecat(audio: Sequence[bytes]) -> Measurement:
    """Measure Pipecat's default. Raises `CalledProcessError` if it cannot be installed."""
    calls = [base64.b64encode(decode_audio(call, "mulaw").astype("<i2").tobytes()).decode() for call in audio]
    process = subprocess.run(
        [install_pipecat(), "bench/_pipecat_turns.py"],
        input=json.dumps(calls),
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    found = json.loads(process.stdout)
    return Measurement(found["ends"], found["cpu_seconds"], 0.0, sum(map(len, audio)) / RATE / 60)


def count_cuts(recording: Recording, decisions: Sequence[float]) -> int:
    """Return the number of inner pauses in which the turn was taken for over."""
    early = [decision for decision in decisions if decision < recording.end - END_TOLERANCE_SECONDS]
    begins = [begin for begin, _ in recording.pauses]
    return len({int(np.searchsorted(begins, decision)) for decision in early})


def find_wait(recording: Recording, decisions: Sequence[float]) -> float | None:
    """Return the seconds from the last voice to the end of the turn, None if the end was not noticed."""
    late = [decision for decision in decisions if decision >= recording.end - END_TOLERANCE_SECONDS]
    return late[0] - recording.end if late else None


def print_row(name: str, recordings: Sequence[Recording], measurement: Measurement, *, held_out: bool) -> None:
    """Print one line of the table."""
    pairs = [pair for pair in zip(recordings, measurement.decisions, strict=True) if pair[0].held_out or not held_out]
    pauses = sum(len(recording.pauses) for recording, _ in pairs)
    cuts = sum(count_cuts(recording, decisions) for recording, decisions in pairs)
    waits = [find_wait(recording, decisions) for recording, decisions in pairs]
    noticed = [wait * 1000 for wait in waits if wait is not None]
    p50, p95, longest = np.percentile(noticed, (50, 95, 100))
    print(
        f"| {name} | {cuts} of {pauses} | {p50:.0f}, {p95:.0f}, {longest:.0f} | {len(waits) - len(noticed)} "
        f"| {measurement.cpu_seconds / measurement.minutes:.2f} |",
        flush=True,
    )


def run() -> None:
    """Print a table for each level of noise, of all recordings and of those held out."""
    recordings = load_recordings()
    for level in LEVELS:
        audio = mix_calls(recordings, level)
        measured = {f"`{mode}`": measure(recordings, audio, mode) for mode in MODES}
        try:
            measured["Pipecat's default"] = measure_pipecat(audio)
        except subprocess.CalledProcessError as error:
            print(f"without Pipecat, which cannot be installed here: {error}")
        print(f"\n{'no noise' if level is None else f'noise, {level:.0f} dB below the voice'}\n")
        print("| turn detection | cut off | ms to the end, p50, p95, longest | ends missed | CPU s a call-minute |")
        print("| --- | --- | --- | --- | --- |")
        for held_out in (False, True):
            for name, measurement in measured.items():
                print_row(f"{name}{', held out' if held_out else ''}", recordings, measurement, held_out=held_out)
