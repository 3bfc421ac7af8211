"""Outages of the database: recognition of their errors, and work that waits until the database answers again."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

logger = structlog.get_logger()
VALUE_STATES = ("22000", "22003", "22008", "22021", "22P05")
"""SQLSTATE: data exception as asyncpg reports one, number or time out of range, unknown or untranslatable character."""
AWAY_STATES = ("08", "57P", "57014", "55P03", "53300", "25006")
"""SQLSTATEs by prefix: connection failures, shutdown and start-up, a statement or a lock that took too long, too many
connections, and a standby that is still read-only (PostgreSQL manual, Appendix A)."""
RETRY_SECONDS = 0.25
ResultT = TypeVar("ResultT")


def is_database_away(error: Exception) -> bool:
    """Return whether the database cannot be used at the moment, as opposed to having refused a statement."""
    if isinstance(error, OSError | OperationalError | InterfaceError | PoolTimeout):
        return True
    if not isinstance(error, DBAPIError):
        return False
    state = str(getattr(error.orig, "sqlstate", None) or "")
    return error.connection_invalidated or state.startswith(AWAY_STATES)


def is_refused_value(error: Exception) -> bool:
    """Return whether the database cannot store or compare a value: text with NUL, or a number or time out of range."""
    orig = error.orig if isinstance(error, DBAPIError) else None
    return getattr(orig, "sqlstate", None) in VALUE_STATES


async def retry_while_away(work: Callable[[], Awaitable[ResultT]], *, seconds: float) -> ResultT:
    """Do the work, and repeat it while the database cannot be reached, for so many seconds at most.

    The work must be idempotent: its transaction may have been committed although the reply was lost. Raises the last
    error.
    """
    clock = asyncio.get_running_loop().time
    until = clock() + seconds
    while True:
        try:
            return await work()
        except (SQLAlchemyError, OSError) as error:
            if not is_database_away(error) or clock() >= until:
                raise
            logger.warning("work waits for the database", error=type(error).__name__)
        await asyncio.sleep(RETRY_SECONDS)
