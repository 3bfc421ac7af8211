"""Readers of the history: the same statements over one table, and over `BENCH_MONTHS` months.

A hundred organizations have `BENCH_ROWS` deliveries with an attempt each, as many entries of the audit log, and a
transcript of ten lines for every tenth of them, spread evenly over the months. All of them are first in the table of
what is in no month, which is one table, and then in their months. Each statement is prepared once and runs in a
transaction of its own, for another organization each time.
"""

import os
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from random import Random
from statistics import median
from typing import Any, Final
from uuid import UUID

from sqlalchemy import text
from sqlmodel import col
from switchboard.apps.embedded import DataDirectory
from switchboard.apps.process_runtime import open_process_runtime
from switchboard.foundation.database import Database, ReadSession, create_engine, new_id, now
from switchboard.foundation.encryption.content import Content
from switchboard.foundation.events.models import Delivery
from switchboard.foundation.settings import Settings
from switchboard.foundation.web.paging import select_after
from switchboard.migrations import upgrade
from switchboard.resources.calls import queries as calls
from switchboard.resources.calls.models import Call
from switchboard.resources.calls.schemas import CallQuery
from switchboard.resources.deliveries.queries import ENDED_DELIVERIES
from switchboard.resources.identity.queries import select_audit_entries
from switchboard.resources.webhooks.queries import select_deliveries

from bench.embedded_server import run_with_servers

MONTHS: Final = int(os.environ.get("BENCH_MONTHS", "60"))
ROWS: Final = int(os.environ.get("BENCH_ROWS", "200000"))
RUNS, WARM_RUNS, ORGANIZATIONS = 300, 20, 100
NO_REDIS: Final = "redis://127.0.0.1:1/0"
PREPARE: Final = (
    """
    create function uuidv7_at(moment timestamptz, number bigint) returns uuid language sql immutable as $$
      select (lpad(to_hex((extract(epoch from moment) * 1000)::bigint), 12, '0') || '7' || substr(hash, 1, 3) || '8' ||
        substr(hash, 4, 15))::uuid from (select md5(number::text) as hash) as hashed
    $$
    """,
    f"""
    create table sample as select uuidv7_at(moment, n) as id, md5('organization' || n % {ORGANIZATIONS})::uuid as owner,
      moment, n from (
        select n, now() - interval '3 months' - n * interval '{MONTHS - 4} months' / {ROWS} as moment
        from generate_series(1, {ROWS}) as n
      ) as moments
    """,  # noqa: S608
    f"""
    insert into organization (id, name, timezone, policy, allows_support, created_at)
    select md5('organization' || n)::uuid, 'Organization ' || n, 'UTC', '{{}}', true, now()
    from generate_series(0, {ORGANIZATIONS - 1}) as n
    """,  # noqa: S608
    """
    insert into call (id, organization_id, created_at, direction, status, from_number, to_number, duration_seconds,
      cost_total, cost_parts, user_sentiment, extracted_data, call_metadata, latencies, served_by, provider_failures,
      carrier, has_recording, recording_format, has_transcript, voicemail, cause_depth, analysis_attempts, ended_at)
    select id, owner, moment, 'outbound', 'completed', '+15550100200', '+15550100300', 60, 0.01, '{}', 'unknown', '{}',
      '{}', '[]', '{}', '[]', 'loopback', false, 'wav', true, false, 0, 1, moment from sample where n / 100 % 10 = 0
    """,
)
HISTORY: Final = "audit_entry", "delivery", "delivery_attempt", "event", "transcript_line", "transcript_search"
ADD_MONTHS: Final = (
    f"truncate {', '.join(HISTORY)}",
    f"""
    select add_month(parent, month::date) from unnest('{{{", ".join(HISTORY)}}}'::name[]) as parent, generate_series(
      date_trunc('month', now()) - interval '{MONTHS - 3} months', now(), '1 month') as month
    """,  # noqa: S608
)
FILL: Final = (
    "set session_replication_role = replica",
    """
    insert into delivery (id, organization_id, created_at, target_id, target_kind, event_type, subject_id, body, status,
      attempts) select id, owner, moment, owner, 'endpoint', 'call.completed', owner, repeat('x', 400), 'delivered', 1
    from sample
    """,
    "insert into delivery_attempt select id, 1, owner, moment, 20, 200, null from sample",
    "insert into audit_entry select id, owner, moment, 'operator', 'agent.updated', id::text from sample",
    """
    insert into transcript_line (organization_id, call_id, position, role, content, timestamp_ms, ended_ms, interrupted,
      by_person, backchannel, pauses, unfinished)
    select owner, id, position, 'user', 'I am calling about my order ' || n % 5000, 0, 0, false, false, false, '[]',
      false
    from sample, generate_series(0, 9) as position where n / 100 % 10 = 0
    """,
    """
    insert into transcript_search select owner, id, collect_transcript_words(owner, id) from sample
    where n / 100 % 10 = 0
    """,
    "set session_replication_role = default",
    "vacuum analyze",
)


async def read_page(session: ReadSession, number: int) -> None:
    await session.exec(select_after(select_deliveries(session), None).limit(20))


async def read_failures(session: ReadSession, number: int) -> None:
    rows = select_deliveries(session, target_id=session.organization_id)
    await session.exec(select_after(rows.where(col(Delivery.status) == "failed"), None).limit(20))


async def read_audit_log(session: ReadSession, number: int) -> None:
    await session.exec(select_after(select_audit_entries(session), None).limit(50))


async def search_words(session: ReadSession, number: int) -> None:
    await calls.search_calls(session, CallQuery.model_validate({}), f"order {number * 7 % 5000}")


async def write_deliveries(session: ReadSession, number: int) -> None:
    owner = session.organization_id
    for _ in range(20):
        row = Delivery(
            id=new_id(), organization_id=owner, target_id=owner, target_kind="endpoint", event_type="call.completed",
            subject_id=owner, body=Content(""), status="delivered",
        )  # fmt: skip
        session.add(row)


class Readers:
    """Statements about rows that are chosen at random."""

    def __init__(self, rows: list[tuple[UUID, UUID]], found: dict[UUID, list[Call]]) -> None:
        self._rows, self._calls = rows, found

    async def read_delivery(self, session: ReadSession, number: int) -> None:
        owned = [row for row, owner in self._rows if owner == session.organization_id]
        await session.find(Delivery, owned[number % len(owned)])

    async def read_transcript(self, session: ReadSession, number: int) -> None:
        owned = self._calls[session.organization_id]
        await calls.list_lines(session, [owned[number % len(owned)]])


async def time_each(
    database: Database, owners: list[UUID], read: Callable[[Any, int], Awaitable[None]], *, runs: int = RUNS
) -> float:
    """Return the median in milliseconds."""
    seconds = []
    for number in range(WARM_RUNS + runs):
        async with database.write(owners[number % len(owners)]) as session:
            began = time.perf_counter()
            await read(session, number)
            await session.flush()
            seconds.append(time.perf_counter() - began)
    return 1000 * median(seconds[WARM_RUNS:])


async def time_retention(database: Database, owners: list[UUID]) -> float:
    """Return the time in milliseconds in which all organizations are asked for expired deliveries; none has any."""
    seconds = []
    for _ in range(10):
        cutoffs = dict.fromkeys(owners, now() - timedelta(days=365 * 90))
        async with database.system() as session:
            began = time.perf_counter()
            await ENDED_DELIVERIES.find_organizations(session, cutoffs)
            seconds.append(time.perf_counter() - began)
    return 1000 * median(seconds)


async def measure_all(database: Database, readers: Readers, owners: list[UUID]) -> dict[str, float]:
    statements: dict[str, Callable[[Any, int], Awaitable[None]]] = {
        "one delivery by its id": readers.read_delivery,
        "first page of an organization's deliveries": read_page,
        "first page of an endpoint's failed deliveries, of which there are none": read_failures,
        "first page of the audit log": read_audit_log,
        "transcript of a call": readers.read_transcript,
        "calls with two words, by their transcripts": search_words,
        "20 deliveries, written": write_deliveries,
    }
    measured = {name: await time_each(database, owners, read) for name, read in statements.items()}
    return measured | {f"{ORGANIZATIONS} organizations asked for expired rows": await time_retention(database, owners)}


async def measure(directory: DataDirectory) -> None:
    await upgrade(directory.database_url)
    engine = create_engine(directory.database_url, isolation_level="AUTOCOMMIT")
    async with engine.connect() as connection:
        for statement in (*PREPARE, *FILL):
            await connection.exec_driver_sql(statement)
        rows = [(row.id, row.owner) for row in await connection.execute(text("select id, owner from sample"))]
    random = Random(1)
    owners = random.sample(sorted({owner for _, owner in rows}), ORGANIZATIONS)
    settings = Settings(data_dir=directory.path)
    async with open_process_runtime(settings, database_url=directory.database_url, redis_url=NO_REDIS) as runtime:
        found: dict[UUID, list[Call]] = {}
        for owner in owners:
            async with runtime.database.read(owner) as session:
                found[owner] = list(await session.exec(session.select(Call).limit(50)))
        readers = Readers(random.sample(rows, ROWS // 20), found)
        whole = await measure_all(runtime.database, readers, owners)
        async with engine.connect() as connection:
            for statement in (*ADD_MONTHS, *FILL):
                await connection.exec_driver_sql(statement)
        apart = await measure_all(runtime.database, readers, owners)
    await engine.dispose()
    print(f"| median, ms | one table | {MONTHS} months |\n| --- | --- | --- |")
    for name, milliseconds in whole.items():
        print(f"| {name} | {milliseconds:.2f} | {apart[name]:.2f} |")


def run() -> None:
    """Measure over the embedded server."""
    run_with_servers(measure)
