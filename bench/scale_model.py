"""Model of an installation of ten to a hundred thousand simultaneous calls, and points that are measured.

The model adds up what a call of three minutes costs (`CALL`) and what idle processes cost (`SERVER`, `WORKER`): none of
it grows with the installation (`bench/scale`). `BENCH_POINTS` are numbers of calls at once; each is measured over
Twilio's wire format with one `serve` and one `worker`, as in `bench/writes`, and compared with the model. Without
points the model is printed alone.

The costs are those of the largest point. What an idle platform costs in the time of the calls is taken off; it is more
than what a few calls cost. Processor time differs by a factor of three between machines.
"""

import asyncio
import math
import os
import sys
import tempfile
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Final

import asyncpg
import uvloop
from switchboard.plugin_sdk.audio import decode_audio

from bench._callers import Script, build_caller_audio, find_turn_ends
from bench._carrier import open_installation
from bench.costs import Counters, Platform, start_receiver
from bench.vendors_server import Vendors
from bench.writes import KEEP_LOG, add_endpoint, hold_calls

POINTS: Final = [int(calls) for calls in os.environ.get("BENCH_POINTS", "10,20").split(",") if calls]
SIZES: Final = (10, 100, 1_000, 10_000, 100_000)
CALL_SECONDS: Final = 180.0
IDLE_SECONDS: Final = 60.0
CALLS_OF_A_SERVER: Final = 60
"""Calls of a core: six tenths of the hundred that it carries (`bench/calls`)."""
BUSY: Final = 0.6
"""Share of its core that a worker uses."""
FEWEST: Final = 2
"""Processes of each kind, so that one may end."""
AUDIO_MBITS, RECORDING_MEGABYTES, UPLOADS = 0.4, 0.65, 2.3
"""Of a call: megabits of audio a second, megabytes of recording a minute, and uploads a minute."""


@dataclass(frozen=True, slots=True)
class Costs:
    """Costs to the shared servers, and the worker: of a call, or of an idle process in a second."""

    transactions: float
    rows: float
    wal: float
    """Bytes, with full-page images."""
    redis: float
    """Commands, also those within scripts."""
    postgres_cpu: float
    worker_cpu: float
    deliveries: float

    @classmethod
    def from_counters(
        cls, before: Counters, after: Counters, idle: "Costs | None" = None, *, pieces: float = 0
    ) -> "Costs":
        """Return the change of counters, less what an idle platform costs meanwhile, for one piece; or a second."""
        seconds = after.moment - before.moment
        return cls(
            *(
                (getattr(after, name) - getattr(before, name) - (seconds * getattr(idle, name) if idle else 0))
                / (pieces or seconds)
                for name in (part.name for part in fields(cls))
            )
        )


CALL: Final = Costs(transactions=150, rows=174, wal=85_000, redis=279, postgres_cpu=0.1, worker_cpu=0.08, deliveries=3)
SERVER: Final = Costs(transactions=1, rows=0.3, wal=60, redis=4, postgres_cpu=0.0003, worker_cpu=0, deliveries=0)
"""A second of a `serve` without calls."""
WORKER: Final = Costs(transactions=26, rows=0.3, wal=60, redis=25, postgres_cpu=0.02, worker_cpu=0.035, deliveries=0)
"""A second of a `worker` without work."""


@dataclass(frozen=True, slots=True)
class Need:
    """Needs of a number of simultaneous calls: calls that begin in a second, processes, and costs of a second."""

    calls: int
    begun: float
    servers: int
    workers: int
    costs: Costs

    @classmethod
    def build(cls, calls: int) -> "Need":
        """Return the need of calls of three minutes that begin at random moments."""
        begun = calls / CALL_SECONDS
        servers = max(FEWEST, math.ceil(calls / CALLS_OF_A_SERVER))
        workers = max(FEWEST, math.ceil(begun * CALL.worker_cpu / (BUSY - WORKER.worker_cpu)))
        parts = (begun, CALL), (servers, SERVER), (workers, WORKER)
        names = (part.name for part in fields(Costs))
        costs = Costs(*(sum(number * getattr(cost, name) for number, cost in parts) for name in names))
        return cls(calls, begun, servers, workers, costs)


def print_model() -> None:
    """Print the table of docs/scaling.md."""
    needs = [Need.build(calls) for calls in SIZES]
    rows = {
        "simultaneous calls": [f"{need.calls:,}".replace(",", " ") for need in needs],
        "calls that begin, a second": [show(need.begun) for need in needs],
        "`serve` processes, one core each (two at least)": [show(need.servers) for need in needs],
        "`worker` processes, one core each (two at least)": [show(need.workers) for need in needs],
        "PostgreSQL transactions a second": [show(need.costs.transactions) for need in needs],
        "rows written a second": [show(need.costs.rows) for need in needs],
        "WAL a second": [show_size(need.costs.wal, "B") for need in needs],
        "PostgreSQL cores": [show(need.costs.postgres_cpu) for need in needs],
        "Redis commands a second": [show(need.costs.redis) for need in needs],
        "deliveries a second, for each endpoint that takes all events": [show(need.costs.deliveries) for need in needs],
        "audio": [show_size(need.calls * AUDIO_MBITS * 1e6, "bit/s") for need in needs],
        "recordings an hour (FLAC)": [show_size(need.calls * RECORDING_MEGABYTES * 60e6, "B") for need in needs],
        "uploads a second": [show(need.calls * UPLOADS / 60) for need in needs],
    }
    for title, cells in rows.items():
        print(f"| {title} | {' | '.join(cells)} |")
    print(flush=True)


def show(number: float) -> str:
    """Write a number with two digits that count."""
    if number < 10:
        return f"{number:.2g}"
    digits = 10 ** (len(str(int(number))) - 2)
    return f"{round(number / digits) * digits:,}".replace(",", " ")


def show_size(number: float, unit: str) -> str:
    for prefix, size in (("T", 1e12), ("G", 1e9), ("M", 1e6)):
        if number >= size:
            return f"{show(number / size)} {prefix}{unit}"
    return f"{show(number / 1e3)} k{unit}"


async def measure_points(folder: Path) -> None:
    """Measure the points one after the other, and print each with what the model says."""
    audio, words = build_caller_audio(CALL_SECONDS)
    audio = audio[: round(CALL_SECONDS * 8000)]
    script = Script.build(audio, words, find_turn_ends(decode_audio(audio, "mulaw")))
    vendors, received = Vendors(max(POINTS)), list[str]()
    async with (
        open_installation(folder, max(POINTS)) as installation,
        start_receiver(received) as url,
        vendors.serve(installation.vendors_port),
        installation.serve() as line,
    ):
        await add_endpoint(installation.directory, installation.organization_id, url)
        connection = await asyncpg.connect(installation.directory.database_url)
        for statement in KEEP_LOG:
            await connection.execute(statement)
        platform = Platform(installation.directory, line.http, line.pid, 0, received)
        server = await measure_idle(platform)
        print_costs("a second of an idle serve", server, SERVER)
        async with installation.work() as worker:
            platform.worker = worker
            both = await measure_idle(platform)
            names = [part.name for part in fields(Costs)]
            idle_worker = Costs(*(getattr(both, name) - getattr(server, name) for name in names))
            print_costs("a second of an idle worker", idle_worker, WORKER)
            for calls in POINTS:
                before = await platform.count()
                callers = await hold_calls(line, vendors, script, connection, calls)
                if faults := [caller.fault for caller in callers if caller.fault]:
                    raise SystemExit(f"{len(faults)} calls failed: {faults[0]}")
                after = await platform.count()
                cost = Costs.from_counters(before, after, both, pieces=calls)
                print_costs(f"one of {calls} calls of {CALL_SECONDS:.0f} s", cost, CALL)
                print(f"  serve's core      {(after.serve_cpu - before.serve_cpu) / calls:10.4g}", flush=True)
        await connection.close()


async def measure_idle(platform: Platform) -> Costs:
    """Return what a second without calls costs."""
    before = await platform.count()
    await asyncio.sleep(IDLE_SECONDS)
    return Costs.from_counters(before, await platform.count())


def print_costs(title: str, measured: Costs, modeled: Costs) -> None:
    """Print costs, each with the model's."""
    print(f"{title}:")
    for part in fields(Costs):
        print(f"  {part.name:14} {getattr(measured, part.name):10.4g}, model {getattr(modeled, part.name):10.4g}")
    sys.stdout.flush()


def run() -> None:
    """Print the model, and then the measured points."""
    print_model()
    if POINTS:
        with tempfile.TemporaryDirectory() as folder:
            uvloop.run(measure_points(Path(folder)))
