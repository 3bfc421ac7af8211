"""Servers of one benchmark."""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

from switchboard.apps.embedded import DataDirectory, EmbeddedServers


def run_with_servers(measure: Callable[[DataDirectory], Awaitable[None]]) -> None:
    """Measure over an embedded PostgreSQL and Redis, whose database is not migrated yet."""

    async def serve() -> None:
        with tempfile.TemporaryDirectory() as folder:
            directory = DataDirectory(Path(folder))
            directory.claim()
            async with EmbeddedServers(directory):
                await measure(directory)
            directory.release()

    asyncio.run(serve())


def build_serve_environment(directory: DataDirectory, port: int) -> dict[str, str]:
    """Return the settings of a `serve` process on a port, over the servers of a data directory."""
    return {
        "SWITCHBOARD_DATA_DIR": str(directory.path),
        "SWITCHBOARD_PORT": str(port),
        "SWITCHBOARD_DATABASE_URL": directory.database_url,
        "SWITCHBOARD_REDIS_URL": directory.redis_url,
        "SWITCHBOARD_DRAIN_SECONDS": "0",
    }
