"""Processor time of a call's set-up in the serving process: from the carrier's callback to the greeting's first audio.

A real `serve` process takes calls over Twilio's wire format from an organization with vendors' plugins, which ask
stand-ins on this machine (`vendors_server.py`), with recording, transcript, database, and events. Some calls arrive one
after the other, each after the greeting of the one before, and stay silent. They hang up together, and what follows in
this process is measured apart. The time that the process takes without a call, and for calls that are silent, is
measured and taken off.
"""

import asyncio
import tempfile
import time
from pathlib import Path
from statistics import median

import uvloop

from bench._carrier import Carrier, open_installation
from bench._counters import cpu_seconds
from bench.vendors_server import Vendors

CALLS, ROUNDS, WARM = 10, 5, 5
IDLE_SECONDS, AFTER_SECONDS, GREETING_SECONDS = 3.0, 3.0, 2.0


async def measure_share(carrier: Carrier, seconds: float) -> float:
    """Return the share of a core that the process takes."""
    before, moment = cpu_seconds(carrier.pid), time.monotonic()
    await asyncio.sleep(seconds)
    return (cpu_seconds(carrier.pid) - before) / (time.monotonic() - moment)


async def measure_round(carrier: Carrier, calls: int) -> tuple[float, float, float]:
    """Return a call's milliseconds of processor time until its greeting, from its end, and in a silent second."""
    idle = await measure_share(carrier, IDLE_SECONDS)
    sockets, spent, seconds_with_calls = [], 0.0, 0.0
    for number in range(calls):
        before, moment = cpu_seconds(carrier.pid), time.monotonic()
        sockets.append(await carrier.connect(number))
        seconds = time.monotonic() - moment
        spent += cpu_seconds(carrier.pid) - before - idle * seconds
        seconds_with_calls += seconds * number
        await asyncio.sleep(GREETING_SECONDS)  # The audio of one greeting is no part of the next set-up.
    silent = (await measure_share(carrier, IDLE_SECONDS) - idle) / calls
    before, moment = cpu_seconds(carrier.pid), time.monotonic()
    await asyncio.gather(*(carrier.hang_up(socket) for socket in sockets))
    await asyncio.sleep(AFTER_SECONDS)
    ended = cpu_seconds(carrier.pid) - before - idle * (time.monotonic() - moment)
    return (spent - silent * seconds_with_calls) * 1000 / calls, ended * 1000 / calls, silent * 1000


async def measure() -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with (
            open_installation(Path(folder), CALLS) as installation,
            Vendors(CALLS).serve(installation.vendors_port),
            installation.serve() as carrier,
        ):
            await measure_round(carrier, WARM)
            print("CPU ms of a call: until its greeting | from its end | in a second")
            rounds = []
            for _ in range(ROUNDS):
                rounds.append(await measure_round(carrier, CALLS))
                setup, end, silent = rounds[-1]
                print(f"{setup:36.1f} | {end:12.1f} | {silent:11.1f}", flush=True)
            setup, end, silent = (median(column) for column in zip(*rounds, strict=True))
            print(f"median {setup:29.1f} | {end:12.1f} | {silent:11.1f}")


def run() -> None:
    """Print the rounds and the medians."""
    uvloop.run(measure())
