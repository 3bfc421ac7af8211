"""The first page of the operator console, and the list of plugins."""

from redis.asyncio import Redis

from switchboard.apps.dashboard.blueprint import live_part, page
from switchboard.apps.dashboard.console.queries import LIVE_SECONDS, ConsoleQueries
from switchboard.apps.dashboard.ui.rendering import render, render_part
from switchboard.apps.running_processes import list_restarts, list_running_processes
from switchboard.plugin_sdk.registry import Registry
from switchboard.resources.calls.allowance import CallAdmission


@page("/dashboard/console", role="superadmin")
async def console_page(redis: Redis, registry: Registry, admission: CallAdmission, queries: ConsoleQueries) -> str:
    """Show processes, queues, failing providers, and totals."""
    return await render("dashboard/console/overview.html", **await _read(redis, registry, admission, queries))


@live_part("/dashboard/console/live", role="superadmin", seconds=LIVE_SECONDS)
async def console_live(redis: Redis, registry: Registry, admission: CallAdmission, queries: ConsoleQueries) -> str:
    """Render processes, queues, failing providers, and totals."""
    return await render_part("dashboard/console/state.html", **await _read(redis, registry, admission, queries))


@page("/dashboard/console/plugins", role="superadmin")
async def console_plugins_page(redis: Redis, registry: Registry) -> str:
    """List the installed plugins, their faults, and the processes that must be restarted for them."""
    return await render(
        "dashboard/console/plugins.html",
        plugins=sorted(registry.plugins, key=lambda plugin: plugin.name),
        restarts=await list_restarts(redis, registry),
    )


async def _read(
    redis: Redis, registry: Registry, admission: CallAdmission, queries: ConsoleQueries
) -> dict[str, object]:
    running = await list_running_processes(redis, registry)
    capacities = await admission.list_capacities() if running else {}
    return {
        "totals": await queries.count_all(),
        "processes": None
        if running is None
        else [(process, restart, capacities.get(process.node, (None, None))) for process, restart in running],
        "queues": await queries.list_queues(),
        "failures": await queries.list_failing_providers(),
    }
