"""`serve`: the API, the dashboard, and calls."""

import sys
from functools import partial

import click
import uvloop

from switchboard.apps.cli.processes import run_process, watch_process
from switchboard.apps.server import app
from switchboard.apps.server.http_server import (
    Inheritance,
    StopRequest,
    run_process_group,
    serve_http,
    stop_on_signals,
)
from switchboard.foundation.observability import logs
from switchboard.foundation.settings import MAX_PROCESSES, Settings, load_settings
from switchboard.runtime import Runtime


@click.command()
@click.option(
    "--processes",
    type=click.IntRange(1, MAX_PROCESSES),
    help="Processes that share the port, one for each core; SWITCHBOARD_PROCESSES, or 1, without it.",
)
@click.option("--inherit", nargs=2, type=int, hidden=True, help="File descriptors of a process of a group.")
def serve(processes: int | None, inherit: tuple[int, int] | None) -> None:
    """Serve the API and hold calls."""
    if inherit is not None:
        inheritance = Inheritance(*inherit)
        run_process("serve", partial(_serve, inheritance=inheritance), inheritance)
    elif (count := processes or load_settings().processes) == 1:
        run_process("serve", _serve)
    else:
        settings = load_settings()
        logs.configure_logging(settings.log_level)
        sys.exit(uvloop.run(_supervise(settings, count)))


async def _serve(parts: Runtime, stop: StopRequest, inheritance: Inheritance | None = None) -> None:
    application = app.build_asgi_app(app.create_app(parts), parts)
    async with watch_process(parts, "serve"):  # not before: to register the routes takes 100 ms
        await serve_http(application, parts.settings, parts.engine, stop, inheritance)


async def _supervise(settings: Settings, processes: int) -> int:
    return await run_process_group(settings, processes, stop_on_signals())
