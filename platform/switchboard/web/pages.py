"""One part of a list, newest first, and how many there are in all."""

from collections.abc import Callable
from typing import Any, TypeVar

from sqlalchemy import func
from sqlmodel import SQLModel, col, select
from sqlmodel.ext.asyncio.session import AsyncSession
from sqlmodel.sql.expression import SelectOfScalar

from switchboard.web.schemas import Item, Page, PageQuery

Row = TypeVar("Row", bound=SQLModel)


async def page(session: AsyncSession, rows: SelectOfScalar[Row], out: Callable[[Row], Item], query: PageQuery) -> "Page[Item]":
    """Run a select of whole rows of one table, which must have `created_at` and `id`."""
    table: Any = rows.column_descriptions[0]["entity"]
    total = (await session.exec(select(func.count()).select_from(rows.subquery()))).one()
    part = rows.order_by(col(table.created_at).desc(), col(table.id).desc()).limit(query.limit).offset(query.offset)
    items = [out(row) for row in (await session.exec(part)).all()]
    return Page[Item].model_construct(items=items, total=total, limit=query.limit, offset=query.offset)
