"""A command group whose commands are imported when they are used."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

from switchboard.apps.cli.starting import pause_collections


class LazyGroup(click.Group):
    """Imports the module of a command only to run it, or to describe it in the help: all take a second and a half."""

    def __init__(self, *args: Any, places: Mapping[str, str], **options: Any) -> None:
        """`places` has the place of each command in this package, as `module:function`, by its name."""
        super().__init__(*args, **options)
        self._places = places

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *self._places})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._places:
            return super().get_command(ctx, cmd_name)
        module, _, function = self._places[cmd_name].partition(":")
        with pause_collections():
            command: click.Command = getattr(import_module(f"{__package__}.{module}"), function)
        return command
