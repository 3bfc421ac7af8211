"""`plugins`: installed plugins, and new ones."""

from pathlib import Path

import click
from pydantic import JsonValue

from switchboard.apps.cli.session import Failure, as_json, print_result
from switchboard.foundation.observability import logs
from switchboard.plugin_sdk.registry import CAPABILITIES, Registry
from switchboard.plugin_sdk.scaffold import create_plugin


@click.group()
def plugins() -> None:
    """Installed plugins."""


@plugins.command("new")
@click.argument("name")
@click.argument("folder", type=click.Path(path_type=Path), required=False)
def new(name: str, folder: Path | None) -> None:
    """Create a plugin: a distribution that installs and passes its contract."""
    try:
        made = create_plugin(name, folder or Path())
    except (ValueError, FileExistsError) as error:
        raise Failure(str(error)) from None
    click.echo(f"{made} is ready: pip install -e {made}, then see docs/plugins/writing.md")


@plugins.command("list")
@as_json
def list_plugins(as_json: bool) -> None:
    """List each plugin with its version and what it provides, or why it is broken."""
    logs.configure_logging("CRITICAL")
    registry = Registry.discover()
    if as_json:
        listed: list[JsonValue] = [
            {
                "name": plugin.name,
                "distribution": plugin.distribution,
                "version": plugin.version,
                "provides": list(plugin.provides),
                "settings": {
                    provided: names for provided in plugin.provides if (names := _list_settings(registry, provided))
                },
                "faults": list(plugin.faults),
            }
            for plugin in registry.plugins
        ]
        print_result({"plugins": listed}, as_json=True)
        return
    for plugin in registry.plugins:
        click.echo(f"{plugin.name} ({plugin.distribution} {plugin.version})")
        for provided in plugin.provides:
            names = _list_settings(registry, provided)
            click.echo(f"  {provided}" + (f" (settings: {', '.join(map(str, names))})" if names else ""))
        for fault in plugin.faults:
            click.secho(f"  BROKEN: {fault}", fg="red")


def _list_settings(registry: Registry, provided: str) -> list[JsonValue]:
    """Return the names of the settings of a provider or an extension; none for what is not configured."""
    capability, _, name = provided.partition(" ")
    found = registry.find_class(CAPABILITIES[capability], name) if capability in CAPABILITIES else None
    return list(found.Settings.model_fields) if found is not None else []
