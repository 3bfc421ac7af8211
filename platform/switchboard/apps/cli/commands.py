"""The command group, and the exit status of commands."""

import sys
from typing import TYPE_CHECKING, Final

import click

from switchboard.apps.cli.lazy_group import LazyGroup
from switchboard.foundation.settings import OperatorError

if TYPE_CHECKING:  # the SDK takes half a second, which the platform's own commands may not need
    from switchboard.plugin_sdk import InstallationAccess

PLACES: Final = {
    "run": "launch:run",
    "serve": "serve:serve",
    "worker": "worker:worker",
    "migrate": "migrate:migrate",
    "backup": "backup:backup",
    "restore": "backup:restore",
    "doctor": "doctor:doctor",
    "docs": "generated_pages:docs",
    "routes": "generated_pages:routes",
    "orgs": "identity:orgs",
    "keys": "identity:keys",
    "users": "identity:users",
    "oauth-clients": "identity:oauth_clients",
    "billing": "billing:billing",
    "knowledge": "knowledge:knowledge",
    "phone": "phone:phone",
    "plugins": "plugins:plugins",
    "privacy": "privacy:privacy",
    "simulate": "simulate:simulate",
    "tenants": "tenants:tenants",
    "voices": "voices:voices",
}


@click.group(cls=LazyGroup, places=PLACES, context_settings={"help_option_names": ["-h", "--help"]})
def switchboard() -> None:
    """Voice agents that place and take phone calls."""


def run() -> None:
    """Run a command: exit status 0, 1 for a failure (one line on standard error), 2 for wrong usage."""
    is_plugins_command = len(sys.argv) > 1 and sys.argv[1] not in PLACES and not sys.argv[1].startswith("-")
    try:
        switchboard(obj=_add_plugins_commands() if is_plugins_command else None)
    except OperatorError as error:
        click.echo(f"switchboard: {error}", err=True)
        sys.exit(1)


def _add_plugins_commands() -> "InstallationAccess":
    """Add the commands of plugins, and return their way to the installation."""
    from switchboard.apps.cli.installation import CommandInstallation
    from switchboard.foundation.observability import logs
    from switchboard.plugin_sdk.registry import Registry

    logs.configure_logging("CRITICAL")  # `plugins list` and `doctor` report broken plugins
    registry = Registry.discover()
    for command in registry.cli_commands:
        switchboard.add_command(command)
    if registry.processes:
        from switchboard.apps.cli.provider_processes import create_process_command

        for process in registry.processes:
            switchboard.add_command(create_process_command(process))
    return CommandInstallation()
