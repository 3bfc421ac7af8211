"""One page of a list, newest first, and the total."""

from collections.abc import Callable
from typing import Any, TypeVar

from sqlmodel import SQLModel, col
from sqlmodel.sql.expression import SelectOfScalar

from switchboard.foundation.database import TenantSession
from switchboard.foundation.web.row_counts import count_rows
from switchboard.foundation.web.schemas import Item, Page, PageQuery

Row = TypeVar("Row", bound=SQLModel)


async def paginate(
    session: TenantSession, rows: SelectOfScalar[Row], out: Callable[[Row], Item], query: PageQuery
) -> "Page[Item]":
    """Return one page of a select of one table, which must have `created_at` and `id`."""
    table: Any = rows.column_descriptions[0]["entity"]
    count = await count_rows(session, rows)
    part = rows.order_by(col(table.created_at).desc(), col(table.id).desc()).limit(query.limit).offset(query.offset)
    items = [out(row) for row in (await session.exec(part)).all()]
    return Page[Item].model_construct(items=items, total=count, limit=query.limit, offset=query.offset)
