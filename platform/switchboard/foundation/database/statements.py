"""Conditions with any number of values, and locks with names.

The conditions have one parameter: PostgreSQL's protocol has at most 65,535 of them in a statement, and asyncpg 32,767.
Locks have names for things that have no row yet, or whose row others must go on reading.
"""

from collections.abc import Collection, Sequence
from typing import Any, Final, TypeVar, cast

from sqlalchemy import Column, ColumnElement, all_, any_, func, inspect, literal, tuple_
from sqlalchemy import select as select_columns
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Mapped
from sqlmodel import SQLModel, select
from sqlmodel.ext.asyncio.session import AsyncSession

T = TypeVar("T")


def is_among(column: Mapped[T] | ColumnElement[T], values: Collection[T]) -> ColumnElement[bool]:
    """Return the condition that a column has one of these values; it is false for an empty list."""
    compared = cast("ColumnElement[T]", column)
    return compared == any_(literal(list(values), ARRAY(compared.type)))


def is_not_among(column: Mapped[T] | ColumnElement[T], values: Collection[T]) -> ColumnElement[bool]:
    """Return the condition that a column has none of these values; true for an empty list, and null for a null."""
    compared = cast("ColumnElement[T]", column)
    return compared != all_(literal(list(values), ARRAY(compared.type)))


def are_among(columns: Sequence[Column[Any]], rows: Sequence[Sequence[object]]) -> ColumnElement[bool]:
    """Return the condition that several columns have the values of one of these rows; it is false for an empty list."""
    values = [[row[place] for row in rows] for place in range(len(columns))]
    arrays = [literal(each, ARRAY(column.type)) for each, column in zip(values, columns, strict=True)]
    given = func.unnest(*arrays).table_valued(*(column.name for column in columns)).render_derived()
    return tuple_(*columns).in_(select_columns(*given.c))


async def lock_name(session: AsyncSession, name: str) -> None:
    """Wait until no other transaction holds the lock of this name, and hold it until this one ends."""
    await session.exec(select(func.pg_advisory_xact_lock(func.hashtextextended(name, 0))))


async def try_lock_name(session: AsyncSession, name: str) -> bool:
    """Hold the lock of this name until this transaction ends, unless another one does; return whether it is held."""
    return bool((await session.exec(select(func.pg_try_advisory_xact_lock(func.hashtextextended(name, 0))))).one())


BATCH: Final = 1000
"""Rows of one transaction of a job that changes many."""


def is_in_batch(table: type[SQLModel], *conditions: ColumnElement[bool]) -> ColumnElement[bool]:
    """Return the condition that a row is one of `BATCH` rows that meet the conditions, for an update or a deletion."""
    key = inspect(table).primary_key
    return tuple_(*key).in_(select_columns(*key).where(*conditions).limit(BATCH).correlate(None))
