"""Export an organization that is frozen: its rows of one snapshot, then its files."""

import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Final

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from switchboard.apps.backups.archive import HEADER, ArchivedOrganization, ArchiveWriter, replace_file
from switchboard.apps.backups.backup import BackupSummary, copy_recordings, copy_tables
from switchboard.apps.backups.freezing import FrozenOrganization
from switchboard.apps.backups.organization_tables import build_copy, is_moved
from switchboard.apps.backups.recordings import RECORDED_CALLS, BackupRecordings
from switchboard.apps.backups.resealing import build_resealing
from switchboard.apps.backups.snapshot import build_header, list_tables, open_snapshot
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


async def export_organization(
    path: Path,
    organization: FrozenOrganization,
    database_url: str,
    keyring: KeyRing,
    recordings: BackupRecordings,
    *,
    report: Callable[[str], None],
) -> BackupSummary:
    """Write a frozen organization to a file that appears once it is whole, with its secrets under a new key, which is
    in a file beside it.

    Raises `SnapshotError` if the login cannot read every row, `ArchiveError` for a secret that cannot be decrypted,
    `MoveRefused`, and `OSError`.
    """
    transfer_key = secrets.token_urlsafe(32)
    with replace_file(get_key_file(path)) as key_file:
        key_file.write(f"{transfer_key}\n".encode())
    with replace_file(path) as file:
        archive = ArchiveWriter(file)
        async with open_snapshot(database_url) as connection:
            tables = [table for table in await list_tables(connection) if is_moved(table)]
            transfer = KeyRing([transfer_key])
            described = await _describe(connection, organization, transfer.fingerprints[0])
            header = await build_header(connection, tables, keys={}, organization=described)
            archive.add_bytes(HEADER, header.model_dump_json(indent=1).encode())
            copies = [build_copy(table, organization.id, build_resealing(table, keyring, transfer)) for table in tables]
            rows = await copy_tables(connection, archive, copies, report)
            recorded = await connection.execute(
                text(f"{RECORDED_CALLS} and organization_id = :id"), {"id": organization.id}
            )
            keys = set(recorded.scalars())
        keys |= {*await recordings.list_keys(organization.id)}  # all files; those of `keys` may be missing there
        stored, missing = await copy_recordings(archive, sorted(keys), recordings, report)
        archive.finish(rows, stored)
    return BackupSummary(sum(rows.values()), stored, missing)


def get_key_file(path: Path) -> Path:
    """Return the place of the transfer key of an archive."""
    return path.with_name(f"{path.name}.key")


async def _describe(
    connection: AsyncConnection, organization: FrozenOrganization, transfer_key: str
) -> ArchivedOrganization:
    numbers, emails, providers = [
        list((await connection.execute(statement, {"id": organization.id})).scalars())
        for statement in (NUMBERS, EMAILS, PROVIDERS)
    ]
    return ArchivedOrganization(
        id=organization.id,
        name=organization.name,
        slug=organization.slug,
        numbers=numbers,
        emails=emails,
        providers=providers,
        transfer_key=transfer_key,
    )
