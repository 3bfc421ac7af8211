"""Totals of lists, kept by database triggers, because counting ten million rows takes a second.

A table that declares a `__row_counter__` has triggers (`migrations/operations.py`). Each statement that writes rows
adds the difference to `row_count` in its own transaction, so that the sum is exact in every snapshot and writers do not
wait for each other. A reconciler compacts the differences of each list into one row.
"""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import BinaryExpression, BindParameter, Column, ColumnElement, func, text
from sqlalchemy.sql import operators
from sqlalchemy.sql.elements import BooleanClauseList
from sqlmodel import SQLModel, col, delete, select
from sqlmodel.sql.expression import SelectOfScalar

from switchboard.foundation.database import ReadSession, SystemSession, is_among
from switchboard.foundation.web.models import RowCount


@dataclass(frozen=True, slots=True)
class RowCounter:
    """The columns by which a table's rows are counted, apart from the organization.

    `parent` is the column of the resource that its lists lie under, `facets` are the columns that its lists are
    filtered by.
    """

    parent: str | None = None
    facets: tuple[str, ...] = ()

    @staticmethod
    def find(table: type[SQLModel]) -> "RowCounter | None":
        """Return the counter that a table declares as `__row_counter__`, None for a table without one."""
        counter: RowCounter | None = getattr(table, "__row_counter__", None)
        return counter


COMPACT = text(
    "with crowded as (select organization_id, list, parent, facets from row_count"
    " group by 1, 2, 3, 4 having count(*) > :most limit 1000),"
    " gone as (delete from row_count as kept using crowded"
    " where kept.organization_id = crowded.organization_id and kept.list = crowded.list"
    " and kept.parent = crowded.parent and kept.facets = crowded.facets returning kept.*)"
    " insert into row_count (organization_id, list, parent, facets, rows)"
    " select organization_id, list, parent, facets, sum(rows) from gone group by 1, 2, 3, 4 having sum(rows) <> 0"
)


async def count_rows(session: ReadSession, rows: SelectOfScalar[Any]) -> int:
    """Return the number of rows that a select of one table finds: from the table's counter if its filters allow, else
    by counting.
    """
    table: type[SQLModel] = rows.column_descriptions[0]["entity"]
    required = _required_values(rows.whereclause)
    counter = RowCounter.find(table)
    if (
        counter is None
        or required is None
        or not required.keys() <= {"organization_id", counter.parent, *counter.facets}
    ):
        return await session.count(rows)
    kept = select_row_count(table, session.organization_id)
    if counter.parent in required:
        kept = kept.where(is_among(col(RowCount.parent), required[counter.parent]))
    for facet in counter.facets:
        if facet in required:
            kept = kept.where(is_among(col(RowCount.facets)[facet].astext, [str(value) for value in required[facet]]))
    return int((await session.exec(kept)).one())


def select_row_count(table: type[SQLModel], organization_id: UUID | BindParameter[UUID]) -> SelectOfScalar[int]:
    """Select the number of an organization's rows of a table from its counter."""
    is_list = col(RowCount.organization_id) == organization_id, col(RowCount.list) == str(table.__tablename__)
    return select(func.coalesce(func.sum(RowCount.rows), 0)).where(*is_list)


async def merge_row_count_changes(session: SystemSession, *, most: int) -> None:
    """Merge the differences of each list that has more than `most` of them. Several processes may run this at once."""
    await session.fetch(COMPACT, {"most": most})


async def delete_row_counts(session: SystemSession, organization_id: UUID) -> None:
    """Delete the counts of an organization whose rows are gone; no foreign key does it, for the sake of writers."""
    await session.exec(delete(RowCount).where(col(RowCount.organization_id) == organization_id))


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
