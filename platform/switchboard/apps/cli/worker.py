"""`worker`: background work, and its health endpoints."""

import asyncio

import click

from switchboard.apps.cli.processes import run_process, watch_process
from switchboard.apps.server.health import create_health_app
from switchboard.apps.server.http_server import StopRequest, serve_health
from switchboard.apps.worker.worker import run_worker
from switchboard.runtime import Runtime


@click.command()
def worker() -> None:
    """Run background work: dialing, deliveries, analysis, reconcilers."""
    run_process("worker", _work)


async def _work(parts: Runtime, stop: StopRequest) -> None:
    async with watch_process(parts, "worker"):
        host, port = parts.settings.host, parts.settings.worker_port
        serving = asyncio.create_task(
            serve_health(create_health_app(parts), host, port, stop, variable="SWITCHBOARD_WORKER_PORT")
        )
        await run_worker(parts, stop)
        await serving
