"""Upgrade a database to the current schema, for `make run` and `switchboard migrate`."""

import asyncio

import structlog
from alembic import command
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError, ProgrammingError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from switchboard.foundation.database.engine import create_engine
from switchboard.foundation.settings import OperatorError
from switchboard.migrations.schema import SchemaState, compare_schema, load_scripts, write_compatibility

logger = structlog.get_logger()
LOCK = 7_265_001
ROLES = ("switchboard_tenant", "switchboard_system", "switchboard_search")
POLL_SECONDS = 0.2
LOCK_TIMEOUT = "3s"
"""Time for which a migration waits for a lock. Transactions that come after it wait that long as well."""
ATTEMPTS, RETRY_SECONDS = 10, 5.0


class MigrationError(OperatorError):
    """The database cannot be upgraded."""


async def upgrade(url: str, revision: str = "head", *, lock_timeout: str = LOCK_TIMEOUT) -> None:
    """Create the missing roles and apply every pending migration up to a revision. Safe to run several times at once.

    A migration whose lock is not granted is tried again. Each migration is a transaction, so that one that builds an
    index concurrently can leave it. Raises `MigrationError` if the login of the URL lacks a right, if the database has
    a schema that this version does not know, or if other transactions keep a lock.
    """
    engine = create_engine(url)
    try:
        async with engine.connect() as lock:
            await _wait_for_turn(lock)
            async with engine.begin() as connection:
                await connection.run_sync(_prepare_roles)
            await _migrate_patiently(engine, revision, lock_timeout)
    except DBAPIError as error:
        raise MigrationError(f"the database refused: {error.orig}") from error
    finally:
        await engine.dispose()


async def _wait_for_turn(lock: AsyncConnection) -> None:
    """Wait until no other process migrates; the lock is held as long as the transaction is.

    An index that is built concurrently waits for every snapshot. PostgreSQL's own waiting for a lock would hold one,
    and so does the statement that got the lock, until a simple query takes its place.
    """
    statement = text(f"select pg_try_advisory_xact_lock({LOCK})")
    while not (await lock.execute(statement)).scalar_one():
        await lock.rollback()
        await asyncio.sleep(POLL_SECONDS)
    driver = (await lock.get_raw_connection()).driver_connection
    assert driver is not None  # noqa: S101 - the connection is open
    await driver.execute("select 1")


async def _migrate_patiently(engine: AsyncEngine, revision: str, lock_timeout: str) -> None:
    for attempt in range(1, ATTEMPTS + 1):
        try:
            async with engine.connect() as connection:
                async with connection.begin():
                    await connection.execute(text(f"set lock_timeout = '{lock_timeout}'"))
                return await connection.run_sync(_migrate, revision)
        except DBAPIError as error:
            if getattr(error.orig, "sqlstate", None) != "55P03":  # lock_not_available
                raise
            logger.warning("a migration waits for a lock", attempt=attempt)
        await asyncio.sleep(RETRY_SECONDS)
    raise MigrationError("other transactions keep a lock that a migration needs: run `switchboard migrate` again later")


def _prepare_roles(connection: Connection) -> None:
    for role in ROLES:
        if not connection.execute(text("select 1 from pg_roles where rolname = :role"), {"role": role}).scalar():
            _create(connection, role)
        if not connection.execute(text("select pg_has_role(current_user, :role, 'member')"), {"role": role}).scalar():
            raise MigrationError(
                f"the login of SWITCHBOARD_DATABASE_URL must be a member of {role}: `grant {role} to <login>`"
            )


def _create(connection: Connection, role: str) -> None:
    try:
        with connection.begin_nested():
            connection.execute(text(f"create role {role} nologin"))
            connection.execute(text(f"grant {role} to current_user"))
    except ProgrammingError:
        raise MigrationError(
            f"the login of SWITCHBOARD_DATABASE_URL may not create roles: give it CREATEROLE, "
            f"or run as an administrator `create role {role} nologin; grant {role} to <login>`"
        ) from None


def _migrate(connection: Connection, revision: str) -> None:
    with connection.begin():
        schema = compare_schema(connection)
    if schema.state is SchemaState.CURRENT:
        return
    if schema.state is not SchemaState.PENDING:
        raise MigrationError(
            f"the database has schema {schema.revision}, which this version of Switchboard does not know: "
            "use the version that created it, or start with an empty database"
        )
    scripts = load_scripts()
    scripts.config.attributes["connection"] = connection
    command.upgrade(scripts.config, revision)
    with connection.begin():
        write_compatibility(connection)
