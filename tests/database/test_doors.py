"""The doors to the database: what a transaction may do, how it ends, and its errors."""

import asyncio
from contextlib import suppress
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import Select, String, bindparam, func, literal_column, select, text
from sqlalchemy.exc import DBAPIError, IntegrityError, InvalidRequestError
from sqlmodel import col
from switchboard.apps.embedded import DataDirectory
from switchboard.foundation.database import (
    Database,
    OrganizationFrozen,
    ReadSession,
    WriteSession,
    is_database_away,
    is_refused_value,
    lock_name,
    now,
)
from switchboard.foundation.database import session as doors
from switchboard.resources.contacts.models import Contact
from switchboard.resources.identity.models import Organization
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller
from tests.fixtures.database_activity import sleep_in_database
from tests.fixtures.eventually import eventually

FIRST, SECOND = "+15550100001", "+15550100002"
NUMBERS: Select[Any] = select(col(Contact.phone_number).label("number")).order_by(col(Contact.phone_number))
SLEEP: Select[Any] = select(func.pg_sleep(literal_column("30")).cast(String).label("slept"))
ECHO: Select[Any] = select(bindparam("words", type_=String).label("words"))
DIVISION: Select[Any] = select((literal_column("1") / literal_column("0")).label("result"))
STATE = text("select current_user, session_user, current_setting('app.organization_id', true)")


def build_contact(session: WriteSession, number: str) -> Contact:
    return Contact(organization_id=session.organization_id, phone_number=number)


async def list_numbers(session: ReadSession) -> list[str]:
    return [row.number for row in await session.fetch(NUMBERS)]


async def list_committed(runtime: Runtime, caller: Caller) -> list[str]:
    async with runtime.database.read(caller.organization_id) as session:
        return await list_numbers(session)


async def test_a_door_shows_only_the_organizations_rows(caller: Caller, stranger: Caller, runtime: Runtime) -> None:
    await caller.post("/v1/contacts", {"phone_number": FIRST})
    await stranger.post("/v1/contacts", {"phone_number": SECOND})
    for door in (runtime.database.read, runtime.database.write):
        async with door(caller.organization_id) as session:
            assert await list_numbers(session) == [FIRST]
        async with door(uuid4()) as session:
            assert await list_numbers(session) == []
    with pytest.raises(DBAPIError, match="permission denied"):
        async with runtime.database.system() as system:
            await system.fetch(NUMBERS)


@pytest.mark.parametrize(
    "statement",
    ["delete from contact", "select * from contact for update", "create table anything (id int)"],
)
async def test_a_transaction_that_reads_neither_writes_nor_locks(
    caller: Caller, runtime: Runtime, statement: str
) -> None:
    await caller.post("/v1/contacts", {"phone_number": FIRST})
    with pytest.raises(DBAPIError, match="in a read-only transaction"):
        async with runtime.database.read(caller.organization_id) as session:
            await (await session.connection()).execute(text(statement))
    assert await list_committed(runtime, caller) == [FIRST]


async def test_a_door_leaves_neither_role_nor_organization(servers: DataDirectory, caller: Caller) -> None:
    database = Database(servers.database_url, pool_size=1)
    for fails in (False, True):
        for door in (database.read, database.write):
            with suppress(ZeroDivisionError):
                async with door(caller.organization_id) as session:
                    connection = await session.connection()
                    role, login, organization = (await connection.execute(STATE)).one()
                    assert (role, organization) == ("switchboard_tenant", str(caller.organization_id))
                    if fails:
                        raise ZeroDivisionError
            async with database.system() as system:
                connection = await system.connection()
                assert (await connection.execute(STATE)).one() == ("switchboard_system", login, "")
                await connection.execute(text("reset role"))
            assert await database.read_position()  # as the owner: the other roles may not ask
    await database.close()


async def test_an_exception_rolls_back_and_drops_the_effects(caller: Caller, runtime: Runtime) -> None:
    effects = []

    async def note() -> None:
        effects.append(await list_committed(runtime, caller))

    async def fail() -> None:
        async with runtime.database.write(caller.organization_id) as session:
            await session.insert_if_new(build_contact(session, FIRST))
            session.add(build_contact(session, SECOND))
            assert await list_numbers(session) == [FIRST, SECOND]
            session.after_commit(note)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    assert await list_committed(runtime, caller) == []
    async with runtime.database.write(caller.organization_id) as session:
        session.add(build_contact(session, FIRST))
        session.after_commit(note)
    assert effects == [[FIRST]]


async def test_only_the_door_ends_its_transaction(caller: Caller, runtime: Runtime) -> None:
    async with runtime.database.write(caller.organization_id) as session:
        for end in (session.commit, session.rollback):
            with pytest.raises(InvalidRequestError, match="door"):
                await end()


async def test_a_failed_statement_fails_the_transaction(caller: Caller, runtime: Runtime) -> None:
    """PostgreSQL answers COMMIT with ROLLBACK then, which is no error for the driver."""
    effects = []

    async def note() -> None:
        effects.append("committed")

    async def go_on() -> None:
        async with runtime.database.write(caller.organization_id) as session:
            session.add(build_contact(session, FIRST))
            session.after_commit(note)
            with suppress(DBAPIError):
                await session.fetch(DIVISION)

    with pytest.raises(InvalidRequestError, match="has failed"):
        await go_on()
    assert (effects, await list_committed(runtime, caller)) == ([], [])


async def test_a_system_transaction_is_continued_as_an_organizations(
    caller: Caller, stranger: Caller, runtime: Runtime
) -> None:
    await stranger.post("/v1/contacts", {"phone_number": SECOND})
    async with runtime.database.system() as system:
        await lock_name(system, "a name")
        async with system.narrow(caller.organization_id) as session:
            session.add(build_contact(session, FIRST))
            assert await list_numbers(session) == [FIRST]
    assert (await list_committed(runtime, caller), await list_committed(runtime, stranger)) == ([FIRST], [SECOND])


async def test_a_frozen_organization_is_only_read(
    caller: Caller, stranger: Caller, runtime: Runtime, servers: DataDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doors, "CHECK_SECONDS", 0.0)
    async with runtime.database.system() as system:
        organization = await system.get_one(Organization, caller.organization_id)
        organization.moving_since = organization.frozen_at = now()
    database = Database(servers.database_url, pool_size=1)
    backend = await read_backend(database)
    for _ in range(3):
        with pytest.raises(OrganizationFrozen, match="is being moved"):
            async with database.write(caller.organization_id):
                pass
        with pytest.raises(OrganizationFrozen):
            async with database.system() as system, system.narrow(caller.organization_id):
                pass
    assert await read_backend(database) == backend, "a refusal costs no connection"
    await database.close()
    assert await list_committed(runtime, caller) == []
    assert (await stranger.post("/v1/contacts", {"phone_number": SECOND})).status == 201
    refused = await caller.post("/v1/contacts", {"phone_number": FIRST})
    assert (refused.status, refused.json["code"]) == (503, "organization_moving")
    assert (await caller.get("/v1/contacts")).status == 200


async def test_a_process_that_was_stopped_asks_again_whether_it_may_write(
    caller: Caller, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with runtime.database.write(caller.organization_id):
        pass
    async with runtime.database.system() as system:
        organization = await system.get_one(Organization, caller.organization_id)
        organization.moving_since = organization.frozen_at = now()
    async with runtime.database.write(caller.organization_id):
        pass  # for some seconds, which an export waits
    monkeypatch.setattr(doors, "LATEST_SECONDS", -1.0)
    with pytest.raises(OrganizationFrozen):
        async with runtime.database.write(caller.organization_id):
            pass


async def read_backend(database: Database) -> int:
    """Return the process id of the server process of a pool of one connection, which changes with it."""
    async with database.system() as system:
        return int((await system.fetch(text("select pg_backend_pid() as pid")))[0].pid)


async def test_a_row_is_inserted_once(caller: Caller, runtime: Runtime) -> None:
    async with runtime.database.write(caller.organization_id) as session:
        assert await session.insert_if_new(build_contact(session, FIRST))
        assert not await session.insert_if_new(build_contact(session, FIRST))
    assert await list_committed(runtime, caller) == [FIRST]


async def test_a_broken_rule_is_an_integrity_error(caller: Caller, runtime: Runtime) -> None:
    with pytest.raises(IntegrityError, match="duplicate key") as failure:
        async with runtime.database.write(caller.organization_id) as session:
            session.add_all([build_contact(session, FIRST), build_contact(session, FIRST)])
    assert "15550100001" not in str(failure.value)
    assert not is_database_away(failure.value)


async def test_a_refused_value_is_known_as_one(caller: Caller, runtime: Runtime) -> None:
    with pytest.raises(DBAPIError) as failure:
        async with runtime.database.read(caller.organization_id) as session:
            await session.fetch(ECHO, {"words": "NUL \0"})
    assert is_refused_value(failure.value)


async def test_a_statement_that_takes_too_long_is_canceled(servers: DataDirectory, caller: Caller) -> None:
    database = Database(servers.database_url, pool_size=1, statement_timeout=0.05)
    for door in (database.read, database.write):
        with pytest.raises(DBAPIError, match="statement timeout") as failure:
            async with door(caller.organization_id) as session:
                await session.fetch(SLEEP)
        assert is_database_away(failure.value)
    await database.ping()
    await database.close()


async def sleep_in_transaction(session: ReadSession) -> None:
    await session.fetch(SLEEP)


async def test_a_connection_that_is_lost_is_replaced(servers: DataDirectory, caller: Caller) -> None:
    async with sleep_in_database(servers, caller, sleep_in_transaction) as sleeping:
        await sleeping.terminate()
        with pytest.raises(DBAPIError) as failure:
            await sleeping.task
        assert is_database_away(failure.value)
        await sleeping.database.ping()


async def test_a_canceled_statement_gives_its_connection_back(servers: DataDirectory, caller: Caller) -> None:
    async with sleep_in_database(servers, caller, sleep_in_transaction) as sleeping:
        sleeping.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sleeping.task
        await sleeping.database.ping()
        await eventually(sleeping.find, lambda pids: not pids)
