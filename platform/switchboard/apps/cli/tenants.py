"""`tenants check`, `diff`, `apply`."""

from collections.abc import Sequence
from pathlib import Path

import click
from pydantic import JsonValue

from switchboard.apps.cli.session import Failure, as_json, open_runtime, print_result, run_async
from switchboard.apps.tenant_files.apply import apply_tenant_file, compare_tenant_file
from switchboard.apps.tenant_files.files import TenantFile, read_folder
from switchboard.foundation.observability import logs
from switchboard.foundation.settings import load_settings
from switchboard.plugin_sdk.registry import Registry

folder_argument = click.argument(
    "folder", type=click.Path(path_type=Path, exists=True, file_okay=False), required=False
)


@click.group()
def tenants() -> None:
    """The operator's organization files."""


@tenants.command("check")
@folder_argument
@as_json
def check(folder: Path | None, as_json: bool) -> None:
    """List the errors of the files, by file, line, and key."""
    logs.configure_logging("CRITICAL")
    files = read_folder(folder or load_settings().tenants_dir, Registry.discover())
    faults = [fault for file in files for fault in file.faults]
    if as_json:
        listed: list[JsonValue] = [
            {"file": str(fault.path), "line": fault.line, "key": fault.key, "message": fault.message}
            for fault in faults
        ]
        print_result({"files": len(files), "faults": listed}, as_json=True)
    else:
        for fault in faults:
            click.echo(str(fault), err=True)
        click.echo(f"{len(files)} files, {len(faults)} errors")
    if faults:
        raise SystemExit(1)


@tenants.command("diff")
@folder_argument
@as_json
@run_async
async def diff(folder: Path | None, as_json: bool) -> None:
    """Show what applying the files would change."""
    async with open_runtime() as runtime:
        files = _sound(read_folder(folder or runtime.settings.tenants_dir, runtime.registry))
        changes: dict[str, JsonValue] = {}
        for file in files:
            changes[file.slug] = list(
                await compare_tenant_file(runtime.database, runtime.registry, runtime.keyring, file)
            )
    _show(changes, as_json=as_json)


@tenants.command("apply")
@folder_argument
@as_json
@run_async
async def apply_files(folder: Path | None, as_json: bool) -> None:
    """Apply the files to the database. Refused as a whole while any file has an error."""
    async with open_runtime() as runtime:
        files = _sound(read_folder(folder or runtime.settings.tenants_dir, runtime.registry))
        changes: dict[str, JsonValue] = {}
        for file in files:
            _, changed = await apply_tenant_file(runtime.database, runtime.registry, runtime.keyring, file)
            changes[file.slug] = list(changed)
    _show(changes, as_json=as_json)


def _sound(files: Sequence[TenantFile]) -> Sequence[TenantFile]:
    faults = [str(fault) for file in files for fault in file.faults]
    if faults:
        raise Failure("nothing is applied while files have errors:\n" + "\n".join(faults))
    return files


def _show(changes: dict[str, JsonValue], *, as_json: bool) -> None:
    if as_json:
        print_result({"tenants": changes}, as_json=True)
        return
    for slug, changed in changes.items():
        click.echo(
            f"{slug}: {', '.join(map(str, changed)) if isinstance(changed, list) and changed else 'nothing to change'}"
        )
