"""Row-level security: a query without a filter sees nothing of another organization."""

from uuid import uuid4

import asyncpg
import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlmodel import select
from switchboard.apps.embedded import DataDirectory
from switchboard.foundation.database import Database
from switchboard.foundation.database.engine import PreambleConnection
from switchboard.resources.agents.models import Agent
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller

NOT_TENANTS = {
    "authenticator_app",
    "oauth_client",
    "passkey",
    "recovery_code",
    "used_passkey_challenge",
    "user_account",
}
OF_MIGRATIONS = {"alembic_version", "schema_compatibility"}


async def test_a_query_without_a_filter_returns_only_the_tenants_rows(
    caller: Caller, stranger: Caller, runtime: Runtime
) -> None:
    await caller.post("/v1/agents", {"name": "Mine"})
    await stranger.post("/v1/agents", {"name": "Theirs"})
    async with runtime.database.tenant(caller.organization_id) as session:
        assert [agent.name for agent in (await session.exec(select(Agent))).all()] == ["Mine"]
    async with runtime.database.tenant(uuid4()) as session:
        assert (await session.exec(select(Agent))).all() == []


async def test_a_row_for_another_organization_is_refused(caller: Caller, stranger: Caller, runtime: Runtime) -> None:
    row = Agent(organization_id=stranger.organization_id, name="x")
    with pytest.raises(DBAPIError, match="row-level security"):
        async with runtime.database.tenant(caller.organization_id) as session:
            session.add(row)


async def test_the_system_role_cannot_read_tenant_content(caller: Caller, runtime: Runtime) -> None:
    with pytest.raises(DBAPIError, match="permission denied"):
        async with runtime.database.system() as session:
            await session.exec(select(Agent))


async def test_a_role_that_was_not_taken_is_not_taken_by_the_next_user_of_the_connection(
    servers: DataDirectory, caller: Caller
) -> None:
    database = Database(servers.database_url, pool_size=1)
    async with database.tenant(caller.organization_id) as session:
        await session.connection()  # and no statement, so that nothing is sent
    await database.read_position()
    assert await database.read_position()  # as the owner: the tenant's role may not ask
    await database.close()


async def test_a_transaction_whose_role_cannot_be_taken_does_not_begin(servers: DataDirectory) -> None:
    connection: PreambleConnection = await asyncpg.connect(servers.database_url, connection_class=PreambleConnection)
    await connection.begin_with("set local role switchboard_missing;")
    with pytest.raises(asyncpg.PostgresError, match="switchboard_missing"):
        await connection.transaction().start()
    await connection.close()


async def test_a_transaction_leaves_no_state_for_the_next(servers: DataDirectory, caller: Caller) -> None:
    database = Database(servers.database_url, pool_size=1)
    async with database.tenant(caller.organization_id):
        pass
    async with database.system() as session:
        connection = await session.connection()
        assert (
            await connection.execute(text("select current_user, current_setting('app.organization_id', true)"))
        ).one() == (
            "switchboard_system",
            "",
        )
    await database.close()


async def test_row_level_security_is_forced_on_every_table(servers: DataDirectory) -> None:
    database = Database(servers.database_url)
    async with database.system() as session:
        connection = await session.connection()
        rows = (
            await connection.execute(
                text(
                    "select relname, relforcerowsecurity from pg_class where relkind = 'r' and relnamespace = "
                    "'public'::regnamespace"
                )
            )
        ).all()
        owned = (
            await connection.execute(
                text(
                    "select count(*) from pg_class where relowner = (select oid from pg_roles where rolname = "
                    "current_user)"
                )
            )
        ).scalar_one()
        columns = (
            (
                await connection.execute(
                    text("select attrelid::regclass::text from pg_attribute where attname = 'organization_id'")
                )
            )
            .scalars()
            .all()
        )
    await database.close()
    assert {name for name, forced in rows if not forced} == OF_MIGRATIONS
    assert owned == 0
    assert set(columns) | NOT_TENANTS | {"organization"} >= {name for name, _ in rows} - OF_MIGRATIONS
