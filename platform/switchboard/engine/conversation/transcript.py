"""The transcript and the latencies of one call: kept for its result, told to its log and to whoever follows them."""

from collections.abc import Callable

from switchboard.engine.conversation.call import LiveCall, Role, TranscriptEntry, TurnLatency


class CallTranscript:
    """What was said so far, in order. `on_entry(position, entry)` tells each."""

    def __init__(self, call: LiveCall) -> None:
        self._log = call.log
        self.entries: list[TranscriptEntry] = []
        self.latencies: list[TurnLatency] = []
        self.on_entry: Callable[[int, TranscriptEntry], None] = lambda _position, _entry: None

    def add(self, entry: TranscriptEntry) -> None:
        """Something was said, or happened."""
        self.entries.append(entry)
        self._log.entry(entry)
        self.on_entry(len(self.entries) - 1, entry)

    def latency(self, latency: TurnLatency) -> None:
        """A turn was answered."""
        self.latencies.append(latency)
        self._log.latency(latency)

    def has(self, role: Role) -> bool:
        """Whether there is an entry of that role."""
        return any(entry.role == role for entry in self.entries)
