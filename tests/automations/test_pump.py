"""The run worker: fairness between organizations, and shutdown."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from switchboard.resources.automations import run_worker
from switchboard.resources.automations.run_worker import RunWorker
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller
from tests.fixtures.automations import actions_of, due_in, http, make, over, publish_text, run_now, work_through
from tests.fixtures.receiver import Receiver

pytestmark = pytest.mark.local_receivers


@asynccontextmanager
async def pumping(runtime: Runtime) -> AsyncIterator[None]:
    stop = asyncio.Event()
    worker = RunWorker(runtime.database, runtime.registry, runtime.outbound, due=runtime.runs_due)
    task = asyncio.create_task(worker.run(stop))
    yield
    stop.set()
    await task


async def test_slow_endpoints_of_one_organization_hold_up_nobody_else(
    caller: Caller, stranger: Caller, runtime: Runtime, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_worker, "MOST", 3)
    monkeypatch.setattr(run_worker, "MOST_EACH", 2)
    receiver.hangs.add("/slow")
    automation = await make(caller, http(f"{receiver.url}/slow"))
    for _ in range(5):
        await publish_text(runtime, caller)
    other = await make(stranger, http(f"{receiver.url}/fast"), http(f"{receiver.url}/fast"))
    for _ in range(3):
        await publish_text(runtime, stranger)
    for each in (caller, stranger):
        await work_through(runtime, each, steps=0)
    async with pumping(runtime):
        await over(stranger, other, 3)
        assert (len(receiver.at("/fast")), len(receiver.at("/slow"))) == (6, 2)
        receiver.release()
        assert {run["status"] for run in await over(caller, automation, 5)} == {"completed"}
    assert len(receiver.at("/slow")) == 5


async def test_a_worker_that_stops_leaves_what_hangs_to_the_next(
    caller: Caller, runtime: Runtime, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_worker, "STOP_SECONDS", 0.05)
    receiver.hangs.add("/slow")
    automation = await make(caller, http(f"{receiver.url}/slow"))
    await publish_text(runtime, caller)
    await work_through(runtime, caller, steps=0)
    async with pumping(runtime):
        await receiver.first("/slow")
    (action,) = actions_of(await run_now(caller, automation))
    assert (action["status"], action["attempts"]) == ("running", 1)
    assert 50 < await due_in(runtime, caller) <= 60
