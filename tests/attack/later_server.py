"""A server whose clock is ahead of the database's by as many seconds as a file says.

The platform takes its time from the database (`foundation/database/clock.py`), so that a machine's wrong clock changes
nothing: libfaketime, which moves that one, is of no use here. Only signed links of a library read the machine's clock.
"""

import os
import sys
import time
from datetime import datetime, timedelta
from pathlib import Path

from switchboard.apps.cli import main
from switchboard.foundation.database.clock import DatabaseClock

AHEAD = "LATER_SERVER_SECONDS_FILE"


def move_clocks(file: Path) -> None:
    """Have the clocks of this process be ahead by the seconds that the file has whenever they are read."""
    read_machine, read_database = time.time, DatabaseClock.read

    def read_later(clock: DatabaseClock) -> datetime:
        return read_database(clock) + timedelta(seconds=int(file.read_text()))

    time.time = lambda: read_machine() + int(file.read_text())
    DatabaseClock.read = read_later  # type: ignore[method-assign, assignment]


if __name__ == "__main__":
    move_clocks(Path(os.environ[AHEAD]))
    sys.argv = ["switchboard", "serve"]
    main()
