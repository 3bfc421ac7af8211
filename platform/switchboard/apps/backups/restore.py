"""Restore a backup into an empty installation."""

import gzip
import io
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import IO, TypeAlias

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from switchboard.apps.backups.archive import ArchiveError, ArchiveHeader, ArchiveSummary, read_members
from switchboard.apps.backups.backup import PROGRESS_EVERY
from switchboard.apps.backups.recordings import BackupRecordings
from switchboard.apps.backups.snapshot import get_driver_connection, open_connection
from switchboard.foundation.settings import OperatorError
from switchboard.migrations import load_scripts, upgrade

COUNT_TABLES = """
select count(*) from pg_class where relkind in ('r', 'p') and relnamespace = current_schema()::regnamespace
"""
ADD_MONTH = text("select add_month(:table, to_date(:month, 'YYYY_MM'))")


LoadPart: TypeAlias = Callable[[str, bytes], Awaitable[int]]
"""Loads a part of the rows of a table, and returns the number of its rows."""


class RestoreError(OperatorError):
    """The backup cannot be restored here."""


async def check_target(header: ArchiveHeader, database_url: str, fingerprints: Sequence[str]) -> None:
    """Raise `RestoreError` if the archive is of one organization, the database is not empty, the schema is of a newer
    version, or a key is missing.
    """
    if header.organization is not None:
        raise RestoreError(
            f"the archive is of one organization, {header.organization.name}: use `switchboard orgs import`"
        )
    if header.schema_revision not in load_scripts().oldest_programs:
        raise RestoreError(
            f"the backup has schema {header.schema_revision} of Switchboard {header.switchboard}, which this version "
            "does not know: restore it with that version or a newer one"
        )
    if missing := sorted(header.keys.keys() - set(fingerprints)):
        raise RestoreError(
            f"SWITCHBOARD_SECRET_KEYS (or secret.key in SWITCHBOARD_DATA_DIR) lacks the keys with the fingerprints "
            f"{', '.join(missing)}, under which secrets in the backup are encrypted (docs/how-to/keys.md)"
        )
    async with open_connection(database_url) as connection:
        if (await connection.execute(text(COUNT_TABLES))).scalar_one():
            raise RestoreError("the database is not empty: restore into a new database or a new SWITCHBOARD_DATA_DIR")


async def load_backup(
    path: Path,
    header: ArchiveHeader,
    summary: ArchiveSummary,
    database_url: str,
    recordings: BackupRecordings,
    *,
    report: Callable[[str], None],
) -> None:
    """Restore a verified backup: recordings, then rows in the schema that they had, then the current schema.

    Recordings come first, so that a full disk leaves the database empty, and the restore can be repeated. Rows are one
    transaction. `report` gets lines of progress. Raises `ArchiveError`, `MigrationError`, and `OSError`.
    """
    await load_recordings(path, summary, recordings.put, report)
    await upgrade(database_url, header.schema_revision)
    async with open_connection(database_url) as connection:
        await _load_tables(connection, path, header, summary, report)
    await upgrade(database_url)


async def load_recordings(
    path: Path,
    summary: ArchiveSummary,
    put: Callable[[str, IO[bytes]], Awaitable[None]],
    report: Callable[[str], None],
) -> None:
    """Store the recordings of an archive by `put`, which gets the key and the content of each."""
    stored = 0
    with read_members(path) as members:
        for member, content in members:
            if not member.name.startswith("recordings/"):
                continue
            await put(member.name.removeprefix("recordings/"), content)
            stored += 1
            if stored % PROGRESS_EVERY == 0:
                report(f"recordings: {stored} of {summary.recordings}")
    report(f"recordings: {stored}")


async def load_parts(path: Path, summary: ArchiveSummary, load: LoadPart, report: Callable[[str], None]) -> None:
    """Load the parts of all tables in the order of the archive. Raises `ArchiveError` for a missing row."""
    rows = dict.fromkeys(summary.rows, 0)
    with read_members(path) as members:
        for member, content in members:
            folder, _, rest = member.name.partition("/")
            if folder == "tables":
                name = rest.partition("/")[0]
                rows[name] += await load(name, gzip.decompress(content.read()))
    for name, count in rows.items():
        if count != summary.rows[name]:
            raise ArchiveError(f"{path} is damaged: {name} has {count} rows instead of {summary.rows[name]}")
        report(f"{name}: {count} rows")


async def _load_tables(
    connection: AsyncConnection,
    path: Path,
    header: ArchiveHeader,
    summary: ArchiveSummary,
    report: Callable[[str], None],
) -> None:
    """Load every row, without the triggers that count rows, whose counts are rows of the backup too."""
    for table in header.tables:
        await connection.execute(text(f'alter table "{table.name}" no force row level security, disable trigger user'))
        for month in table.months:
            await connection.execute(ADD_MONTH, {"table": table.name, "month": month})
    columns = {table.name: table.columns for table in header.tables}
    driver = await get_driver_connection(connection)

    async def load(name: str, part: bytes) -> int:
        done = await driver.copy_to_table(name, source=io.BytesIO(part), columns=columns[name], format="text")
        return int(done.removeprefix("COPY "))

    await load_parts(path, summary, load, report)
    for table in header.tables:
        await connection.execute(text(f'alter table "{table.name}" force row level security, enable trigger user'))
