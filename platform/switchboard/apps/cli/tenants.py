"""`tenants check`, `diff`, `apply`, `export`."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

import click

from switchboard.apps.cli.output import print_result, run_async, run_with_json
from switchboard.apps.cli.session import open_runtime
from switchboard.apps.running_processes import list_restarts
from switchboard.apps.tenant_files.apply import FileRefused, apply_tenant_file, compare_tenant_file
from switchboard.apps.tenant_files.export import export_tenant_file
from switchboard.apps.tenant_files.files import FileError, TenantFile, read_file, read_folder
from switchboard.apps.tenant_files.vendors import check_vendors
from switchboard.engine.providers.factory import ProviderFactory
from switchboard.foundation.observability import logs
from switchboard.foundation.settings import Settings, load_settings
from switchboard.plugin_sdk.registry import Registry
from switchboard.resources.identity.service import OPERATOR

paths_argument = click.argument("paths", type=click.Path(path_type=Path, exists=True), nargs=-1)


@click.group()
def tenants() -> None:
    """The operator's organization files. PATHS are files and folders of files; by default SWITCHBOARD_TENANTS_DIR."""


@tenants.command("check")
@paths_argument
@run_with_json
async def check(paths: tuple[Path, ...], as_json: bool) -> None:
    """List the errors of the files, by file, line, and key; ask each vendor if its provider works, and for how long."""
    logs.configure_logging("CRITICAL")
    settings, registry = load_settings(), Registry.discover()
    files = _read_files(paths, settings, registry)
    faults, warnings = _list_faults(files), list[FileError]()
    factory = ProviderFactory(registry, settings.data_dir, policy=settings.network_policy)
    for answers in await asyncio.gather(*(check_vendors(file, factory) for file in files)):
        faults += answers.faults
        warnings += answers.warnings
    if as_json:
        listed = {"faults": _describe_errors(faults), "warnings": _describe_errors(warnings)}
        print_result({"files": len(files), **listed}, as_json=True)
    else:
        for warning in warnings:
            click.echo(f"warning: {warning}", err=True)
        for fault in faults:
            click.echo(str(fault), err=True)
        click.echo(f"{len(files)} files, {len(faults)} errors")
    if faults:
        raise SystemExit(1)


def _describe_errors(errors: Sequence[FileError]) -> list[dict[str, object]]:
    return [
        {"file": str(error.path), "line": error.line, "key": error.key, "message": error.message} for error in errors
    ]


@tenants.command("diff")
@paths_argument
@run_with_json
async def diff(paths: tuple[Path, ...], as_json: bool) -> None:
    """Show what applying the files would change. Exit status 1 if a file has errors."""
    changes: dict[str, Sequence[str]] = {}
    async with open_runtime() as runtime:
        files = _read_files(paths, runtime.settings, runtime.registry)
        for file in files:
            if not file.faults:
                compared = compare_tenant_file(runtime.database, runtime.registry, runtime.keyring, file)
                changes[file.slug] = await compared
    _show(changes, [str(fault) for fault in _list_faults(files)], (), as_json=as_json)


@tenants.command("apply")
@paths_argument
@run_with_json
async def apply_files(paths: tuple[Path, ...], as_json: bool) -> None:
    """Apply the files to the database, each in a transaction.

    A file with errors is left out, and so is a file without a provider that agents name. The exit status is then 1.
    """
    changes: dict[str, Sequence[str]] = {}
    async with open_runtime() as runtime:
        files = _read_files(paths, runtime.settings, runtime.registry)
        refused = [str(fault) for fault in _list_faults(files)]
        for file in files:
            if not file.faults:
                try:
                    _, changed = await apply_tenant_file(runtime.database, runtime.registry, runtime.keyring, file)
                except FileRefused as error:
                    refused.append(str(error))
                else:
                    changes[file.slug] = changed
        restarts = await list_restarts(runtime.redis, runtime.registry)
    _show(changes, refused, restarts or (), as_json=as_json)


@tenants.command("export")
@click.argument("organization_id", type=UUID)
@run_async
async def export_file(organization_id: UUID) -> None:
    """Print an organization's settings as a tenant file. Secrets are left out and named."""
    async with (
        open_runtime(organization_id) as runtime,
        runtime.database.write(organization_id, actor=OPERATOR) as session,
    ):
        text = await export_tenant_file(session, runtime.registry, runtime.keyring)
    click.echo(text, nl=False)


def _read_files(paths: Sequence[Path], settings: Settings, registry: Registry) -> list[TenantFile]:
    files: list[TenantFile] = []
    for path in paths or (settings.tenants_dir,):
        files += [read_file(path, registry)] if path.is_file() else read_folder(path, registry)
    return files


def _list_faults(files: Sequence[TenantFile]) -> list[FileError]:
    return [fault for file in files for fault in file.faults]


def _show(changes: dict[str, Sequence[str]], refused: Sequence[str], restarts: Sequence[str], *, as_json: bool) -> None:
    """Print the result, and end with exit status 1 if files were refused."""
    if as_json:
        print_result({"tenants": changes, "refused": [*refused], "restarts": [*restarts]}, as_json=True)
    else:
        for slug, changed in changes.items():
            click.echo(f"{slug}: {', '.join(changed) or 'nothing to change'}")
        for message in (*refused, *restarts):
            click.echo(message, err=True)
    if refused:
        raise SystemExit(1)
