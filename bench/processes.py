"""Calls over several processes of `serve`: processor time of each call, and the balance of calls over the processes.

The platform runs with the offline providers, recording, transcript, database, and events. Callers of the simulated
carrier run in this program: they hear the greeting and are silent, so that no recognizer takes part. One process with
some calls and two processes with twice as many run side by side, because both then suffer alike from whatever else the
machine does. If a process of the two needs as much as the one, and the calls are spread evenly, two cores carry twice
the calls.
"""

import asyncio
import os
import sys
import tempfile
import wave
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import aiohttp
import uvloop
from pydantic import SecretStr
from sqlalchemy import text
from switchboard.apps.cli.demo import Demo, seed
from switchboard.apps.embedded import DataDirectory, EmbeddedServers
from switchboard.apps.process_runtime import open_process_runtime
from switchboard.foundation.settings import Settings
from switchboard.migrations import upgrade
from switchboard.plugin_sdk import SimulatedCarrier, SpokenLine, TelephonyProvider
from switchboard.resources.identity.models import Organization
from switchboard.resources.phone_numbers import purchases
from switchboard.runtime import Runtime

from bench._counters import cpu_seconds, list_processes
from bench.costs import SECRET_KEY, find_port
from bench.embedded_server import build_serve_environment

CALLS: Final = int(os.environ.get("BENCH_CALLS", "15"))
CALL_SECONDS, COUNTED_SECONDS, BETWEEN_SECONDS, GREETING_SECONDS = 60, 15.0, 0.6, 3.0
MIGRATING: Final = asyncio.Lock()
"""Alembic runs once at a time in a process."""
HOLDERS: Final = text("select count(*) from call where holder is not null and ended_at is null group by holder")


@asynccontextmanager
async def start_platform(folder: Path, processes: int) -> AsyncIterator[tuple[Runtime, Demo, int]]:
    """Run `serve --processes` over embedded servers; yield a runtime beside it, the demo, and the process id."""
    directory, port = DataDirectory(folder), find_port()
    directory.claim()
    settings = Settings(data_dir=folder, port=port, secret_keys=[SecretStr(SECRET_KEY)])
    environment = {
        **os.environ,
        **build_serve_environment(directory, port),
        "SWITCHBOARD_SECRET_KEYS": SECRET_KEY,
        # A quarter of it is admitted however busy the machine is.
        "SWITCHBOARD_CALL_CAPACITY": str(8 * CALLS),
        "SWITCHBOARD_LOG_LEVEL": "ERROR",
    }
    urls = {"database_url": directory.database_url, "redis_url": directory.redis_url}
    async with EmbeddedServers(directory):
        async with MIGRATING:
            await upgrade(directory.database_url)
        async with open_process_runtime(settings, **urls) as runtime:
            demo = await seed(runtime)
            async with runtime.database.system() as session:
                organization = await session.get_one(Organization, demo.organization_id)
                concurrent = {"max_concurrent_calls": CALLS * processes}
                organization.policy = organization.policy.model_copy(update=concurrent)
            command = [sys.executable, "-m", "switchboard", "serve", "--processes", str(processes)]
            serve = await asyncio.create_subprocess_exec(*command, env=environment)
            try:
                await wait_until_ready(settings.base_url, serve.pid, processes)
                yield runtime, demo, serve.pid
            finally:
                serve.terminate()
                await serve.wait()
    directory.release()


async def wait_until_ready(url: str, pid: int, processes: int) -> None:
    """Wait until every process has published the size of its pool."""
    wanted = f'switchboard_pool_size{{pool="database"}} {20.0 * processes}'
    async with aiohttp.ClientSession() as http:
        while True:
            try:
                async with http.get(f"{url}/metrics") as response:
                    if wanted in await response.text():
                        return
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(0.2)


async def measure(processes: int, together: asyncio.Barrier) -> None:
    """Print one row. The platforms of `together` are measured at the same moments."""
    calls = CALLS * processes
    with tempfile.TemporaryDirectory() as name:
        silence = Path(name, "silence.wav")
        with wave.open(str(silence), "wb") as file:
            file.setparams((1, 2, 8000, 0, "NONE", ""))
            file.writeframes(bytes(16_000 * CALL_SECONDS))
        async with start_platform(Path(name, "data"), processes) as (runtime, demo, pid):
            serving = list_processes(pid)[1:] if processes > 1 else [pid]
            await together.wait()
            idle = await count_cpu(serving)
            calling = [
                asyncio.create_task(call_after(index * BETWEEN_SECONDS, runtime, demo, silence))
                for index in range(calls)
            ]
            while sum(held := await count_calls(runtime)) < calls:  # noqa: ASYNC110 - another process: no event
                await asyncio.sleep(0.5)
            await together.wait()
            await asyncio.sleep(GREETING_SECONDS)
            spent = await count_cpu(serving)
            each = sum(spent) / calls
            columns = (
                ", ".join(map(str, held)),
                *(", ".join(f"{share:.1f}" for share in found) for found in (idle, spent)),
            )
            print(f"{processes:9} | {columns[0]:13} | {columns[1]:9} | {columns[2]:18} | {each:.2f}", flush=True)
            for task in calling:
                task.cancel()
            await asyncio.gather(*calling, return_exceptions=True)


async def count_cpu(pids: Sequence[int]) -> list[float]:
    """Return the percentage of a core that each process takes."""
    before = [cpu_seconds(pid) for pid in pids]
    await asyncio.sleep(COUNTED_SECONDS)
    return [(cpu_seconds(pid) - start) / COUNTED_SECONDS * 100 for pid, start in zip(pids, before, strict=True)]


async def call_after(seconds: float, runtime: Runtime, demo: Demo, silence: Path) -> None:
    await asyncio.sleep(seconds)
    callbacks = purchases.build_callback_urls(runtime.settings.base_url, demo.organization_id, "loopback")
    async with runtime.providers.use(demo.organization_id, TelephonyProvider) as carrier:
        assert isinstance(carrier, SimulatedCarrier)  # noqa: S101 - the demo's
        await carrier.simulate_call(
            from_number="+15550100001",
            to_number=demo.phone_number,
            lines=[SpokenLine(wav=silence)],
            callbacks=callbacks,
        )


async def count_calls(runtime: Runtime) -> list[int]:
    """Return the live calls of each process."""
    async with runtime.database.system() as session:
        return [int(row[0]) for row in await (await session.connection()).execute(HOLDERS)]


def run() -> None:
    """Print the table."""
    print(f"{CALLS} calls for each process; % of a core")
    print("processes | calls of each | idle      | with calls         | for a call")
    uvloop.run(measure_together())


async def measure_together() -> None:
    """Measure both side by side, because both then suffer alike from whatever else the machine does."""
    together = asyncio.Barrier(2)
    await asyncio.gather(*(measure(processes, together) for processes in (1, 2)))
