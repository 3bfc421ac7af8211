"""Benchmark of what traces cost: CPU time of a server with live calls, with and without the export of spans, in turns.
The calls, and the providers that respond at once, are those of `bench/calls`; the receiver of the spans discards them.
"""

import os
import socket
import statistics
import subprocess
import sys
import time

import numpy as np
import uvloop
from aiohttp import web

from bench.calls import PORT, build_frames, cpu_seconds, run_calls

CALLS, ROUNDS = 40, 8
RECEIVER_PORT = 18_101
START_SECONDS = 60.0
ENDPOINT = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{RECEIVER_PORT}"}


class DiscardingReceiver:
    """OTLP receiver that counts requests and bytes."""

    def __init__(self) -> None:
        self.requests = self.bytes = 0

    async def receive(self, request: web.Request) -> web.Response:
        self.requests += 1
        self.bytes += len(await request.read())
        return web.Response()


async def measure_lateness(script: list[str], receiver: DiscardingReceiver) -> list[float]:
    """Run the calls beside the receiver; return the lateness of every message in milliseconds."""
    application = web.Application(client_max_size=1 << 26)
    application.router.add_post("/v1/traces", receiver.receive)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", RECEIVER_PORT).start()
    try:
        return await run_calls(CALLS, script)
    finally:
        await runner.cleanup()


def wait_for_server() -> None:
    """Wait until the server of the calls accepts connections. Raises `OSError`."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", PORT)).close()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def measure_round(script: list[str], receiver: DiscardingReceiver, *, traced: bool) -> tuple[float, float]:
    """Return the server's CPU time in seconds, and the 99th percentile of the lateness in milliseconds."""
    cores = sorted(os.sched_getaffinity(0))
    server = subprocess.Popen(
        [sys.executable, "-m", "bench.calls_server", str(PORT), str(cores[0])],
        env={**os.environ, **(ENDPOINT if traced else {})},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.sched_setaffinity(0, {cores[-1]})
    try:
        wait_for_server()
        before = cpu_seconds(server.pid)
        late = uvloop.run(measure_lateness(script, receiver))
        return cpu_seconds(server.pid) - before, float(np.percentile(late, 99))
    finally:
        os.sched_setaffinity(0, set(cores))
        server.kill()
        server.wait()


def run() -> None:
    """Print the rounds and the ratio."""
    script, receiver = build_frames(), DiscardingReceiver()
    plain, traced = [], []
    print(f"{CALLS:4} calls | CPU s without | CPU s with traces | p99 late ms without | with")
    for _ in range(ROUNDS):
        plain.append(measure_round(script, receiver, traced=False))
        traced.append(measure_round(script, receiver, traced=True))
        print(
            f"          | {plain[-1][0]:13.2f} | {traced[-1][0]:17.2f} | {plain[-1][1]:19.1f} | {traced[-1][1]:4.1f}",
            flush=True,
        )
    medians = [statistics.median(seconds for seconds, _ in rounds) for rounds in (plain, traced)]
    print(f"\nspans cost {(medians[1] / medians[0] - 1) * 100:+.1f} % CPU (medians of {ROUNDS} rounds in turns)")
    print(f"the receiver got {receiver.requests} requests with {receiver.bytes / 1e6:.1f} MB")
