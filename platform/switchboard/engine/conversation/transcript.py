"""Transcript and latencies of one call, kept for its result and recorded in its log."""

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import count

from opentelemetry import trace
from opentelemetry.context import Context

from switchboard.engine.conversation.call import Clock, LiveCall, Pause, Role, TranscriptEntry, TurnLatency
from switchboard.foundation.observability.traces import convert_elapsed, tracer
from switchboard.plugin_sdk import JsonObject


class CallTranscript:
    """Entries of a call in order, redacted. Times of the engine's clock become milliseconds of the call.

    `turn_numbers` numbers the turns that are answered.
    """

    def __init__(self, call: LiveCall, started_at: float, clock: Clock) -> None:
        self._call = call
        self._started_at = started_at
        self._clock = clock
        self.turn_numbers = count(1)
        self._unfinished = ""
        self.entries: list[TranscriptEntry] = []
        self.latencies: list[TurnLatency] = []

    def add(
        self,
        role: Role,
        content: str,
        started_at: float | None = None,
        *,
        interrupted: bool = False,
        person: str | None = None,
    ) -> None:
        """Add an entry that ends now; without `started_at` it is an event of this moment. `person` is the supervisor
        who caused the event, or spoke in the agent's place.
        """
        times, kept = self._measure(started_at), self._call.agent.redactor.redact(content).kept
        spoken = person is not None and role == "agent"
        self._append(TranscriptEntry(role, kept, *times, interrupted, by_person=spoken, person=person))

    def add_turn(self, content: str, started_at: float, pauses: Sequence[Pause]) -> None:
        """Add a turn of the caller that ends now."""
        times = self._measure(started_at)
        self._append(
            TranscriptEntry("user", self._call.agent.redactor.redact(content).kept, *times, pauses=tuple(pauses))
        )

    def add_backchannel(self, content: str, started_at: float, ended_at: float) -> None:
        """Add words of the caller that did not stop the agent."""
        times = self._measure(started_at, ended_at)
        self._append(TranscriptEntry("user", self._call.agent.redactor.redact(content).kept, *times, backchannel=True))

    def add_tool_use(self, name: str, result: JsonObject) -> None:
        """Add the redacted result of a tool."""
        content = json.dumps({"tool": name, "result": result})
        self._append(TranscriptEntry("tool", content, *self._measure()))

    def add_unfinished(self, role: Role, content: str, started_at: float) -> None:
        """Log an utterance in progress, if more of it has been heard since the last time."""
        if content != self._unfinished:
            self._unfinished = content
            self._call.log.record_unfinished(
                TranscriptEntry(role, content, *self._measure(started_at), interrupted=role == "agent")
            )

    def add_latency(self, latency: TurnLatency) -> None:
        """Record the latency of a turn."""
        self.latencies.append(latency)
        self._call.log.record_latency(latency)

    def has_caller_turn(self) -> bool:
        """Return whether the caller has had a turn."""
        return any(entry.role == "user" and not entry.backchannel for entry in self.entries)

    def _measure(self, started_at: float | None = None, ended_at: float | None = None) -> tuple[int, int]:
        """Return beginning and end in milliseconds of the call."""
        ended_at = self._clock() if ended_at is None else ended_at
        moments = (ended_at if started_at is None else started_at, ended_at)
        start, end = (max(0, round((moment - self._started_at) * 1000)) for moment in moments)
        return start, end

    def has_agent_words(self) -> bool:
        """Return whether the caller has heard an agent."""
        return any(entry.role == "agent" for entry in self.entries)

    def _append(self, entry: TranscriptEntry) -> None:
        if entry.role in ("agent", "tool") and not entry.by_person:
            entry = replace(entry, agent_id=self._call.agent.id)
        self.entries.append(entry)
        self._unfinished = ""
        self._call.log.record_entry(entry)


# Latency of each turn, as measurements and as spans.

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
