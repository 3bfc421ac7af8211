"""Conditions with any number of values, which are one parameter: PostgreSQL's protocol has at most 65,535 of them in a
statement, and asyncpg 32,767.
"""

from collections.abc import Collection, Sequence
from typing import Any, TypeVar, cast

from sqlalchemy import Column, ColumnElement, all_, any_, func, literal, select, tuple_
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Mapped

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
    return tuple_(*columns).in_(select(*given.c))
