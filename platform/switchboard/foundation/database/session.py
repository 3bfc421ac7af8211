"""Transactions, each bound to one organization by row-level security.

The login of `DATABASE_URL` owns the tables and runs migrations. Every transaction of the application first takes on one of two roles that
own nothing: `switchboard_tenant`, which sees one organization's rows, or `switchboard_system`, which crosses organizations and may do only
what the migrations granted it. A query that forgets its filter returns nothing of anyone else's.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Literal
from uuid import UUID

from sqlalchemy import event, make_url
from sqlalchemy.engine import Connection
from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine
from sqlalchemy.orm import SessionTransaction
from sqlmodel import Session
from sqlmodel.ext.asyncio.session import AsyncSession

Role = Literal["switchboard_tenant", "switchboard_system"]

_ENTER = "select set_config('role', $1, true), set_config('app.organization_id', $2, true)"


class TenantSession(Session):
    """A session whose every transaction begins by taking on its role and organization."""


@event.listens_for(TenantSession, "after_begin")
def _enter(session: Session, _transaction: SessionTransaction, connection: Connection) -> None:
    organization_id = session.info.get("organization_id")
    connection.exec_driver_sql(_ENTER, (session.info["role"], str(organization_id) if organization_id else ""))


def after_commit(session: AsyncSession, action: Callable[[], Awaitable[None]]) -> None:
    """Run something once the session's transaction has been committed, in order; forgotten when it is rolled back.

    For what may be lost: whatever must happen is a row, found again by a sweep.
    """
    session.info.setdefault("after_commit", []).append(action)


class Database:
    """The connection pool and the two kinds of transaction."""

    def __init__(self, url: str, *, pool_size: int = 10, info: Mapping[str, object] | None = None) -> None:
        """`info` is given to every session, for `work.wake`. Nothing is connected yet."""
        self._info = dict(info or {})
        dialect = make_url(url).set(drivername="postgresql+asyncpg")
        self._engine = create_async_engine(
            dialect, pool_size=pool_size, max_overflow=pool_size, pool_pre_ping=True, pool_timeout=10
        )
        self._sessions = async_sessionmaker(
            self._engine, class_=AsyncSession, sync_session_class=TenantSession, expire_on_commit=False
        )

    @asynccontextmanager
    async def tenant(self, organization_id: UUID, *, actor: str | None = None) -> AsyncIterator[AsyncSession]:
        """One transaction of one organization: committed at the end, rolled back when anything is raised.

        `actor` is who it is for, as the audit log names them; services find it in `session.info["actor"]`.
        """
        async with self._transaction("switchboard_tenant", organization_id, actor) as session:
            yield session

    @asynccontextmanager
    async def system(self) -> AsyncIterator[AsyncSession]:
        """One transaction across organizations, for the statements in files called `crossing.py` and for the operator's command line."""
        async with self._transaction("switchboard_system", None, None) as session:
            yield session

    @asynccontextmanager
    async def _transaction(
        self, role: Role, organization_id: UUID | None, actor: str | None
    ) -> AsyncIterator[AsyncSession]:
        async with self._sessions(
            info={**self._info, "role": role, "organization_id": organization_id, "actor": actor}
        ) as session:
            async with session.begin():
                yield session
            for action in session.info.pop("after_commit", []):
                await action()

    async def close(self) -> None:
        await self._engine.dispose()
