"""Transactions, each bound to one organization by row-level security.

The login of `DATABASE_URL` owns the tables and runs migrations. Each transaction of the application starts by taking
one of two roles that own nothing: `switchboard_tenant` sees one organization's rows, and `switchboard_system` crosses
organizations with the few privileges that the migrations granted. A query without a filter returns nothing of another
organization (docs/decisions/0002-row-level-security-and-roles.md).
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Protocol, TypeVar, cast
from uuid import UUID

from sqlalchemy import ColumnElement, event
from sqlalchemy.engine import Connection
from sqlalchemy.orm import SessionTransaction
from sqlmodel import Session, col, select
from sqlmodel.ext.asyncio.session import AsyncSession
from sqlmodel.sql.expression import SelectOfScalar

from switchboard.foundation.database.clock import CLOCK
from switchboard.foundation.database.engine import create_engine
from switchboard.foundation.database.pool import CountingPool

_ENTER = """
select set_config('role', $1, true), set_config('app.organization_id', $2, true),
  set_config('statement_timeout', $3, true), extract(epoch from clock_timestamp())::float8
"""
_READ_ONLY = "set transaction read only"


class TenantOwned(Protocol):
    """A table whose rows belong to an organization."""

    organization_id: UUID


RowT = TypeVar("RowT", bound=TenantOwned)


class RoleSession(Session):
    """The underlying synchronous session: each of its transactions starts by setting its role and organization, and
    by reading the primary's clock.
    """


@event.listens_for(RoleSession, "after_begin")
def _enter(session: Session, _transaction: SessionTransaction, connection: Connection) -> None:
    organization_id = session.info.get("organization_id")
    entered = connection.exec_driver_sql(
        _ENTER,
        (session.info["role"], str(organization_id) if organization_id else "", session.info["statement_timeout"]),
    )
    if session.info["is_replica"]:  # whose clock is not the primary's, and which may have been promoted
        connection.exec_driver_sql(_READ_ONLY)
    else:
        CLOCK.adjust(entered.one()[-1])


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
        timeout = f"{round(statement_timeout * 1000)}ms"
        self._info = {"statement_timeout": timeout, "is_replica": is_replica, **(info or {})}
        self._engine = create_engine(
            url,
            poolclass=CountingPool,
            pool_size=pool_size,
            max_overflow=0,
            pool_pre_ping=True,
            pool_timeout=10,
            hide_parameters=True,  # they hold personal data, and errors are logged
        )

    @asynccontextmanager
    async def tenant(self, organization_id: UUID, *, actor: str | None = None) -> AsyncIterator[TenantSession]:
        """Open one transaction of one organization: commit at the end, roll back on any exception.

        `actor` names the actor in the audit log; services read it as `session.actor`.
        """
        info = {**self._info, "role": "switchboard_tenant", "organization_id": organization_id, "actor": actor}
        async with TenantSession(self._engine, info=info, expire_on_commit=False) as session, _transaction(session):
            yield session

    @asynccontextmanager
    async def system(self) -> AsyncIterator[SystemSession]:
        """Open one transaction across organizations, for `system_queries.py` modules and the operator's command
        line.
        """
        info = {**self._info, "role": "switchboard_system"}
        async with SystemSession(self._engine, info=info, expire_on_commit=False) as session, _transaction(session):
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
async def _transaction(session: AsyncSession) -> AsyncIterator[None]:
    async with session.begin():
        yield
    for action in session.info.pop("after_commit", []):
        await action()
