"""Rules of turn taking: what interrupts the agent, how long silence may last, and when pressed digits are a turn."""

from switchboard.engine.conversation.call import AgentSettings, EndedReason

DIGIT_IDLE_SECONDS = 2.0


def is_interruption(agent: AgentSettings, text: str) -> bool:
    """Return whether words said while the agent speaks interrupt it: at least `interruption_min_words` of them.

    Fewer words ("mhm") are ignored. If the agent allows no interruptions, the caller is answered once the agent has
    finished speaking.
    """
    return agent.allow_interruptions and len(text.split()) >= max(1, agent.interruption_min_words)


class CallTimeouts:
    """Limits on a call's silence and length, in seconds of the engine's clock."""

    def __init__(self, started_at: float, *, silence_seconds: float, max_seconds: float) -> None:
        self._silence_seconds = silence_seconds
        self._max_end = started_at + max_seconds
        self._last_activity_at = started_at

    def touch(self, now: float) -> None:
        """Restart the silence timeout."""
        self._last_activity_at = now

    def check(self, now: float) -> EndedReason | None:
        """Return the reason to end the call if a limit is exceeded."""
        if now >= self._max_end:
            return EndedReason.MAX_DURATION
        return EndedReason.SILENCE if now - self._last_activity_at >= self._silence_seconds else None


class DigitCollector:
    """Collects the keys that the caller presses into one turn, which `#` or two seconds without a key complete."""

    def __init__(self) -> None:
        self._pressed = ""
        self._last_pressed_at = 0.0

    def add_digit(self, digit: str, now: float) -> str | None:
        """Add a key; return the digits if it completes them."""
        self._last_pressed_at = now
        if digit != "#":
            self._pressed += digit
            return None
        return self.take_pressed()

    def take_if_idle(self, now: float) -> str | None:
        """Return the digits if the caller has stopped pressing keys."""
        return self.take_pressed() if self._pressed and now - self._last_pressed_at >= DIGIT_IDLE_SECONDS else None

    def take_pressed(self) -> str:
        """Return the digits so far, which are no turn any more."""
        pressed, self._pressed = self._pressed, ""
        return pressed
