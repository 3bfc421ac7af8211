"""Fixed statements: built once, and sent to the driver of a session's transaction without SQLAlchemy's execution.

SQLAlchemy takes three times as long as the driver to execute such a statement
(docs/decisions/0088-fixed-statements.md). Errors are SQLAlchemy's. Pending changes of the session are flushed first.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, NoReturn, TypeAlias, TypeVar, cast

import asyncpg
from sqlalchemy import CompoundSelect, Connection, Select, UpdateBase
from sqlalchemy.dialects.postgresql.asyncpg import dialect
from sqlalchemy.exc import EmulatedDBAPIException
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.util import greenlet_spawn
from sqlmodel import Session
from sqlmodel.ext.asyncio.session import AsyncSession

from switchboard.foundation.database.connection import PreambleConnection

Rows: TypeAlias = list[dict[str, Any]]
Query: TypeAlias = Select[*tuple[Any, ...]] | CompoundSelect[*tuple[Any, ...]]
ResultT = TypeVar("ResultT")
_DIALECT: Final = dialect()  # type: ignore[no-untyped-call]
_DRIVER_ERRORS: Final = (asyncpg.PostgresError, asyncpg.InterfaceError)


class ConnectedSession(Session):
    """Session that keeps the connection of its transaction."""

    transaction_connection: Connection | None = None
    """Set when the transaction begins. A closed connection is of a transaction that has ended."""


@dataclass(frozen=True, slots=True)
class _Parameter:
    name: str
    constant: object
    """Value in the statement itself, for a parameter that is not given."""
    convert: Callable[[Any], object] | None


@dataclass(frozen=True, slots=True)
class _CompiledStatement:
    text: str
    parameters: Sequence[_Parameter]

    def list_arguments(self, values: Mapping[str, object]) -> list[object]:
        arguments = []
        for parameter in self.parameters:
            value = values.get(parameter.name, parameter.constant)
            arguments.append(value if parameter.convert is None else parameter.convert(value))
        return arguments


def compile_statement(statement: Query | UpdateBase) -> SQLCompiler:
    """Compile a statement for asyncpg. It must not have `in_`, whose text depends on its values."""
    return statement.compile(dialect=_DIALECT)


async def fetch_rows(session: AsyncSession, query: Query, values: Mapping[str, object]) -> Rows:
    """Return the rows of a query, by their columns' names.

    The query has named parameters and is kept by its module. Its columns are of types that the driver returns as they
    are. Raises `SQLAlchemyError`.
    """

    async def fetch(driver: PreambleConnection, text: str, arguments: list[object]) -> Rows:
        return [dict(record) for record in await driver.fetch(text, *arguments)]

    return await _send(session, query, values, fetch)


async def run_statement(session: AsyncSession, statement: Query | UpdateBase, values: Mapping[str, object]) -> int:
    """Run a statement, and return how many rows it wrote or found. Raises `SQLAlchemyError`."""

    async def execute(driver: PreambleConnection, text: str, arguments: list[object]) -> int:
        status = await driver.execute(text, *arguments)
        return int(status.rpartition(" ")[2])

    return await _send(session, statement, values, execute)


async def _send(
    session: AsyncSession,
    statement: Query | UpdateBase,
    values: Mapping[str, object],
    send: Callable[[PreambleConnection, str, list[object]], Awaitable[ResultT]],
) -> ResultT:
    compiled = _compile(statement)
    arguments = compiled.list_arguments(values)
    pending = session.sync_session
    if pending.autoflush and (pending.new or pending.dirty or pending.deleted):
        await session.flush()
    connection = await _open_connection(session)
    adapted: Any = connection.connection.dbapi_connection
    try:
        if adapted._transaction is None:  # noqa: SLF001 - SQLAlchemy begins with the first statement of its own
            await adapted._start_transaction()  # noqa: SLF001
        return await send(adapted.driver_connection, compiled.text, arguments)
    except (*_DRIVER_ERRORS, EmulatedDBAPIException, OSError, asyncio.CancelledError) as error:
        await greenlet_spawn(_raise_as_sqlalchemy, connection, error, compiled.text)
        raise


async def _open_connection(session: AsyncSession) -> Connection:
    """Return the connection of the session's transaction, which begins with its role if it has not begun."""
    connected = cast("ConnectedSession", session.sync_session)
    if connected.transaction_connection is None or connected.transaction_connection.closed:
        await session.connection()
    return cast("Connection", connected.transaction_connection)


def _raise_as_sqlalchemy(connection: Connection, error: BaseException, text: str) -> NoReturn:
    """Raise what SQLAlchemy raises for an error of the driver, and invalidate the connection where it would."""
    adapted: Any = connection.connection.dbapi_connection
    try:
        if isinstance(error, _DRIVER_ERRORS):
            adapted._handle_exception(error)  # noqa: SLF001
        raise error
    except (EmulatedDBAPIException, OSError, asyncio.CancelledError) as translated:
        failed = text if isinstance(translated, EmulatedDBAPIException) else None
        connection._handle_dbapi_exception(translated, failed, None, None, None)  # noqa: SLF001


@cache
def _compile(statement: Query | UpdateBase) -> _CompiledStatement:
    compiled = compile_statement(statement)
    # How values of JSON columns become text.
    converters = cast("Mapping[str, Callable[[Any], object]]", compiled._bind_processors)  # noqa: SLF001
    return _CompiledStatement(
        str(compiled),
        [_Parameter(name, compiled.params[name], converters.get(name)) for name in compiled.positiontup or ()],
    )
