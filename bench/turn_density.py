"""Benchmark of what turn detection costs: CPU time of two servers with the same live calls on one core, of which one
ends turns by silence, and the other judges them with `auto` and Smart Turn. They run side by side, because both then
suffer alike from whatever else the machine does.

The calls are those of `bench/traces`: a sentence of four seconds every eleven seconds, whose words leave doubt, so
every turn asks the model. Smart Turn's process runs on the same core, with a lower priority.
"""

import asyncio
import os
import statistics
import time
from collections.abc import Sequence
from typing import Final

import numpy as np
import uvloop

from bench._counters import cpu_seconds, list_processes
from bench._engine_calls import COUNTED_SECONDS, PORT, WARM_SECONDS, build_frames, run_calls
from bench.traces import run_server

CALLS: Final = (10, 40)
ROUNDS: Final = 4
PORTS: Final = (PORT, PORT + 1)
MODES: Final = ("silence", "auto")


def measure_cpu(pids: Sequence[int]) -> list[tuple[float, float]]:
    """Return the CPU seconds of each server, and of the processes beside it."""
    spent = [[cpu_seconds(process) for process in list_processes(pid)] for pid in pids]
    return [(own, sum(others)) for own, *others in spent]


async def measure_round(calls: int, script: list[str], pids: Sequence[int]) -> list[tuple[float, float, float]]:
    """Return of each server its CPU seconds, those beside it, and the 99th percentile of lateness in milliseconds."""
    running = [asyncio.create_task(run_calls(calls, script, port=port)) for port in PORTS]
    await asyncio.sleep(WARM_SECONDS)
    before, started_at = measure_cpu(pids), time.perf_counter()
    await asyncio.sleep(COUNTED_SECONDS)
    after, seconds = measure_cpu(pids), time.perf_counter() - started_at
    late = [float(np.percentile(found, 99)) for found in await asyncio.gather(*running)]
    return [
        ((own - own_before) / seconds, (beside - beside_before) / seconds, lateness)
        for (own, beside), (own_before, beside_before), lateness in zip(after, before, late, strict=True)
    ]


def run() -> None:
    """Print a line for each number of calls. The servers change places from round to round."""
    cores, script = sorted(os.sched_getaffinity(0)), build_frames()
    print(
        "% of a core for a call, the ratio of both modes without and with Smart Turn's process, and p99 lateness in ms"
    )
    print("calls |                         silence | auto | Smart Turn beside it | ratio | with Smart Turn | late")
    for calls in CALLS:
        rounds = []
        for number in range(ROUNDS):
            modes = MODES if number % 2 else tuple(reversed(MODES))
            with (
                run_server(PORTS[0], cores[0], modes[0]) as first,
                run_server(PORTS[1], cores[0], modes[1]) as second,
            ):
                os.sched_setaffinity(0, {cores[-1]})
                found = uvloop.run(measure_round(calls, script, (first, second)))
                os.sched_setaffinity(0, set(cores))
            rounds.append(dict(zip(modes, found, strict=True)))
        silence, auto, beside = (
            statistics.median(values)
            for values in (
                [found["silence"][0] for found in rounds],
                [found["auto"][0] for found in rounds],
                [found["auto"][1] for found in rounds],
            )
        )
        ratio = statistics.median(found["auto"][0] / found["silence"][0] for found in rounds)
        total = statistics.median(sum(found["auto"][:2]) / found["silence"][0] for found in rounds)
        late = [statistics.median(found[mode][2] for found in rounds) for mode in MODES]
        print(
            f"{calls:5} | {silence / calls * 100:31.2f} | {auto / calls * 100:4.2f} | {beside / calls * 100:20.2f} "
            f"| {ratio:5.2f} | {total:15.2f} | {late[0]:.0f}, {late[1]:.0f}",
            flush=True,
        )
