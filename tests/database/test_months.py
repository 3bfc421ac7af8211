"""The months of the history: the worker creates them ahead of time, and drops those that nobody has rows in."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, date, datetime, timedelta
from time import perf_counter
from uuid import UUID, uuid4

import asyncpg
import pytest
import pytest_asyncio
from sqlalchemy.exc import DBAPIError
from sqlmodel import func, select
from switchboard.apps.embedded import DataDirectory
from switchboard.apps.worker.worker import list_repeated_jobs
from switchboard.foundation.database import Database, new_id
from switchboard.foundation.jobs import keep_months
from switchboard.migrations import upgrade

from tests.fixtures.servers import administrate

HISTORY = ("audit_entry", "delivery", "delivery_attempt", "event", "transcript_line", "transcript_search")
MONTHS = (
    "select inhparent::regclass::text as parent, relname from pg_inherits join pg_class on pg_class.oid = inhrelid"
    " where relkind = 'r'"
)
ADD_DELIVERY = """
insert into delivery (id, organization_id, created_at, target_id, target_kind, event_type, subject_id, body, status,
  attempts) values ($1, $2, now(), $2, 'endpoint', 'call.completed', $2, '{}', 'delivered', 1)
"""
COUNTED = "select sum(rows) from row_count_change where list = 'delivery'"
ADD_ATTEMPT = "insert into delivery_attempt values ($1, 1, $2, now(), 5, 200, null)"


@pytest_asyncio.fixture
async def history(servers: DataDirectory) -> AsyncIterator[str]:
    """The URL of a migrated database whose login is no administrator."""
    login = f"keeper_{uuid4().hex[:8]}"
    await administrate(
        servers,
        f"create role {login} login",
        f"create database {login} owner {login}",
        f"grant switchboard_tenant, switchboard_system, switchboard_search to {login}",
    )
    url = f"postgresql://{login}@/{login}?host={servers.sockets}"
    await upgrade(url)
    yield url
    await administrate(servers, f"drop database {login} with (force)", f"drop role {login}")


@pytest_asyncio.fixture
async def administrator(servers: DataDirectory, history: str) -> AsyncIterator[asyncpg.Connection]:
    """A connection that no row-level security restricts."""
    name = history.partition("//")[2].partition("@")[0]
    connection = await asyncpg.connect(host=str(servers.sockets), user="switchboard", database=name)
    yield connection
    await connection.close()


def find_month(distance: int) -> date:
    """Return the first day of the month that is so many months from this one."""
    today = datetime.now(UTC)
    months = today.year * 12 + today.month - 1 + distance
    return date(months // 12, months % 12 + 1, 1)


def make_id(distance: int) -> UUID:
    """Return an id of the tenth of a month."""
    moment = datetime(*find_month(distance).timetuple()[:3], tzinfo=UTC) + timedelta(days=9)
    return UUID(int=(int(moment.timestamp() * 1000) << 80) | (new_id().int & ((1 << 80) - 1)))


async def keep(url: str) -> None:
    database = Database(url)
    try:
        await keep_months(database)
    finally:
        await database.close()


async def add_delivery(administrator: asyncpg.Connection, distance: int) -> UUID:
    """Add a delivery of the tenth of a month, with an attempt."""
    delivery = make_id(distance)
    await administrator.execute(ADD_DELIVERY, delivery, uuid4())
    await administrator.execute(ADD_ATTEMPT, delivery, uuid4())
    return delivery


async def find_parts(administrator: asyncpg.Connection, delivery: UUID) -> list[str]:
    """Return the tables in which a delivery and its attempt are."""
    part = "select tableoid::regclass::text from"
    return [
        await administrator.fetchval(f"{part} {table} where {key} = $1", delivery)
        for table, key in (("delivery", "id"), ("delivery_attempt", "delivery_id"))
    ]


def name_parts(distance: int) -> list[str]:
    return [f"{table}_{find_month(distance):%Y_%m}" for table in ("delivery", "delivery_attempt")]


async def test_months_are_created_ahead(history: str, administrator: asyncpg.Connection) -> None:
    assert keep_months in [job for job, _ in list_repeated_jobs()]
    ahead = {f"{table}_{find_month(n):%Y_%m}" for table in HISTORY for n in range(3)}
    expected = ahead | {f"{table}_rest" for table in HISTORY}
    assert {row["relname"] for row in await administrator.fetch(MONTHS)} == expected
    next_month = f"event_{find_month(1):%Y_%m}"
    await administrator.execute(f"drop table {next_month}")
    await asyncio.gather(keep(history), keep(history))
    assert {row["relname"] for row in await administrator.fetch(MONTHS)} == expected
    delivery = await add_delivery(administrator, 2)
    assert await find_parts(administrator, delivery) == name_parts(2)


async def test_rows_that_came_before_their_month_stay_where_they_are(
    history: str, administrator: asyncpg.Connection
) -> None:
    await administrator.execute("; ".join(f"drop table {part}" for part in name_parts(0)))
    delivery = await add_delivery(administrator, 0)
    assert await find_parts(administrator, delivery) == ["delivery_rest", "delivery_attempt_rest"]
    await keep(history)
    assert await find_parts(administrator, delivery) == ["delivery_rest", "delivery_attempt_rest"]
    await administrator.execute("delete from delivery")
    await keep(history)
    delivery = await add_delivery(administrator, 0)
    assert await find_parts(administrator, delivery) == name_parts(0)
    assert await administrator.fetchval(COUNTED) == 1
    indexes = "select count(*) from pg_indexes where tablename = $1"
    first, fresh = [await administrator.fetchval(indexes, name_parts(distance)[0]) for distance in (1, 0)]
    assert first == fresh > 4


async def test_a_month_without_rows_is_dropped_a_month_after_its_end(
    history: str, administrator: asyncpg.Connection
) -> None:
    for table in ("delivery", "delivery_attempt"):
        for distance in (-4, -3, -1):
            await administrator.execute("select add_month($1, $2)", table, find_month(distance))
    kept, deleted, recent = [await add_delivery(administrator, distance) for distance in (-4, -3, -1)]
    assert await find_parts(administrator, deleted) == name_parts(-3)
    await administrator.execute("insert into delivery_due values ($1, $1, now(), $1, now(), true, null)", deleted)
    await administrator.execute("delete from delivery where id = any($1::uuid[])", [deleted, recent])
    assert await administrator.fetchval("select count(*) from delivery_due") == 0
    await administrator.execute("analyze delivery, delivery_attempt")
    await keep(history)
    tables = {row["relname"] for row in await administrator.fetch(MONTHS)}
    assert tables & {*name_parts(-4), *name_parts(-3), *name_parts(-1)} == {*name_parts(-4), *name_parts(-1)}
    assert await administrator.fetchval("select count(*) from delivery_attempt") == 1, (
        "attempts go with their deliveries"
    )
    assert await find_parts(administrator, kept) == name_parts(-4)
    assert not await administrator.fetchval("select to_regclass($1)", name_parts(-3)[0])


async def test_months_wait_for_readers_and_hold_nobody_up(history: str, administrator: asyncpg.Connection) -> None:
    await administrator.execute("select add_month('delivery', $1)", find_month(-3))
    old, _ = name_parts(-3)
    async with administrator.transaction():
        await administrator.execute("select from delivery")
        began = perf_counter()  # PostgreSQL waits for locks in real time.
        await keep(history)
        assert perf_counter() - began < 60
        assert await administrator.fetchval("select to_regclass($1)", old) == old
    await keep(history)
    assert await administrator.fetchval("select to_regclass($1)", old) is None


async def test_only_workers_may_keep_months(history: str) -> None:
    database = Database(history)
    with pytest.raises(DBAPIError, match="permission denied for function keep_months"):
        async with database.write(new_id()) as session:
            await session.exec(select(func.keep_months("delivery")))
    with pytest.raises(DBAPIError, match="permission denied for function add_month"):
        async with database.system() as session:
            await session.exec(select(func.add_month("delivery", find_month(9))))
    await database.close()
