"""`plugins install`, `upgrade`, `uninstall`, `check`, and `catalogs`: plugins in the environment of this program."""

from collections.abc import Sequence
from pathlib import Path

import click

from switchboard.apps import plugin_packages
from switchboard.apps.cli.output import Failure, as_json, print_result, run_async
from switchboard.apps.cli.plugins import describe_plugin, list_process_restarts
from switchboard.apps.plugin_packages import PackageError, find_source, list_plugin_versions
from switchboard.foundation.observability import logs
from switchboard.plugin_sdk.registry import BUILT_IN, Plugin, Registry

tests = click.option(
    "--tests",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Folder of the plugin's source, whose tests are run.",
)


@click.command("install")
@click.argument("requirement")
@click.option("-e", "--editable", is_flag=True, help="Install a folder in place, for development.")
@run_async
async def install(requirement: str, editable: bool) -> None:
    """Install a plugin: a name of a package index, a wheel, or a folder.

    No other distribution is changed. Exit status 1 if the plugin cannot be loaded.
    """
    before = list_plugin_versions()
    try:
        plugin_packages.install_distribution(requirement, editable=editable)
    except PackageError as error:
        raise Failure(f"{requirement} cannot be installed: {error}") from None
    changed = [name for name, version in list_plugin_versions().items() if before.get(name) != version]
    if not changed:
        raise Failure(f"{requirement} added no plugin: it is installed already, or has no entry point of a plugin")
    await _report(changed)


@click.command("upgrade")
@click.argument("name")
@click.option("--to", "requirement", help="A wheel, a folder, or a requirement such as NAME==2.0.")
@run_async
async def upgrade(name: str, requirement: str | None) -> None:
    """Upgrade a plugin. No other distribution is changed. Exit status 1 if the new version cannot be loaded."""
    plugin, distribution = _find(name)
    try:
        plugin_packages.install_distribution(requirement or distribution, upgraded=distribution)
    except PackageError as error:
        raise Failure(f"{name} cannot be upgraded: {error}") from None
    await _report([plugin])


@click.command("uninstall")
@click.argument("name")
@run_async
async def uninstall(name: str) -> None:
    """Remove a plugin. Organizations that use it go on with their other providers after the restart."""
    _, distribution = _find(name)
    try:
        plugin_packages.uninstall_distribution(distribution)
    except PackageError as error:
        raise Failure(f"{name} cannot be removed: {error}") from None
    click.echo(f"{distribution} was removed")
    _print_restarts(await list_process_restarts(_discover()))


@click.command("check")
@click.argument("name")
@tests
@as_json
def check(name: str, tests: Path | None, as_json: bool) -> None:
    """Check that a plugin can be loaded, run its contract, and grade it.

    Exit status 1 if it cannot be loaded or its tests fail. Needs switchboard-voice-plugin-quality, as authors have it.
    """
    try:
        from switchboard_plugin_quality import SourceError, assess_plugin
    except ModuleNotFoundError:
        raise Failure(
            "grades are computed by switchboard-voice-plugin-quality, which servers do without: "
            "pip install switchboard-voice-plugin-quality"
        ) from None
    registry, plugin = _load(name)
    source = tests or find_source(plugin.distribution)
    contract = plugin_packages.run_contract(source)
    try:
        assessment = assess_plugin(registry, plugin, source, tests_pass=contract.passed)
    except SourceError as error:
        raise Failure(str(error)) from None
    if as_json:
        result = {
            "name": plugin.name,
            "distribution": plugin.distribution,
            "version": plugin.version,
            "provides": list(plugin.provides),
            "faults": list(plugin.faults),
            "contract": {"passed": contract.passed, "summary": contract.summary},
            "quality": assessment.encode(),
        }
        print_result(result, as_json=True)
    else:
        describe_plugin(registry, plugin)
        click.secho(f"  contract: {contract.summary}", fg="red" if contract.passed is False else None)
        for line in assessment.describe():
            click.echo(f"  {line}")
    if plugin.faults or contract.passed is False:
        raise click.exceptions.Exit(1)


@click.command("catalogs")
@click.argument("name")
def catalogs(name: str) -> None:
    """Update the catalogs of a plugin's translations, which are in its package. It must be installed in place."""
    from switchboard.apps.dashboard.catalog_files import update_plugin_catalogs

    registry, plugin = _load(name)
    if find_source(plugin.distribution) is None or not plugin.package:
        raise Failure(f"{name} must be a package that is installed in place: switchboard plugins install -e FOLDER")
    for path, missing in update_plugin_catalogs(registry, plugin).items():
        click.echo(f"{path}: {missing} without a translation")


def _find(name: str, *, built_in: bool = False) -> tuple[str, str]:
    """Return plugin and distribution by the name of either. Raises `Failure`."""
    for plugin, (distribution, _) in list_plugin_versions().items():
        if name in (plugin, distribution):
            if distribution in BUILT_IN and not built_in:
                raise Failure(f"{name} is a part of Switchboard, and changes with it")
            return plugin, distribution
    raise Failure(f"there is no plugin {name}; see `switchboard plugins list`")


def _load(name: str) -> tuple[Registry, Plugin]:
    """Load all plugins, and return the one with this name, or of this distribution. Raises `Failure`."""
    wanted, _ = _find(name, built_in=True)
    registry = _discover()
    return registry, next(plugin for plugin in registry.plugins if plugin.name == wanted)


def _discover() -> Registry:
    logs.configure_logging("CRITICAL")
    return Registry.discover()


async def _report(names: Sequence[str]) -> None:
    """Print plugins as they have been loaded, and what must be restarted. Exit status 1 for one that is broken."""
    registry = _discover()
    found = [plugin for plugin in registry.plugins if plugin.name in names]
    for plugin in found:
        describe_plugin(registry, plugin)
    _print_restarts(await list_process_restarts(registry))
    if any(plugin.faults for plugin in found):
        click.echo("switchboard plugins uninstall NAME removes a broken plugin", err=True)
        raise click.exceptions.Exit(1)


def _print_restarts(restarts: Sequence[str] | None) -> None:
    for restart in restarts or ():
        click.secho(restart, fg="red")
    if restarts is None:
        click.echo("restart all servers and workers, if any run: Redis, which knows them, does not answer")
