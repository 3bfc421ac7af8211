"""Processor time and memory of exports of calls through the API, with few and with many calls."""

import os
import resource
import time

from quart.typing import TestClientProtocol
from sqlalchemy.ext.asyncio import create_async_engine
from switchboard.apps.embedded import DataDirectory
from switchboard.apps.process_runtime import open_process_runtime
from switchboard.apps.server import app
from switchboard.foundation.observability import logs
from switchboard.foundation.settings import Settings
from switchboard.foundation.web.principal import SCOPES
from switchboard.migrations import upgrade
from switchboard.resources.identity import service as identity

from bench.call_filters import fill
from bench.embedded_server import run_with_servers

SIZES = (10_000, int(os.environ.get("BENCH_CALLS", "100000")))
MEGABYTE = 1024  # `ru_maxrss` counts kilobytes


async def stream(client: TestClientProtocol, key: str, path: str) -> tuple[int, float]:
    """Read an export as it comes; return its lines and the processor seconds that it took, without the database's."""
    started_at, lines = time.process_time(), 0
    async with client.request(path, headers={"Authorization": f"Bearer {key}"}) as connection:
        await connection.send_complete()
        while part := await connection.receive():
            lines += part.count(b"\n")
    return lines, time.process_time() - started_at


async def measure(directory: DataDirectory) -> None:
    await upgrade(directory.database_url)
    database = create_async_engine(directory.database_url.replace("postgresql://", "postgresql+asyncpg://"))
    async with open_process_runtime(
        Settings(data_dir=directory.path), database_url=directory.database_url, redis_url=directory.redis_url
    ) as parts:
        client = app.create_app(parts).test_client()
        print("| export | lines | processor ms for 1 000 lines | peak memory, MB |\n| --- | --- | --- | --- |")
        for size in SIZES:
            async with parts.database.system() as session:
                organization = identity.create_organization(session, name="Bench")
            async with parts.database.system() as session, session.narrow(organization.id) as tenant:
                _, key = await identity.create_api_key(tenant, name="bench", scopes=list(SCOPES))
            await fill(database, str(organization.id), size)
            for path in ("calls?format=csv", "calls?format=jsonl", "transcripts?format=csv"):
                lines, seconds = await stream(client, key, f"/v1/exports/{path}")
                peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / MEGABYTE
                print(f"| `{path}` | {lines:,} | {seconds * 1_000_000 / lines:,.0f} | {peak:,.0f} |", flush=True)
    await database.dispose()


def run() -> None:
    """Print the table."""
    logs.configure_logging("ERROR")
    run_with_servers(measure)
