"""Locks by name, for what has no row yet, or whose row others must go on reading."""

from sqlalchemy import func
from sqlmodel import select
from sqlmodel.ext.asyncio.session import AsyncSession
from sqlmodel.sql.expression import SelectOfScalar


async def lock_name(session: AsyncSession, name: str) -> None:
    """Wait until no other transaction holds the lock of this name, and hold it until this one ends."""
    await session.exec(build_lock(name))


def build_lock(name: str) -> SelectOfScalar[None]:
    """Build the statement that takes the lock of this name."""
    return select(func.pg_advisory_xact_lock(func.hashtextextended(name, 0)))
