"""Benchmark of the ends of turns: recorded people on the telephone, in eight languages, clean and with noise.

Each recording is one turn, with its inner pauses. A turn that is taken for over before its last voice is a false
cut-off. The modes of `turn_detection` run in the call engine, on the path of a call (`_turn_calls.py`). Pipecat's
default runs in an environment of its own (`_pipecat_turns.py`), on the same audio. `turn_recordings/README.md` says
where the recordings are from.
"""

import base64
import itertools
import json
import subprocess
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal

import numpy as np
from switchboard.plugin_sdk.audio import decode_audio

from bench._pipecat import install_pipecat
from bench._turn_calls import Measurement, measure
from bench._turn_recordings import RATE, Recording, load_recordings, mix_calls

MODES: Final[tuple[Literal["silence", "text", "audio", "auto"], ...]] = ("silence", "text", "audio", "auto")
LEVELS: Final = (None, 20.0, 10.0, 5.0)
GROUPS: Final[Mapping[str, Callable[[Recording], bool]]] = {
    "": lambda _: True,
    ", scripted": lambda recording: not recording.is_free,
    ", free": lambda recording: recording.is_free,
    ", held out": lambda recording: recording.held_out,
}
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


def print_row(name: str, recordings: Sequence[Recording], measurement: Measurement, group: str) -> None:
    """Print one line of the table, of a group of the recordings. Prints nothing if the group is empty."""
    pairs = [pair for pair in zip(recordings, measurement.decisions, strict=True) if GROUPS[group](pair[0])]
    if not pairs:
        return
    pauses = sum(len(recording.pauses) for recording, _ in pairs)
    cuts = sum(count_cuts(recording, decisions) for recording, decisions in pairs)
    waits = [find_wait(recording, decisions) for recording, decisions in pairs]
    noticed = [wait * 1000 for wait in waits if wait is not None]
    p50, p95, longest = np.percentile(noticed or [np.nan], (50, 95, 100))
    print(
        f"| {name}{group} | {cuts} of {pauses} | {p50:.0f}, {p95:.0f}, {longest:.0f} | {len(waits) - len(noticed)} "
        f"| {measurement.cpu_seconds / measurement.minutes:.2f} |",
        flush=True,
    )


def run() -> None:
    """Print a table for each level of noise."""
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
        for group, (name, measurement) in itertools.product(GROUPS, measured.items()):
            print_row(name, recordings, measurement, group)
