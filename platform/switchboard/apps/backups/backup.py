"""Write a backup: every row of one snapshot, then the recordings of the calls in it."""

import gzip
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import IO

from sqlalchemy.ext.asyncio import AsyncConnection

from switchboard.apps.backups.archive import CHUNK_BYTES, HEADER, ArchivedTable, ArchiveWriter, replace_file
from switchboard.apps.backups.recordings import RECORDED_CALLS, BackupRecordings
from switchboard.apps.backups.snapshot import (
    build_header,
    count_keys,
    get_driver_connection,
    list_tables,
    open_snapshot,
)

PART_BYTES = 8 * CHUNK_BYTES
"""Rows in a part of a table, before compression. A restore loads one part at a time."""
PROGRESS_EVERY = 1000


@dataclass(frozen=True, slots=True)
class BackupSummary:
    """Counts of a backup. `missing_recordings` are not in the store (yet)."""

    rows: int
    recordings: int
    missing_recordings: int


@dataclass(frozen=True, slots=True)
class TableCopy:
    """Rows of a table for an archive: the query that selects its columns, and the change of each part of the rows."""

    table: ArchivedTable
    query: str
    change: Callable[[bytes], bytes] = bytes


class _TableParts:
    """Cuts the rows of a table into parts, as asyncpg delivers them, and changes each part."""

    def __init__(self, archive: ArchiveWriter, copy: TableCopy) -> None:
        self._archive = archive
        self._table = copy.table.name
        self._change = copy.change
        self._part = 0
        self._rows = bytearray()

    async def write(self, data: bytes) -> None:
        """Take bytes of rows; each row ends with the only line feed in it."""
        self._rows += data
        if len(self._rows) >= PART_BYTES and (end := self._rows.rfind(b"\n") + 1):
            self._add(bytes(self._rows[:end]))
            del self._rows[:end]

    def finish(self) -> None:
        """Write the rest."""
        if self._rows:
            self._add(bytes(self._rows))

    def _add(self, rows: bytes) -> None:
        name = f"tables/{self._table}/{self._part:06d}.copy.gz"
        self._archive.add_bytes(name, gzip.compress(self._change(rows), compresslevel=1, mtime=0))
        self._part += 1


async def write_backup(
    path: Path, database_url: str, recordings: BackupRecordings, *, report: Callable[[str], None]
) -> BackupSummary:
    """Write the backup to a file that appears once it is whole; the platform may serve meanwhile.

    `report` gets lines of progress. Raises `SnapshotError` if the login cannot read every row, and `OSError` if the
    file cannot be written.
    """
    with replace_file(path) as file, tempfile.TemporaryFile() as recorded_calls:
        archive = ArchiveWriter(file)
        async with open_snapshot(database_url) as connection:
            rows = await _write_tables(connection, archive, recorded_calls, report)
        # After the snapshot, which would keep the database from vacuuming.
        recorded_calls.seek(0)
        stored, missing = await copy_recordings(archive, map(_read_key, recorded_calls), recordings, report)
        archive.finish(rows, stored)
    return BackupSummary(sum(rows.values()), stored, missing)


async def _write_tables(
    connection: AsyncConnection, archive: ArchiveWriter, recorded_calls: IO[bytes], report: Callable[[str], None]
) -> dict[str, int]:
    tables = await list_tables(connection)
    header = await build_header(connection, tables, keys=await count_keys(connection, tables))
    archive.add_bytes(HEADER, header.model_dump_json(indent=1).encode())
    copies = [TableCopy(table, build_query(table)) for table in tables]
    rows = await copy_tables(connection, archive, copies, report)
    await (await get_driver_connection(connection)).copy_from_query(RECORDED_CALLS, output=recorded_calls)
    return rows


def build_query(table: ArchivedTable, values: Mapping[str, str] = MappingProxyType({})) -> str:
    """Build the query of a table's columns in their order. `values` are expressions in the place of some columns."""
    columns = ", ".join(values.get(column, f'"{column}"') for column in table.columns)
    return f'select {columns} from "{table.name}"'  # noqa: S608


async def copy_tables(
    connection: AsyncConnection, archive: ArchiveWriter, copies: Sequence[TableCopy], report: Callable[[str], None]
) -> dict[str, int]:
    """Write rows of tables; return how many, by table."""
    driver, rows = await get_driver_connection(connection), {}
    for copy in copies:
        parts, name = _TableParts(archive, copy), copy.table.name
        done = await driver.copy_from_query(copy.query, output=parts.write)
        parts.finish()
        rows[name] = int(done.removeprefix("COPY "))
        report(f"{name}: {rows[name]} rows")
    return rows


def _read_key(line: bytes) -> str:
    return line.decode().strip()


async def copy_recordings(
    archive: ArchiveWriter, keys: Iterable[str], recordings: BackupRecordings, report: Callable[[str], None]
) -> tuple[int, int]:
    """Write the files of these keys; return how many were written, and how many the store does not have."""
    stored = missing = 0
    for key in keys:
        opened = await recordings.open(key)
        if opened is None:
            missing += 1
            continue
        with opened[0] as file:
            archive.add_file(f"recordings/{key}", file, opened[1])
        stored += 1
        if stored % PROGRESS_EVERY == 0:
            report(f"recordings: {stored}")
    report(f"recordings: {stored}" + (f", {missing} are not in the store" if missing else ""))
    return stored, missing
