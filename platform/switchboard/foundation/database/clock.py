"""The database's clock, which all processes share.

Leases, schedules, and deadlines compare moments that different machines wrote, and the clocks of machines differ. So
a process reads the database's clock as its transactions begin, at most once a second, and `now` carries the latest
reading on.
"""

import time
from datetime import UTC, datetime

SET_BACK_SECONDS = 0.5
READ_SECONDS = 1.0
"""Time for which a reading is carried on before the next one. Clocks of machines drift by microseconds in it."""


class DatabaseClock:
    """The database's clock, carried on with the monotonic clock of this process.

    Until the first reading it is the machine's clock.
    """

    def __init__(self) -> None:
        self._offset = time.time() - time.monotonic()
        self._read_at: float | None = None

    def is_due(self) -> bool:
        """Return whether the database's clock should be read again."""
        return self._read_at is None or time.monotonic() - self._read_at >= READ_SECONDS

    def adjust(self, seconds: float) -> None:
        """Adjust to a reading of the database's clock, in seconds since 1970.

        A reading arrives late, never early, so the reading furthest ahead counts. A reading far behind means that the
        database's clock was set back.
        """
        moment = time.monotonic()
        offset = seconds - moment
        if self._read_at is None or not self._offset - SET_BACK_SECONDS < offset < self._offset:
            self._offset = offset
        self._read_at = moment

    def read(self) -> datetime:
        """Return the time in UTC."""
        return datetime.fromtimestamp(time.monotonic() + self._offset, UTC)


CLOCK = DatabaseClock()


def now() -> datetime:
    """Return the database's time in UTC, truncated to the milliseconds that the API shows."""
    moment = CLOCK.read()
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)
