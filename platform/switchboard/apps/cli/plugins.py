"""`plugins`: installed plugins, and new ones."""

from pathlib import Path

import click

from switchboard.apps.cli.lazy_group import LazyGroup
from switchboard.apps.cli.output import Failure, print_result, run_with_json
from switchboard.apps.embedded import get_server_urls
from switchboard.apps.running_processes import list_restarts
from switchboard.foundation.observability import logs
from switchboard.foundation.redis_client import InvalidRedisUrl, open_redis_clients
from switchboard.foundation.settings import PREFIX, load_settings
from switchboard.plugin_sdk.registry import CAPABILITIES, Plugin, Registry
from switchboard.plugin_sdk.scaffold import KINDS, create_plugin


@click.group(
    cls=LazyGroup,
    places={name: f"plugin_packages:{name}" for name in ("install", "upgrade", "uninstall", "check", "catalogs")},
)
def plugins() -> None:
    """Installed plugins."""


@plugins.command("new")
@click.argument("name")
@click.argument("folder", type=click.Path(path_type=Path), required=False)
@click.option("--kind", type=click.Choice(KINDS), default="tts", show_default=True, help="What the plugin provides.")
def new(name: str, folder: Path | None, kind: str) -> None:
    """Create a plugin: a distribution that installs, with a fake vendor against which it passes its contract."""
    try:
        made = create_plugin(name, folder or Path(), kind)
    except (ValueError, FileExistsError) as error:
        raise Failure(str(error)) from None
    click.echo(f"{made} is ready: switchboard plugins install -e {made}, then see docs/plugins/writing.md")


@plugins.command("list")
@run_with_json
async def list_plugins(as_json: bool) -> None:
    """List each plugin with its version and what it provides, or why it is broken, and the running processes that have
    not loaded what is installed. Exit status 1 if a plugin is broken.
    """
    logs.configure_logging("CRITICAL")
    registry = Registry.discover()
    restarts = await list_process_restarts(registry)
    if as_json:
        listed = [
            {
                "name": plugin.name,
                "distribution": plugin.distribution,
                "version": plugin.version,
                "provides": list(plugin.provides),
                "shadowed": dict(plugin.shadowed),
                "settings": {
                    provided: names for provided in plugin.provides if (names := _list_settings(registry, provided))
                },
                "faults": list(plugin.faults),
            }
            for plugin in registry.plugins
        ]
        print_result({"plugins": listed, "restarts": restarts}, as_json=True)
    else:
        for plugin in registry.plugins:
            describe_plugin(registry, plugin)
        if restarts is None:
            click.echo("running processes: unknown, because Redis does not answer")
        for restart in restarts or ():
            click.secho(restart, fg="red")
    if any(plugin.faults for plugin in registry.plugins):
        raise click.exceptions.Exit(1)


def describe_plugin(registry: Registry, plugin: Plugin) -> None:
    """Print a plugin with what it provides, and its faults."""
    click.echo(f"{plugin.name} ({plugin.distribution} {plugin.version})")
    for provided in plugin.provides:
        owner, names = plugin.shadowed.get(provided), _list_settings(registry, provided)
        shadowed = f" (the plain name is of plugin {owner})" if owner else ""
        click.echo(f"  {provided}{shadowed}" + (f" (settings: {', '.join(names)})" if names else ""))
    for fault in plugin.faults:
        click.secho(f"  BROKEN: {fault}", fg="red")


def _list_settings(registry: Registry, provided: str) -> list[str]:
    """Return the names of the settings of a provider or an extension; empty for a class without any."""
    capability, _, name = provided.partition(" ")
    found = registry.find_class(CAPABILITIES[capability], name) if capability in CAPABILITIES else None
    return list(found.Settings.model_fields) if found is not None else []


async def list_process_restarts(registry: Registry) -> list[str] | None:
    """List the running processes that have not loaded what is installed; None if Redis does not answer."""
    try:
        clients = open_redis_clients(get_server_urls(load_settings())[1])
    except InvalidRedisUrl as error:
        raise Failure(f"{PREFIX}REDIS_URL: {error}") from None
    try:
        return await list_restarts(clients.commands, registry)
    finally:
        await clients.close()
