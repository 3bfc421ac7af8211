"""Response latency in each turn of a call, as bars of steps on one scale."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from switchboard.foundation.languages import LazyText

WIDTH = 100.0
STEPS = (
    ("endpoint_ms", LazyText("End of turn"), "step-1"),
    ("transcript_ms", LazyText("Transcript"), "step-2"),
    ("first_token_ms", LazyText("First token"), "step-3"),
    ("first_audio_ms", LazyText("First audio"), "step-4"),
    ("first_frame_ms", LazyText("Heard"), "step-5"),
)


@dataclass(frozen=True, slots=True)
class Step:
    """A part of a turn's bar, out of `WIDTH`; `kind` is its class in the style sheet."""

    kind: str
    x: float
    width: float
    title: str


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn: the steps of its latency, and the total until the caller heard the response."""

    number: int
    steps: tuple[Step, ...]
    heard_ms: int | None


def build_turns(latencies: Sequence[Mapping[str, int | None]]) -> list[Turn]:
    """Return the turns with a response. Milliseconds count from the caller's last voiced audio."""
    longest = (
        max((ms for turn in latencies for name, _, _ in STEPS if (ms := turn.get(name)) is not None), default=0) or 1
    )
    return [_turn(number, turn, WIDTH / longest) for number, turn in enumerate(latencies, start=1)]


def _turn(number: int, latency: Mapping[str, int | None], scale: float) -> Turn:
    # A step that is reached before the previous one, such as a transcript before the end of the turn, costs no time.
    reached = [0]
    for name, _, _ in STEPS:
        reached.append(max(reached[-1], latency.get(name) or 0))
    steps = [
        Step(kind, round(begin * scale, 2), round((end - begin) * scale, 2), f"{stage}: {end - begin} ms")
        for (_, stage, kind), (begin, end) in zip(STEPS, pairwise(reached), strict=True)
        if end > begin
    ]
    return Turn(number, tuple(steps), latency.get("first_frame_ms"))
