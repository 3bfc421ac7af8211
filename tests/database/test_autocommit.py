"""Reads of one statement: confined like a transaction, without writes, and without a trace on the connection."""

import asyncio
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import Select, String, bindparam, delete, func, literal_column, select, text
from sqlalchemy.exc import DBAPIError
from sqlmodel import col
from switchboard.apps.embedded import DataDirectory
from switchboard.foundation.database import Database, TenantSession, is_database_away
from switchboard.foundation.database.session import AutocommitReader, ReadFailed
from switchboard.resources.contacts.models import Contact
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller
from tests.fixtures.database_activity import IN_TRANSACTION, READING, sleep_in_database
from tests.fixtures.eventually import eventually

TENANT = "switchboard_tenant"
NUMBERS: Select[Any] = select(col(Contact.phone_number).label("number"))
ROLE: Select[Any] = select(
    literal_column("concat_ws(' ', current_user, current_setting('app.organization_id', true))", String).label("role")
)
SLEEP: Select[Any] = select(
    func.pg_sleep(bindparam("seconds", type_=String).op("::")(literal_column("float8"))).cast(String).label("slept")
)
DELETION = delete(Contact).returning(col(Contact.phone_number).label("number")).cte()
DELETED: Select[Any] = select(DELETION.c.number)


async def test_a_read_sees_only_the_organizations_rows(caller: Caller, stranger: Caller, runtime: Runtime) -> None:
    await caller.post("/v1/contacts", {"phone_number": "+15550100001"})
    await stranger.post("/v1/contacts", {"phone_number": "+15550100002"})
    async with runtime.database.tenant(caller.organization_id) as session:
        assert await session.read(NUMBERS, {}) == [{"number": "+15550100001"}]
        assert not session.in_transaction()
    async with runtime.database.tenant(uuid4()) as session:
        assert await session.read(NUMBERS, {}) == []


async def test_a_read_leaves_neither_role_nor_organization(servers: DataDirectory, caller: Caller) -> None:
    database = Database(servers.database_url, pool_size=1)
    async with database.tenant(caller.organization_id) as session:
        assert await session.read(ROLE, {}) == [{"role": f"{TENANT} {caller.organization_id}"}]
    async with database.system() as session:
        connection = await session.connection()
        await connection.execute(text("reset role"))
        left = text("select current_user, session_user, current_setting('app.organization_id', true)")
        role, login, organization = (await connection.execute(left)).one()
        assert (role, organization) == (login, "")
    await database.close()


async def test_a_read_after_a_write_sees_it(caller: Caller, runtime: Runtime) -> None:
    async with runtime.database.tenant(caller.organization_id) as session:
        session.add(Contact(organization_id=caller.organization_id, phone_number="+15550100003"))
        assert await session.read(NUMBERS, {}) == [{"number": "+15550100003"}]


@pytest.mark.parametrize(
    ("query", "refusal"),
    [(DELETED, "data-modifying statement"), (NUMBERS.with_for_update(), "FOR UPDATE is not allowed")],
)
async def test_a_read_neither_writes_nor_locks(
    caller: Caller, runtime: Runtime, query: Select[Any], refusal: str
) -> None:
    await caller.post("/v1/contacts", {"phone_number": "+15550100001"})
    reader = AutocommitReader(runtime.database.pool, None)
    with pytest.raises(ReadFailed) as failure:
        await reader.read(TENANT, caller.organization_id, query, {})
    assert refusal in str(failure.value.__cause__)
    assert (await caller.get("/v1/contacts")).json["total"] == 1


async def test_the_tenants_role_may_not_call_the_function(caller: Caller, runtime: Runtime) -> None:
    async with runtime.database.tenant(caller.organization_id) as session:
        may = text("select has_function_privilege('read_rows(text, uuid, text, text[])', 'execute')")
        assert (await (await session.connection()).execute(may)).scalar_one() is False


async def test_a_read_that_takes_too_long_is_canceled(servers: DataDirectory, caller: Caller) -> None:
    database = Database(servers.database_url, pool_size=1, statement_timeout=0.05)
    with pytest.raises(TimeoutError):
        async with database.tenant(caller.organization_id) as session:
            await session.read(SLEEP, {"seconds": "30"})
    await database.ping()
    await database.close()


async def sleep_reading(session: TenantSession) -> None:
    await session.read(SLEEP, {"seconds": "30"})


async def test_a_canceled_read_gives_its_connection_back(servers: DataDirectory, caller: Caller) -> None:
    async with sleep_in_database(servers, caller, sleep_reading, READING) as sleeping:
        sleeping.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sleeping.task
        await sleeping.database.ping()
        await eventually(lambda: sleeping.find(READING), lambda pids: not pids)


async def test_a_read_that_fails_is_repeated_in_a_transaction(servers: DataDirectory, caller: Caller) -> None:
    async with sleep_in_database(servers, caller, sleep_reading, READING) as sleeping:
        for condition in (READING, IN_TRANSACTION):
            await sleeping.terminate(condition)
        with pytest.raises(DBAPIError) as failure:
            await sleeping.task
        assert is_database_away(failure.value)
        await sleeping.database.ping()
