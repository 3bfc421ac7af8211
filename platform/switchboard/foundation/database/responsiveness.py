"""Check of the database for the health endpoint: a slow answer is not an outage."""

import asyncio
import time
from dataclasses import dataclass, field
from typing import Final, Literal

from sqlalchemy.exc import SQLAlchemyError

from switchboard.foundation.database.session import Database

PING_SECONDS: Final = 2.0
SLOW_SECONDS: Final = 30.0
"""Time without an answer after which a slow database counts as unavailable. Shorter would turn a busy minute into an
outage: every process shares the database, so a balancer would take all of them out at once."""


@dataclass(slots=True)
class DatabaseCheck:
    """Asks the database whether it responds."""

    database: Database
    _answered_at: float = field(default_factory=time.monotonic)

    async def run(self) -> Literal["ok", "slow", "unavailable"]:
        """Return `ok`, `slow` (no answer within two seconds, but within the last thirty), or `unavailable`."""
        try:
            async with asyncio.timeout(PING_SECONDS):
                await self.database.ping()
        except TimeoutError:
            return "slow" if time.monotonic() - self._answered_at < SLOW_SECONDS else "unavailable"
        except (SQLAlchemyError, OSError):
            return "unavailable"
        self._answered_at = time.monotonic()
        return "ok"
