"""Locks by name, for what has no row yet, or whose row others must go on reading."""

from functools import cache
from typing import Any

from sqlalchemy import Select, Text, bindparam, func
from sqlalchemy import select as select_columns
from sqlmodel import select
from sqlmodel.ext.asyncio.session import AsyncSession
from sqlmodel.sql.expression import SelectOfScalar


async def lock_name(session: AsyncSession, name: str, *others: str) -> None:
    """Wait until no other transaction holds the lock of this name, and hold it until this one ends; then the others.

    PostgreSQL takes them from left to right. Transactions that need several must name them in the same order.
    """
    names = (name, *others)
    values = {f"name_{place}": each for place, each in enumerate(names)}
    await session.exec(_select_locks(len(names)), params=values)  # type: ignore[call-overload]


@cache
def _select_locks(count: int) -> Select[Any]:
    keys = (func.hashtextextended(bindparam(f"name_{place}", type_=Text), 0) for place in range(count))
    return select_columns(*(func.pg_advisory_xact_lock(key) for key in keys))


def build_lock(name: str) -> SelectOfScalar[None]:
    """Build the statement that takes the lock of this name."""
    return select(func.pg_advisory_xact_lock(func.hashtextextended(name, 0)))
