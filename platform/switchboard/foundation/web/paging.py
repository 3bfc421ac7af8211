"""Rows as the answers of endpoints: one page of a list, newest first, with the total, or one row."""

from collections.abc import Callable
from functools import cache
from typing import Any, Final, TypeVar
from uuid import UUID

from pydantic import BaseModel
from sqlalchemy import BindParameter, Integer, Select, bindparam, inspect, select, tuple_
from sqlmodel import SQLModel, col
from sqlmodel.sql.expression import SelectOfScalar

from switchboard.foundation.database import ReadSession, TenantTable, WriteSession
from switchboard.foundation.encryption.content import open_content
from switchboard.foundation.web.errors import NotFound
from switchboard.foundation.web.row_counts import count_rows, select_row_count
from switchboard.foundation.web.schemas import Item, Page, PageQuery

AnswerT = TypeVar("AnswerT", bound=BaseModel)
TableT = TypeVar("TableT", bound=TenantTable)
_TOTAL: Final = "total_of_list"


def select_after(rows: SelectOfScalar[TableT], after: SQLModel | None) -> SelectOfScalar[TableT]:
    """Order a select of one table newest first, and begin after one of its rows.

    Unlike an offset, this costs the same at every place of the list.
    """
    table: Any = rows.column_descriptions[0]["entity"]
    if after is not None:
        place: Any = after
        rows = rows.where(tuple_(col(table.created_at), col(table.id)) < (place.created_at, place.id))
    return rows.order_by(col(table.created_at).desc(), col(table.id).desc())


async def paginate(
    session: ReadSession, rows: SelectOfScalar[TableT], out: Callable[[TableT], Item], query: PageQuery
) -> "Page[Item]":
    """Return one page of a select of one table, which must have `created_at` and `id`; content is opened."""
    count = await count_rows(session, rows)
    part = select_after(rows, None).limit(query.limit).offset(query.offset)
    found = (await session.exec(part)).all()
    await open_content(session, *found)
    items = [out(row) for row in found]
    return Page[Item].model_construct(items=items, total=count, limit=query.limit, offset=query.offset)


async def paginate_table(
    session: ReadSession, table: type[TenantTable], answer: type[Item], query: PageQuery
) -> "Page[Item]":
    """Return one page of all the organization's rows of a table with a row counter.

    The answer's fields are columns that are not encrypted. The statement is built once, returns the total with the
    page, and makes no objects of the table, of which each costs as much as three rows of columns.
    """
    place = {"limit": query.limit, "offset": query.offset}
    rows = await session.fetch(_select_page(table, answer), {"organization_id": session.organization_id, **place})
    total = int(getattr(rows[0], _TOTAL)) if rows else await count_rows(session, session.select(table))
    items = [answer.model_validate(dict(zip(answer.model_fields, row, strict=False))) for row in rows]
    return Page[Item].model_construct(items=items, total=total, limit=query.limit, offset=query.offset)


@cache
def _select_page(table: type[TenantTable], answer: type[BaseModel]) -> Select[Any]:
    organization_id: BindParameter[UUID] = bindparam("organization_id")
    columns = inspect(table).local_table.c
    total = select_row_count(table, organization_id).scalar_subquery().label(_TOTAL)
    page = select(*(columns[name] for name in answer.model_fields), total)
    newest = columns["created_at"].desc(), columns["id"].desc()
    part = page.where(columns["organization_id"] == organization_id).order_by(*newest)
    return part.limit(bindparam("limit", type_=Integer)).offset(bindparam("offset", type_=Integer))


async def get_row_answer(
    session: ReadSession, table: type[TenantTable], answer: type[AnswerT], row_id: UUID
) -> AnswerT:
    """Return the organization's row of a table with an id as an answer. Raises `NotFound`.

    The answer's fields are columns that are not encrypted. As for a page of a list, the statement is built once and
    makes no object of the table.
    """
    values = {"organization_id": session.organization_id, "row_id": row_id}
    rows = await session.fetch(_select_row(table, answer), values)
    if not rows:
        raise NotFound
    return answer.model_validate(dict(zip(answer.model_fields, rows[0], strict=True)))


@cache
def _select_row(table: type[TenantTable], answer: type[BaseModel]) -> Select[Any]:
    columns = inspect(table).local_table.c
    is_row = columns["organization_id"] == bindparam("organization_id"), columns["id"] == bindparam("row_id")
    return select(*(columns[name] for name in answer.model_fields)).where(*is_row)


async def get_row(session: ReadSession, table: type[TableT], row_id: UUID | None) -> TableT:
    """Return the organization's row of a table with an id; its content is opened. Raises `NotFound`."""
    return await _open(session, await session.find(table, row_id))


async def lock_row(session: WriteSession, table: type[TableT], row_id: UUID | None) -> TableT:
    """Lock the organization's row of a table with an id for an update, and return it as it is now; its content is
    opened. Raises `NotFound`.
    """
    return await _open(session, await session.lock(table, row_id))


async def _open(session: ReadSession, row: TableT | None) -> TableT:
    if row is None:
        raise NotFound
    await open_content(session, row)
    return row
