"""Export an organization that is frozen: its rows of one snapshot, then its files."""

import os
import secrets
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Final
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from switchboard.apps.backups.archive import (
    HEADER,
    ArchivedOrganization,
    ArchivedTable,
    ArchiveHeader,
    ArchiveWriter,
    create_archive,
)
from switchboard.apps.backups.backup import BackupSummary, copy_recordings, copy_tables
from switchboard.apps.backups.freezing import FrozenOrganization, MoveRefused
from switchboard.apps.backups.organization_tables import UnknownTable, build_copy, is_moved
from switchboard.apps.backups.recordings import RECORDED_CALLS, BackupRecordings
from switchboard.apps.backups.resealing import build_resealing
from switchboard.apps.backups.snapshot import SnapshotError, list_tables, open_snapshot, read_revision
from switchboard.foundation.keyring import KeyRing

NUMBERS: Final = text(
    "select phone_number from phone_number where organization_id = :id "
    "and status in ('provisioning', 'active', 'pending_release') order by 1"
)
EMAILS: Final = text(
    "select email from user_account where id in (select user_id from membership where organization_id = :id) order by 1"
)
PROVIDERS: Final = text(
    "select capability || ' ' || name from provider_configuration where organization_id = :id order by 1"
)


@dataclass(frozen=True, slots=True)
class ExportSummary:
    """Counts of an exported organization, and its phone numbers in use."""

    counts: BackupSummary
    numbers: list[str]


async def export_organization(
    path: Path,
    organization: FrozenOrganization,
    database_url: str,
    keyring: KeyRing,
    recordings: BackupRecordings,
    *,
    report: Callable[[str], None],
) -> ExportSummary:
    """Write a frozen organization to a file that appears once it is whole, with its secrets under a new key, which is
    in a file beside it.

    Raises `SnapshotError` if the login cannot read every row, `ArchiveError` for a secret that cannot be decrypted,
    `MoveRefused`, and `OSError`.
    """
    transfer_key = secrets.token_urlsafe(32)
    _write_key(get_key_file(path), transfer_key)
    with create_archive(path) as archive:
        async with open_snapshot(database_url) as connection:
            tables = await _list_moved_tables(connection)
            transfer = KeyRing([transfer_key])
            header = await _build_header(connection, organization, tables, transfer.fingerprints[0])
            archive.add_bytes(HEADER, header.model_dump_json(indent=1).encode())
            copies = [build_copy(table, organization.id, build_resealing(table, keyring, transfer)) for table in tables]
            rows = await copy_tables(connection, archive, copies, report)
            recorded = await connection.execute(
                text(f"{RECORDED_CALLS} and organization_id = :id"), {"id": organization.id}
            )
            keys = set(recorded.scalars())
        stored, missing = await _copy_files(archive, organization.id, keys, recordings, report)
        archive.finish(rows, stored)
    assert header.organization is not None  # noqa: S101 - as it was built
    return ExportSummary(BackupSummary(sum(rows.values()), stored, missing), header.organization.numbers)


def get_key_file(path: Path) -> Path:
    """Return the place of the transfer key of an archive."""
    return path.with_name(f"{path.name}.key")


def _write_key(path: Path, key: str) -> None:
    """Write a key, readable only by its owner, in place of that of an earlier export."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    with os.fdopen(descriptor, "w") as file:
        file.write(f"{key}\n")
        file.flush()
        os.fsync(descriptor)
    Path(name).rename(path)


async def _list_moved_tables(connection: AsyncConnection) -> list[ArchivedTable]:
    try:
        return [table for table in await list_tables(connection) if is_moved(table)]
    except UnknownTable as error:
        raise MoveRefused(f"the table {error} is of no version of Switchboard that moves organizations") from None


async def _build_header(
    connection: AsyncConnection, organization: FrozenOrganization, tables: list[ArchivedTable], transfer_key: str
) -> ArchiveHeader:
    revision = await read_revision(connection)
    if revision is None:
        raise SnapshotError("the database has no schema of Switchboard")
    lists = [
        list((await connection.execute(statement, {"id": organization.id})).scalars())
        for statement in (NUMBERS, EMAILS, PROVIDERS)
    ]
    return ArchiveHeader(
        switchboard=version("switchboard-voice"),
        schema_revision=revision,
        created_at=datetime.now(UTC).isoformat(timespec="seconds"),
        tables=tables,
        keys={},
        organization=ArchivedOrganization(
            id=organization.id,
            name=organization.name,
            slug=organization.slug,
            numbers=lists[0],
            emails=lists[1],
            providers=lists[2],
            transfer_key=transfer_key,
        ),
    )


async def _copy_files(
    archive: ArchiveWriter,
    organization_id: UUID,
    recorded: set[str],
    recordings: BackupRecordings,
    report: Callable[[str], None],
) -> tuple[int, int]:
    """Write all files of the organization, and count the recordings that the store does not have."""
    keys = {*recorded, *await recordings.list_keys(organization_id)}
    return await copy_recordings(archive, sorted(keys), recordings, report)
