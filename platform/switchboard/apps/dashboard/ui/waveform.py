"""The waveform of a recording: one bar per part, the caller above the line and the agent below."""

from collections.abc import Sequence
from dataclasses import dataclass

from switchboard.resources.calls.recordings.waveform_peaks import Peaks

PARTS = 300
WIDTH, HEIGHT = 900, 96
BAR = 2
CURVE = 0.6
"""The exponent of the amplitude: like hearing, it separates quiet sounds better than loud ones."""


@dataclass(frozen=True, slots=True)
class Waveform:
    """Paths of an SVG of `WIDTH` by `HEIGHT`."""

    seconds: float
    caller: str
    agent: str


def draw_waveform(peaks: Peaks) -> Waveform:
    """Draw both sides, scaled to the loudest sound of either."""
    loudest = max((*peaks.caller, *peaks.agent), default=0.0) or 1.0
    return Waveform(peaks.seconds, _path(peaks.caller, loudest, -1), _path(peaks.agent, loudest, 1))


def _path(side: Sequence[float], loudest: float, direction: int) -> str:
    step, middle = WIDTH / max(len(side), 1), HEIGHT / 2
    bars = []
    for n, peak in enumerate(side):
        height = direction * max(1.0, (peak / loudest) ** CURVE * (middle - 2))
        bars.append(f"M{n * step:.1f} {middle + direction:g}h{BAR}v{height:.1f}h-{BAR}z")
    return "".join(bars)
