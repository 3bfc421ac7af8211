"""Deletion by retention from large tables while calls are written: time of a batch, of the writers, and of a vacuum.

`BENCH_LINES` lines of transcripts, 25 for each call, over two years and a hundred organizations, of which the first has
a fifth. With `BENCH_DATABASE_URL` a database that is kept and filled only once: a hundred million lines take half an
hour.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from uuid import UUID

from sqlalchemy import text
from switchboard.apps.process_runtime import open_process_runtime
from switchboard.foundation.database import Database, create_engine, now
from switchboard.foundation.settings import Settings
from switchboard.migrations import upgrade
from switchboard.resources.calls.models import Call, TranscriptLine
from switchboard.resources.calls.recordings.archive import RecordingArchive
from switchboard.resources.calls.retention import CallDeleter, TranscriptDeleter
from switchboard.resources.identity.retention import RetentionDeleter
from switchboard.runtime import Runtime

from bench.embedded_server import run_with_servers

LINES = int(os.environ.get("BENCH_LINES", "10000000"))
URL = os.environ.get("BENCH_DATABASE_URL")
LINES_OF_A_CALL, BATCHES, WRITERS, QUIET_SECONDS = 25, 200, 4, 15.0
NO_REDIS = "redis://127.0.0.1:1/0"
"""Nothing is woken."""
LARGE = "md5('organization0')::uuid"

FILL = (
    "set session_replication_role = replica",
    """
    create function uuidv7_at(moment timestamptz, number bigint) returns uuid language sql immutable as $$
      select (lpad(to_hex((extract(epoch from moment) * 1000)::bigint), 12, '0') || '7' || substr(hash, 1, 3) || '8' ||
        substr(hash, 4, 15))::uuid from (select md5(number::text) as hash) as hashed
    $$
    """,
    """
    insert into organization (id, name, timezone, policy, allows_support, created_at)
    select md5('organization' || n)::uuid, 'Organization ' || n, 'UTC', '{}', true, now()
    from generate_series(0, 99) as n
    """,
    f"""
    insert into call (id, organization_id, created_at, direction, status, from_number, to_number, duration_seconds,
      cost_total, cost_parts, user_sentiment, extracted_data, call_metadata, latencies, served_by, provider_failures,
      carrier, carrier_call_id, has_recording, recording_format, has_transcript, voicemail, cause_depth,
      analysis_attempts, started_at, ended_at)
    select uuidv7_at(moment, n), md5('organization' || case when n % 5 = 0 then 0 else n % 100 end)::uuid, moment,
      'outbound', 'completed', '+15550100200', '+1555' || lpad((n % 1000000)::text, 7, '0'), 60, 0.01, '{{}}',
      'unknown', '{{}}', '{{}}', '[]', '{{}}', '[]', 'loopback', n::text, false, 'wav', true, false, 0, 1, moment,
      moment + interval '1 minute'
    from (
      select n, now() - n * interval '730 days' / {LINES // LINES_OF_A_CALL} as moment
      from generate_series({LINES // LINES_OF_A_CALL}, 1, -1) as n
    ) as calls
    """,  # noqa: S608
    f"""
    insert into transcript_line (organization_id, call_id, position, role, content, timestamp_ms,
      ended_ms, interrupted, by_person, backchannel, pauses, unfinished)
    select organization_id, call.id, position, 'user', 'We are open from nine to five on weekdays.', 0, 0, false, false,
      false, '[]', false
    from call cross join generate_series(0, {LINES_OF_A_CALL - 1}) as position
    """,  # noqa: S608
    "set session_replication_role = default",
    "vacuum (freeze, analyze)",
)


async def fill(url: str) -> None:
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    async with engine.connect() as connection:
        if not (await connection.execute(text("select count(*) from organization"))).scalar():
            for statement in FILL:
                await connection.exec_driver_sql(statement)
    await engine.dispose()


async def write_calls(database: Database, organization_id: UUID, latencies: list[float], stop: asyncio.Event) -> None:
    """Write calls with two lines each, one after the other, and record the seconds that each takes."""
    ends = {"from_number": "+15550100001", "to_number": "+15550100002"}
    while not stop.is_set():
        began = time.monotonic()
        async with database.write(organization_id) as session:
            call = Call(organization_id=organization_id, direction="inbound", carrier="loopback", **ends)
            session.add(call)
            await session.flush()
            for position in range(2):
                line = {"role": "user", "content": "Hello.", "timestamp_ms": 0, "ended_ms": 0, "position": position}
                session.add(TranscriptLine(organization_id=organization_id, call_id=call.id, **line))
        latencies.append(time.monotonic() - began)


@asynccontextmanager
async def measure_writers(database: Database, organization_id: UUID, name: str) -> AsyncIterator[None]:
    latencies, stop = list[float](), asyncio.Event()
    writers = [asyncio.create_task(write_calls(database, organization_id, latencies, stop)) for _ in range(WRITERS)]
    yield
    stop.set()
    await asyncio.gather(*writers)
    report(f"writers, {name}", latencies)


async def delete_batches(deleter: RetentionDeleter, organization_id: UUID, cutoff: datetime) -> list[float]:
    seconds = []
    for _ in range(BATCHES):
        began = time.monotonic()
        count = await deleter.delete_batch(organization_id, cutoff)
        seconds.append(time.monotonic() - began)
        if count < deleter.most:
            break
    return seconds


def report(name: str, seconds: list[float]) -> None:
    ordered = sorted(seconds)
    p50, p99, longest = (1000 * part for part in (median(ordered), ordered[len(ordered) * 99 // 100], ordered[-1]))
    print(f"| {name} | {len(ordered)} | {p50:.1f} | {p99:.1f} | {longest:.1f} |")


async def measure(url: str, folder: Path) -> None:
    await upgrade(url)
    await fill(url)
    async with open_process_runtime(Settings(data_dir=folder), database_url=url, redis_url=NO_REDIS) as runtime:
        await measure_deletions(runtime, url)


async def measure_deletions(runtime: Runtime, url: str) -> None:
    database = runtime.database
    archive = RecordingArchive(runtime.settings, database, runtime.recordings)
    async with database.system() as session:
        large = (await (await session.connection()).exec_driver_sql(f"select {LARGE}")).scalar_one()
    cutoff = now() - timedelta(days=365)
    print("| | number | p50 ms | p99 ms | longest ms |\n| --- | --- | --- | --- | --- |")
    async with measure_writers(database, large, "alone"):
        await asyncio.sleep(QUIET_SECONDS)
    for deleter in (TranscriptDeleter(database), CallDeleter(database, archive=archive)):
        async with measure_writers(database, large, f"while {deleter.data} are deleted"):
            seconds = await delete_batches(deleter, large, cutoff)
        report(f"{deleter.most} {deleter.data}", seconds)
    async with measure_writers(database, large, "during a vacuum"):
        began = time.monotonic()
        engine = create_engine(url, isolation_level="AUTOCOMMIT")
        async with engine.connect() as connection:
            await connection.exec_driver_sql("vacuum transcript_line")
        await engine.dispose()
    report("vacuum of transcript_line", [time.monotonic() - began])


def run() -> None:
    """Measure over the embedded server, or the database of `BENCH_DATABASE_URL`."""
    if URL is None:
        return run_with_servers(lambda directory: measure(directory.database_url, directory.path))
    with TemporaryDirectory() as folder:
        asyncio.run(measure(URL, Path(folder)))
    return None
