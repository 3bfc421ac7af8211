"""Upgrade a database to the current schema, for `make run` and `switchboard migrate`."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, make_url, text
from sqlalchemy.exc import DBAPIError, ProgrammingError
from sqlalchemy.ext.asyncio import create_async_engine

LOCK = 7_265_001
ROLES = ("switchboard_tenant", "switchboard_system")


class MigrationError(Exception):
    """The database cannot be upgraded; the message tells the operator what to do."""


async def upgrade(url: str, revision: str = "head") -> None:
    """Create the missing roles and apply every pending migration up to a revision. Safe to run in several processes at
    once.

    Raises `MigrationError` if the login of the URL lacks a right, or if the database has a schema that this version
    does not know.
    """
    engine = create_async_engine(make_url(url).set(drivername="postgresql+asyncpg"))
    try:
        async with engine.begin() as connection:
            await connection.execute(text(f"select pg_advisory_xact_lock({LOCK})"))
            await connection.run_sync(_prepare_roles)
            await connection.run_sync(_upgrade, revision)
    except DBAPIError as error:
        raise MigrationError(f"the database refused: {error.orig}") from error
    finally:
        await engine.dispose()


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


def list_revisions() -> set[str]:
    """Return the revisions of the schema that this version knows."""
    return {script.revision for script in ScriptDirectory.from_config(_build_config()).walk_revisions()}


def _build_config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    return config


def _upgrade(connection: Connection, revision: str) -> None:
    _refuse_unknown_revision(connection)
    config = _build_config()
    config.attributes["connection"] = connection
    command.upgrade(config, revision)


def _refuse_unknown_revision(connection: Connection) -> None:
    current = MigrationContext.configure(connection).get_current_revision()
    if current is not None and current not in list_revisions():
        raise MigrationError(
            f"the database has schema {current}, which this version of Switchboard does not know: "
            "use the version that created it, or start with an empty database"
        )
