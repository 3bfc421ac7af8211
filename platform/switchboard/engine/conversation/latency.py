"""Latency of each turn, as measurements and as spans."""

from opentelemetry import trace
from opentelemetry.context import Context

from switchboard.engine.conversation.call import TurnLatency
from switchboard.foundation.observability.traces import convert_elapsed, tracer

STEPS = ("endpoint", "transcript", "first_token", "first_audio", "first_frame")
STAGES = dict(zip(STEPS, ("endpointing", "transcription", "model", "speech synthesis", "first audio"), strict=True))
"""Names of the spans that end with each step."""


class TurnClock:
    """Times the steps of one turn, in seconds of the engine's clock. The first time of each step counts.

    `context` is that of the turn's span, for the requests that belong to the turn.
    """

    def __init__(self, turn: int, last_voice_at: float, *, now: float, parent: Context) -> None:
        self._turn = turn
        self._last_voice_at = last_voice_at
        self._reached: dict[str, float] = {}
        self._started = convert_elapsed(now - last_voice_at)
        self._span = tracer.start_span("turn", parent, attributes={"switchboard.turn": turn}, start_time=self._started)
        self.context = trace.set_span_in_context(self._span, parent)

    def record_step(self, step: str, moment: float) -> None:
        """Record when a step was first reached."""
        if step not in self._reached:
            self._reached[step] = max(0.0, moment - self._last_voice_at)

    def build_latency(self) -> TurnLatency:
        """Return the measurements."""
        reached = {step: round(seconds * 1000) for step, seconds in self._reached.items()}
        return TurnLatency(self._turn, *(reached.get(step) for step in STEPS))

    def end(self, *, interrupted: bool) -> None:
        """End the turn's span, with a span for each stage: the time from the step before to its own."""
        if self._span.is_recording():
            self._span.set_attribute("switchboard.turn.interrupted", interrupted)
            before = 0.0
            for step, seconds in sorted(self._reached.items(), key=lambda reached: reached[1]):
                stage = tracer.start_span(STAGES[step], self.context, start_time=self._convert(before))
                stage.end(self._convert(seconds))
                before = seconds
        self._span.end()

    def _convert(self, seconds: float) -> int:
        return self._started + round(seconds * 1e9)
