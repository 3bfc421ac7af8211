"""The command group, and the exit status of commands."""

import sys

import click

from switchboard.apps.cli import (
    backup,
    billing,
    documentation,
    identity,
    knowledge,
    phone,
    plugin_packages,
    plugins,
    privacy,
    processes,
    secret_keys,
    tenants,
)
from switchboard.apps.cli.doctor import doctor
from switchboard.apps.cli.session import Failure
from switchboard.apps.cli.simulate import simulate
from switchboard.apps.cli.voices import voices
from switchboard.apps.embedded import DirectoryInUse, EmbeddedError
from switchboard.foundation.database import DatabaseUrlError
from switchboard.foundation.observability import logs
from switchboard.foundation.settings import SettingsError
from switchboard.migrations import MigrationError
from switchboard.plugin_sdk.registry import Registry


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def switchboard() -> None:
    """Voice agents that place and take phone calls."""


for command in (
    processes.run,
    processes.serve,
    processes.worker,
    processes.migrate,
    backup.backup,
    backup.restore,
    doctor,
    documentation.docs,
    documentation.routes,
    identity.orgs,
    identity.keys,
    identity.users,
    identity.oauth_clients,
    billing.billing,
    knowledge.knowledge,
    phone.phone,
    plugins.plugins,
    privacy.privacy,
    simulate,
    tenants.tenants,
    voices,
):
    switchboard.add_command(command)
for command in (plugin_packages.install, plugin_packages.upgrade, plugin_packages.uninstall, plugin_packages.check):
    plugins.plugins.add_command(command)
identity.keys.add_command(secret_keys.rotate_secret_keys)
identity.keys.add_command(secret_keys.reencrypt_organization_texts)
identity.keys.add_command(secret_keys.shred_organization_keys)


def run() -> None:
    """Run a command: exit status 0, 1 for a failure (one line on standard error), 2 for wrong usage."""
    if len(sys.argv) > 1 and sys.argv[1] not in switchboard.commands and not sys.argv[1].startswith("-"):
        logs.configure_logging("CRITICAL")  # `plugins list` and `doctor` report broken plugins
        for command in Registry.discover().cli_commands:
            switchboard.add_command(command)
    try:
        switchboard()
    except DatabaseUrlError as error:
        click.echo(f"switchboard: SWITCHBOARD_DATABASE_URL: {error}", err=True)
        sys.exit(1)
    except (Failure, SettingsError, DirectoryInUse, EmbeddedError, MigrationError) as error:
        click.echo(f"switchboard: {error}", err=True)
        sys.exit(1)
