"""Backups by an ordinary login, and what backup and restore refuse."""

import asyncio
import io
import json
import os
import subprocess
import tarfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg
import pytest
import pytest_asyncio
from pydantic import SecretStr
from sqlalchemy.engine import make_url
from switchboard.apps.backups.archive import read_header, verify_archive
from switchboard.apps.backups.backup import write_backup
from switchboard.apps.backups.recordings import BackupRecordings
from switchboard.apps.backups.restore import check_target, load_backup
from switchboard.apps.embedded import DataDirectory
from switchboard.apps.embedded import servers as embedded_servers
from switchboard.apps.process_runtime import open_process_runtime
from switchboard.apps.server import app
from switchboard.foundation.keyring import KeyRing
from switchboard.foundation.settings import Settings
from switchboard.migrations import upgrade
from switchboard.plugin_sdk.registry import Registry
from switchboard.resources.stored_files import open_recording_store
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller
from tests.fixtures.command_line import CommandResult, Operator
from tests.fixtures.installations import LOGIN, create_caller
from tests.fixtures.next_version import REVISION, become_next_version
from tests.fixtures.secret_values import create_secret_values
from tests.fixtures.servers import REPOSITORY, SECRET_KEY, Databases, administrate
from tests.fixtures.table_rows import count_table_rows

BACKUP_LOGIN = "switchboard_backup"
WRITERS = 4
ANOTHER_KEY = "another key: 32 characters or more"


@asynccontextmanager
async def open_runtime(servers: DataDirectory, database_url: str, folder: Path) -> AsyncIterator[Runtime]:
    """Open a process over a database of its own."""
    settings = Settings(data_dir=folder, secret_keys=[SecretStr(SECRET_KEY)])
    async with open_process_runtime(
        settings, database_url=database_url, redis_url=f"{servers.redis_url}?db=1", registry=Registry.discover()
    ) as runtime:
        yield runtime


async def run(operator: Operator, database_url: str, *arguments: str) -> CommandResult:
    """Run a command against a database."""
    operator.environment["SWITCHBOARD_DATABASE_URL"] = database_url
    return await asyncio.to_thread(operator.run, *arguments)


async def ask(operator: Operator, database_url: str, *arguments: str) -> dict[str, Any]:
    """Run a command against a database and return its JSON."""
    result = await run(operator, database_url, *arguments, "--json")
    assert result.returncode == 0, result.stderr
    document: dict[str, Any] = json.loads(result.stdout)
    return document


@pytest_asyncio.fixture
async def source(login: str, databases: Databases) -> str:
    """A migrated database of the ordinary login."""
    url = await databases.create(login)
    await upgrade(url)
    return url


async def test_an_ordinary_login_backs_up_every_row(
    servers: DataDirectory, source: str, databases: Databases, operator: Operator, tmp_path: Path
) -> None:
    async with open_runtime(servers, source, tmp_path / "data") as runtime:
        caller = await create_caller(runtime)
        await create_secret_values(caller, "https://example.com/hook")
        assert (await caller.post("/v1/contacts", {"phone_number": "+15550100001", "name": "Ada\n\\N"})).status == 201
    file = tmp_path / "backup.tar"
    counted = await count_table_rows(source)
    result = await ask(operator, source, "backup", str(file))
    assert result == {"file": str(file), "rows": result["rows"], "recordings": 0, "bytes": file.stat().st_size}
    assert file.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.glob(".backup*")) == []
    target = await databases.create(LOGIN)
    assert (await ask(operator, target, "restore", str(file))) == result
    assert await count_table_rows(target) == counted
    async with open_runtime(servers, target, tmp_path / "data") as runtime:
        again = Caller(caller.organization_id, caller.key_id, caller.key, app.create_app(runtime).test_client())
        assert (await again.get("/v1/contacts")).json == (await again.get("/v1/contacts?search=Ada")).json
        assert (await again.post("/v1/contacts", {"phone_number": "+15550100002"})).status == 201
        assert (await again.get("/v1/contacts")).json["total"] == 2


async def test_the_owner_of_the_tables_sees_rows_only_for_a_backup(
    servers: DataDirectory, source: str, tmp_path: Path
) -> None:
    async with open_runtime(servers, source, tmp_path / "data") as runtime:
        caller = await create_caller(runtime)
        assert (await caller.post("/v1/contacts", {"phone_number": "+15550100001"})).status == 201
    connection = await asyncpg.connect(source)
    assert await connection.fetchval("select count(*) from contact") == 0
    async with connection.transaction():
        await connection.execute("set local app.backup = 'on'")
        assert await connection.fetchval("select count(*) from contact") == 1
        assert await connection.execute("delete from contact") == "DELETE 0"
        await connection.execute("set local role switchboard_tenant")
        assert await connection.fetchval("select count(*) from contact") == 0
    tables = await connection.fetch(
        "select relname from pg_class where relforcerowsecurity and not exists"
        " (select from pg_policy where polrelid = pg_class.oid and polname = 'backup')"
    )
    sequences = await connection.fetch("select sequencename from pg_sequences where schemaname = 'public'")
    await connection.close()
    assert tables == []
    assert sequences == [], "a backup has the rows of tables, and not the values of sequences"


async def test_a_backup_is_one_snapshot_of_a_serving_platform(
    servers: DataDirectory, source: str, databases: Databases, operator: Operator, tmp_path: Path
) -> None:
    file, target, finished = tmp_path / "backup.tar", await databases.create(LOGIN), asyncio.Event()
    async with open_runtime(servers, source, tmp_path / "data") as runtime:
        caller = await create_caller(runtime)

        async def write(writer: int) -> int:
            count = 0
            while not finished.is_set():
                number = f"+1555{writer}{count:06d}"
                assert (await caller.post("/v1/contacts", {"phone_number": number})).status in (201, 429)
                count += 1
            return count

        writers = [asyncio.create_task(write(writer)) for writer in range(WRITERS)]
        await ask(operator, source, "backup", str(file))
        finished.set()
        assert min(await asyncio.gather(*writers)) > 0
    await ask(operator, target, "restore", str(file))
    counted = await count_table_rows(target)
    assert counted["contact"] == counted["contact_search"]
    async with open_runtime(servers, target, tmp_path / "data") as runtime:
        again = Caller(caller.organization_id, caller.key_id, caller.key, app.create_app(runtime).test_client())
        assert (await again.get("/v1/contacts?limit=1")).json["total"] == counted["contact"]


async def test_an_older_schema_is_restored_and_migrated(databases: Databases, tmp_path: Path) -> None:
    source, target, file = await databases.create(), await databases.create(), tmp_path / "backup.tar"
    await upgrade(source)
    connection = await asyncpg.connect(source)
    await connection.execute(
        "insert into organization (id, name, slug, timezone, policy, created_at, allows_support)"
        " values (gen_random_uuid(), 'Older', 'older', 'UTC', '{}', now(), true);"
        "insert into do_not_call_entry (id, organization_id, created_at, phone_number, source, note)"
        " select gen_random_uuid(), id, now(), '+15550100001', 'api', '' from organization;"
        "select add_month('event', '2024-03-01');"
        "insert into event (id, organization_id, created_at, name, data, occurred_at, depth, triggered)"
        " select lowest_id('2024-03-15'), id, now(), 'call.completed', '{}', now(), 0, '{}' from organization"
    )
    await connection.close()
    recordings = BackupRecordings(open_recording_store(Settings(data_dir=tmp_path / "data")))
    with become_next_version(tmp_path, 'op.execute("alter table do_not_call_entry add origin text default 1")'):
        written = await write_backup(file, source, recordings, report=print)
        assert written.rows == 4  # and one of row_count_change
        header = read_header(file)
        await check_target(header, target, KeyRing([SECRET_KEY]).fingerprints)
        await load_backup(file, header, verify_archive(file), target, recordings, report=print)
    connection = await asyncpg.connect(target)
    assert await connection.fetchval("select array_agg(origin) from do_not_call_entry") == ["1"]
    assert await connection.fetchval("select tableoid::regclass::text from event") == "event_2024_03"
    assert await connection.fetchval("select version_num from alembic_version") == REVISION
    await connection.close()


@pytest_asyncio.fixture
async def file(servers: DataDirectory, source: str, operator: Operator, tmp_path: Path) -> Path:
    """A backup of an organization with secrets."""
    async with open_runtime(servers, source, tmp_path / "data") as runtime:
        await create_caller(runtime)
    path = tmp_path / "backup.tar"
    await ask(operator, source, "backup", str(path))
    return path


async def test_damaged_archives_are_refused(
    file: Path, databases: Databases, operator: Operator, tmp_path: Path
) -> None:
    whole, target = file.read_bytes(), await databases.create(LOGIN)
    middle = whole.index(b"tables/organization/") + 700
    with tarfile.open(file) as tar:
        members = tar.getmembers()
    damages = {
        "cut short": whole[: members[-1].offset],
        "damaged": whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :],
        "not a backup": _make_tar("readme.txt"),
        "was cut short": whole[:300],
    }
    for message, content in damages.items():
        file.write_bytes(content)
        result = await run(operator, target, "restore", str(file))
        assert (result.returncode, result.stdout) == (1, "")
        assert message in result.stderr
        assert "Traceback" not in result.stderr
    assert "there is no file" in (await run(operator, target, "restore", str(tmp_path / "none.tar"))).stderr
    file.write_bytes(whole)
    assert (await run(operator, target, "restore", str(file))).returncode == 0


def _make_tar(name: str) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        tar.addfile(tarfile.TarInfo(name))
    return content.getvalue()


async def test_a_database_with_tables_is_refused(file: Path, source: str, operator: Operator) -> None:
    counted = await count_table_rows(source)
    result = await run(operator, source, "restore", str(file))
    assert (result.returncode, result.stdout) == (1, "")
    assert "the database is not empty" in result.stderr
    assert await count_table_rows(source) == counted


async def test_missing_keys_are_named(file: Path, databases: Databases, operator: Operator) -> None:
    target = await databases.create(LOGIN)
    operator.environment["SWITCHBOARD_SECRET_KEYS"] = ANOTHER_KEY
    result = await run(operator, target, "restore", str(file))
    assert result.returncode == 1
    assert KeyRing([SECRET_KEY]).fingerprints[0] in result.stderr
    assert SECRET_KEY.encode() not in file.read_bytes()
    operator.environment["SWITCHBOARD_SECRET_KEYS"] = f"{ANOTHER_KEY},{SECRET_KEY}"
    assert (await run(operator, target, "restore", str(file))).returncode == 0


async def test_a_newer_schema_is_refused(source: str, databases: Databases, operator: Operator, tmp_path: Path) -> None:
    connection = await asyncpg.connect(source)
    await connection.execute("update alembic_version set version_num = '9999'")
    await connection.close()
    file, target = tmp_path / "backup.tar", await databases.create(LOGIN)
    await ask(operator, source, "backup", str(file))
    result = await run(operator, target, "restore", str(file))
    assert result.returncode == 1
    assert "schema 9999" in result.stderr


async def test_a_backup_that_cannot_be_complete_fails_and_leaves_the_old_file(
    source: str, operator: Operator, tmp_path: Path
) -> None:
    connection = await asyncpg.connect(source)
    await connection.execute("drop policy backup on contact")
    await connection.close()
    file = tmp_path / "backup.tar"
    file.write_text("the backup of yesterday")
    result = await run(operator, source, "backup", str(file))
    assert result.returncode == 1
    assert "switchboard migrate" in result.stderr
    assert file.read_text() == "the backup of yesterday"
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["backup.tar"]


async def test_the_documented_role_dumps_every_row_with_pg_dump(
    servers: DataDirectory, source: str, databases: Databases, tmp_path: Path
) -> None:
    async with open_runtime(servers, source, tmp_path / "data") as runtime:
        await create_caller(runtime)
    page = (REPOSITORY / "docs" / "how-to" / "backup.md").read_text()
    statements = page.partition("```sql\ncreate role switchboard_backup")[2].partition("```")[0]
    await administrate(servers, f"create role {BACKUP_LOGIN}{statements}")
    try:
        refused = _run_binary("pg_dump", "--format=plain", url=source)
        assert refused.returncode != 0
        assert b"row-level security" in refused.stderr
        dump = tmp_path / "switchboard.dump"
        backup_url = source.replace(f"{LOGIN}@", f"{BACKUP_LOGIN}@")
        made = _run_binary("pg_dump", "--format=custom", f"--file={dump}", url=backup_url)
        assert made.returncode == 0, made.stderr
        target = await databases.create(LOGIN)
        administrator = make_url(target).set(username="switchboard").render_as_string()
        loaded = _run_binary("pg_restore", "--no-owner", f"--role={LOGIN}", f"--dbname={administrator}", str(dump))
        assert loaded.returncode == 0, loaded.stderr
        await upgrade(target)
        assert await count_table_rows(target) == await count_table_rows(source)
        connection = await asyncpg.connect(backup_url)
        with pytest.raises(asyncpg.PostgresError, match="read-only"):
            await connection.execute("delete from contact")
        await connection.close()
    finally:
        await administrate(servers, f"drop role {BACKUP_LOGIN}")


def _run_binary(name: str, *arguments: str, url: str = "") -> subprocess.CompletedProcess[bytes]:
    """Run a binary of the embedded PostgreSQL."""
    binary = embedded_servers._postgres_binaries() / name
    command = [str(binary), *arguments, *([url] if url else [])]
    return subprocess.run(command, env={"PATH": os.defpath, "LC_ALL": "C"}, capture_output=True, check=False)
