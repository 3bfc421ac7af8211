"""Time and processor time of an organization's move: 100,000 contacts (`BENCH_CONTACTS`), 10,000 calls with transcripts
and recordings (`BENCH_CALLS`), and 10,000 passages of knowledge (`BENCH_PASSAGES`).

Both installations are on one PostgreSQL server, each with a database, keys, and recordings of its own. A recording has
64 KiB. The check at the end compares public lists, their totals, and searches.

The last table is of the check that an organization may be written: transactions with one row, with the check each five
seconds and without it, in turns; medians of rounds of wall time, and of processor time of the program and PostgreSQL.
"""

import asyncio
import os
import random
import resource
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from math import inf
from pathlib import Path
from statistics import median
from typing import Final
from unittest.mock import patch
from uuid import UUID

from pydantic import SecretStr
from sqlalchemy import make_url, text
from sqlalchemy.ext.asyncio import create_async_engine
from switchboard.apps.backups.archive import verify_archive
from switchboard.apps.backups.freezing import freeze
from switchboard.apps.backups.organization_export import export_organization
from switchboard.apps.backups.organization_import import (
    check_organization,
    load_organization,
    open_organization_archive,
)
from switchboard.apps.backups.recordings import BackupRecordings
from switchboard.apps.embedded import DataDirectory
from switchboard.apps.process_runtime import open_process_runtime
from switchboard.apps.server import app
from switchboard.apps.tenant_files.defaults import list_embedded_providers
from switchboard.engine.providers.configuration import configure_providers
from switchboard.foundation.database import Database
from switchboard.foundation.database import session as doors
from switchboard.foundation.observability import logs
from switchboard.foundation.settings import Settings
from switchboard.foundation.web.principal import SCOPES
from switchboard.migrations import upgrade
from switchboard.resources.do_not_call.models import DoNotCallEntry
from switchboard.resources.identity import service as identity
from switchboard.resources.knowledge_bases.indexing import DocumentIndexer, reindex_knowledge_bases
from switchboard.resources.stored_files import open_recording_store
from switchboard.runtime import Runtime

from bench._counters import cpu_seconds, list_processes
from bench.call_filters import ADD_CALLS, ADD_LINES, ADD_WORDS
from bench.embedded_server import run_with_servers

CONTACTS: Final = int(os.environ.get("BENCH_CONTACTS", "100000"))
CALLS: Final = int(os.environ.get("BENCH_CALLS", "10000"))
PASSAGES: Final = int(os.environ.get("BENCH_PASSAGES", "10000"))
EACH: Final = 50
"""Passages of a document."""
RECORDING: Final = os.urandom(64 * 1024)
ROUNDS: Final = 80
TRANSACTIONS: Final = 40
SETTLE_SECONDS: Final = 1.0
"""Time in which PostgreSQL's processes of closed connections end."""
TICKS: Final = os.sysconf("SC_CLK_TCK")
ADD_CONTACTS = """
insert into contact (id, organization_id, created_at, phone_number, name, notes, is_favorite, updated_at)
select gen_random_uuid(), :organization, now(), '+1' || (2000000000 + g), 'Ada ' || g, 'ordered ' || md5(g::text),
  false, now() from generate_series(1, :count) as g
"""
ADD_CONTACT_SEARCH = """
insert into contact_search (id, organization_id, created_at, content, notes)
select id, organization_id, created_at, lower(name) || ' ' || phone_number, notes from contact
where organization_id = :organization
"""
ADD_BASE = """
insert into knowledge_base (id, organization_id, created_at, name, description, updated_at)
values (:organization, :organization, now(), 'Base', '', now())
"""
ADD_DOCUMENTS = """
insert into knowledge_document (id, organization_id, created_at, knowledge_base_id, filename, content_type, file_size,
  chunk_count, status, attempts)
select gen_random_uuid(), :organization, now(), :organization, g || '.md', 'text/markdown', 1, :each, 'ready', 0
from generate_series(1, :count / :each) as g
"""
ADD_TEXTS = """
insert into knowledge_text (id, organization_id, created_at, content)
select id, organization_id, created_at, (select string_agg('# Question ' || p || ' of ' || filename || E'\\n\\n'
  || 'The answer to this question is ' || md5(filename || p) || ', which everybody here knows by heart.', E'\\n\\n')
  from generate_series(1, :each) as p)
from knowledge_document where organization_id = :organization
"""
RECORD_CALLS = "update call set has_recording = true where organization_id = :organization"
LISTS: Final = ("contacts", "calls", "agents", "knowledge-bases", "contacts?search=ada%20777", "calls?transcript=order")


def read_processor_seconds(postmaster: int) -> tuple[float, float]:
    """Return the processor seconds of this process, and of PostgreSQL with its ended processes."""
    used = 0
    for pid in list_processes(postmaster):
        with suppress(FileNotFoundError):  # it has just ended
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            used += sum(map(int, fields[11:15] if pid == postmaster else fields[11:13]))
    return time.process_time() + resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime, used / TICKS


@asynccontextmanager
async def measure_part(name: str, units: int, postmaster: int) -> AsyncIterator[None]:
    """Print the seconds of the block, and its processor time for a unit."""
    await asyncio.sleep(SETTLE_SECONDS)
    began, before = time.perf_counter(), read_processor_seconds(postmaster)
    yield
    seconds = time.perf_counter() - began
    await asyncio.sleep(SETTLE_SECONDS)
    after = read_processor_seconds(postmaster)
    program, database = ((late - early) * 1000 / units for early, late in zip(before, after, strict=True))
    print(f"| {name} | {units:,} | {seconds:,.1f} | {program:.3f} | {database:.3f} |", flush=True)


async def fill(database_url: str, organization_id: UUID, recordings: BackupRecordings) -> None:
    """Fill the organization."""
    engine = create_async_engine(make_url(database_url).set(drivername="postgresql+asyncpg"))
    values = {":organization": f"'{organization_id}'", ":each": str(EACH), ":first": "1", ":last": str(CALLS)}
    contacts = {**values, ":count": str(CONTACTS)}
    passages = {**values, ":count": str(PASSAGES)}
    calls = ((ADD_CALLS, values), (ADD_LINES, values), (ADD_WORDS, values), (RECORD_CALLS, values))
    people = (ADD_CONTACTS, contacts), (ADD_CONTACT_SEARCH, contacts)
    knowledge = (ADD_BASE, passages), (ADD_DOCUMENTS, passages), (ADD_TEXTS, passages)
    async with engine.begin() as connection:
        for statement, replaced in (*calls, *people, *knowledge):
            filled = statement
            for name, value in replaced.items():
                filled = filled.replace(name, value)
            await connection.exec_driver_sql(filled)
        keys = (
            await connection.execute(
                text("select organization_id || '/' || id || '.wav' from call where organization_id = :id"),
                {"id": organization_id},
            )
        ).scalars()
        for key in keys:
            await recordings.store.put(key, RECORDING, "audio/wav")
    await engine.dispose()


async def read_lists(runtime: Runtime, key: str) -> list[object]:
    """Read lists, with their totals and searches."""
    client, headers = app.create_app(runtime).test_client(), {"Authorization": f"Bearer {key}"}
    found: list[object] = []
    for path in LISTS:
        page = await (await client.get(f"/v1/{path}", headers=headers)).get_json()
        found.append([{**item, "updated_at": None, "recording_url": None} for item in page["items"]] + [page["total"]])
    return found


def report(_line: str) -> None:
    """Report nothing."""


async def move(directory: DataDirectory, sides: list[tuple[Settings, str]], organization_id: UUID) -> None:
    """Move the organization, and print the cost of each part."""
    (source, source_url), (target, target_url) = sides
    postmaster = int((directory.path / "postgres" / "postmaster.pid").read_text().split()[0])
    file, rows = directory.path / "organization.tar", CONTACTS * 2 + CALLS * 6
    stores = [BackupRecordings(open_recording_store(settings)) for settings in (source, target)]
    print("| part | units | seconds | processor ms for a unit, program | PostgreSQL |\n| --- | --- | --- | --- | --- |")
    async with (
        open_runtime(directory, source, source_url) as runtime,
        measure_part("export, rows", rows, postmaster),
        freeze(source_url, organization_id, report) as frozen,
    ):
        await export_organization(file, frozen, source_url, runtime.keyring, stores[0], report=report)
    async with open_runtime(directory, target, target_url) as runtime:
        archive = open_organization_archive(file)
        async with measure_part("verification, MB", file.stat().st_size // 1_000_000, postmaster):
            summary = verify_archive(file)
        await check_organization(archive, target_url, runtime.registry)
        async with measure_part("import, rows", rows, postmaster):
            await load_organization(archive, summary, target_url, runtime.keyring, stores[1], report=report)
        async with measure_part("vectors, passages", PASSAGES, postmaster):
            results = await reindex_knowledge_bases(
                DocumentIndexer(runtime.database, runtime.providers), organization_id
            )
        if any(result.error is not None for result in results):
            raise SystemExit("the vectors were not rebuilt")
    print(
        f"\nThe archive has {file.stat().st_size:,} bytes, {sum(summary.rows.values()):,} rows, and "
        f"{summary.recordings:,} recordings.",
        flush=True,
    )


@asynccontextmanager
async def open_runtime(directory: DataDirectory, settings: Settings, url: str) -> AsyncIterator[Runtime]:
    """Open a process of an installation."""
    async with open_process_runtime(settings, database_url=url, redis_url=directory.redis_url) as runtime:
        yield runtime


async def measure_door(database_url: str, organization_id: UUID) -> None:
    """Print the cost of the check that an organization may be written: with it as it is, and never again after the
    first one.
    """
    database = Database(database_url, pool_size=1)
    async with database.system() as session:
        pid = (await session.fetch(text("select pg_backend_pid() as pid")))[0].pid
    samples: dict[float, list[tuple[float, float]]] = {doors.CHECK_SECONDS: [], inf: []}
    for _ in range(ROUNDS):
        for seconds in random.sample(list(samples), len(samples)):
            with patch.object(doors, "CHECK_SECONDS", seconds):
                wall, processor = time.perf_counter(), cpu_seconds(pid) + time.process_time()
                for _ in range(TRANSACTIONS):
                    async with database.write(organization_id) as session:
                        number = f"+1{random.randrange(10**12)}"
                        entry = DoNotCallEntry(organization_id=organization_id, phone_number=number, source="api")
                        session.add(entry)
                used = cpu_seconds(pid) + time.process_time() - processor
                samples[seconds].append((time.perf_counter() - wall, used))
    await database.close()
    print("\n| check | µs for a transaction with one row | of the processor |\n| --- | --- | --- |")
    for seconds, measured in samples.items():
        wall, processor = (median(each) * 1e6 / TRANSACTIONS for each in zip(*measured, strict=True))
        print(f"| each {seconds:g} s | {wall:,.0f} | {processor:,.0f} |")


async def measure(directory: DataDirectory) -> None:
    """Fill one installation, move its organization, and compare."""
    engine = create_async_engine(
        make_url(directory.database_url).set(drivername="postgresql+asyncpg"), isolation_level="AUTOCOMMIT"
    )
    async with engine.connect() as connection:
        await connection.exec_driver_sql("create database target")
    await engine.dispose()
    sides = []
    for name in ("source", "target"):
        url = make_url(directory.database_url)
        url = url if name == "source" else url.set(database="target")
        settings = Settings(data_dir=directory.path / name, secret_keys=[SecretStr(f"the key of the {name}" * 2)])
        await upgrade(url.render_as_string())
        sides.append((settings, url.render_as_string()))
    (source, source_url), (target, target_url) = sides
    async with open_runtime(directory, source, source_url) as runtime:
        async with runtime.database.system() as session:
            organization = identity.create_organization(session, name="Bench")
            async with session.narrow(organization.id) as tenant:
                _, key = await identity.create_api_key(tenant, name="bench", scopes=list(SCOPES))
                providers = list_embedded_providers(runtime.registry)
                await configure_providers(tenant, runtime.registry, runtime.keyring, providers)
        await fill(source_url, organization.id, BackupRecordings(open_recording_store(source)))
        before = await read_lists(runtime, key)
    await move(directory, sides, organization.id)
    async with open_runtime(directory, target, target_url) as runtime:
        if await read_lists(runtime, key) != before:
            raise SystemExit("the lists differ")
    print("The lists of both installations are the same.")
    await measure_door(target_url, organization.id)


def run() -> None:
    """Print the table."""
    logs.configure_logging("ERROR")
    run_with_servers(measure)
