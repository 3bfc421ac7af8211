"""`run`, and the production processes, one role each: `serve`, `worker`, `migrate`."""

import asyncio
import sys

import click
import uvloop

from switchboard.apps.cli.launch import Launch
from switchboard.apps.cli.session import Failure, get_server_urls
from switchboard.apps.running_processes import report_process
from switchboard.apps.server import app
from switchboard.apps.server.http_server import (
    CannotListen,
    raise_file_limit,
    serve_health,
    serve_http,
    stop_on_signals,
)
from switchboard.apps.worker.worker import run_worker
from switchboard.foundation.observability import logs
from switchboard.foundation.observability.event_loop import watch_event_loop
from switchboard.foundation.observability.span_export import export_spans
from switchboard.foundation.settings import load_settings
from switchboard.migrations import upgrade, wait_for_schema


@click.command()
def run() -> None:
    """Start everything in the foreground: servers, API, media, worker; used by `make run`."""
    settings = load_settings()
    if "log_level" not in settings.model_fields_set:
        # A line for each request would hide the address and the password that the terminal shows.
        settings = settings.model_copy(update={"log_level": "WARNING"})
    logs.configure_logging(settings.log_level)
    sys.exit(uvloop.run(Launch(settings).run()))


@click.command()
def serve() -> None:
    """Serve the API and hold calls."""
    try:
        with export_spans("serve"):
            uvloop.run(_serve())
    except CannotListen as error:
        raise Failure(str(error)) from None


@click.command()
def worker() -> None:
    """Run background work: dialing, deliveries, analysis, reconcilers."""
    try:
        with export_spans("worker"):
            uvloop.run(_work())
    except CannotListen as error:
        raise Failure(str(error)) from None


@click.command()
def migrate() -> None:
    """Upgrade the database."""
    settings = load_settings()
    logs.configure_logging(settings.log_level)
    asyncio.run(upgrade(get_server_urls(settings)[0]))
    click.echo("The database is up to date.")


async def _serve() -> None:
    settings = load_settings()
    logs.configure_logging(settings.log_level)
    stop = stop_on_signals()
    database_url, redis_url = get_server_urls(settings)
    raise_file_limit()
    await wait_for_schema(database_url, stop)
    if stop.is_set():
        return
    async with app.open_process_runtime(settings, database_url=database_url, redis_url=redis_url) as parts:
        application = app.build_asgi_app(app.create_app(parts), parts)
        async with (
            watch_event_loop(parts.registry.distributions),  # not before: to register the routes takes 100 ms
            report_process(parts.redis, parts.registry, node=parts.node, role="serve"),
        ):
            await serve_http(application, settings, parts.engine, stop)


async def _work() -> None:
    settings = load_settings()
    logs.configure_logging(settings.log_level)
    stop = stop_on_signals()
    database_url, redis_url = get_server_urls(settings)
    raise_file_limit()
    await wait_for_schema(database_url, stop)
    if stop.is_set():
        return
    async with (
        app.open_process_runtime(settings, database_url=database_url, redis_url=redis_url) as parts,
        watch_event_loop(parts.registry.distributions),
        report_process(parts.redis, parts.registry, node=parts.node, role="worker"),
    ):
        serving = asyncio.create_task(serve_health(app.create_health_app(parts), settings, stop))
        await run_worker(parts, stop)
        await serving
