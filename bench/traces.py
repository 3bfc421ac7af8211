"""Benchmark of what traces cost: CPU time of two servers with the same live calls on one core, of which one exports
spans. They run side by side, because both then suffer alike from whatever else the machine does.

The providers respond at once; the receiver of the spans discards them.
"""

import asyncio
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvloop
from aiohttp import web

from bench._counters import cpu_seconds
from bench._engine_calls import COUNTED_SECONDS, PORT, WARM_SECONDS, build_frames, run_calls

CALLS, ROUNDS = 40, 8
PORTS = (PORT, PORT + 1)
RECEIVER_PORT = PORT + 2
START_SECONDS = 60.0
ENDPOINT = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{RECEIVER_PORT}", "OTEL_BSP_SCHEDULE_DELAY": "1000"}


class DiscardingReceiver:
    """OTLP receiver that counts requests and bytes."""

    def __init__(self) -> None:
        self.requests = self.bytes = 0

    async def receive(self, request: web.Request) -> web.Response:
        self.requests += 1
        self.bytes += len(await request.read())
        return web.Response()


@contextmanager
def run_server(port: int, core: int, *arguments: str, environment: dict[str, str] | None = None) -> Iterator[int]:
    """Run a server of calls on one core; yield its process id once it accepts connections."""
    server = subprocess.Popen(
        [sys.executable, "-m", "bench.engine_server", str(port), str(core), *arguments],
        env={**os.environ, **(environment or {})},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_for_server(port)
        yield server.pid
    finally:
        server.kill()
        server.wait()


def _wait_for_server(port: int) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


async def measure_round(script: list[str], receiver: DiscardingReceiver, pids: tuple[int, int]) -> list[float]:
    """Return the CPU time of both servers in seconds, once their calls are under way."""
    application = web.Application(client_max_size=1 << 26)
    application.router.add_post("/v1/traces", receiver.receive)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", RECEIVER_PORT).start()
    calls = [asyncio.create_task(run_calls(CALLS, script, port=port)) for port in PORTS]
    try:
        await asyncio.sleep(WARM_SECONDS)
        before = [cpu_seconds(pid) for pid in pids]
        await asyncio.sleep(COUNTED_SECONDS)
        spent = [cpu_seconds(pid) - began for pid, began in zip(pids, before, strict=True)]
        await asyncio.gather(*calls)
        return spent
    finally:
        await runner.cleanup()


def run() -> None:
    """Print the rounds and the ratio. The servers change places from round to round."""
    cores, script, receiver = sorted(os.sched_getaffinity(0)), build_frames(), DiscardingReceiver()
    ratios = []
    print(f"{CALLS} calls on each server | CPU s without | CPU s with traces")
    for number in range(ROUNDS):
        place = number % 2
        environments = [ENDPOINT if index == place else {} for index in range(2)]
        with (
            run_server(PORTS[0], cores[0], environment=environments[0]) as first,
            run_server(PORTS[1], cores[0], environment=environments[1]) as second,
        ):
            os.sched_setaffinity(0, {cores[-1]})
            spent = uvloop.run(measure_round(script, receiver, (first, second)))
            os.sched_setaffinity(0, set(cores))
        traced, plain = spent[place], spent[1 - place]
        ratios.append(traced / plain)
        print(f"                         | {plain:13.2f} | {traced:17.2f}", flush=True)
    print(f"\nspans cost {(statistics.median(ratios) - 1) * 100:+.1f} % CPU (median of {ROUNDS} rounds)")
    print(f"the receiver got {receiver.requests} requests with {receiver.bytes / 1e6:.1f} MB")
