"""Transactions, each bound to one organization by row-level security.

The login of `DATABASE_URL` owns the tables and runs migrations. Each transaction of the application starts by taking
one of two roles that own nothing: `switchboard_tenant` sees one organization's rows, and `switchboard_system` crosses
organizations with the few privileges that the migrations granted. A query without a filter returns nothing of another
organization (docs/decisions/0002-row-level-security-and-roles.md).
"""

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Protocol, TypeAlias, TypeVar, cast
from uuid import UUID

import asyncpg
from sqlalchemy import ColumnElement, Pool, Select, SelectBase, bindparam, event, func
from sqlalchemy.engine import AdaptedConnection, Connection
from sqlalchemy.exc import EmulatedDBAPIException, InvalidRequestError
from sqlalchemy.orm import SessionTransaction
from sqlalchemy.util import greenlet_spawn
from sqlmodel import col, select
from sqlmodel.ext.asyncio.session import AsyncSession
from sqlmodel.sql.expression import SelectOfScalar

from switchboard.foundation.database.clock import CLOCK
from switchboard.foundation.database.columns import TenantTable
from switchboard.foundation.database.engine import (
    ConnectionShares,
    CountingPool,
    PreambleConnection,
    create_engine,
    has_named_statements,
)
from switchboard.foundation.database.statements import RoleSession, Rows, compile_statement, fetch_rows

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
    """Reads of one statement in PostgreSQL's implicit transaction: one round trip, where `BEGIN` and `COMMIT` make
    three.

    The statement calls `read_rows` of the schema (`migrations/versions/0048_read_rows.py`), which takes the role and
    the organization before it runs the query, as the preamble of a transaction does. The function cannot write. A read
    may take so many seconds, None for any time.
    """

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


ROLES: Final = frozenset({"switchboard_tenant", "switchboard_system"})
LOCK_MILLISECONDS: Final = 10_000
"""Time for which a statement waits for a lock, as long as a transaction waits for a connection."""
_READ_CLOCK = "select extract(epoch from clock_timestamp())::float8"


class TenantOwned(Protocol):
    """A table whose rows belong to an organization."""

    organization_id: UUID


RowT = TypeVar("RowT", bound=TenantOwned)
TableT = TypeVar("TableT", bound=TenantTable)


@event.listens_for(RoleSession, "after_begin")
def _enter(session: RoleSession, _transaction: SessionTransaction, connection: Connection) -> None:
    preamble = _build_preamble(session.info)

    async def begin(driver: PreambleConnection) -> None:
        await driver.begin_with(preamble)

    cast("AdaptedConnection", connection.connection.dbapi_connection).run_async(begin)
    # The clock of a replica is not the primary's.
    if not session.info["is_replica"] and CLOCK.is_due():
        CLOCK.adjust(connection.exec_driver_sql(_READ_CLOCK).scalar_one())
    session.transaction_connection = connection


def _build_preamble(info: Mapping[Any, Any]) -> str:
    """Build the statements by which a transaction takes its role. They are literals: one message with several
    statements has no parameters.
    """
    organization_id: UUID | None = info.get("organization_id")
    if info["role"] not in ROLES or not isinstance(organization_id, UUID | None):
        raise InvalidRequestError("a transaction needs one of our roles, and the id of an organization")
    return (
        # A replica may have been promoted.
        f"{'set transaction read only;' * info['is_replica']}"
        f"set local role {info['role']};"
        f"set local app.organization_id = '{organization_id or ''}';"
        f"set local statement_timeout = {info['statement_timeout']:d};"
        f"set local lock_timeout = {LOCK_MILLISECONDS};"
    )


class SystemSession(AsyncSession):
    """One transaction across organizations, under the role `switchboard_system`."""

    sync_session_class = RoleSession

    @asynccontextmanager
    async def narrow(self, organization_id: UUID) -> AsyncIterator["TenantSession"]:
        """Continue this transaction as one organization's, under the tenant role. The system role is not restored.

        For an effect that spans both and must be atomic, such as creating an organization with its first rows.
        """
        await self.flush()
        self.info.setdefault("after_commit", [])
        info = {**self.info, "role": "switchboard_tenant", "organization_id": organization_id, "actor": None}
        async with TenantSession(
            await self.connection(), info=info, expire_on_commit=False, join_transaction_mode="rollback_only"
        ) as session:
            yield session
            await session.flush()


class TenantSession(AsyncSession):
    """One transaction of one organization, under the role `switchboard_tenant`."""

    sync_session_class = RoleSession

    @property
    def organization_id(self) -> UUID:
        """The organization that the transaction belongs to."""
        return cast("UUID", self.info["organization_id"])

    @property
    def actor(self) -> str | None:
        """The actor that the audit log names for this transaction; None for a background job."""
        return cast("str | None", self.info["actor"])

    def owns(self, table: type[TenantOwned]) -> ColumnElement[bool]:
        """Return the condition that a row of `table` belongs to the organization.

        Row-level security hides other organizations' rows without it; the condition lets PostgreSQL use the indexes
        that start with `organization_id`.
        """
        return col(table.organization_id) == self.organization_id

    def select(self, table: type[RowT]) -> SelectOfScalar[RowT]:
        """Select the organization's rows of `table`."""
        return select(table).where(self.owns(table))

    async def find(self, table: type[TableT], row_id: UUID | None, *, lock: bool = False) -> TableT | None:
        """Return the organization's row of `table` with an id, locked for an update on demand; None if there is none.

        No id is that of no row. A locked row is as it is now, also if the session has read it before it was locked. The
        statement is built once for each table, which takes as long as its execution.
        """
        if row_id is None:
            return None
        values = {"organization_id": self.organization_id, "row_id": row_id}
        return (await self.exec(_select_by_id(table, lock), params=values)).one_or_none()

    async def count(self, rows: SelectBase) -> int:
        """Return the number of rows that a select finds."""
        return (await self.exec(select(func.count()).select_from(rows.subquery()))).one()

    async def read(self, query: Select[Any], values: Mapping[str, ReadValue]) -> Rows:
        """Return the rows of a query that locks nothing, by their columns' names.

        Before the session's first statement, it takes one round trip instead of those of a transaction. It is another
        transaction then, which makes no difference to a read: each statement sees what is committed when it begins.
        """
        reader: AutocommitReader | None = self.info.get("reader")
        if reader is not None and not self.in_transaction():
            try:
                return await reader.read(self.info["role"], self.organization_id, query, values)
            except ReadFailed:
                pass  # the transaction below succeeds, or fails with an error of SQLAlchemy's
        return await fetch_rows(self, query, values)


@cache
def _select_by_id(table: type[TableT], lock: bool) -> SelectOfScalar[TableT]:
    is_row = col(table.organization_id) == bindparam("organization_id"), col(table.id) == bindparam("row_id")
    rows = select(table).where(*is_row)
    return rows.with_for_update().execution_options(populate_existing=True) if lock else rows


def after_commit(session: AsyncSession, action: Callable[[], Awaitable[None]]) -> None:
    """Run `action` after the session's transaction commits, in the order of registration; drop it on rollback.

    Only for effects that may be lost: an effect that must happen is a row, which a reconciler finds again.
    """
    session.info.setdefault("after_commit", []).append(action)


class Database:
    """The connection pool and the two kinds of transaction."""

    def __init__(
        self,
        url: str,
        *,
        pool_size: int = 20,
        statement_timeout: float = 0,
        is_replica: bool = False,
        info: Mapping[str, object] | None = None,
    ) -> None:
        """Create the pool without connecting.

        A statement may take `statement_timeout` seconds; 0: any time. It is set in each transaction, because poolers
        refuse it as a parameter of the connection. Transactions of a replica read only. `info` is given to every
        session, for `jobs.wake`, `events.publish`, the keys of organizations, and redaction. Raises `DatabaseUrlError`.
        """
        timeout = round(statement_timeout * 1000)
        self._info = {"statement_timeout": timeout, "is_replica": is_replica, **(info or {})}
        self._engine = create_engine(
            url,
            poolclass=CountingPool,
            pool_size=pool_size,
            max_overflow=0,
            pool_timeout=10,
            hide_parameters=True,  # they hold personal data, and errors are logged
        )
        self._shares = ConnectionShares(pool_size)
        # Without names, statements are prepared for a transaction.
        self._reader = (
            AutocommitReader(self.pool, statement_timeout or None)
            if has_named_statements(url) and not is_replica
            else None
        )

    @asynccontextmanager
    async def tenant(self, organization_id: UUID, *, actor: str | None = None) -> AsyncIterator[TenantSession]:
        """Open one transaction of one organization: commit at the end, roll back on any exception.

        `actor` names the actor in the audit log; services read it as `session.actor`. An organization that has half of
        the pool's connections waits, so that others do not.
        """
        info = {
            **self._info,
            "role": "switchboard_tenant",
            "organization_id": organization_id,
            "actor": actor,
            "reader": self._reader,
        }
        session = TenantSession(self._engine, info=info, expire_on_commit=False)
        async with _transaction(session, self._shares.take_place(organization_id)):
            yield session

    @asynccontextmanager
    async def tenant_in_turn(
        self, organization_id: UUID, turn: str, *, actor: str | None = None
    ) -> AsyncIterator[TenantSession]:
        """Open a transaction like `tenant`, once no other of the same organization and `turn` is open in this process.

        For transactions that would wait for the same lock anyway: one at a time leaves the event loop free for other
        organizations.
        """
        async with self._shares.take_turn(organization_id, turn), self.tenant(organization_id, actor=actor) as session:
            yield session

    @asynccontextmanager
    async def system(self) -> AsyncIterator[SystemSession]:
        """Open one transaction across organizations, for `system_queries.py` modules and the operator's command
        line.
        """
        info = {**self._info, "role": "switchboard_system"}
        session = SystemSession(self._engine, info=info, expire_on_commit=False)
        async with _transaction(session, nullcontext()):
            yield session

    async def ping(self) -> None:
        """Run an empty query. Raises `SQLAlchemyError` or `OSError` if the database does not answer."""
        async with self._engine.connect() as connection:
            await connection.exec_driver_sql("select 1")

    @property
    def pool(self) -> CountingPool:
        """The pool of connections, for metrics."""
        return cast("CountingPool", self._engine.pool)

    async def read_position(self) -> str:
        """Return the position in the write-ahead log before which every committed transaction lies.

        A commit is confirmed when its record is on the disk.
        """
        async with self._engine.connect() as connection:
            result = await connection.exec_driver_sql("select pg_current_wal_flush_lsn()::text")
            return str(result.scalar_one())

    async def close(self) -> None:
        """Close every pooled connection."""
        await self._engine.dispose()


@asynccontextmanager
async def _transaction(session: AsyncSession, place: AbstractAsyncContextManager[None]) -> AsyncIterator[None]:
    async with place:
        async with AsyncExitStack() as failure:
            failure.push_async_exit(
                session
            )  # returns the connection in a task of its own, which a cancellation does not stop
            yield
            if session.in_transaction():
                await session.commit()
            failure.pop_all()
        session.sync_session.close()  # has no connection left to return
    for action in session.info.pop("after_commit", []):
        await action()
