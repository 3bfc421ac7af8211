"""Totals of lists, kept by database triggers, because counting ten million rows takes a second.

A table that declares a `__row_counter__` has triggers (`migrations/operations.py`). Each statement that writes rows
adds its change to `row_count_change` in its own transaction, so that the sum is exact in every snapshot and writers do
not wait for each other. A reconciler merges the changes into one row of `row_count` for each list: it reads what has
changed, and nothing else.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    BigInteger,
    BinaryExpression,
    BindParameter,
    Column,
    ColumnElement,
    Index,
    Integer,
    bindparam,
    func,
    text,
    union_all,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.sql import operators
from sqlalchemy.sql.elements import BooleanClauseList
from sqlmodel import Field, SQLModel, col, delete, select
from sqlmodel.sql.expression import SelectOfScalar

from switchboard.foundation.database import BATCH, ReadSession, SystemSession, is_among, new_id


@dataclass(frozen=True, slots=True)
class RowCounter:
    """The columns by which the rows of a table that declares this as `__row_counter__` are counted, apart from the
    organization.

    `parent` is the column of the resource that its lists lie under, `facets` are the columns that its lists are
    filtered by.
    """

    parent: str | None = None
    facets: tuple[str, ...] = ()


class RowCount(SQLModel, table=True):
    """The number of rows of a list, without the changes that have not been merged yet.

    Only its columns are selected: with JSON in its key, a row cannot be an object of a session.
    """

    __tablename__ = "row_count"
    __table_args__ = (Index("ix_row_count_none", "organization_id", postgresql_where=text("rows = 0")),)

    organization_id: UUID = Field(primary_key=True)
    list: str = Field(primary_key=True)
    parent: UUID = Field(primary_key=True)
    facets: dict[str, Any] = Field(primary_key=True, sa_type=JSONB)
    rows: int = Field(sa_type=BigInteger)


class RowCountChange(SQLModel, table=True):
    """A change of a list's number of rows, written by a trigger."""

    __tablename__ = "row_count_change"

    organization_id: UUID = Field(primary_key=True)
    list: str = Field(primary_key=True)
    parent: UUID = Field(primary_key=True)
    id: UUID = Field(default_factory=new_id, primary_key=True)
    facets: dict[str, Any] = Field(sa_type=JSONB)
    rows: int


# In the order of the lists: two workers, which for a moment may both have a bucket, must not wait for each other.
MERGE: Final = text(
    "with taken as (delete from row_count_change where (organization_id, list, parent, id) in"
    " (select organization_id, list, parent, id from row_count_change"
    " where bucket(organization_id) = any(:buckets) limit :most)"
    " returning organization_id, list, parent, facets, rows),"
    " changed as (select organization_id, list, parent, facets, sum(rows) as rows from taken"
    " group by 1, 2, 3, 4 order by 1, 2, 3, 4),"
    " merged as (insert into row_count as kept (organization_id, list, parent, facets, rows) select * from changed"
    " on conflict (organization_id, list, parent, facets) do update set rows = kept.rows + excluded.rows)"
    " select count(*) from taken"
).bindparams(bindparam("buckets", type_=ARRAY(Integer)))


async def count_rows(session: ReadSession, rows: SelectOfScalar[Any]) -> int:
    """Return the number of rows that a select of one table finds: from the table's counter if its filters allow, else
    by counting.
    """
    table: type[SQLModel] = rows.column_descriptions[0]["entity"]
    required = _required_values(rows.whereclause)
    counter: RowCounter | None = getattr(table, "__row_counter__", None)
    if (
        counter is None
        or required is None
        or not required.keys() <= {"organization_id", counter.parent, *counter.facets}
    ):
        return await session.count(rows)
    values = {"parent": required[counter.parent]} if counter.parent in required else {}
    values |= {facet: required[facet] for facet in counter.facets if facet in required}
    return int((await session.exec(select_row_count(table, session.organization_id, values))).one())


def select_row_count(
    table: type[SQLModel],
    organization_id: UUID | BindParameter[UUID],
    required: Mapping[str, Sequence[object]] = MappingProxyType({}),
) -> SelectOfScalar[int]:
    """Select the number of an organization's rows of a table from its counter: of those that have one of the values
    that are required of the parent (`parent`) or of a facet.
    """
    parts = []
    for kept in (RowCount, RowCountChange):
        rows = select(kept.rows).where(kept.organization_id == organization_id, kept.list == str(table.__tablename__))
        for name, values in required.items():
            if name == "parent":
                rows = rows.where(is_among(col(kept.parent), values))
            else:
                rows = rows.where(is_among(col(kept.facets)[name].astext, [str(value) for value in values]))
        parts.append(rows)
    both = union_all(*parts).subquery()
    return select(func.coalesce(func.sum(both.c.rows), 0))


async def merge_row_count_changes(session: SystemSession, *, buckets: Collection[int]) -> int:
    """Merge changes of lists into their totals, a batch of these buckets at most; return how many."""
    ((taken,),) = await session.fetch(MERGE, {"buckets": list(buckets), "most": BATCH})
    await session.exec(delete(RowCount).where(col(RowCount.rows) == 0))
    return int(taken)


async def delete_row_counts(session: SystemSession, organization_id: UUID) -> None:
    """Delete the counts of an organization whose rows are gone; no foreign key does it, for the sake of writers."""
    for kept in (RowCount, RowCountChange):
        await session.exec(delete(kept).where(col(kept.organization_id) == organization_id))


def _required_values(condition: ColumnElement[Any] | None) -> dict[str | None, list[Any]] | None:
    """Return the values that the condition requires of columns; None for a condition of another shape."""
    if condition is None:
        return {}
    clauses = (
        condition.clauses
        if isinstance(condition, BooleanClauseList) and condition.operator is operators.and_
        else [condition]
    )
    required: dict[str | None, list[Any]] = {}
    for clause in clauses:
        if (
            not isinstance(clause, BinaryExpression)
            or not isinstance(clause.left, Column)
            or not isinstance(clause.right, BindParameter)
        ):
            return None
        if clause.operator not in (operators.eq, operators.in_op) or clause.left.name in required:
            return None
        value: Any = clause.right.value
        required[clause.left.name] = list(value) if clause.operator is operators.in_op else [value]
    return required
