"""Locks by name, for things that have no row yet, or whose row others must go on reading."""

from typing import Final

from sqlalchemy import Text, bindparam, func
from sqlalchemy import select as select_columns
from sqlmodel import select
from sqlmodel.ext.asyncio.session import AsyncSession
from sqlmodel.sql.expression import SelectOfScalar

from switchboard.foundation.database.statements import run_statement

_LOCK: Final = select_columns(func.pg_advisory_xact_lock(func.hashtextextended(bindparam("name", type_=Text), 0)))


async def lock_name(session: AsyncSession, name: str) -> None:
    """Wait until no other transaction holds the lock of this name, and hold it until this one ends."""
    await run_statement(session, _LOCK, {"name": name})


def build_lock(name: str) -> SelectOfScalar[None]:
    """Build the statement that takes the lock of this name."""
    return select(func.pg_advisory_xact_lock(func.hashtextextended(name, 0)))
