"""The production processes of one role each: `serve`, `worker`, and those that plugins bring."""

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeAlias

import uvloop

from switchboard.apps.cli.starting import resume_collections
from switchboard.apps.embedded import get_server_urls
from switchboard.apps.process_runtime import open_process_runtime
from switchboard.apps.running_processes import Role, report_process
from switchboard.apps.server.health import measure_pools
from switchboard.apps.server.http_server import Inheritance, StopRequest, raise_file_limit, stop_on_signals
from switchboard.foundation.jobs import run_beside
from switchboard.foundation.observability import logs, metrics
from switchboard.foundation.observability.event_loop import watch_event_loop
from switchboard.foundation.observability.span_export import export_spans
from switchboard.foundation.settings import load_settings
from switchboard.migrations import wait_for_schema
from switchboard.runtime import Runtime

POOL_SECONDS = 3.0
Work: TypeAlias = Callable[[Runtime, StopRequest], Awaitable[None]]
"""Work that a process does with its parts until it is asked to stop."""


def run_process(role: Role, work: Work, inheritance: Inheritance | None = None) -> None:
    """Wait for the schema, and do this work until a signal, or until the parent of a process of a group is gone.

    Raises `OperatorError`.
    """
    gc.disable()  # Until the process is ready.
    with export_spans(role):
        uvloop.run(_run(work, inheritance))


async def _run(work: Work, inheritance: Inheritance | None) -> None:
    settings = load_settings()
    logs.configure_logging(settings.log_level, region=settings.region)
    stop = stop_on_signals()
    if inheritance is not None:
        inheritance.follow_parent(stop)
    database_url, redis_url = get_server_urls(settings)
    raise_file_limit()
    await wait_for_schema(database_url, stop)
    if stop.is_set():
        return
    async with open_process_runtime(settings, database_url=database_url, redis_url=redis_url) as parts:
        await work(parts, stop)


@asynccontextmanager
async def watch_process(parts: Runtime, role: Role) -> AsyncIterator[None]:
    """Watch the event loop and the pools of a process, and report the process to the others, within the block."""
    async with (
        watch_event_loop(parts.registry.distributions_by_package),
        report_process(parts.redis, parts.registry, parts.settings, node=parts.node, role=role),
        run_beside(_measure_pools(parts)),
    ):
        metrics.processes.labels(parts.settings.region).set(1)
        resume_collections()
        yield


async def _measure_pools(parts: Runtime) -> None:
    """Measure the pools for the other processes of a group: each of them renders the metrics of all."""
    while True:
        measure_pools(parts.database, parts.redis)
        await asyncio.sleep(POOL_SECONDS)
