"""Processes that plugins bring, each a command of its own: `switchboard sip-gateway`."""

import asyncio
from functools import partial
from typing import Any

import click

from switchboard.apps.cli.processes import run_process, watch_process
from switchboard.apps.provider_accounts import AccountReader, ProviderAccounts
from switchboard.apps.server.health import create_health_app
from switchboard.apps.server.http_server import StopRequest, serve_health
from switchboard.foundation.observability import metrics
from switchboard.plugin_sdk import ProviderProcess
from switchboard.runtime import Runtime


def create_process_command(kind: type[ProviderProcess[Any]]) -> click.Command:
    """Create the command that runs a process of a plugin, with the process's own options and `--health-port`."""
    prefix = kind.name.upper().replace("-", "_")

    def run(health_port: int, **options: object) -> None:
        run_process(kind.name, partial(_work, kind, options, health_port))

    port = click.Option(
        ["--health-port"],
        type=click.IntRange(0, 65535),
        default=0,
        show_default=True,
        show_envvar=True,
        help="Port of /healthz, /readyz, and /metrics; 0 for none.",
    )
    return click.Command(
        kind.name,
        callback=run,
        params=[*kind.options, port],
        help=kind.title,
        context_settings={"auto_envvar_prefix": prefix, "help_option_names": ["-h", "--help"]},
    )


async def _work(
    kind: type[ProviderProcess[Any]],
    options: dict[str, object],
    health_port: int,
    parts: Runtime,
    stop: StopRequest,
) -> None:
    variable = f"{kind.name.upper().replace('-', '_')}_HEALTH_PORT"
    reader = AccountReader(kind.provider, parts.database, parts.keyring, parts.settings.base_url)
    context = ProviderAccounts(reader, stop, stop.at_once, metrics.registry)
    process = kind(**options)
    stopped = asyncio.Event()
    async with watch_process(parts, kind.name):
        serving = asyncio.create_task(
            serve_health(create_health_app(parts), parts.settings.host, health_port, stopped, variable=variable)
        )
        running = asyncio.create_task(process.run(context))
        await asyncio.wait((serving, running), return_when=asyncio.FIRST_COMPLETED)
        stop.set()
        stopped.set()
        await asyncio.gather(running, serving)
