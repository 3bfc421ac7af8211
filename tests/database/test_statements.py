"""Fixed statements: in the session's transaction and role, and with SQLAlchemy's errors."""

import asyncio
from typing import Any

import pytest
from sqlalchemy import Select, String, bindparam, func, literal_column, select
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlmodel import col
from switchboard.apps.embedded import DataDirectory
from switchboard.foundation.database import (
    Database,
    NewRow,
    TenantSession,
    fetch_rows,
    insert_together,
    is_database_away,
    is_refused_value,
    lock_name,
)
from switchboard.resources.contacts.models import Contact
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller
from tests.fixtures.database_activity import IN_TRANSACTION, sleep_in_database
from tests.fixtures.eventually import eventually

NUMBERS: Select[Any] = select(col(Contact.phone_number).label("number")).order_by(col(Contact.phone_number))
SLEEP: Select[Any] = select(func.pg_sleep(literal_column("30")).cast(String).label("slept"))
ECHO: Select[Any] = select(bindparam("words", type_=String).label("words"))


async def add_contact(session: TenantSession, number: str) -> None:
    await insert_together(session, NewRow.build(Contact, organization_id=session.organization_id, phone_number=number))


async def list_numbers(session: TenantSession) -> list[str]:
    return [row["number"] for row in await fetch_rows(session, NUMBERS, {})]


async def test_a_statement_is_part_of_the_sessions_transaction(caller: Caller, runtime: Runtime) -> None:
    async with runtime.database.tenant(caller.organization_id) as session:
        await add_contact(session, "+15550100001")
        session.add(Contact(organization_id=caller.organization_id, phone_number="+15550100002"))
        assert await list_numbers(session) == ["+15550100001", "+15550100002"]
        await session.rollback()
    async with runtime.database.tenant(caller.organization_id) as session:
        assert await list_numbers(session) == []


async def test_pending_changes_are_flushed_first_unless_autoflush_is_off(caller: Caller, runtime: Runtime) -> None:
    async with runtime.database.tenant(caller.organization_id) as session:
        session.add(Contact(organization_id=caller.organization_id, phone_number="+15550100002"))
        with session.no_autoflush:
            assert await list_numbers(session) == []
        assert await list_numbers(session) == ["+15550100002"]


async def test_a_statement_has_the_role_of_its_session(caller: Caller, stranger: Caller, runtime: Runtime) -> None:
    await stranger.post("/v1/contacts", {"phone_number": "+15550100002"})
    async with runtime.database.system() as system:
        await lock_name(system, "a name")
        with pytest.raises(DBAPIError, match="permission denied"):
            await fetch_rows(system, NUMBERS, {})
    async with runtime.database.system() as system:
        await lock_name(system, "a name")
        async with system.narrow(caller.organization_id) as session:
            await add_contact(session, "+15550100001")
            assert await list_numbers(session) == ["+15550100001"]
    async with runtime.database.tenant(stranger.organization_id) as session:
        assert await list_numbers(session) == ["+15550100002"]


async def test_a_broken_rule_is_an_integrity_error(caller: Caller, runtime: Runtime) -> None:
    async with runtime.database.tenant(caller.organization_id) as session:
        await add_contact(session, "+15550100001")
        with pytest.raises(IntegrityError, match="duplicate key") as failure:
            await add_contact(session, "+15550100001")
        await session.rollback()
    assert "15550100001" not in str(failure.value)
    assert not is_database_away(failure.value)


async def test_a_refused_value_is_known_as_one(caller: Caller, runtime: Runtime) -> None:
    async with runtime.database.tenant(caller.organization_id) as session:
        with pytest.raises(DBAPIError) as failure:
            await fetch_rows(session, ECHO, {"words": "NUL \0"})
        await session.rollback()
    assert is_refused_value(failure.value)


async def test_a_statement_that_takes_too_long_is_canceled(servers: DataDirectory, caller: Caller) -> None:
    database = Database(servers.database_url, pool_size=1, statement_timeout=0.05)
    with pytest.raises(DBAPIError, match="statement timeout") as failure:
        async with database.tenant(caller.organization_id) as session:
            await fetch_rows(session, SLEEP, {})
    assert is_database_away(failure.value)
    await database.ping()
    await database.close()


async def sleep_in_transaction(session: TenantSession) -> None:
    await fetch_rows(session, SLEEP, {})


async def test_a_connection_that_is_lost_is_replaced(servers: DataDirectory, caller: Caller) -> None:
    async with sleep_in_database(servers, caller, sleep_in_transaction, IN_TRANSACTION) as sleeping:
        await sleeping.terminate(IN_TRANSACTION)
        with pytest.raises(DBAPIError) as failure:
            await sleeping.task
        assert is_database_away(failure.value)
        await sleeping.database.ping()


async def test_a_canceled_statement_gives_its_connection_back(servers: DataDirectory, caller: Caller) -> None:
    async with sleep_in_database(servers, caller, sleep_in_transaction, IN_TRANSACTION) as sleeping:
        sleeping.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sleeping.task
        await sleeping.database.ping()
        await eventually(lambda: sleeping.find(IN_TRANSACTION), lambda pids: not pids)
