"""Automation runs survive crashes: nothing is lost, and each transactional action happens once."""

import asyncio

import pytest
from sqlmodel import select
from switchboard.resources.automations import runs
from switchboard.resources.automations.models import AutomationRun
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller, fresh_number
from tests.fixtures.automations import (
    CONTACT,
    TAG,
    actions_of,
    again,
    due_in,
    http,
    make,
    publish_text,
    run_now,
    run_once,
    time_passes,
    work_through,
)
from tests.fixtures.json_access import Json
from tests.fixtures.receiver import Receiver
from tests.fixtures.webhooks import items

pytestmark = pytest.mark.local_receivers


class Killed(BaseException):
    """The process was killed."""


def killed(*_: object) -> None:
    raise Killed


async def test_a_crash_after_an_action_repeats_it_under_the_same_key(
    caller: Caller, runtime: Runtime, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(runs, "_complete", killed)
        with pytest.raises(Killed):
            await run_once(runtime, caller, http(f"{receiver.url}/x"), TAG)
        await work_through(runtime, caller)
    assert len(receiver.at("/x")) == 1
    assert 50 < await due_in(runtime, caller) <= 60
    (automation,) = items(await caller.get("/v1/automations"))
    run = await again(runtime, caller, {"automation_id": automation["id"]})
    assert (run["status"], actions_of(run)[0]["attempts"]) == ("completed", 2)
    assert [request.headers["Idempotency-Key"] for request in receiver.at("/x")] == [f"{run['id']}-0"] * 2


async def test_what_is_written_to_the_database_is_written_once_whatever_crashes(
    caller: Caller, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = (await caller.post("/v1/phone-numbers", {"phone_number": fresh_number()})).json["id"]
    text: Json = {"type": "send_sms", "params": {"from_number_id": number, "to_number": CONTACT, "body": "Hello"}}
    with monkeypatch.context() as patch:
        patch.setattr(runs, "_complete", killed)
        with pytest.raises(Killed):
            await run_once(runtime, caller, text)
    assert items(await caller.get("/v1/sms/conversations")) == []
    (automation,) = items(await caller.get("/v1/automations"))
    run = await again(runtime, caller, {"automation_id": automation["id"]})
    assert await again(runtime, caller, run) == run
    (conversation,) = items(await caller.get("/v1/sms/conversations"))
    (message,) = items(await caller.get(f"/v1/sms/conversations/{conversation['id']}/messages"))
    assert (message["author"], actions_of(run)[0]["result"]) == ("automation", {"message_id": message["id"]})


async def test_an_action_that_kills_its_worker_each_time_is_given_up(
    caller: Caller, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    automation = await make(caller)
    await publish_text(runtime, caller)
    with monkeypatch.context() as patch:
        patch.setattr(runs, "_complete", killed)
        for _ in range(3):
            with pytest.raises(Killed):
                await work_through(runtime, caller)
            await time_passes(runtime, caller)
    await work_through(runtime, caller)
    run = await run_now(caller, automation)
    assert (run["status"], run["error_message"]) == (
        "failed",
        "actions.0 (tag_contact) failed: The worker stopped during each attempt.",
    )


async def test_ten_workers_take_an_action_once(caller: Caller, runtime: Runtime, receiver: Receiver) -> None:
    await make(caller, http(f"{receiver.url}/x"))
    await publish_text(runtime, caller)
    await work_through(runtime, caller, steps=0)
    async with runtime.database.tenant(caller.organization_id) as session:
        run_id = (await session.exec(select(AutomationRun.id))).one()
    await asyncio.gather(
        *(
            runs.advance_run(runtime.database, runtime.registry, runtime.outbound, caller.organization_id, run_id)
            for _ in range(10)
        )
    )
    assert len(receiver.at("/x")) == 1


async def test_a_worker_that_comes_back_too_late_writes_nothing(
    caller: Caller, runtime: Runtime, receiver: Receiver
) -> None:
    receiver.hangs.add("/x")
    automation = await make(caller, http(f"{receiver.url}/x"), TAG)
    await publish_text(runtime, caller)
    frozen = asyncio.create_task(work_through(runtime, caller))
    await receiver.first("/x")
    receiver.hangs.clear()
    await time_passes(runtime, caller)
    await work_through(runtime, caller)
    before = await run_now(caller, automation)
    receiver.release()
    await frozen
    assert (await run_now(caller, automation), before["status"]) == (before, "completed")
