"""Fixed statements: built once, and sent to the driver of a session's transaction without SQLAlchemy's execution.

SQLAlchemy takes three times as long as the driver to execute such a statement
(docs/decisions/0088-fixed-statements.md). Errors are SQLAlchemy's. Pending changes of the session are flushed first.

Conditions with any number of values have one parameter: PostgreSQL's protocol has at most 65,535 of them in a
statement, and asyncpg 32,767. Locks have names, for things that have no row yet, or whose row others must go on
reading.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, NoReturn, TypeAlias, TypeVar, cast

import asyncpg
from sqlalchemy import (
    Column,
    ColumnElement,
    CompoundSelect,
    Connection,
    Select,
    Text,
    UpdateBase,
    all_,
    any_,
    bindparam,
    func,
    inspect,
    literal,
    select,
    tuple_,
)
from sqlalchemy import select as select_columns
from sqlalchemy.dialects.postgresql import ARRAY, Insert, insert
from sqlalchemy.dialects.postgresql.asyncpg import dialect
from sqlalchemy.exc import EmulatedDBAPIException
from sqlalchemy.orm import Mapped
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.util import greenlet_spawn
from sqlmodel import Session
from sqlmodel import select as select_scalar
from sqlmodel.ext.asyncio.session import AsyncSession
from sqlmodel.sql.expression import SelectOfScalar

from switchboard.foundation.database.columns import ENCRYPTED_CONTENT, TenantTable
from switchboard.foundation.database.engine import PreambleConnection

Rows: TypeAlias = list[dict[str, Any]]
Query: TypeAlias = Select[*tuple[Any, ...]] | CompoundSelect[*tuple[Any, ...]]
ResultT = TypeVar("ResultT")
_DIALECT: Final = dialect()  # type: ignore[no-untyped-call]
_DRIVER_ERRORS: Final = (asyncpg.PostgresError, asyncpg.InterfaceError)


class RoleSession(Session):
    """The underlying synchronous session: each of its transactions starts by setting its role and organization."""

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
    connected = cast("RoleSession", session.sync_session)
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


async def insert_together(session: AsyncSession, *rows: NewRow) -> None:
    """Insert rows of different tables by one statement, which is built once for these tables.

    PostgreSQL checks foreign keys at the end of a statement, so that the rows may refer to each other. Raises
    `ValueError` for a table with content that the session's flush encrypts.
    """
    values = {
        _name_parameter(place, name): value for place, row in enumerate(rows) for name, value in row.values.items()
    }
    await run_statement(session, _insert_into(*(row.table for row in rows)), values)


async def insert_row(session: AsyncSession, row: NewRow, *, condition: ColumnElement[bool] | None = None) -> bool:
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


T = TypeVar("T")


def is_among(column: Mapped[T] | ColumnElement[T], values: Collection[T]) -> ColumnElement[bool]:
    """Return the condition that a column has one of these values; it is false for an empty list."""
    compared = cast("ColumnElement[T]", column)
    return compared == any_(literal(list(values), ARRAY(compared.type)))


def is_not_among(column: Mapped[T] | ColumnElement[T], values: Collection[T]) -> ColumnElement[bool]:
    """Return the condition that a column has none of these values; true for an empty list, and null for a null."""
    compared = cast("ColumnElement[T]", column)
    return compared != all_(literal(list(values), ARRAY(compared.type)))


def are_among(columns: Sequence[Column[Any]], rows: Sequence[Sequence[object]]) -> ColumnElement[bool]:
    """Return the condition that several columns have the values of one of these rows; it is false for an empty list."""
    values = [[row[place] for row in rows] for place in range(len(columns))]
    arrays = [literal(each, ARRAY(column.type)) for each, column in zip(values, columns, strict=True)]
    given = func.unnest(*arrays).table_valued(*(column.name for column in columns)).render_derived()
    return tuple_(*columns).in_(select(*given.c))


_LOCK: Final = select_columns(func.pg_advisory_xact_lock(func.hashtextextended(bindparam("name", type_=Text), 0)))


async def lock_name(session: AsyncSession, name: str) -> None:
    """Wait until no other transaction holds the lock of this name, and hold it until this one ends."""
    await run_statement(session, _LOCK, {"name": name})


async def try_lock_name(session: AsyncSession, name: str) -> bool:
    """Hold the lock of this name until this transaction ends, unless another one does; return whether it is held."""
    taken = func.pg_try_advisory_xact_lock(func.hashtextextended(name, 0))
    return bool((await session.exec(select_scalar(taken))).one())


def build_lock(name: str) -> SelectOfScalar[None]:
    """Build the statement that takes the lock of this name."""
    return select_scalar(func.pg_advisory_xact_lock(func.hashtextextended(name, 0)))
