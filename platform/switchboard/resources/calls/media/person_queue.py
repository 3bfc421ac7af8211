"""A call's place in the queue of callers who wait for a person."""

from dataclasses import dataclass, field

import structlog
from sqlalchemy.exc import SQLAlchemyError

from switchboard.foundation.database import Database, retry_while_away
from switchboard.resources.call_queue import service as call_queue
from switchboard.resources.calls.models import Call

logger = structlog.get_logger()
RETRY_SECONDS = 30.0


@dataclass(slots=True)
class DatabasePersonQueue:
    """The engine's `PersonQueue` of one call. During an outage of the database the caller goes on waiting."""

    database: Database
    call: Call
    _position: int = field(default=1, init=False)

    async def is_staffed(self) -> bool:
        """Return whether a user follows the queue."""
        async with self.database.tenant(self.call.organization_id) as session:
            return await call_queue.is_staffed(session)

    async def join(self, reason: str) -> None:
        """Enter the queue."""
        other = self.call.from_number if self.call.direction == "inbound" else self.call.to_number
        number = other if other.startswith("+") else ""

        async def attempt() -> None:
            async with self.database.tenant(self.call.organization_id) as session:
                await call_queue.join_queue(session, self.call.id, number, reason)

        await retry_while_away(attempt, seconds=RETRY_SECONDS)

    async def get_position(self) -> int:
        """Return the position, from 1; the last known position during an outage of the database."""
        try:
            async with self.database.tenant(self.call.organization_id) as session:
                self._position = await call_queue.get_position(session, self.call.id)
        except (SQLAlchemyError, OSError):
            logger.warning("the position in the queue is not known", call_id=str(self.call.id))
        return self._position

    async def leave(self, *, callback: bool) -> bool:
        """End the wait; return whether a callback is noted."""

        async def attempt() -> bool:
            async with self.database.tenant(self.call.organization_id) as session:
                return await call_queue.leave_queue(session, self.call.id, callback=callback)

        return await retry_while_away(attempt, seconds=RETRY_SECONDS)
