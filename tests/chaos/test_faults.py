"""Faults at random while people talk: nothing accepted is lost or doubled, and nobody gets a 500.

`make chaos` injects two hundred, for an hour, and CI one of each.
"""

import asyncio
import os
import random
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.chaos import invariants
from tests.chaos.cluster import Cluster, Member
from tests.chaos.scenario import start_traffic
from tests.chaos.traffic import Traffic
from tests.fixtures.debian_tools import find_libfaketime
from tests.fixtures.receiver import Receiver

CALLERS = int(os.environ.get("CHAOS_CALLERS", "4"))
FAULTS = int(os.environ.get("CHAOS_FAULTS", "0"))
"""Number of faults at random; 0: one of each."""
CALL_SECONDS = (2.0, 6.0)
PAUSE_SECONDS = 2.0
FROZEN_SECONDS = 60.0 if FAULTS else 3.0


async def kill_server(cluster: Cluster, _: Traffic) -> None:
    await kill(cluster, "serve")


async def kill_worker(cluster: Cluster, _: Traffic) -> None:
    await kill(cluster, "worker")


async def kill(cluster: Cluster, role: str) -> None:
    member = choose(cluster, role)
    await member.stop(signal.SIGKILL)
    await member.start()
    await cluster.wait_until_ready()


async def set_a_workers_clock_wrong(cluster: Cluster, _: Traffic) -> None:
    await start_with_wrong_clock(choose(cluster, "worker"))


async def set_a_servers_clock_wrong(cluster: Cluster, _: Traffic) -> None:
    await start_with_wrong_clock(choose(cluster, "serve"))
    await cluster.wait_until_ready()


async def start_with_wrong_clock(member: Member) -> None:
    """Replace a process by one whose clock is a minute ahead, or behind."""
    await member.stop(signal.SIGTERM)
    await member.start(
        LD_PRELOAD=find_libfaketime(),
        FAKETIME=random.choice(("+60", "-60")),
        FAKETIME_DONT_FAKE_MONOTONIC="1",
    )


async def restart_postgres(cluster: Cluster, _: Traffic) -> None:
    await cluster.servers.restart_postgres()


async def flush_redis(_: Cluster, traffic: Traffic) -> None:
    await traffic.runtime.redis.flushall()


async def freeze_redis(_: Cluster, traffic: Traffic) -> None:
    pid = int((await traffic.runtime.redis.info("server"))["process_id"])
    os.kill(pid, signal.SIGSTOP)
    await asyncio.sleep(FROZEN_SECONDS)
    os.kill(pid, signal.SIGCONT)


def choose(cluster: Cluster, role: str) -> Member:
    return random.choice([member for member in cluster.members if member.role == role])


Fault = Callable[[Cluster, Traffic], Awaitable[None]]
KINDS: tuple[Fault, ...] = (
    kill_server,
    kill_worker,
    set_a_workers_clock_wrong,
    set_a_servers_clock_wrong,
    restart_postgres,
    flush_redis,
    freeze_redis,
)


def choose_faults() -> list[Fault]:
    return random.choices(KINDS, k=FAULTS) if FAULTS else random.sample(KINDS, len(KINDS))


@pytest.mark.system
@pytest.mark.timeout(600 + 90 * FAULTS)
async def test_nothing_is_lost_or_doubled_whatever_fails(tmp_path: Path, receiver: Receiver) -> None:
    faults = choose_faults()
    async with start_traffic(tmp_path, receiver) as (cluster, traffic):
        async with asyncio.TaskGroup() as tasks:
            for _ in range(CALLERS):
                tasks.create_task(traffic.keep_calling(CALL_SECONDS, tmp_path))
            tasks.create_task(traffic.keep_writing(0.05))
            for fault in faults:
                await fault(cluster, traffic)
                await asyncio.sleep(PAUSE_SECONDS)
            traffic.stop.set()
        calls = await invariants.read_calls(traffic)
        invariants.check_endings(traffic, calls)
        invariants.check_answers(traffic, cluster)
        await invariants.check_costs(traffic)
        await invariants.check_contacts(traffic)
        await invariants.check_deliveries(traffic, receiver, calls)
