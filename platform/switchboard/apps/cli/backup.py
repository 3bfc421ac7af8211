"""`backup` and `restore`."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from uuid import UUID

import asyncpg
import click
from sqlalchemy.exc import DBAPIError

from switchboard.apps.backups.archive import read_header, verify_archive
from switchboard.apps.backups.backup import write_backup
from switchboard.apps.backups.recordings import BackupRecordings
from switchboard.apps.backups.restore import check_target, load_backup
from switchboard.apps.cli.output import Failure, print_result, run_with_json
from switchboard.apps.cli.session import list_organizations, open_runtime
from switchboard.apps.embedded import DataDirectory, DirectoryInUse, EmbeddedServers
from switchboard.foundation.keyring import KeyRing, load_keyring
from switchboard.foundation.object_store import ObjectStoreAway
from switchboard.foundation.observability import logs
from switchboard.foundation.settings import Settings, load_settings
from switchboard.plugin_sdk import ProviderError
from switchboard.resources.knowledge_bases.indexing import DocumentIndexer, reindex_knowledge_bases
from switchboard.resources.stored_files import open_recording_store

FILE = click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
report = partial(click.echo, err=True)


@click.command()
@FILE
@run_with_json
async def backup(file: Path, as_json: bool) -> None:
    """Write database and recordings into one archive, while the platform serves."""
    settings = load_settings()
    logs.configure_logging("ERROR", json=False)
    with explain_errors():
        async with open_database(settings, may_be_in_use=True) as database_url:
            summary = await write_backup(
                file, database_url, BackupRecordings(open_recording_store(settings)), report=report
            )
    if summary.missing_recordings:
        report(f"{summary.missing_recordings} recordings are not in the store, and not in the backup.")
    print_archive(file, summary.rows, summary.recordings, as_json=as_json)


@click.command()
@FILE
@run_with_json
async def restore(file: Path, as_json: bool) -> None:
    """Restore a backup into an empty installation, and rebuild the vectors of its knowledge bases."""
    settings = load_settings()
    logs.configure_logging("ERROR", json=False)
    with explain_errors():
        header = read_header(file)
        keyring = read_keyring(settings)
        async with open_database(settings, may_be_in_use=False) as database_url:
            await check_target(header, database_url, keyring.fingerprints)
            report("verifying the archive")
            summary = verify_archive(file)
            await load_backup(
                file, header, summary, database_url, BackupRecordings(open_recording_store(settings)), report=report
            )
            await rebuild_vectors()
    print_archive(file, sum(summary.rows.values()), summary.recordings, as_json=as_json)


def print_archive(
    file: Path, rows: int, recordings: int, *, as_json: bool, organization_id: UUID | None = None
) -> None:
    """Print an archive's size and counts, and the organization that it is of, if it is of one."""
    owner = {} if organization_id is None else {"organization_id": str(organization_id)}
    counts = {"rows": rows, "recordings": recordings, "bytes": file.stat().st_size}
    print_result({"file": str(file), **owner, **counts}, as_json=as_json)


def read_keyring(settings: Settings) -> KeyRing:
    """Return the keys of this installation."""
    return load_keyring([key.get_secret_value() for key in settings.secret_keys], settings.data_dir)


@contextmanager
def explain_errors() -> Iterator[None]:
    """Raise `Failure` for errors that the operator can mend."""
    try:
        yield
    except (ObjectStoreAway, OSError) as error:
        raise Failure(str(error)) from error
    except DBAPIError as error:
        raise Failure(f"the database refused: {error.orig}") from error
    except asyncpg.PostgresError as error:  # of COPY, which SQLAlchemy does not wrap
        raise Failure(f"the database refused: {error}") from error


@asynccontextmanager
async def open_database(settings: Settings, *, may_be_in_use: bool) -> AsyncIterator[str]:
    """Yield the URL of the database. The embedded one is started if it does not run.

    Raises `DirectoryInUse` if it runs and must not.
    """
    if settings.database_url is not None:
        yield settings.database_url
        return
    directory = DataDirectory(settings.data_dir)
    try:
        directory.claim()
    except DirectoryInUse:
        if not may_be_in_use:
            raise
        yield directory.database_url
        return
    try:
        async with EmbeddedServers(directory, redis=False):
            yield directory.database_url
    finally:
        directory.release()


async def rebuild_vectors(organization_id: UUID | None = None) -> None:
    """Rebuild the vectors of one organization, or of all, which no archive has. What fails is reported: everything else
    is there.
    """
    report("rebuilding the vectors of knowledge bases, which are not in the archive")
    async with open_runtime() as runtime:
        indexer = DocumentIndexer(runtime.database, runtime.providers)
        for organization in await list_organizations(runtime.database, organization_id):
            try:
                results = await reindex_knowledge_bases(indexer, organization.id)
                faults = [result.error for result in results if result.error is not None]
            except ProviderError as error:
                faults = [error.message]
            for fault in faults:
                report(f"{fault}: run `switchboard knowledge reindex --org {organization.id}`")
