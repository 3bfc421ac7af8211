"""Reads from a streaming replica that has everything that was committed before (decision 31)."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar
from uuid import UUID

import structlog
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from switchboard.foundation.database.outages import is_database_away
from switchboard.foundation.database.session import Database, DatabaseSession, ReadSession
from switchboard.foundation.observability import metrics

logger = structlog.get_logger()
ENTER_SECONDS = 1.0
"""Time in which the replica must have a connection for a read and have caught up."""
CATCH_UP_SECONDS = 0.1
POLL_SECONDS = 0.002
AWAY_SECONDS = 5.0
"""Time for which reads go to the primary after one could not use the replica."""
RECOVERY_CONFLICT = "40001"
"""SQLSTATE of a query that the replica cancels for what it has to replay (PostgreSQL manual, section 26.4.2)."""
STATEMENT_TIMEOUT = "57014"
_HAS_REPLAYED = text("select pg_is_in_recovery(), pg_last_wal_replay_lsn() >= cast(cast(:position as text) as pg_lsn)")
ResultT = TypeVar("ResultT")


class ReplicaNotUsable(Exception):
    """The replica cannot answer a read now; the message is one line."""


class ReadReplica:
    """The replica of `SWITCHBOARD_READ_DATABASE_URL`, or the primary in its place."""

    def __init__(self, primary: Database, replica: Database | None, *, seconds: float) -> None:
        """A read may take so many seconds on the replica before it is done on the primary; 0: any time."""
        self._primary = primary
        self._replica = replica
        self._seconds = seconds + ENTER_SECONDS if seconds else None
        self._away_until = 0.0

    @property
    def is_configured(self) -> bool:
        """True if there is a replica, in use or not."""
        return self._replica is not None

    async def read(
        self, organization_id: UUID, work: Callable[[ReadSession], Awaitable[ResultT]], *, actor: str | None = None
    ) -> ResultT:
        """Do work that only reads, in one transaction of an organization.

        It is done on the replica if that has everything that was committed before, else on the primary, and again on
        the primary if the replica fails meanwhile.
        """
        if self._replica is not None and time.monotonic() >= self._away_until:
            try:
                result = await self._read_replica(self._replica, organization_id, work)
            except (ReplicaNotUsable, SQLAlchemyError, OSError) as error:
                if not _is_problem_of_replica(error):
                    raise
                self._away_until = time.monotonic() + AWAY_SECONDS
                reason = str(error) if isinstance(error, ReplicaNotUsable) else type(error).__name__
                logger.warning("reads go to the primary", reason=reason, seconds=AWAY_SECONDS)
            else:
                metrics.replica_reads.labels("replica").inc()
                return result
        if self._replica is not None:
            metrics.replica_reads.labels("primary").inc()
        async with self._primary.read(organization_id, actor=actor) as session:
            return await work(session)

    async def check(self) -> None:
        """Raise `ReplicaNotUsable` if reads cannot use the replica now."""
        if self._replica is None:
            return
        try:
            async with asyncio.timeout(ENTER_SECONDS):
                position = await self._primary.read_position()
                async with self._replica.system() as session:
                    await _catch_up(session, position)
        except (SQLAlchemyError, OSError) as error:
            raise ReplicaNotUsable(f"it does not answer ({type(error).__name__})") from error

    async def close(self) -> None:
        """Close every pooled connection to the replica."""
        if self._replica is not None:
            await self._replica.close()

    async def _read_replica(
        self, replica: Database, organization_id: UUID, work: Callable[[ReadSession], Awaitable[ResultT]]
    ) -> ResultT:
        async with asyncio.timeout(self._seconds) as deadline:
            whole = deadline.when()
            deadline.reschedule(asyncio.get_running_loop().time() + ENTER_SECONDS)
            position = await self._primary.read_position()
            async with replica.read(organization_id) as session:
                try:
                    await _catch_up(session, position)
                except SQLAlchemyError as error:
                    raise ReplicaNotUsable(f"it cannot tell its position ({type(error).__name__})") from error
                deadline.reschedule(whole)
                return await work(session)


async def _catch_up(session: DatabaseSession, position: str) -> None:
    """Wait until the replica has replayed everything up to a position of the primary's log.

    Each statement after this sees at least the transactions that were committed before that position was read.
    """
    until = time.monotonic() + CATCH_UP_SECONDS
    while True:
        ((in_recovery, has_replayed),) = await session.fetch(_HAS_REPLAYED, {"position": position})
        if not in_recovery:
            raise ReplicaNotUsable("it is not a replica, or has been promoted")
        if has_replayed:
            return
        if time.monotonic() >= until:
            raise ReplicaNotUsable(f"it is more than {CATCH_UP_SECONDS} seconds behind")
        await asyncio.sleep(POLL_SECONDS)


def _is_problem_of_replica(error: Exception) -> bool:
    """Return whether the primary may succeed. A statement that takes too long would burden it as well."""
    if isinstance(error, ReplicaNotUsable):
        return True
    state = getattr(error.orig, "sqlstate", None) if isinstance(error, DBAPIError) else None
    return state != STATEMENT_TIMEOUT and (state == RECOVERY_CONFLICT or is_database_away(error))
