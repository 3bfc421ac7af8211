"""Transcript and latencies of one call, kept for its result and recorded in its log."""

import json
from collections.abc import Sequence

from switchboard.engine.conversation.call import Clock, LiveCall, Pause, Role, TranscriptEntry, TurnLatency
from switchboard.plugin_sdk import JsonObject


class CallTranscript:
    """Entries of a call in order, redacted. Times of the engine's clock become milliseconds of the call."""

    def __init__(self, call: LiveCall, started_at: float, clock: Clock) -> None:
        self._log = call.log
        self._redactor = call.redactor
        self._started_at = started_at
        self._clock = clock
        self._turns = 0
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
        times, kept = self._measure(started_at), self._redactor.redact(content).kept
        spoken = person is not None and role == "agent"
        self._append(TranscriptEntry(role, kept, *times, interrupted, by_person=spoken, person=person))

    def add_turn(self, content: str, started_at: float, pauses: Sequence[Pause]) -> None:
        """Add a turn of the caller that ends now."""
        times = self._measure(started_at)
        self._append(TranscriptEntry("user", self._redactor.redact(content).kept, *times, pauses=tuple(pauses)))

    def add_backchannel(self, content: str, started_at: float, ended_at: float) -> None:
        """Add words of the caller that did not stop the agent."""
        times = self._measure(started_at, ended_at)
        self._append(TranscriptEntry("user", self._redactor.redact(content).kept, *times, backchannel=True))

    def add_tool_use(self, name: str, result: JsonObject) -> None:
        """Add the redacted result of a tool."""
        content = json.dumps({"tool": name, "result": result})
        self._append(TranscriptEntry("tool", content, *self._measure()))

    def add_unfinished(self, role: Role, content: str, started_at: float) -> None:
        """Log an utterance in progress, if more of it has been heard since the last time."""
        if content != self._unfinished:
            self._unfinished = content
            self._log.record_unfinished(
                TranscriptEntry(role, content, *self._measure(started_at), interrupted=role == "agent")
            )

    def count_turn(self) -> int:
        """Return the number of a new turn, from 1."""
        self._turns += 1
        return self._turns

    def add_latency(self, latency: TurnLatency) -> None:
        """Record the latency of a turn."""
        self.latencies.append(latency)
        self._log.record_latency(latency)

    def has_caller_turn(self) -> bool:
        """Return whether the caller has had a turn."""
        return any(entry.role == "user" and not entry.backchannel for entry in self.entries)

    def _measure(self, started_at: float | None = None, ended_at: float | None = None) -> tuple[int, int]:
        """Return beginning and end in milliseconds of the call."""
        ended_at = self._clock() if ended_at is None else ended_at
        moments = (ended_at if started_at is None else started_at, ended_at)
        start, end = (max(0, round((moment - self._started_at) * 1000)) for moment in moments)
        return start, end

    def _append(self, entry: TranscriptEntry) -> None:
        self.entries.append(entry)
        self._unfinished = ""
        self._log.record_entry(entry)
