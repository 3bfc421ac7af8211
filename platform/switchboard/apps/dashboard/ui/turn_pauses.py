"""Pauses of a caller's turn as marks below its words: how long the agent waited, and why."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from switchboard.apps.dashboard.ui.formats import decimal, percent
from switchboard.foundation.languages import gettext as _

COMPLETE_FROM: Final = 0.5
WORDS: Final = "words"
"""Name under which a call records that the words judged a pause, and no turn detector."""


@dataclass(frozen=True, slots=True)
class PauseMark:
    """A pause. `at_ms` counts from the start of the call's audio; `kind` is its class in the style sheet."""

    at_ms: int
    kind: str
    decision: str
    reason: str


def build_pause_mark(entry_ms: int, pause: Mapping[str, Any]) -> PauseMark:
    """Build the mark of a pause of a transcript entry that begins at `entry_ms`."""
    seconds = decimal(pause["waited_ms"] / 1000)
    at_ms, reason = entry_ms + pause["after_ms"], _describe_judgment(pause["detector"], pause["probability"])
    if not pause["ended_turn"]:
        return PauseMark(at_ms, "open", _("Went on after %(seconds)s s", seconds=seconds), reason)
    was_complete = pause["probability"] is None or pause["probability"] >= COMPLETE_FROM
    over = _("Turn over after %(seconds)s s", seconds=seconds)
    longest = _("Turn over after %(seconds)s s, the longest wait", seconds=seconds)
    return PauseMark(at_ms, "over", over if was_complete else longest, reason)


def _describe_judgment(detector: str | None, probability: float | None) -> str:
    if detector is None:
        return _("the words left doubt, and no turn detector answered")
    if probability is None:
        return _("silence decides")
    judge = _("the words") if detector == WORDS else detector
    return _("%(detector)s: %(share)s likely complete", detector=judge, share=percent(probability))
