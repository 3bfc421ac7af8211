"""Rows of several tables, inserted by one statement."""

from functools import cache

from sqlalchemy import bindparam, insert, inspect
from sqlalchemy.sql.dml import Insert

from switchboard.foundation.database.columns import ENCRYPTED_TEXT, TenantTable
from switchboard.foundation.database.session import TenantSession


async def insert_together(session: TenantSession, *rows: TenantTable) -> None:
    """Insert rows of different tables by one statement, which is built once for these tables.

    PostgreSQL checks foreign keys at the end of a statement, so that the rows may refer to each other. The objects do
    not become the session's. Raises `ValueError` for a table with texts that the session's flush encrypts.
    """
    values = {
        _name_parameter(place, name): getattr(row, name)
        for place, row in enumerate(rows)
        for name in type(row).model_fields
    }
    await session.exec(_insert_into(*map(type, rows)), params=values)


@cache
def _insert_into(*tables: type[TenantTable]) -> Insert:
    for table in tables:
        if any(ENCRYPTED_TEXT in column.info for column in inspect(table).local_table.columns):
            raise ValueError(f"texts of {table.__name__} are encrypted where the session is flushed")
    inserts = [
        insert(inspect(table).local_table).values(
            {name: bindparam(_name_parameter(place, name)) for name in table.model_fields}
        )
        for place, table in enumerate(tables)
    ]
    return inserts[-1].add_cte(*(part.cte(f"insert_{place}") for place, part in enumerate(inserts[:-1])))


def _name_parameter(place: int, column: str) -> str:
    return f"{column}_{place}"
