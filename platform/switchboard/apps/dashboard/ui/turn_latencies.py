"""How fast an agent answered in each turn of a call, as bars of steps on one scale."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

WIDTH = 100.0
STEPS = (
    ("endpoint_ms", "noticing that they are done", "step-1"),
    ("transcript_ms", "understanding the words", "step-2"),
    ("first_token_ms", "the model's first word", "step-3"),
    ("first_audio_ms", "making speech", "step-4"),
    ("first_frame_ms", "sending it", "step-5"),
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
    """A turn: what its answer waited for, and how long until the caller heard something."""

    number: int
    steps: tuple[Step, ...]
    heard_ms: int | None


def turns(latencies: Sequence[Mapping[str, int | None]]) -> list[Turn]:
    """The turns in which the agent answered. Milliseconds count from the caller's last voiced audio."""
    longest = (
        max((ms for turn in latencies for name, _, _ in STEPS if (ms := turn.get(name)) is not None), default=0) or 1
    )
    return [_turn(number, turn, WIDTH / longest) for number, turn in enumerate(latencies, start=1)]


def _turn(number: int, latency: Mapping[str, int | None], scale: float) -> Turn:
    # A step that was reached before the one in front of it, such as words known before the turn's end, cost no time.
    reached = [0]
    for name, _, _ in STEPS:
        reached.append(max(reached[-1], latency.get(name) or 0))
    steps = [
        Step(kind, round(begin * scale, 2), round((end - begin) * scale, 2), f"{what}: {end - begin} ms")
        for (_, what, kind), (begin, end) in zip(STEPS, pairwise(reached), strict=True)
        if end > begin
    ]
    return Turn(number, tuple(steps), latency.get("first_frame_ms"))
