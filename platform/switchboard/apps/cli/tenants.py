"""`tenants check`, `diff`, `apply`."""

from collections.abc import Sequence
from pathlib import Path

import click
from pydantic import JsonValue

from switchboard.apps.cli.session import Failure, answer, as_json, asynchronous, connected
from switchboard.apps.tenant_files.apply import apply, compare
from switchboard.apps.tenant_files.files import TenantFile, read_folder
from switchboard.foundation.observability import logs
from switchboard.foundation.settings import load
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
    """Say what is wrong with the files, by file, line and key."""
    logs.configure("CRITICAL")
    files = read_folder(folder or load().tenants_dir, Registry.discover())
    faults = [fault for file in files for fault in file.faults]
    if as_json:
        listed: list[JsonValue] = [
            {"file": str(fault.path), "line": fault.line, "key": fault.key, "message": fault.message}
            for fault in faults
        ]
        answer({"files": len(files), "faults": listed}, as_json=True)
    else:
        for fault in faults:
            click.echo(str(fault), err=True)
        click.echo(f"{len(files)} files, {len(faults)} faults")
    if faults:
        raise SystemExit(1)


@tenants.command("diff")
@folder_argument
@as_json
@asynchronous
async def diff(folder: Path | None, as_json: bool) -> None:
    """Say what applying would change."""
    async with connected() as runtime:
        files = _sound(read_folder(folder or runtime.settings.tenants_dir, runtime.registry))
        changes: dict[str, JsonValue] = {}
        for file in files:
            changes[file.slug] = list(await compare(runtime.database, runtime.registry, runtime.keyring, file))
    _show(changes, as_json=as_json)


@tenants.command("apply")
@folder_argument
@as_json
@asynchronous
async def apply_files(folder: Path | None, as_json: bool) -> None:
    """Make the database say what the files say. Refused as a whole while any file has a fault."""
    async with connected() as runtime:
        files = _sound(read_folder(folder or runtime.settings.tenants_dir, runtime.registry))
        changes: dict[str, JsonValue] = {}
        for file in files:
            _, changed = await apply(runtime.database, runtime.registry, runtime.keyring, file)
            changes[file.slug] = list(changed)
    _show(changes, as_json=as_json)


def _sound(files: Sequence[TenantFile]) -> Sequence[TenantFile]:
    faults = [str(fault) for file in files for fault in file.faults]
    if faults:
        raise Failure("nothing is applied while files have faults:\n" + "\n".join(faults))
    return files


def _show(changes: dict[str, JsonValue], *, as_json: bool) -> None:
    if as_json:
        answer({"tenants": changes}, as_json=True)
        return
    for slug, changed in changes.items():
        click.echo(
            f"{slug}: {', '.join(map(str, changed)) if isinstance(changed, list) and changed else 'nothing to change'}"
        )
