"""Shared by commands: failures, coroutines as commands, and output."""

import asyncio
import json
from collections.abc import Callable, Coroutine, Mapping
from functools import wraps
from typing import ParamSpec

import click

from switchboard.foundation.settings import OperatorError

P = ParamSpec("P")

as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")


class Failure(OperatorError):
    """A command failed; the message is one line."""


def run_async(command: Callable[P, Coroutine[None, None, None]]) -> Callable[P, None]:
    """Run a coroutine as a command."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        asyncio.run(command(*args, **kwargs))

    return run


def run_with_json(command: Callable[P, Coroutine[None, None, None]]) -> Callable[P, None]:
    """Run a coroutine as a command with the option `--json`."""
    return as_json(run_async(command))


def print_result(result: Mapping[str, object], *, as_json: bool) -> None:
    """Print a result: as one JSON object, or one line per part."""
    if as_json:
        click.echo(json.dumps(result))
        return
    for name, value in result.items():
        click.echo(f"{name}: {value}")
