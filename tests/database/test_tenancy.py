"""Row-level security: a query without a filter sees nothing of another organization."""

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from switchboard.apps.embedded import DataDirectory
from switchboard.foundation.database import Database
from switchboard.resources.agents.models import Agent
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller

NOT_TENANTS = {
    "authenticator_app",
    "oauth_client",
    "passkey",
    "password_request",
    "process_lease",
    "recovery_code",
    "used_passkey_challenge",
    "user_account",
}
OF_MIGRATIONS = {"alembic_version", "schema_compatibility"}


async def test_a_row_for_another_organization_is_refused(caller: Caller, stranger: Caller, runtime: Runtime) -> None:
    row = Agent(organization_id=stranger.organization_id, name="x")
    with pytest.raises(DBAPIError, match="row-level security"):
        async with runtime.database.write(caller.organization_id) as session:
            session.add(row)


async def test_row_level_security_is_forced_on_every_table(servers: DataDirectory) -> None:
    database = Database(servers.database_url)
    async with database.system() as session:
        connection = await session.connection()
        rows = (
            await connection.execute(
                text(
                    "select relname, relforcerowsecurity from pg_class where relkind in ('r', 'p')"
                    " and not relispartition and relnamespace = 'public'::regnamespace"
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
        months = (
            await connection.execute(
                text("select relname, relacl from pg_class where relkind = 'r' and relispartition order by relname")
            )
        ).all()
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
    assert "delivery_rest" in dict(months)
    assert {granted for _, granted in months} == {None}, "nobody but the owner may address a part of a table"
    assert {name for name, forced in rows if not forced} == OF_MIGRATIONS
    assert owned == 0
    assert set(columns) | NOT_TENANTS | {"organization"} >= {name for name, _ in rows} - OF_MIGRATIONS
