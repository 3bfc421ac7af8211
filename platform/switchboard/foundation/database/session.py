"""The three doors to the database: one transaction of one organization that reads, one that writes, and one across
organizations.

The login of `DATABASE_URL` owns the tables and runs migrations. Each transaction of the application begins by taking
one of two roles that own nothing: `switchboard_tenant` sees one organization's rows, and `switchboard_system` crosses
organizations with the few privileges that the migrations granted. A query without a filter returns nothing of another
organization (docs/decisions/0002-row-level-security-and-roles.md).
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass
from functools import cache, partial
from math import inf
from time import monotonic
from types import MappingProxyType
from typing import Any, Final, Protocol, TypeAlias, TypeVar, cast
from uuid import UUID

from pydantic import BaseModel
from sqlalchemy import (
    ColumnElement,
    CompoundSelect,
    CursorResult,
    QueuePool,
    Result,
    Row,
    Select,
    SelectBase,
    TextClause,
    TextualSelect,
    bindparam,
    func,
)
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import DBAPIError, IntegrityError, InvalidRequestError
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlmodel import SQLModel, col, select
from sqlmodel.ext.asyncio.session import AsyncSession
from sqlmodel.sql.expression import Select as SelectOfColumns
from sqlmodel.sql.expression import SelectOfScalar

from switchboard.foundation.database.clock import CLOCK
from switchboard.foundation.database.columns import TenantTable, get_bucket
from switchboard.foundation.database.engine import (
    DRIVER_ERRORS,
    ConnectionShares,
    create_autocommit_engine,
    get_driver,
    run_script,
)
from switchboard.foundation.database.moves import CHECK_SECONDS, LATEST_SECONDS, REQUIRE_WRITABLE
from switchboard.foundation.keyring import DataKey, KeyRing
from switchboard.plugin_sdk.registry import Registry

LOCK_MILLISECONDS: Final = 10_000
"""Time for which a statement waits for a lock, as long as a transaction waits for a connection."""
MOST_WRITABLE: Final = 10_000
JOB_TIMEOUT: Final = 120
"""Seconds after which a job is canceled, unless its kind of work says otherwise."""
_READ_CLOCK: Final = "select extract(epoch from clock_timestamp())::float8"


class TenantOwned(Protocol):
    """A table whose rows belong to an organization."""

    organization_id: UUID


RowT = TypeVar("RowT", bound=TenantOwned)
TableT = TypeVar("TableT", bound=TenantTable)


Statement: TypeAlias = Select[*tuple[Any, ...]] | CompoundSelect[*tuple[Any, ...]] | TextClause | TextualSelect
"""A select of columns, or text."""
SelectOfAny: TypeAlias = SelectOfColumns[*tuple[Any, ...]]
Effect: TypeAlias = Callable[[], Awaitable[None]]
FactListener: TypeAlias = Callable[["WriteSession", BaseModel], Awaitable[None]]
"""Called for each published event, in the transaction that publishes it."""


@dataclass(frozen=True, slots=True)
class SessionParts:
    """The parts of a process that its sessions work with."""

    keyring: KeyRing
    registry: Registry
    wake: Callable[[str, int], Awaitable[None]]
    """Has a worker look for the due rows of a job in a bucket."""
    listeners: Sequence[FactListener]
    encrypts_content: Callable[["WriteSession"], Awaitable[bool]]
    """Decides whether the content of an organization's conversations is encrypted."""


class DatabaseSession(AsyncSession):
    """One transaction. It is committed at its door's end, and rolled back after any exception."""

    def __init__(self, connection: AsyncConnection, parts: SessionParts | None) -> None:
        """Work in the transaction that a connection has begun."""
        super().__init__(connection, expire_on_commit=False)
        self._parts = parts
        self.policies: dict[UUID, BaseModel] = {}
        """The policies of organizations that the transaction has read."""
        self.content_keys: dict[UUID, str | None] = {}
        """The keys of content by their ids, encrypted, once the transaction has read them; None: destroyed."""
        self.effects: list[Effect] = []
        """What runs after the commit; see `after_commit`."""
        self.wakeups: set[tuple[str, int]] = set()

    async def commit(self) -> None:
        raise InvalidRequestError("a transaction is committed where its door closes")

    async def rollback(self) -> None:
        raise InvalidRequestError("a transaction is rolled back by an exception that leaves its door")

    async def flush_or_raise(self, refusal: Exception) -> None:
        """Write what was added or changed. Raises `refusal` for a row that another one excludes; the transaction cannot
        go on then.
        """
        try:
            await self.flush()  # fails here, and not where the transaction ends
        except IntegrityError:
            raise refusal from None

    async def fetch(
        self, statement: Statement, values: Mapping[str, object] = MappingProxyType({})
    ) -> Sequence[Row[*tuple[Any, ...]]]:
        """Return the columns of the rows that a statement finds or returns; `values` are its parameters.

        What was added or changed is flushed first, as `exec` does it for statements about tables' classes.
        """
        if self.sync_session.autoflush and (self.new or self.dirty or self.deleted):
            await self.flush()
        found = cast("Result[*tuple[Any, ...]]", await self.exec(cast("SelectOfAny", statement), params=values))
        return () if isinstance(found, CursorResult) and not found.returns_rows else found.all()

    @property
    def parts(self) -> SessionParts:
        """The parts of the process. Raises `InvalidRequestError` if the database was opened without them."""
        if self._parts is None:
            raise InvalidRequestError("the database was opened without the parts of a process")
        return self._parts

    @property
    def keyring(self) -> KeyRing:
        """The keys of the process."""
        return self.parts.keyring

    def after_commit(self, effect: Effect) -> None:
        """Run `effect` after the transaction commits, in the order of registration; drop it on rollback.

        Only for effects that may be lost: an effect that must happen is a row, which a reconciler finds again.
        """
        self.effects.append(effect)


class SystemSession(DatabaseSession):
    """One transaction across organizations, under the role `switchboard_system`."""

    @asynccontextmanager
    async def narrow(self, organization_id: UUID) -> AsyncIterator["WriteSession"]:
        """Continue this transaction as one organization's, under the tenant role. The system role is not restored.

        For an effect that spans both and must be atomic, such as creating an organization with its first rows. Raises
        `OrganizationFrozen`.
        """
        await self.flush()  # what was added before, under the system role
        connection = await self.connection()
        role = _take_role("switchboard_tenant", organization_id)
        await run_script(connection, await get_driver(connection), role + REQUIRE_WRITABLE)
        session = WriteSession(connection, self._parts, organization_id=organization_id, actor=None)
        session.effects, session.wakeups = self.effects, self.wakeups
        async with session:
            yield session
            await session.flush()  # what no statement has flushed


class ReadSession(DatabaseSession):
    """One transaction of one organization, under the role `switchboard_tenant`, which PostgreSQL lets read only."""

    def __init__(
        self, connection: AsyncConnection, parts: SessionParts | None, *, organization_id: UUID, actor: str | None
    ) -> None:
        """See the arguments of `Database.write`."""
        super().__init__(connection, parts)
        self.organization_id = organization_id
        """The organization that the transaction belongs to."""
        self.actor = actor
        """The actor that the audit log names for this transaction; None for a background job."""
        self.cause_depth = 0
        """Length of the automation chain that caused this transaction; rows that publish events later store it."""

    def owns(self, table: type[TenantOwned]) -> ColumnElement[bool]:
        """Return the condition that a row of `table` belongs to the organization.

        Row-level security hides other organizations' rows without it; the condition lets PostgreSQL use the indexes
        that start with `organization_id`.
        """
        return col(table.organization_id) == self.organization_id

    def select(self, table: type[RowT]) -> SelectOfScalar[RowT]:
        """Select the organization's rows of `table`."""
        return select(table).where(self.owns(table))

    async def find(self, table: type[TableT], row_id: UUID | None) -> TableT | None:
        """Return the organization's row of `table` with an id; None if there is none.

        No id is that of no row. The statement is built once for each table, which takes as long as its execution.
        """
        values = {"organization_id": self.organization_id, "row_id": row_id}
        return (await self.exec(_select_by_id(table), params=values)).one_or_none() if row_id is not None else None

    async def count(self, rows: SelectBase) -> int:
        """Return the number of rows that a select finds."""
        return (await self.exec(select(func.count()).select_from(rows.subquery()))).one()


class WriteSession(ReadSession):
    """One transaction of one organization, under the role `switchboard_tenant`."""

    content_key: DataKey | None = None
    """The key for new content, once the transaction has read it."""

    def wake(self, job: str) -> None:
        """Have a worker look, once the transaction commits, for rows that this transaction has made due for a job.

        A wake-up that the transaction repeats is sent once.
        """
        wakeup = job, get_bucket(self.organization_id)
        if wakeup not in self.wakeups:
            self.wakeups.add(wakeup)
            self.after_commit(partial(self.parts.wake, *wakeup))

    async def lock(self, table: type[TableT], row_id: UUID | None) -> TableT | None:
        """Lock the organization's row of `table` with an id for an update, and return it; None if there is none.

        The row is as it is now, also if the session has read it before.
        """
        values = {"organization_id": self.organization_id, "row_id": row_id}
        return (await self.exec(_lock_by_id(table), params=values)).one_or_none() if row_id is not None else None

    async def insert_if_new(self, row: SQLModel) -> bool:
        """Insert a row unless one of its keys is taken; return whether it was inserted."""
        table = type(row)
        values = {name: getattr(row, name) for name in table.model_fields}
        return (await self.exec(insert(table).values(values).on_conflict_do_nothing())).rowcount == 1


@cache
def _select_by_id(table: type[TableT]) -> SelectOfScalar[TableT]:
    is_row = col(table.organization_id) == bindparam("organization_id"), col(table.id) == bindparam("row_id")
    return select(table).where(*is_row)


@cache
def _lock_by_id(table: type[TableT]) -> SelectOfScalar[TableT]:
    return _select_by_id(table).with_for_update().execution_options(populate_existing=True)


SessionT = TypeVar("SessionT", bound=DatabaseSession)


class Database:
    """The connection pool and its three doors."""

    def __init__(
        self,
        url: str,
        *,
        pool_size: int = 20,
        statement_timeout: float = 0,
        reply_timeout: float = 0,
        is_replica: bool = False,
        parts: SessionParts | None = None,
    ) -> None:
        """Create the pool without connecting.

        A statement may take `statement_timeout` seconds; 0: any time. It is set in each transaction, because poolers
        refuse it as a parameter of the connection. The server keeps it, unless it is frozen or cut off: a longer
        `reply_timeout` ends the statement then. The clock of a replica is not read. Raises `DatabaseUrlError`.
        """
        self._engine = create_autocommit_engine(url, pool_size=pool_size, reply_timeout=reply_timeout)
        self._shares = ConnectionShares(pool_size)
        self._statement_timeout = round(statement_timeout * 1000)
        self._is_replica = is_replica
        self._parts = parts
        self.waiting = 0
        """The number of tasks that wait for a connection."""
        self._writable: dict[UUID, float] = {}
        """Moments, before the question, at which PostgreSQL let an organization write."""

    def read(self, organization_id: UUID, *, actor: str | None = None) -> AbstractAsyncContextManager[ReadSession]:
        """Open one transaction of one organization that only reads; for the rest, see `write`."""
        create = partial(ReadSession, organization_id=organization_id, actor=actor)
        role = _take_role("switchboard_tenant", organization_id)
        return self._transact(f"begin read only;{role}", create, self._shares.take_place(organization_id))

    def write(self, organization_id: UUID, *, actor: str | None = None) -> AbstractAsyncContextManager[WriteSession]:
        """Open one transaction of one organization: commit at the end, roll back on any exception.

        `actor` names the actor in the audit log; services read it as `session.actor`. An organization that has half of
        the pool's connections waits, so that others do not. Raises `OrganizationFrozen` for one that is being moved.
        """
        create = partial(WriteSession, organization_id=organization_id, actor=actor)
        role = _take_role("switchboard_tenant", organization_id)
        place = self._shares.take_place(organization_id)
        return self._transact(f"begin;{role}", create, place, writes_for=organization_id)

    @asynccontextmanager
    async def write_in_turn(
        self, organization_id: UUID, turn: str, *, actor: str | None = None
    ) -> AsyncIterator[WriteSession]:
        """Open a transaction like `write`, once no other of the same organization and `turn` is open in this process.

        For transactions that would wait for the same lock anyway: one at a time leaves the event loop free for other
        organizations.
        """
        async with self._shares.take_turn(organization_id, turn), self.write(organization_id, actor=actor) as session:
            yield session

    def system(self) -> AbstractAsyncContextManager[SystemSession]:
        """Open one transaction across organizations, for jobs, the operator's command line, and what belongs to no
        organization.
        """
        return self._transact(f"begin;{_take_role('switchboard_system', None)}", SystemSession, nullcontext())

    @asynccontextmanager
    async def _transact(
        self,
        begin: str,
        create: Callable[[AsyncConnection, SessionParts | None], SessionT],
        place: AbstractAsyncContextManager[None],
        *,
        writes_for: UUID | None = None,
    ) -> AsyncIterator[SessionT]:
        """Run a transaction: its beginning and its role are one message, and what is not committed is rolled back as
        the connection returns to the pool.
        """
        async with place, AsyncExitStack() as failure:
            connection = await self._connect(failure)
            driver = await get_driver(connection)
            timeouts = (
                f"set local statement_timeout = {self._statement_timeout:d};"
                f"set local lock_timeout = {LOCK_MILLISECONDS:d};"
            )
            if writes_for is None:
                await run_script(connection, driver, begin + timeouts)
            else:
                await self._begin_writing(connection, driver, begin + timeouts, writes_for)
            if CLOCK.is_due() and not self._is_replica:
                CLOCK.adjust((await connection.exec_driver_sql(_READ_CLOCK)).scalar_one())
            session = create(connection, self._parts)
            failure.push_async_exit(session)
            yield session
            await session.flush()  # what no statement has flushed
            if await run_script(connection, driver, "commit") != "COMMIT":
                raise InvalidRequestError("the transaction has failed with one of its statements")
            # Only a failure needs tasks of their own to close both, which a cancellation does not stop.
            failure.pop_all()
            await session.close()
            await connection.close()
        for effect in session.effects:
            await effect()

    async def _begin_writing(
        self, connection: AsyncConnection, driver: Any, script: str, organization_id: UUID
    ) -> None:
        """Begin a transaction that may write. Raises `OrganizationFrozen`."""
        asked_at = monotonic()
        passed_at = self._writable.get(organization_id, -inf)
        is_known = asked_at - passed_at < CHECK_SECONDS
        await run_script(connection, driver, script if is_known else script + REQUIRE_WRITABLE)
        if is_known and monotonic() - passed_at > LATEST_SECONDS:  # the process was stopped meanwhile
            asked_at, is_known = monotonic(), False
            await run_script(connection, driver, REQUIRE_WRITABLE)
        if not is_known:
            if len(self._writable) >= MOST_WRITABLE:
                self._writable.clear()
            self._writable[organization_id] = asked_at

    async def _connect(self, closing: AsyncExitStack) -> AsyncConnection:
        self.waiting += 1
        try:
            return await closing.enter_async_context(self._engine.connect())
        except DRIVER_ERRORS as error:
            # The connection broke as SQLAlchemy set its types, which it does without its own errors.
            raise DBAPIError("", None, error, hide_parameters=True, connection_invalidated=True) from error
        finally:
            self.waiting -= 1

    @property
    def pool(self) -> QueuePool:
        """The pool of the connections."""
        return cast("QueuePool", self._engine.pool)

    async def ping(self) -> None:
        """Run an empty query. Raises `SQLAlchemyError` or `OSError` if the database does not answer."""
        async with AsyncExitStack() as closing:
            await (await self._connect(closing)).exec_driver_sql("select 1")

    async def read_position(self) -> str:
        """Return the position in the write-ahead log before which every committed transaction lies.

        A commit is confirmed when its record is on the disk.
        """
        async with AsyncExitStack() as closing:
            result = await (await self._connect(closing)).exec_driver_sql("select pg_current_wal_flush_lsn()::text")
            return str(result.scalar_one())

    async def close(self) -> None:
        """Close every pooled connection."""
        await self._engine.dispose()


def _take_role(role: str, organization_id: UUID | None) -> str:
    """Build the statements by which a transaction takes its role. They are literals: one message with several
    statements has no parameters.
    """
    if not isinstance(organization_id, UUID | None):
        raise InvalidRequestError("a transaction needs the id of an organization")
    return f"set local role {role};set local app.organization_id = '{organization_id or ''}';"
