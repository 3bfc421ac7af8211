"""The run worker: fairness between organizations, and shutdown."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from switchboard.apps.worker.worker import STOP_SECONDS
from switchboard.foundation.database import BUCKETS
from switchboard.foundation.jobs import Reconciler, run_reconciler
from switchboard.foundation.work import WorkRunner
from switchboard.resources.automations.jobs import WORK
from switchboard.resources.automations.runs import EACH
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller
from tests.fixtures.automations import (
    advance_runs,
    build_request,
    create_automation,
    get_actions,
    get_due_delay,
    get_only_run,
    publish_message,
    wait_for_finished_runs,
)
from tests.fixtures.receiver import Receiver

pytestmark = pytest.mark.local_receivers


@asynccontextmanager
async def run_pump(runtime: Runtime) -> AsyncIterator[None]:
    stop, runner = asyncio.Event(), WorkRunner(runtime.database, WORK, runtime.parts)
    look = Reconciler("take_run", lambda: runner.look("take_run", range(BUCKETS)), 0.2)
    task = asyncio.create_task(run_reconciler(look, stop))
    yield
    stop.set()
    await task
    await runner.stop(seconds=STOP_SECONDS)


async def test_slow_endpoints_delay_only_their_own_organization(
    caller: Caller, stranger: Caller, runtime: Runtime, receiver: Receiver
) -> None:
    receiver.hangs.add("/slow")
    automation = await create_automation(caller, build_request(f"{receiver.url}/slow"))
    for _ in range(EACH + 3):
        await publish_message(runtime, caller)
    other = await create_automation(
        stranger, build_request(f"{receiver.url}/fast"), build_request(f"{receiver.url}/fast")
    )
    for _ in range(3):
        await publish_message(runtime, stranger)
    for each in (caller, stranger):
        await advance_runs(runtime, each, steps=0)
    async with run_pump(runtime):
        await wait_for_finished_runs(stranger, other, 3)
        assert (len(receiver.at("/fast")), len(receiver.at("/slow"))) == (6, EACH)
        receiver.release()
        finished = await wait_for_finished_runs(caller, automation, EACH + 3)
        assert {run["status"] for run in finished} == {"completed"}
    assert len(receiver.at("/slow")) == EACH + 3


async def test_a_stopping_worker_leaves_hanging_runs_to_the_next(
    caller: Caller, runtime: Runtime, receiver: Receiver
) -> None:
    receiver.hangs.add("/slow")
    automation = await create_automation(caller, build_request(f"{receiver.url}/slow"))
    await publish_message(runtime, caller)
    await advance_runs(runtime, caller, steps=0)
    async with run_pump(runtime):
        await receiver.first("/slow")
    (action,) = get_actions(await get_only_run(caller, automation))
    assert (action["status"], action["attempts"]) == ("running", 1)
    assert 50 < await get_due_delay(runtime, caller) <= 60
