"""How fast each turn was answered."""

from switchboard.engine.conversation.call import TurnLatency

STEPS = ("endpoint", "transcript", "first_token", "first_audio", "first_frame")


class TurnClock:
    """Times one turn's steps, in seconds of the engine's clock; each step counts once."""

    def __init__(self, turn: int, last_voice: float) -> None:
        self._turn = turn
        self._last_voice = last_voice
        self._reached: dict[str, int] = {}

    def reach(self, step: str, moment: float) -> bool:
        """A step was reached; whether for the first time."""
        if step in self._reached:
            return False
        self._reached[step] = max(0, round((moment - self._last_voice) * 1000))
        return True

    def result(self) -> TurnLatency:
        """What was measured."""
        return TurnLatency(self._turn, *(self._reached.get(step) for step in STEPS))
