"""Number of calls that a process can hold, learned from the lateness of its event loop."""

from collections import deque
from typing import Final

LATE_SECONDS: Final = 0.02
"""One frame of audio. An answer crosses the event loop several times, and is late by several times as much."""
QUIET_SECONDS: Final = LATE_SECONDS / 2
QUANTILE: Final = 0.95
"""A scrape of the metrics holds the loop for 40 ms now and then, and means nothing."""
WINDOW: Final = 500
"""Ticks of five seconds."""
LEAST_SHARE: Final = 0.25
GROWTH_SHARE: Final = 0.05


class CallCapacity:
    """Limit of a process's live calls: additive increase, and decrease to what it holds when its loop is late.

    The limit is at most that of the operator, and at least a quarter of it: a process that is late with so few calls is
    not full of calls. Something else holds its loop or the machine, and refused calls would not free it.
    """

    def __init__(self, most: int) -> None:
        """`most` is the operator's limit."""
        self.limit = self._most = most
        self._lateness: deque[float] = deque(maxlen=WINDOW)

    def observe_lateness(self, seconds: float) -> None:
        """Record by how much a tick of the engine was late."""
        self._lateness.append(seconds)

    def update_limit(self, live_calls: int) -> None:
        """Adapt the limit to the last five seconds; called once a second."""
        lateness = self._calculate_lateness()
        if lateness > LATE_SECONDS:
            self.limit = min(self.limit, max(live_calls, round(self._most * LEAST_SHARE), 1))
        elif lateness < QUIET_SECONDS:
            self.limit = min(self._most, self.limit + max(1, round(self._most * GROWTH_SHARE)))

    def _calculate_lateness(self) -> float:
        if not self._lateness:
            return 0.0
        return sorted(self._lateness)[int(QUANTILE * (len(self._lateness) - 1))]
