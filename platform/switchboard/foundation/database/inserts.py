"""Rows that are inserted without objects of their tables, by statements that are built once."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

from sqlalchemy import ColumnElement, bindparam, inspect, select
from sqlalchemy.dialects.postgresql import Insert, insert

from switchboard.foundation.database.columns import ENCRYPTED_CONTENT, TenantTable
from switchboard.foundation.database.session import TenantSession
from switchboard.foundation.database.statements import run_statement


@dataclass(frozen=True, slots=True)
class NewRow:
    """A row to insert, with the value of each column. An object of the table takes thirty times as long to create."""

    table: type[TenantTable]
    values: Mapping[str, Any]

    @classmethod
    def build(cls, table: type[TenantTable], **values: object) -> "NewRow":
        """Return a row with these values, and the table's defaults for other columns.

        Raises `TypeError` for an unknown column, and for one without value and default.
        """
        filled = {name: create() for name, create in _list_defaults(table).items() if name not in values} | values
        if filled.keys() != table.model_fields.keys():
            raise TypeError(f"{table.__name__} has other columns: {filled.keys() ^ table.model_fields.keys()}")
        return cls(table, filled)


async def insert_together(session: TenantSession, *rows: NewRow) -> None:
    """Insert rows of different tables by one statement, which is built once for these tables.

    PostgreSQL checks foreign keys at the end of a statement, so that the rows may refer to each other. Raises
    `ValueError` for a table with content that the session's flush encrypts.
    """
    values = {
        _name_parameter(place, name): value for place, row in enumerate(rows) for name, value in row.values.items()
    }
    await run_statement(session, _insert_into(*(row.table for row in rows)), values)


async def insert_row(session: TenantSession, row: NewRow, *, condition: ColumnElement[bool] | None = None) -> bool:
    """Insert a row if its id is new and a condition holds, by one statement; return whether it was inserted.

    The condition is built once for all rows. It may use the row's columns as parameters, by their names. Content is not
    encrypted.
    """
    return await run_statement(session, _insert_into_if(row.table, condition), row.values) == 1


@cache
def _list_defaults(table: type[TenantTable]) -> Mapping[str, Callable[[], object]]:
    return {
        # Called directly: pydantic reads a factory's signature each time.
        name: cast("Callable[[], object]", field.default_factory or field.get_default)
        for name, field in table.model_fields.items()
        if not field.is_required()
    }


@cache
def _insert_into(*tables: type[TenantTable]) -> Insert:
    for table in tables:
        if any(ENCRYPTED_CONTENT in column.info for column in inspect(table).local_table.columns):
            raise ValueError(f"content of {table.__name__} is encrypted where the session is flushed")
    inserts = [
        insert(inspect(table).local_table).values(
            {name: bindparam(_name_parameter(place, name)) for name in table.model_fields}
        )
        for place, table in enumerate(tables)
    ]
    return inserts[-1].add_cte(*(part.cte(f"insert_{place}") for place, part in enumerate(inserts[:-1])))


@cache
def _insert_into_if(table: type[TenantTable], condition: ColumnElement[bool] | None) -> Insert:
    columns = inspect(table).local_table.c
    row = select(*(bindparam(name, type_=columns[name].type) for name in table.model_fields))
    if condition is not None:
        row = row.where(condition)
    return insert(inspect(table).local_table).from_select(list(table.model_fields), row).on_conflict_do_nothing()


def _name_parameter(place: int, column: str) -> str:
    return f"{column}_{place}"
