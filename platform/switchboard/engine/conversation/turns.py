"""Rules of turn taking: how long silence may last, and when pressed digits are a turn."""

from switchboard.engine.conversation import voicemail
from switchboard.engine.conversation.call import EndedReason, LiveCall

DIGIT_IDLE_SECONDS = 2.0


class CallTimeouts:
    """Limits on a call's silence and length, in seconds of the engine's clock."""

    def __init__(self, call: LiveCall, started_at: float) -> None:
        agent, records = call.agent, call.voicemail
        self._silence_seconds = voicemail.SILENCE_SECONDS if records else agent.end_call_silence_seconds
        self._max_end = started_at + (voicemail.MAX_SECONDS if records else agent.max_call_duration_seconds)
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
        """Return the digits so far and clear them, so that they do not become a turn."""
        pressed, self._pressed = self._pressed, ""
        return pressed
