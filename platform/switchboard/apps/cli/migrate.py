"""`migrate`: upgrades of the database."""

import asyncio
from typing import Final

import click

from switchboard.apps.cli.output import Failure
from switchboard.apps.embedded import get_server_urls
from switchboard.foundation.observability import logs
from switchboard.foundation.settings import load_settings
from switchboard.migrations import upgrade

ADVICE: Final = "is `make run` up, or is SWITCHBOARD_DATABASE_URL right?"


@click.command()
def migrate() -> None:
    """Upgrade the database."""
    settings = load_settings()
    logs.configure_logging(settings.log_level)
    try:
        asyncio.run(upgrade(get_server_urls(settings)[0]))
    except OSError as error:
        raise Failure(f"the database cannot be reached ({error}); {ADVICE}") from error
    click.echo("The database is up to date.")
