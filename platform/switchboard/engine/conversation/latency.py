"""Latency of each turn."""

from switchboard.engine.conversation.call import TurnLatency

STEPS = ("endpoint", "transcript", "first_token", "first_audio", "first_frame")


class TurnClock:
    """Times the steps of one turn, in seconds of the engine's clock. The first time of each step counts."""

    def __init__(self, turn: int, last_voice_at: float) -> None:
        self._turn = turn
        self._last_voice_at = last_voice_at
        self._reached: dict[str, int] = {}

    def record_step(self, step: str, moment: float) -> None:
        """Record when a step was first reached."""
        if step not in self._reached:
            self._reached[step] = max(0, round((moment - self._last_voice_at) * 1000))

    def build_latency(self) -> TurnLatency:
        """Return the measurements."""
        return TurnLatency(self._turn, *(self._reached.get(step) for step in STEPS))
