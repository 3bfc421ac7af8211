"""`orgs export` and `orgs import`: move an organization to another installation."""

from pathlib import Path
from uuid import UUID

import click

import switchboard.migrations.tables  # noqa: F401 - secrets are encrypted again in every table
from switchboard.apps.backups.archive import verify_archive
from switchboard.apps.backups.freezing import freeze
from switchboard.apps.backups.organization_export import export_organization, get_key_file
from switchboard.apps.backups.organization_import import (
    build_notes,
    check_organization,
    load_organization,
    open_organization_archive,
)
from switchboard.apps.backups.recordings import BackupRecordings
from switchboard.apps.cli.backup import (
    FILE,
    explain_errors,
    open_database,
    print_archive,
    read_keyring,
    rebuild_vectors,
    report,
)
from switchboard.apps.cli.output import run_with_json
from switchboard.foundation.observability import logs
from switchboard.foundation.settings import load_settings
from switchboard.plugin_sdk.registry import Registry
from switchboard.resources.stored_files import open_recording_store


@click.command("export")
@FILE
@click.option("--org", "organization_id", type=UUID, required=True)
@run_with_json
async def export(file: Path, organization_id: UUID, as_json: bool) -> None:
    """Write an organization into an archive, for another installation. It takes no changes and works on nothing from
    then on, until `orgs resume` or `orgs delete`. FILE.key gets the key of its secrets.
    """
    settings = load_settings()
    logs.configure_logging("ERROR", json=False)
    recordings = BackupRecordings(open_recording_store(settings))
    with explain_errors():
        async with (
            open_database(settings, may_be_in_use=True) as database_url,
            freeze(database_url, organization_id, report) as frozen,
        ):
            made = await export_organization(
                file, frozen, database_url, read_keyring(settings), recordings, report=report
            )
    if made.missing_recordings:
        report(f"{made.missing_recordings} recordings are not in the store, and not in the archive.")
    report(f"{get_key_file(file)} has the key of the archive's secrets: send the two files by different ways.")
    report(f"The organization is frozen here; `switchboard orgs resume {organization_id}` gives up the move.")
    print_archive(file, made.rows, made.recordings, organization_id=organization_id, as_json=as_json)


@click.command("import")
@FILE
@run_with_json
async def import_archive(file: Path, as_json: bool) -> None:
    """Import an organization that `orgs export` wrote, beside other organizations, while the platform serves. FILE.key
    must be there too.
    """
    settings = load_settings()
    logs.configure_logging("ERROR", json=False)
    with explain_errors():
        archive = open_organization_archive(file)
        registry = Registry.discover(trace=settings.trace_plugins)
        recordings = BackupRecordings(open_recording_store(settings))
        async with open_database(settings, may_be_in_use=True) as database_url:
            report("verifying the archive")
            summary = verify_archive(file)
            await check_organization(archive, database_url, registry)
            keyring = read_keyring(settings)
            await load_organization(archive, summary, database_url, keyring, recordings, report=report)
            await rebuild_vectors(archive.organization.id)
    for note in build_notes(archive.organization, settings.base_url):
        report(note)
    rows = sum(summary.rows.values())
    print_archive(file, rows, summary.recordings, organization_id=archive.organization.id, as_json=as_json)
