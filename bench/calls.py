"""Benchmark of the calls that one core carries: the latency that the platform adds to an answer, at steps of calls.

A real `serve` process has one core, and takes calls with recording, transcript, database, and events. Vendors' plugins
ask stand-ins that respond after fixed times (`vendors_server.py`). These, the callers, PostgreSQL, and Redis have the
other core. Every caller talks all the time: a question each five seconds, over Twilio's wire format. Pipecat runs in
the same run with the same vendors, parameters, and callers; it has no recording, transcript, or database.

The own latency is the time from the end of the caller's turn, after the silence that ends it, to the first audio of the
answer, without the time that the vendors take. Lateness is that of audio within a reply, at the caller. A step passes
if own latency is within 20 ms (p50) and 60 ms (p99), all turns are answered, and no call fails. The last column is the
lateness of the callers themselves: beyond a few milliseconds, the other core is too busy for the other columns.

Beside a hundred calls twenty others arrive each second, for five seconds, and hear their greetings.
"""

import asyncio
import gc
import os
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import uvloop
from switchboard.plugin_sdk.audio import decode_audio

from bench._callers import Caller, Heard, Line, Script, build_caller_audio, build_silence, find_turn_ends
from bench._carrier import open_installation
from bench._counters import cpu_seconds, rss_megabytes
from bench._pipecat import find_pipecat_turn_ends, install_pipecat, run_pipecat
from bench.vendors_server import Vendors

STEPS: Final = [int(step) for step in os.environ.get("BENCH_CALLS", "20,50,75,100,150").split(",")]
PIPECAT_STEPS: Final = (5, 8, 10, 12, 15)
COUNTED_SECONDS: Final = float(os.environ.get("BENCH_SECONDS", "30"))
ARRIVED, ARRIVALS, ARRIVALS_PER_SECOND = 100, 100, 20
CYCLE_SECONDS, CONNECT_SECONDS, SETTLE_SECONDS, ANSWER_SECONDS = 5.1, 0.1, 6.0, 3.0
WARM_CALLS, WARM_SECONDS = 5, 20.0
P50_MS, P99_MS = 20.0, 60.0
TALK_SECONDS: Final = max(*STEPS, *PIPECAT_STEPS) * CONNECT_SECONDS + CYCLE_SECONDS + COUNTED_SECONDS + 60.0

Serve = Callable[[], AbstractAsyncContextManager[Line]]


@dataclass(frozen=True, slots=True)
class Engine:
    """One of the compared platforms. `greets` says whether its agent speaks first."""

    name: str
    greets: bool
    serve: Serve
    script: Script
    vendors_port: int


@dataclass(frozen=True, slots=True)
class Row:
    """One step: its turns, and what a call took, in shares of a core and megabytes of memory."""

    heard: Heard
    cpu_share: float
    megabytes: float
    greeted_after: list[float]

    @property
    def is_good(self) -> bool:
        own = [turn.own_ms for turn in self.heard.turns]
        return (
            0 < len(own) == self.heard.asked
            and self.heard.failed == 0
            and bool(np.percentile(own, 50) <= P50_MS and np.percentile(own, 99) <= P99_MS)
        )


@asynccontextmanager
async def run_callers(
    callers: Sequence[Caller], script: Script, seconds: float
) -> AsyncIterator[list[asyncio.Task[None]]]:
    """Let callers call, one after the other so many seconds, and hang up at the end."""
    calling = []
    try:
        for caller in callers:
            calling.append(asyncio.create_task(caller.call(script)))
            await asyncio.sleep(seconds)
        yield calling
    finally:
        for task in calling:
            task.cancel()
        await asyncio.gather(*calling, return_exceptions=True)


async def measure_step(engine: Engine, calls: int) -> AsyncIterator[Row]:
    """Yield the row of a number of calls, and for a hundred of them that of the arrivals beside them."""
    numbers = calls + (ARRIVALS if calls == ARRIVED and engine.greets else 0)
    vendors = Vendors(numbers)
    async with vendors.serve(engine.vendors_port), engine.serve() as line:
        await warm_up(engine, line, vendors)
        empty = rss_megabytes(line.pid)
        callers = [Caller(number, line, vendors) for number in range(calls)]
        async with run_callers(callers, engine.script, max(CONNECT_SECONDS, CYCLE_SECONDS / calls)):
            await asyncio.sleep(SETTLE_SECONDS)
            began, spent = time.perf_counter(), cpu_seconds(line.pid)
            await asyncio.sleep(COUNTED_SECONDS)
            ended, spent = time.perf_counter(), cpu_seconds(line.pid) - spent
            await asyncio.sleep(ANSWER_SECONDS)
            yield Row(
                Heard.collect(callers, began, ended),
                spent / (ended - began) / calls,
                (rss_megabytes(line.pid) - empty) / calls,
                [caller.greeted_after for caller in callers if engine.greets],
            )
            arriving = [Caller(number, line, vendors) for number in range(calls, numbers)]
            if not arriving:
                return
            began, spent = time.perf_counter(), cpu_seconds(line.pid)
            async with run_callers(arriving, build_silence(TALK_SECONDS), 1 / ARRIVALS_PER_SECOND):
                ended, spent = time.perf_counter(), cpu_seconds(line.pid) - spent
                await asyncio.sleep(ANSWER_SECONDS)
            yield Row(
                Heard.collect([*callers, *arriving], began, ended),
                spent / (ended - began) / numbers,
                (rss_megabytes(line.pid) - empty) / numbers,
                [caller.greeted_after for caller in arriving],
            )


async def warm_up(engine: Engine, line: Line, vendors: Vendors) -> None:
    """Hold a few calls first, because the first answers of a process include imports and caches."""
    callers = [Caller(number, line, vendors) for number in range(min(WARM_CALLS, len(vendors.turns)))]
    async with run_callers(callers, engine.script, CONNECT_SECONDS):
        async with asyncio.timeout(WARM_SECONDS):
            while not all(len(caller.turns) > 1 and caller.turns[0].heard for caller in callers):  # noqa: ASYNC110
                await asyncio.sleep(0.1)
    await asyncio.sleep(ANSWER_SECONDS)


HEADER: Final = (
    "platform    |   calls | answered | failed | own p50 |    p99 | to STT, LLM, TTS, caller | late p99 | "
    "greeted p50 s |  p99 | % of a core/call | MB/call | slip p99"
)


def report(name: str, calls: str, row: Row) -> None:
    turns, heard = row.heard.turns, row.heard
    own = [turn.own_ms for turn in turns] or [float("nan")]
    steps = np.median([turn.steps for turn in turns] or [[float("nan")] * 4], axis=0)
    greeted = [seconds for seconds in row.greeted_after if seconds]
    cells = [
        f"{name:11}", f"{calls:>7}", f"{len(turns)}/{heard.asked}".rjust(8), f"{heard.failed:6}",
        f"{np.percentile(own, 50):7.1f}", f"{np.percentile(own, 99):6.1f}",
        " ".join(f"{step:5.1f}" for step in steps).rjust(24),
        f"{np.percentile(heard.lateness or [float('nan')], 99):8.1f}",
        f"{np.percentile(greeted, 50):13.2f}" if greeted else " " * 13,
        f"{np.percentile(greeted, 99):4.2f}" if greeted else " " * 4,
        f"{row.cpu_share * 100:16.2f}", f"{row.megabytes:7.2f}", f"{np.percentile(heard.slips, 99):8.1f}",
    ]  # fmt: skip
    print(" | ".join(cells), flush=True)


async def run_steps(engine: Engine, steps: Iterable[int], *, all_steps: bool) -> int:
    """Print the rows, to the end or up to the first that fails; return the largest number of calls that passes."""
    largest = 0
    for calls in steps:
        rows = [row async for row in measure_step(engine, calls)]
        gc.collect()
        report(engine.name, str(calls), rows[0])
        for row in rows[1:]:
            report(engine.name, f"{calls}+{ARRIVALS_PER_SECOND}/s", row)
        if rows[0].is_good:
            largest = calls
        elif not all_steps:
            break
    return largest


async def compare(core: int, folder: Path) -> None:
    audio, words = build_caller_audio(TALK_SECONDS)
    samples = decode_audio(audio, "mulaw")
    async with open_installation(folder, max(*STEPS, ARRIVED + ARRIVALS)) as installation:
        port = installation.vendors_port
        own = Engine(
            "Switchboard",
            True,
            lambda: installation.serve(core=core),
            Script.build(audio, words, find_turn_ends(samples)),
            port,
        )
        print(HEADER, flush=True)
        ours = await run_steps(own, STEPS, all_steps=True)
        try:
            python = install_pipecat()
        except subprocess.CalledProcessError as error:
            print(f"without Pipecat, which cannot be installed here: {error}")
            return
        script = Script.build(audio, words, find_pipecat_turn_ends(python, samples))
        vendors = f"http://127.0.0.1:{port}"
        pipecat = Engine("Pipecat", False, lambda: run_pipecat(python, folder, core, vendors), script, port)
        theirs = await run_steps(pipecat, PIPECAT_STEPS, all_steps=False)
    print(f"\ncalls on one core with own latency p50 <= {P50_MS:.0f} ms and p99 <= {P99_MS:.0f} ms: ", end="")
    print(f"Switchboard {ours}, Pipecat {theirs}")


def run() -> None:
    """Print the table and the largest numbers of calls that pass."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[-1]})  # inherited by the embedded servers
    gc.disable()  # A full collection silences the callers and vendors for 0.2 s, and then all of them speak at once.
    try:
        with tempfile.TemporaryDirectory() as folder:
            uvloop.run(compare(cores[0], Path(folder)))
    finally:
        os.sched_setaffinity(0, set(cores))
