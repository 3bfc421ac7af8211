"""Import an organization into an installation that serves others meanwhile.

Rows are inserted from temporary tables: PostgreSQL refuses COPY into a table with row-level security, and to take that
off would lock the table against everybody. The policy `import` lets the owner insert rows of one organization, and the
triggers count and index them as any others.
"""

import asyncio
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from switchboard.apps.backups.archive import ArchivedOrganization, ArchiveHeader, ArchiveSummary, read_header
from switchboard.apps.backups.freezing import MoveRefused
from switchboard.apps.backups.organization_export import get_key_file
from switchboard.apps.backups.recordings import BackupRecordings
from switchboard.apps.backups.resealing import build_resealing
from switchboard.apps.backups.restore import ADD_MONTH, LoadPart, load_parts, load_recordings
from switchboard.apps.backups.snapshot import get_driver_connection, open_connection, read_revision
from switchboard.foundation.keyring import KeyRing
from switchboard.plugin_sdk.registry import Capability, ExtensionKind, Registry

ALLOW: Final = text("select set_config('app.import', :id, true)")
EXISTS: Final = text("select exists (select from organization where id = :id)")
TAKEN_SLUG: Final = text("select exists (select from organization where slug = :slug)")
TAKEN_NUMBERS: Final = text(
    "select phone_number from phone_number where phone_number = any(:numbers) "
    "and status in ('provisioning', 'active', 'pending_release') order by 1"
)
UNPROVEN: Final = text(
    "select email from user_account where email = any(:emails) and email_verified_at is null order by 1"
)
# Columns that name a user: of the foreign keys to users, and to members by their user.
USER_COLUMNS: Final = text(
    """
    select c.relname, a.attname from pg_constraint r
      join pg_class c on c.oid = r.conrelid join pg_class f on f.oid = r.confrelid
      cross join unnest(r.conkey, r.confkey) as pair(own, referred)
      join pg_attribute a on a.attrelid = c.oid and a.attnum = pair.own
      join pg_attribute b on b.attrelid = f.oid and b.attnum = pair.referred
    where r.contype = 'f' and r.connamespace = current_schema()::regnamespace
      and (f.relname, b.attname) in (('user_account', 'id'), ('membership', 'user_id'))
    """
)
# A member whose address, or id, a user of this installation has is that user.
CREATE_MATCHES: Final = "create temporary table moved_user (source uuid, target uuid, is_new boolean) on commit drop"
MATCH_USERS: Final = """
insert into moved_user select part.id, coalesce(known.id, part.id), known.id is null
from part_of_user_account part left join lateral (
  select id from user_account where email = part.email or id = part.id order by email = part.email desc limit 1
) known on true
"""
OF_NEW_USERS: Final[dict[str, str]] = {
    "user_account": "id in (select source from moved_user where is_new)",
    "authenticator_app": "user_id in (select source from moved_user where is_new)",
    "recovery_code": "user_id in (select source from moved_user where is_new)",
}
"""Conditions of the rows of users that are inserted: nothing of a user who exists here changes."""
MONTH_ATTEMPTS: Final = 10
MONTH_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class OrganizationArchive:
    """The archive of one organization, and the key of its secrets."""

    path: Path
    header: ArchiveHeader
    organization: ArchivedOrganization
    keyring: KeyRing


def open_organization_archive(path: Path) -> OrganizationArchive:
    """Read the beginning of an archive, and the key beside it. Raises `ArchiveError`, and `MoveRefused` if the archive
    is of an installation, or the file with the key is not there or is another one's.
    """
    header, key_file = read_header(path), get_key_file(path)
    if header.organization is None:
        raise MoveRefused(f"{path} is a backup of an installation: use `switchboard restore`")
    try:
        keyring = KeyRing([key_file.read_text().strip()])
    except (FileNotFoundError, ValueError):
        raise MoveRefused(f"there is no key in {key_file}: put the file there that the export wrote") from None
    if keyring.fingerprints[0] != header.organization.transfer_key:
        raise MoveRefused(f"{key_file} is the key of another export")
    return OrganizationArchive(path, header, header.organization, keyring)


async def check_organization(archive: OrganizationArchive, database_url: str, registry: Registry) -> None:
    """Raise `MoveRefused` if this installation cannot take the organization. Nothing is written."""
    header, organization = archive.header, archive.organization
    async with open_connection(database_url) as connection:
        revision = await read_revision(connection)
        if revision != header.schema_revision:
            raise MoveRefused(
                f"the archive has schema {header.schema_revision} of Switchboard {header.switchboard}, and this "
                f"database {revision or 'none'}: bring both installations to the same version"
            )
        if (await connection.execute(EXISTS, {"id": organization.id})).scalar_one():
            raise MoveRefused(f"the organization {organization.id} exists here already")
        if (await connection.execute(TAKEN_SLUG, {"slug": organization.slug})).scalar_one():
            raise MoveRefused(f"another organization here has the tenant file {organization.slug}: rename one of them")
        numbers = (await connection.execute(TAKEN_NUMBERS, {"numbers": organization.numbers})).scalars().all()
        if numbers:
            raise MoveRefused(f"phone numbers are in use here: {_shorten(numbers)}; release them first")
        unproven = (await connection.execute(UNPROVEN, {"emails": organization.emails})).scalars().all()
        if unproven:
            raise MoveRefused(
                f"nobody has proven these addresses of users here: {_shorten(unproven)}; "
                "`switchboard users confirm` makes them links"
            )
    if missing := [provider for provider in organization.providers if not _is_provided(registry, provider)]:
        raise MoveRefused(f"no plugin here provides {_shorten(missing)}: install the plugins of the source first")


def _shorten(values: Sequence[str]) -> str:
    return ", ".join(values[:5]) + (f", and {len(values) - 5} more" if len(values) > 5 else "")


def _is_provided(registry: Registry, provider: str) -> bool:
    capability, _, name = provider.partition(" ")
    kind = Capability(capability) if capability in set(Capability) else ExtensionKind(capability)
    return registry.find_class(kind, name) is not None


async def load_organization(
    archive: OrganizationArchive,
    summary: ArchiveSummary,
    database_url: str,
    keyring: KeyRing,
    recordings: BackupRecordings,
    *,
    report: Callable[[str], None],
) -> None:
    """Import a verified organization: its files, then its rows in one transaction, with which it is live. `keyring` is
    that of this installation.

    If it fails, nothing remains but empty months, and it can be repeated. Raises `ArchiveError`, `MoveRefused`,
    `ObjectStoreAway`, and errors of the database.
    """
    organization_id = archive.organization.id

    async def put(key: str, content: IO[bytes]) -> None:
        await recordings.put_file(organization_id, key, content)

    try:
        await load_recordings(archive.path, summary, put, report)
        await _add_months(database_url, archive.header)
        async with open_connection(database_url) as connection:
            await connection.execute(ALLOW, {"id": str(organization_id)})
            load = await _prepare(connection, archive, keyring)
            await load_parts(archive.path, summary, load, report)
    except BaseException:  # also an interruption by the operator
        await asyncio.shield(recordings.delete_all(organization_id))
        raise


async def _add_months(database_url: str, header: ArchiveHeader) -> None:
    """Create the months of the history that are not there, each in a transaction of its own, which locks for a moment.

    The function gives up after two seconds where somebody holds a lock.
    """
    for table in header.tables:
        for month in table.months:
            for attempt in range(MONTH_ATTEMPTS):
                try:
                    async with open_connection(database_url) as connection:
                        await connection.execute(ADD_MONTH, {"table": table.name, "month": month})
                    break
                except DBAPIError:
                    if attempt == MONTH_ATTEMPTS - 1:
                        raise
                    await asyncio.sleep(MONTH_SECONDS)


async def _prepare(connection: AsyncConnection, archive: OrganizationArchive, keyring: KeyRing) -> LoadPart:
    """Create the temporary tables, and return what loads a part of a table."""
    header = archive.header
    for table in header.tables:
        await connection.execute(
            text(f'create temporary table "part_of_{table.name}" (like "{table.name}") on commit drop')
        )
    await connection.execute(text(CREATE_MATCHES))
    users: dict[str, list[str]] = {}
    for name, column in await connection.execute(USER_COLUMNS):
        users.setdefault(name, []).append(column)
    changes = {table.name: build_resealing(table, archive.keyring, keyring) for table in header.tables}
    columns = {table.name: table.columns for table in header.tables}
    driver = await get_driver_connection(connection)

    async def load(name: str, part: bytes) -> int:
        part_table = f"part_of_{name}"
        await driver.copy_to_table(
            part_table, source=io.BytesIO(changes[name](part)), columns=columns[name], format="text"
        )
        if name == "user_account":
            await connection.execute(text(MATCH_USERS))
        for column in users.get(name, []):
            await connection.execute(text(_replace_user(part_table, column)))
        loaded = await _insert(connection, name, columns[name])
        await connection.execute(text(f'truncate "{part_table}"'))
        return loaded

    return load


def _replace_user(part_table: str, column: str) -> str:
    return (
        f'update "{part_table}" part set "{column}" = moved.target from moved_user moved '  # noqa: S608
        f'where part."{column}" = moved.source and moved.target <> moved.source'
    )


async def _insert(connection: AsyncConnection, name: str, columns: Sequence[str]) -> int:
    """Insert the rows of a part; return how many the part has."""
    names = ", ".join(f'"{column}"' for column in columns)
    condition = OF_NEW_USERS.get(name, "true")
    # An application may be known here: by an organization that was moved before.
    otherwise = "on conflict (id) do nothing" if name == "oauth_client" else ""
    rows = f'select {names} from "part_of_{name}" where {condition}'  # noqa: S608
    await connection.execute(text(f'insert into "{name}" ({names}) {rows} {otherwise}'))
    return int((await connection.execute(text(f'select count(*) from "part_of_{name}"'))).scalar_one())  # noqa: S608


def build_notes(organization: ArchivedOrganization, public_url: str) -> list[str]:
    """Build the lines about what is outside of the database and has to follow."""
    notes = [f"clients use the address of this installation now: {public_url}"]
    if organization.numbers:
        notes.append(f"point these numbers to this installation at their carrier: {_shorten(organization.numbers)}")
    if organization.slug is not None:
        notes.append(f"put the tenant file {organization.slug}.toml into the folder of tenant files here")
    notes.append("when the source is not needed any more: `switchboard orgs delete` there")
    return notes
