"""`serve`: the API, the dashboard, and calls."""

import click

from switchboard.apps.cli.processes import run_process, watch_process
from switchboard.apps.server import app
from switchboard.apps.server.http_server import StopRequest, serve_http
from switchboard.runtime import Runtime


@click.command()
def serve() -> None:
    """Serve the API and hold calls."""
    run_process("serve", _serve)


async def _serve(parts: Runtime, stop: StopRequest) -> None:
    application = app.build_asgi_app(app.create_app(parts), parts)
    async with watch_process(parts, "serve"):  # not before: to register the routes takes 100 ms
        await serve_http(application, parts.settings, parts.engine, stop)
