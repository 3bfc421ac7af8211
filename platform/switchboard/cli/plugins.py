"""`plugins`."""

import click
from pydantic import JsonValue

from switchboard.cli.session import answer, as_json
from switchboard.observability import logs
from switchboard.plugins.registry import Registry


@click.group()
def plugins() -> None:
    """What is installed."""


@plugins.command("list")
@as_json
def list_plugins(as_json: bool) -> None:
    """List each plugin with its version and what it provides; what of it is broken, and why."""
    logs.configure("CRITICAL")
    registry = Registry.discover()
    if as_json:
        listed: list[JsonValue] = [
            {
                "name": plugin.name,
                "distribution": plugin.distribution,
                "version": plugin.version,
                "provides": list(plugin.provides),
                "faults": list(plugin.faults),
            }
            for plugin in registry.plugins
        ]
        answer({"plugins": listed}, as_json=True)
        return
    for plugin in registry.plugins:
        click.echo(f"{plugin.name} ({plugin.distribution} {plugin.version})")
        for provided in plugin.provides:
            click.echo(f"  {provided}")
        for fault in plugin.faults:
            click.secho(f"  BROKEN: {fault}", fg="red")
