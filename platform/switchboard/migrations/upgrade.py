"""Bringing a database up to date, by `make run` and `switchboard migrate`."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, make_url, text
from sqlalchemy.exc import DBAPIError, ProgrammingError
from sqlalchemy.ext.asyncio import create_async_engine

LOCK = 7_265_001
ROLES = ("switchboard_tenant", "switchboard_system")


class MigrationError(Exception):
    """The database cannot be brought up to date; the message says what the operator must grant."""


async def upgrade(url: str) -> None:
    """Make the roles, if they are not there, and apply every step that has not been applied. Safe to run in several processes at once.

    Raises `MigrationError` where the login of the URL lacks a right.
    """
    engine = create_async_engine(make_url(url).set(drivername="postgresql+asyncpg"))
    try:
        async with engine.begin() as connection:
            await connection.execute(text(f"select pg_advisory_xact_lock({LOCK})"))
            await connection.run_sync(_prepare_roles)
            await connection.run_sync(_upgrade)
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


def _upgrade(connection: Connection) -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
