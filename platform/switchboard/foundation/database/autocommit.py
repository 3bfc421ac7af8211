"""Reads of one statement in PostgreSQL's implicit transaction: one round trip, where `BEGIN` and `COMMIT` make three.

The statement calls `read_rows` of the schema (`migrations/versions/0048_read_rows.py`), which takes the role and the
organization before it runs the query, as the preamble of a transaction does. The function cannot write.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, TypeAlias
from uuid import UUID

import asyncpg
from sqlalchemy import Pool, Select
from sqlalchemy.exc import EmulatedDBAPIException
from sqlalchemy.util import greenlet_spawn

from switchboard.foundation.database.statements import Rows, compile_statement

ReadValue: TypeAlias = UUID | str | int
"""Value of a parameter. PostgreSQL reads its text as the type of the parameter."""
_PARAMETER: Final = re.compile(r"\$(\d+)")


class ReadFailed(Exception):
    """The read has failed, and may be repeated in a transaction."""


@dataclass(frozen=True, slots=True)
class _Statement:
    """A query as text: the call of the function with the types of its rows, and the query that it runs."""

    call: str
    query: str
    parameters: Mapping[str, ReadValue | None]
    """Names of the parameters, in their order, with the values of the query's constants."""


@cache
def _build_statement(query: Select[Any]) -> _Statement:
    """Build the statement, once for each query, which has named parameters and is kept by its module."""
    compiled = compile_statement(query)
    columns = [(f'"{column.name}"', column.type.compile(compiled.dialect)) for column in query.selected_columns]
    # The casts give the columns the types that the call declares: `text` and `varchar` are one to SQLAlchemy.
    selected = ", ".join(f"{name}::{kind}" for name, kind in columns)
    declared = ", ".join(f"{name} {kind}" for name, kind in columns)
    rows = _PARAMETER.sub(r"$1[\1]", str(compiled))
    return _Statement(
        f"select * from read_rows($1, $2, $3, $4) as ({declared})",  # noqa: S608 - our own columns
        f"select {selected} from ({rows}) as rows",  # noqa: S608
        {name: compiled.params[name] for name in compiled.positiontup or ()},
    )


@dataclass(frozen=True, slots=True)
class AutocommitReader:
    """Reads of one statement over the connections of a pool; each may take so many seconds, None for any time."""

    pool: Pool
    seconds: float | None

    async def read(self, role: str, organization_id: UUID, query: Select[Any], values: Mapping[str, ReadValue]) -> Rows:
        """Return the rows of a query that locks nothing, by their columns' names.

        Raises `ReadFailed`, and `TimeoutError`. The timeout is kept here, because PostgreSQL reads its own only as a
        statement begins.
        """
        statement = _build_statement(query)
        texts = [str(values.get(name, constant)) for name, constant in statement.parameters.items()]
        try:
            connection = await greenlet_spawn(self.pool.connect)
        except EmulatedDBAPIException as error:
            raise ReadFailed from error
        driver: Any = connection.driver_connection
        try:
            records = await driver.fetch(
                statement.call, role, organization_id, statement.query, texts, timeout=self.seconds
            )
        except asyncpg.PostgresError as error:
            connection.close()
            raise ReadFailed from error
        except BaseException as error:
            await greenlet_spawn(connection.invalidate)  # cancels a statement that still runs
            if isinstance(error, asyncpg.InterfaceError | OSError) and not isinstance(error, TimeoutError):
                raise ReadFailed from error
            raise
        connection.close()  # without a round trip: no transaction is open
        return [dict(record) for record in records]
