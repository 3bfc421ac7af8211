"""An operator's own database: a login with only the privileges that docs/how-to/operating.md names."""

import pytest
from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy import Connection, text
from sqlalchemy.ext.asyncio import create_async_engine
from switchboard.apps.embedded import DataDirectory
from switchboard.foundation.database import Database
from switchboard.migrations import MigrationError, upgrade
from switchboard.migrations.operations import create_row_counter, protect_table
from switchboard.resources.identity.service import create_organization

from tests.fixtures.servers import administrate


def build_url(servers: DataDirectory, login: str) -> str:
    return f"postgresql://{login}@/{login}?host={servers.sockets}"


async def test_an_ordinary_login_with_the_roles_suffices(servers: DataDirectory) -> None:
    await administrate(
        servers,
        "create role plain login",
        "create database plain owner plain",
        "grant switchboard_tenant, switchboard_system, switchboard_search to plain",
    )
    await upgrade(build_url(servers, "plain"))
    await upgrade(build_url(servers, "plain"))
    database = Database(build_url(servers, "plain"))
    async with database.system() as session:
        organization = create_organization(session, name="Own")
    async with database.write(organization.id) as session:
        assert (await session.get_one(type(organization), organization.id)).name == "Own"
    await database.close()
    await administrate(servers, "drop database plain", "drop role plain")


def count_berries(connection: Connection) -> None:
    """Create a protected table, and then its row counter."""
    connection.execute(
        text("create table berry as select gen_random_uuid() as organization_id from generate_series(1, 3)")
    )
    with Operations.context(MigrationContext.configure(connection)):
        protect_table("berry")
        create_row_counter("berry")
        assert connection.execute(text("select sum(rows) from row_count_change where list = 'berry'")).scalar() == 3
        assert (
            connection.execute(text("select relforcerowsecurity from pg_class where relname = 'berry'")).scalar()
            is True
        )


async def test_an_ordinary_login_counts_existing_rows(servers: DataDirectory) -> None:
    await administrate(
        servers,
        "create role older login",
        "create database older owner older",
        "grant switchboard_tenant, switchboard_system, switchboard_search to older",
    )
    await upgrade(build_url(servers, "older"))
    engine = create_async_engine(build_url(servers, "older").replace("postgresql", "postgresql+asyncpg"))
    async with engine.begin() as connection:
        await connection.run_sync(count_berries)
    await engine.dispose()
    await administrate(servers, "drop database older", "drop role older")


async def test_missing_privileges_of_a_login_are_named(servers: DataDirectory) -> None:
    await administrate(servers, "create role poor login", "create database poor owner poor")
    with pytest.raises(MigrationError, match="grant switchboard_tenant to"):
        await upgrade(build_url(servers, "poor"))
    await administrate(servers, "drop database poor", "drop role poor")


async def test_a_schema_of_another_version_is_named_and_refused(servers: DataDirectory) -> None:
    await administrate(
        servers,
        "create role foreign_schema login",
        "create database foreign_schema owner foreign_schema",
        "grant switchboard_tenant, switchboard_system, switchboard_search to foreign_schema",
    )
    await upgrade(build_url(servers, "foreign_schema"))
    engine = create_async_engine(build_url(servers, "foreign_schema").replace("postgresql", "postgresql+asyncpg"))
    async with engine.begin() as connection:
        await connection.execute(text("update alembic_version set version_num = '9999'"))
    await engine.dispose()
    with pytest.raises(MigrationError, match="schema 9999"):
        await upgrade(build_url(servers, "foreign_schema"))
    await administrate(servers, "drop database foreign_schema", "drop role foreign_schema")
