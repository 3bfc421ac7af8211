"""How many rows a list has: kept beside the rows, because counting ten million takes a second.

Each statement that writes rows of a tallied table leaves the difference in `row_tally`, by a trigger and in its own transaction, so the sum is
exact in every snapshot and no two writers wait for each other. A sweep folds differences into one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import BinaryExpression, BindParameter, Column, ColumnElement, func, text
from sqlalchemy.sql import operators
from sqlalchemy.sql.elements import BooleanClauseList
from sqlmodel import SQLModel, col, select
from sqlmodel.sql.expression import SelectOfScalar

from switchboard.foundation.database import SystemSession, TenantSession
from switchboard.foundation.web.models import RowTally


@dataclass(frozen=True, slots=True)
class Tally:
    """A table's rows are tallied for each organization and, where it has them, `parent` and `facets`: columns that its lists are filtered by."""

    parent: str | None = None
    facets: tuple[str, ...] = ()


TALLIES: Final[Mapping[str, Tally]] = {
    "agent": Tally(facets=("agent_type",)),
    "agent_version": Tally("agent_id"),
    "automation": Tally(),
    "automation_run": Tally("automation_id"),
    "call": Tally(facets=("agent_id", "direction", "status")),
    "campaign": Tally(),
    "campaign_contact": Tally("campaign_id"),
    "contact": Tally(),
    "delivery": Tally("target_id", ("target_kind",)),
    "do_not_call_entry": Tally(),
    "knowledge_base": Tally(),
    "knowledge_document": Tally("knowledge_base_id"),
    "phone_number": Tally(facets=("status",)),
    "simulation": Tally("agent_id"),
    "sms_conversation": Tally(),
    "sms_message": Tally("conversation_id"),
}
"""As the migrations made the triggers (`migrations/tallies.py`)."""

FOLD = text(
    "with crowded as (select organization_id, list, parent, facets from row_tally group by 1, 2, 3, 4 having count(*) > :most limit 1000),"
    " gone as (delete from row_tally as kept using crowded where kept.organization_id = crowded.organization_id and kept.list = crowded.list"
    " and kept.parent = crowded.parent and kept.facets = crowded.facets returning kept.*)"
    " insert into row_tally (organization_id, list, parent, facets, rows)"
    " select organization_id, list, parent, facets, sum(rows) from gone group by 1, 2, 3, 4 having sum(rows) <> 0"
)


async def count_rows(session: TenantSession, rows: SelectOfScalar[Any]) -> int:
    """How many rows a select of one table finds: from the tally where that can tell, else counted."""
    table: type[SQLModel] = rows.column_descriptions[0]["entity"]
    name = str(table.__tablename__)
    wanted = _wanted(rows.whereclause)
    tally = TALLIES.get(name)
    if tally is None or wanted is None or not wanted.keys() <= {"organization_id", tally.parent, *tally.facets}:
        counted: int = (await session.exec(select(func.count()).select_from(rows.subquery()))).one()
        return counted
    kept = select(func.coalesce(func.sum(RowTally.rows), 0)).where(session.owns(RowTally), col(RowTally.list) == name)
    if tally.parent in wanted:
        kept = kept.where(col(RowTally.parent).in_(wanted[tally.parent]))
    for facet in tally.facets:
        if facet in wanted:
            kept = kept.where(col(RowTally.facets)[facet].astext.in_([str(value) for value in wanted[facet]]))
    return int((await session.exec(kept)).one())


async def compact(session: SystemSession, *, most: int) -> None:
    """Make one row of the differences of each list that has more than so many. Run under the system role; several at once do no harm."""
    await (await session.connection()).execute(FOLD, {"most": most})


def _wanted(condition: ColumnElement[Any] | None) -> dict[str | None, list[Any]] | None:
    """Which values the rows' columns must have; None for a condition that says anything else."""
    if condition is None:
        return {}
    clauses = (
        condition.clauses
        if isinstance(condition, BooleanClauseList) and condition.operator is operators.and_
        else [condition]
    )
    wanted: dict[str | None, list[Any]] = {}
    for clause in clauses:
        if (
            not isinstance(clause, BinaryExpression)
            or not isinstance(clause.left, Column)
            or not isinstance(clause.right, BindParameter)
        ):
            return None
        if clause.operator not in (operators.eq, operators.in_op) or clause.left.name in wanted:
            return None
        value: Any = clause.right.value
        wanted[clause.left.name] = list(value) if clause.operator is operators.in_op else [value]
    return wanted
