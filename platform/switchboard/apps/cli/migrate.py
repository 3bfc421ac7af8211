"""`migrate`: upgrades of the database."""

import asyncio

import click

from switchboard.apps.embedded import get_server_urls
from switchboard.foundation.observability import logs
from switchboard.foundation.settings import load_settings
from switchboard.migrations import upgrade


@click.command()
def migrate() -> None:
    """Upgrade the database."""
    settings = load_settings()
    logs.configure_logging(settings.log_level)
    asyncio.run(upgrade(get_server_urls(settings)[0]))
    click.echo("The database is up to date.")
