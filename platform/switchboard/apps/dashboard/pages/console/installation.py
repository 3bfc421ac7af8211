"""The first page of the operator console, and the list of plugins."""

from dataclasses import dataclass

from redis.asyncio import Redis

from switchboard.apps.dashboard.blueprint import dashboard
from switchboard.apps.dashboard.console.system_queries import LIVE_SECONDS, ConsoleQueries
from switchboard.apps.dashboard.decorators import live_part, page
from switchboard.apps.dashboard.ui.rendering import render, render_part
from switchboard.apps.running_processes import list_restarts, list_running_processes
from switchboard.plugin_sdk.registry import Registry
from switchboard.resources.calls.allowance import CallAdmission


@dataclass(frozen=True, slots=True)
class Installation:
    """Parts of the process that know the other processes."""

    redis: Redis
    registry: Registry
    admission: CallAdmission
    queries: ConsoleQueries


@dataclass(frozen=True, slots=True)
class ProcessRow:
    """A running process. `limit` and `live` are the calls that a server can hold and holds, None for a worker."""

    role: str
    host: str
    pid: int
    limit: int | None
    live: int | None
    restart: str | None


@dashboard.get("/dashboard/console")
@page(role="superadmin")
async def console_page(installation: Installation) -> str:
    """Show processes, queues, failing providers, and totals."""
    return await render("dashboard/console/overview.html", **await _read(installation))


@dashboard.get("/dashboard/console/live")
@live_part(role="superadmin", seconds=LIVE_SECONDS)
async def console_live(installation: Installation) -> str:
    """Render processes, queues, failing providers, and totals."""
    return await render_part("dashboard/console/state.html", **await _read(installation))


@dashboard.get("/dashboard/console/plugins")
@page(role="superadmin")
async def console_plugins_page(redis: Redis, registry: Registry) -> str:
    """List the installed plugins, their faults, and the processes that must be restarted for them."""
    return await render(
        "dashboard/console/plugins.html",
        plugins=sorted(registry.plugins, key=lambda plugin: plugin.name),
        restarts=await list_restarts(redis, registry),
    )


async def _read(installation: Installation) -> dict[str, object]:
    return {
        "totals": await installation.queries.count_all(),
        "processes": await _list_processes(installation),
        "queues": await installation.queries.list_queues(),
        "failures": await installation.queries.list_failing_providers(),
    }


async def _list_processes(installation: Installation) -> list[ProcessRow] | None:
    """List the processes that have reported in the last seconds; None if Redis does not answer."""
    running = await list_running_processes(installation.redis, installation.registry)
    if running is None:
        return None
    capacities, rows = await installation.admission.list_capacities(), []
    for process, restart in running:
        limit, live = capacities.get(process.node, (None, None))
        rows.append(ProcessRow(process.role, process.host, process.pid, limit, live, restart))
    return rows
