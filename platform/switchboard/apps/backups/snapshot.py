"""The rows of the whole database in one snapshot, read by the owner of the tables while the platform serves.

Row-level security is forced on the owner too. The policy `backup` of each table lets it read in a transaction that sets
`app.backup` (docs/decisions/0024-backup.md).
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from graphlib import TopologicalSorter
from importlib.metadata import version
from typing import Any

from alembic.migration import MigrationContext
from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlmodel import func

from switchboard.apps.backups.archive import ArchivedOrganization, ArchivedTable, ArchiveHeader
from switchboard.foundation.database import create_engine
from switchboard.foundation.encryption.rotation import list_encrypted_columns
from switchboard.foundation.settings import OperatorError

# As pg_dump does, and the policy of each table.
SETTINGS = {
    "app.backup": "on",
    "statement_timeout": "0",
    "lock_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "datestyle": "ISO, YMD",
    "timezone": "UTC",
}
TABLES = """
select c.relname, array(
  select attname::text from pg_attribute
  where attrelid = c.oid and attnum > 0 and not attisdropped and attgenerated = '' order by attnum
), array(
  select right(part.relname, 7) from pg_inherits join pg_class part on part.oid = inhrelid
  where inhparent = c.oid and c.relkind = 'p' and part.relname <> c.relname || '_rest' order by 1
)
from pg_class c where c.relforcerowsecurity and not c.relispartition and c.relnamespace = current_schema()::regnamespace
"""
REFERENCES = """
select a.relname, b.relname from pg_constraint r
join pg_class a on a.oid = r.conrelid join pg_class b on b.oid = r.confrelid
where r.contype = 'f' and r.connamespace = current_schema()::regnamespace and a.oid <> b.oid
"""
HIDDEN = """
select count(*) from pg_class c join pg_roles on rolname = current_user
where c.relforcerowsecurity and c.relnamespace = current_schema()::regnamespace and not rolsuper and not rolbypassrls
  and not exists (select from pg_policy where polrelid = c.oid and polname = 'backup')
"""


class SnapshotError(OperatorError):
    """The database cannot be backed up."""


@asynccontextmanager
async def open_connection(url: str, **options: str | bool) -> AsyncIterator[AsyncConnection]:
    """Open one connection and one transaction as the login of the URL, which owns the tables."""
    engine = create_engine(url, execution_options=options)
    try:
        async with engine.begin() as connection:
            for name, value in SETTINGS.items():
                await connection.execute(select(func.set_config(name, value, True)))
            yield connection
    finally:
        await engine.dispose()


async def get_driver_connection(connection: AsyncConnection) -> Any:
    """Return asyncpg's connection, whose COPY takes part in the transaction."""
    return (await connection.get_raw_connection()).driver_connection


@asynccontextmanager
async def open_snapshot(url: str) -> AsyncIterator[AsyncConnection]:
    """Open a transaction that sees every row as of now. Raises `SnapshotError` if it would not."""
    async with open_connection(url, isolation_level="REPEATABLE READ", postgresql_readonly=True) as connection:
        if (await connection.execute(text(HIDDEN))).scalar_one():
            raise SnapshotError("the login may not read every row: run `switchboard migrate` first")
        yield connection


async def read_revision(connection: AsyncConnection) -> str | None:
    """Return the revision of the schema, None for a database without one."""
    return await connection.run_sync(lambda sync: MigrationContext.configure(sync).get_current_revision())


async def list_tables(connection: AsyncConnection) -> list[ArchivedTable]:
    """Return Switchboard's tables, each after those that it refers to."""
    tables = {
        name: ArchivedTable(name=name, columns=columns, months=months)
        for name, columns, months in await connection.execute(text(TABLES))
    }
    order = TopologicalSorter({name: set[str]() for name in sorted(tables)})
    for table, referred in await connection.execute(text(REFERENCES)):
        if table in tables and referred in tables:
            order.add(table, referred)
    return [tables[name] for name in order.static_order()]


async def build_header(
    connection: AsyncConnection,
    tables: list[ArchivedTable],
    *,
    keys: dict[str, int],
    organization: ArchivedOrganization | None = None,
) -> ArchiveHeader:
    """Build the beginning of an archive of these tables. Raises `SnapshotError` for a database without a schema."""
    revision = await read_revision(connection)
    if revision is None:
        raise SnapshotError("the database has no schema of Switchboard")
    return ArchiveHeader(
        switchboard=version("switchboard-voice"),
        schema_revision=revision,
        created_at=datetime.now(UTC).isoformat(timespec="seconds"),
        tables=tables,
        keys=keys,
        organization=organization,
    )


async def count_keys(connection: AsyncConnection, tables: list[ArchivedTable]) -> dict[str, int]:
    """Count the encrypted values by the fingerprint of their key."""
    counted: dict[str, int] = {}
    present = {table.name: table.columns for table in tables}
    for encrypted in list_encrypted_columns():
        if encrypted.column.name not in present.get(encrypted.column.table.name, []):
            continue
        keys = select(encrypted.fingerprint.label("key")).where(encrypted.column.is_not(None)).subquery()
        for key, rows in await connection.execute(select(keys.c.key, func.count()).group_by(keys.c.key)):
            counted[key] = counted.get(key, 0) + rows
    return counted
