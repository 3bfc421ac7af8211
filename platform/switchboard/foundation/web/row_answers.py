"""One row of a table, as the answer of an endpoint."""

from functools import cache
from typing import Any, TypeVar
from uuid import UUID

from pydantic import BaseModel
from sqlalchemy import Select, bindparam, inspect, select

from switchboard.foundation.database import TenantSession, TenantTable
from switchboard.foundation.web.errors import NotFound

AnswerT = TypeVar("AnswerT", bound=BaseModel)


async def get_row_answer(
    session: TenantSession, table: type[TenantTable], answer: type[AnswerT], row_id: UUID
) -> AnswerT:
    """Return the organization's row of a table with an id as an answer. Raises `NotFound`.

    The answer's fields are columns that are not encrypted. As for a page of a list, the statement is built once and
    makes no object of the table.
    """
    values = {"organization_id": session.organization_id, "row_id": row_id}
    rows = await session.read(_select_row(table, answer), values)
    if not rows:
        raise NotFound
    return answer.model_validate(rows[0])


@cache
def _select_row(table: type[TenantTable], answer: type[BaseModel]) -> Select[Any]:
    columns = inspect(table).local_table.c
    is_row = columns["organization_id"] == bindparam("organization_id"), columns["id"] == bindparam("row_id")
    return select(*(columns[name] for name in answer.model_fields)).where(*is_row)
