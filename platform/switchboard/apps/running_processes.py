"""Running servers, workers, and plugins' own processes with the plugins that they have loaded, compared with those that
are installed.

Each process publishes its plugins in Redis, because an installed plugin is loaded by the next start of a process and
not before. Without Redis nothing can be compared, and nothing else depends on it.
"""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final, TypeAlias

from pydantic import BaseModel, ValidationError
from redis.asyncio import Redis
from redis.exceptions import RedisError

from switchboard.foundation.redis_client import HASH_TAG
from switchboard.foundation.settings import Settings
from switchboard.plugin_sdk.registry import Registry

KEY: Final = f"{HASH_TAG}:processes"
"""Sorted set of the running processes as JSON. The score is the time of the last report, in seconds of Redis' clock."""
REPORT_SECONDS: Final = 5.0
LIFETIME_SECONDS: Final = 20
"""Time after which a process that reports nothing more is taken for gone."""


Role: TypeAlias = str
"""`serve`, `worker`, or the command of a process that a plugin brings."""


class LoadedPlugin(BaseModel):
    """A plugin as a process has loaded it."""

    name: str
    distribution: str
    version: str
    provides: list[str]


class RunningProcess(BaseModel):
    """A server, a worker, or a process that a plugin brings. `media_url` is the media address of a server."""

    node: str
    role: Role
    host: str
    pid: int
    region: str = ""
    media_url: str | None = None
    plugins: list[LoadedPlugin]

    def list_differences(self, installed: Sequence[LoadedPlugin]) -> list[str]:
        """Describe the differences between what is installed and what this process has loaded."""
        loaded = {plugin.name: plugin for plugin in self.plugins}
        differences = []
        for plugin in installed:
            known = loaded.pop(plugin.name, None)
            wanted = f"{plugin.distribution} {plugin.version}"
            if known is None:
                differences.append(f"has not loaded {wanted}")
            elif (known.distribution, known.version) != (plugin.distribution, plugin.version):
                differences.append(f"has loaded {known.distribution} {known.version}, not {wanted}")
            elif known.provides != plugin.provides:
                missing = ", ".join(sorted({*plugin.provides} ^ {*known.provides})) or "another order"
                differences.append(f"has loaded {wanted} with other contents ({missing})")
        differences += [
            f"has loaded {plugin.distribution} {plugin.version}, which is not installed" for plugin in loaded.values()
        ]
        return differences

    def describe_restart(self, installed: Sequence[LoadedPlugin]) -> str | None:
        """Return a message that says why the process must be restarted; None if it need not be."""
        differences = self.list_differences(installed)
        if not differences:
            return None
        return f"restart needed: {self.role} on {self.host} (process {self.pid}) {'; it '.join(differences)}"


def list_installed_plugins(registry: Registry) -> list[LoadedPlugin]:
    """List the plugins that a process loads that starts now."""
    return [
        LoadedPlugin(
            name=plugin.name, distribution=plugin.distribution, version=plugin.version, provides=plugin.provides
        )
        for plugin in registry.plugins
    ]


async def list_restarts(redis: Redis, registry: Registry) -> list[str] | None:
    """List messages about running processes that must be restarted; None if Redis does not answer."""
    running = await list_running_processes(redis, registry)
    return None if running is None else [message for _, message in running if message is not None]


async def list_running_processes(redis: Redis, registry: Registry) -> list[tuple[RunningProcess, str | None]] | None:
    """List the running processes, each with the reason why it must be restarted; None if Redis does not answer."""
    installed, running = list_installed_plugins(registry), list[RunningProcess]()
    try:
        seconds, _ = await redis.time()
        reports = await redis.zrangebyscore(KEY, seconds - LIFETIME_SECONDS, "+inf")
    except (RedisError, OSError):
        return None
    for report in reports:
        with suppress(ValidationError):  # of a program of another version
            running.append(RunningProcess.model_validate_json(report))
    running.sort(key=lambda process: (process.role, process.host, process.pid))
    return [(process, process.describe_restart(installed)) for process in running]


@asynccontextmanager
async def report_process(
    redis: Redis, registry: Registry, settings: Settings, *, node: str, role: Role
) -> AsyncIterator[None]:
    """Report this process as running, until the end of the block."""
    process = RunningProcess(
        node=node,
        role=role,
        host=socket.gethostname(),
        pid=os.getpid(),
        region=settings.region,
        media_url=settings.media_url if role == "serve" else None,
        plugins=list_installed_plugins(registry),
    ).model_dump_json()
    reporting = asyncio.create_task(_report(redis, process))
    try:
        yield
    finally:
        reporting.cancel()
        await asyncio.gather(reporting, return_exceptions=True)
        with suppress(RedisError, OSError):
            await redis.zrem(KEY, process)


async def _report(redis: Redis, process: str) -> None:
    while True:
        with suppress(RedisError, OSError):  # reported again in a moment, and needed by nothing that serves
            seconds, _ = await redis.time()
            await redis.zadd(KEY, {process: seconds})
            await redis.zremrangebyscore(KEY, "-inf", seconds - LIFETIME_SECONDS)
            await redis.expire(KEY, LIFETIME_SECONDS)
        await asyncio.sleep(REPORT_SECONDS)
