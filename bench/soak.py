"""Benchmark of the resources that a running installation keeps: memory, file descriptors, and tables while calls begin
and end for a long time.

A `serve` and a `worker` process hold `BENCH_CALLS` calls for `BENCH_MINUTES`. Callers talk for a minute and a half,
hang up, and call again, so that everything that a call leaves behind adds up. Memory and descriptors are to stay as
they are after the first minutes; tables grow by what a call is, and by nothing else.
"""

import asyncio
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import asyncpg
import numpy as np
import uvloop
from switchboard.plugin_sdk.audio import decode_audio

from bench._callers import Caller, Line, Script, build_caller_audio, find_turn_ends
from bench._carrier import open_installation
from bench._counters import count_descriptors, cpu_seconds, rss_megabytes
from bench.vendors_server import Turn, Vendors

CALLS: Final = int(os.environ.get("BENCH_CALLS", "20"))
MINUTES: Final = float(os.environ.get("BENCH_MINUTES", "10"))
SAMPLES, TABLES = 20, 12
TALK_SECONDS, PAUSE_SECONDS = 90.0, 1.0
SETTLED: Final = 0.25
"""Share of the time in which memory may still grow: caches fill, and allocators find their size."""
SIZES: Final = "select relname, pg_total_relation_size(relid) as bytes from pg_stat_user_tables"


@dataclass(slots=True)
class Callers:
    """Calls that have ended since the last sample."""

    ended: int = 0
    faults: list[str] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)

    async def call_forever(self, number: int, line: Line, vendors: Vendors, script: Script) -> None:
        """Call again and again."""
        await asyncio.sleep(number * (TALK_SECONDS + PAUSE_SECONDS) / CALLS)
        while True:
            caller = Caller(number, line, vendors)
            await caller.call(script)
            self.ended += 1
            self.turns += [turn for turn in caller.turns if turn.is_answered]
            if caller.fault:
                self.faults.append(caller.fault)
            await asyncio.sleep(PAUSE_SECONDS)


@dataclass(frozen=True, slots=True)
class Sample:
    """Resources at one moment: megabytes and descriptors of both processes, and bytes of each table."""

    moment: float
    calls: int
    megabytes: tuple[float, float]
    descriptors: tuple[int, int]
    tables: Mapping[str, int]


async def take_sample(pids: tuple[int, int], calls: int, database: asyncpg.Connection) -> Sample:
    rows = await database.fetch(SIZES)
    return Sample(
        time.monotonic(),
        calls,
        (rss_megabytes(pids[0]), rss_megabytes(pids[1])),
        (count_descriptors(pids[0]), count_descriptors(pids[1])),
        {row["relname"]: row["bytes"] for row in rows},
    )


async def soak(folder: Path) -> None:
    audio, words = build_caller_audio(TALK_SECONDS)
    script = Script.build(audio, words, find_turn_ends(decode_audio(audio, "mulaw")))
    vendors, callers, samples, total, failed = Vendors(CALLS), Callers(), list[Sample](), 0, 0
    async with (
        open_installation(folder, CALLS) as installation,
        vendors.serve(installation.vendors_port),
        installation.serve() as line,
        installation.work() as worker,
    ):
        database = await asyncpg.connect(installation.directory.database_url)
        calling = [asyncio.create_task(callers.call_forever(n, line, vendors, script)) for n in range(CALLS)]
        print("minute | calls ended | failed | serve MB | descriptors | worker MB | descriptors | tables MB", end="")
        print(" | own p50 | p99 ms | serve % of a core", flush=True)
        started_at = time.monotonic()
        spent = cpu_seconds(line.pid)
        for number in range(SAMPLES + 1):
            await asyncio.sleep(max(0.0, started_at + number * MINUTES * 60 / SAMPLES - time.monotonic()))
            total, failed = total + callers.ended, failed + len(callers.faults)
            samples.append(await take_sample((line.pid, worker), total, database))
            before, spent = spent, cpu_seconds(line.pid)
            seconds = samples[-1].moment - samples[-2].moment if number else 1.0
            report(samples[-1], (samples[-1].moment - started_at) / 60, failed, callers, (spent - before) / seconds)
            callers.ended, callers.turns, callers.faults = 0, [], []
        for task in calling:
            task.cancel()
        await asyncio.gather(*calling, return_exceptions=True)
        await database.close()
    conclude(samples)


def report(sample: Sample, minute: float, failed: int, callers: Callers, cpu_share: float) -> None:
    own = [turn.own_ms for turn in callers.turns] or [float("nan")]
    (serve, worker), descriptors = sample.megabytes, sample.descriptors
    print(
        f"{minute:6.1f} | {sample.calls:11} | {failed:6} | {serve:8.1f} | {descriptors[0]:11} | {worker:9.1f} | "
        f"{descriptors[1]:11} | {sum(sample.tables.values()) / 1e6:9.1f} | {np.percentile(own, 50):7.1f} | "
        f"{np.percentile(own, 99):6.1f} | {cpu_share * 100:17.1f}",
        flush=True,
    )
    for fault in sorted(set(callers.faults)):
        print(f"       a call failed: {fault}", flush=True)


def conclude(samples: Sequence[Sample]) -> None:
    """Print the growth of each resource after the beginning, and that of the tables for each call."""
    settled = samples[round(len(samples) * SETTLED) :]
    first, last = settled[0], settled[-1]
    hours = [(sample.moment - first.moment) / 3600 for sample in settled]
    print(f"\nafter the first {SETTLED:.0%} of the time")
    for place, name in enumerate(("serve", "worker")):
        memory = np.polyfit(hours, [sample.megabytes[place] for sample in settled], 1)[0]
        found = [sample.descriptors[place] for sample in settled]
        print(f"{name}: {memory:+.1f} MB an hour; descriptors {min(found)} to {max(found)}")
    calls = last.calls - first.calls
    if not calls:
        print("no call has ended since")
        return
    growth = {name: (size - first.tables.get(name, 0)) / calls for name, size in last.tables.items()}
    print(f"\ntable                          | kB for a call, of {calls} | MB at the end")
    for name in sorted(growth, key=lambda name: -growth[name])[:TABLES]:
        print(f"{name:30} | {growth[name] / 1000:21.2f} | {last.tables[name] / 1e6:.2f}")
    print(f"{'all':30} | {sum(growth.values()) / 1000:21.2f} | {sum(last.tables.values()) / 1e6:.2f}")


def run() -> None:
    """Print the samples, and what grew."""
    with tempfile.TemporaryDirectory() as folder:
        uvloop.run(soak(Path(folder)))
