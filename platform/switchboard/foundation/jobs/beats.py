"""Beats of other processes, as this one has seen them by its own clock."""

import time
from collections.abc import Awaitable, Collection, Mapping
from datetime import datetime
from uuid import UUID

MOST_BETWEEN_LOOKS = 5.0
"""Seconds. After a longer time without a look, the database may have been unreachable meanwhile."""


class BeatWatch:
    """Beats, which others write into the database again and again; a key is a process, or a thing that it holds.

    `silent` has the keys whose beat has not changed for `seconds` in which every look succeeded. A process that lives
    cannot write during an outage of the database, and a standby that takes over may have lost its last beat. `clock` is
    monotonic, in seconds.
    """

    def __init__(self, seconds: float) -> None:
        self.clock = time.monotonic
        self.silent: Collection[str | UUID] = ()
        self._seconds = seconds
        self._seen: dict[str | UUID, tuple[datetime, float]] = {}
        self._looked_at = self.clock()

    async def look(self, reading: Awaitable[Mapping[str | UUID, datetime]]) -> None:
        """Take the beats that are read. Raises what the reading raises; what was seen before is forgotten then."""
        seen, self._seen, self.silent = self._seen, {}, ()
        beats = await reading
        before, self._looked_at = self._looked_at, self.clock()
        if self._looked_at - before <= MOST_BETWEEN_LOOKS:
            self._seen = {key: found for key, found in seen.items() if beats.get(key) == found[0]}
        for key, beat in beats.items():
            self._seen.setdefault(key, (beat, self._looked_at))
        until = self._looked_at - self._seconds
        self.silent = [key for key, (_, since) in self._seen.items() if since <= until]
