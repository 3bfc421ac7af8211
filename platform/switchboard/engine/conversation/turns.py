"""Whose turn it is: what interrupts the agent, when silence has lasted too long, and digits as a turn of their own."""

from switchboard.engine.conversation.call import AgentSettings, EndedReason

DIGIT_IDLE_SECONDS = 2.0


def is_interruption(agent: AgentSettings, text: str) -> bool:
    """Whether words said while the agent talks stop it: as many as `interruption_min_words`, where interruptions are allowed at all.

    Fewer words ("mhm") are forgotten. Where interruptions are not allowed, what the caller says is answered once the agent has finished.
    """
    return agent.allow_interruptions and len(text.split()) >= max(1, agent.interruption_min_words)


class CallTimeouts:
    """How long a call may be silent, and how long it may last, in seconds of the engine's clock."""

    def __init__(self, began: float, *, silence_seconds: float, max_seconds: float) -> None:
        self._silence_seconds = silence_seconds
        self._end = began + max_seconds
        self._last = began

    def touch(self, now: float) -> None:
        """Something happened."""
        self._last = now

    def exhausted(self, now: float) -> EndedReason | None:
        """Why the call must end now, if it must."""
        if now >= self._end:
            return EndedReason.MAX_DURATION
        return EndedReason.SILENCE if now - self._last >= self._silence_seconds else None


class DigitCollector:
    """Keys that the caller pressed: together one turn, ended by `#` or by two seconds without a key."""

    def __init__(self) -> None:
        self._pressed = ""
        self._last = 0.0

    def press(self, digit: str, now: float) -> str | None:
        """Take a key; the digits where it was the last."""
        self._last = now
        if digit != "#":
            self._pressed += digit
            return None
        return self._take()

    def idle(self, now: float) -> str | None:
        """The digits where the caller has stopped pressing."""
        return self._take() if self._pressed and now - self._last >= DIGIT_IDLE_SECONDS else None

    def _take(self) -> str:
        pressed, self._pressed = self._pressed, ""
        return pressed
