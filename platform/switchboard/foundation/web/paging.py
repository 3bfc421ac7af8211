"""One page of a list, newest first, and the total."""

from collections.abc import Callable
from typing import Any, TypeVar

from sqlalchemy import tuple_
from sqlmodel import SQLModel, col
from sqlmodel.sql.expression import SelectOfScalar

from switchboard.foundation.database import TenantSession
from switchboard.foundation.web.row_counts import count_rows
from switchboard.foundation.web.schemas import Item, Page, PageQuery

Row = TypeVar("Row", bound=SQLModel)


def select_after(rows: SelectOfScalar[Row], after: SQLModel | None) -> SelectOfScalar[Row]:
    """Order a select of one table newest first, and begin after one of its rows.

    Unlike an offset, this costs the same at every place of the list.
    """
    table: Any = rows.column_descriptions[0]["entity"]
    if after is not None:
        place: Any = after
        rows = rows.where(tuple_(col(table.created_at), col(table.id)) < (place.created_at, place.id))
    return rows.order_by(col(table.created_at).desc(), col(table.id).desc())


async def paginate(
    session: TenantSession, rows: SelectOfScalar[Row], out: Callable[[Row], Item], query: PageQuery
) -> "Page[Item]":
    """Return one page of a select of one table, which must have `created_at` and `id`."""
    count = await count_rows(session, rows)
    part = select_after(rows, None).limit(query.limit).offset(query.offset)
    items = [out(row) for row in (await session.exec(part)).all()]
    return Page[Item].model_construct(items=items, total=count, limit=query.limit, offset=query.offset)
