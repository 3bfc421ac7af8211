"""Automation runs survive crashes: nothing is lost, and each transactional action happens once."""

import asyncio

import pytest
from sqlmodel import select
from switchboard.engine.providers.instances import Extensions
from switchboard.resources.automations import runs
from switchboard.resources.automations.actions import ActionServices
from switchboard.resources.automations.models import AutomationRun
from switchboard.resources.identity.policy import Encryption, Policy
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller, Organizations, fresh_number
from tests.fixtures.automations import (
    CONTACT,
    TAG,
    advance_again,
    advance_runs,
    build_request,
    create_automation,
    get_actions,
    get_due_delay,
    get_only_run,
    let_time_pass,
    publish_message,
    run_once,
)
from tests.fixtures.command_line import Operator
from tests.fixtures.json_access import Json
from tests.fixtures.receiver import Receiver
from tests.fixtures.webhooks import list_items

pytestmark = pytest.mark.local_receivers


class Killed(BaseException):
    """The process was killed."""


def raise_killed(*_: object) -> None:
    raise Killed


async def test_an_action_is_repeated_with_the_same_key_after_a_crash(
    caller: Caller, runtime: Runtime, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(runs, "_complete", raise_killed)
        with pytest.raises(Killed):
            await run_once(runtime, caller, build_request(f"{receiver.url}/x"), TAG)
        await advance_runs(runtime, caller)
    assert len(receiver.at("/x")) == 1
    assert 50 < await get_due_delay(runtime, caller) <= 60
    (automation,) = list_items(await caller.get("/v1/automations"))
    run = await advance_again(runtime, caller, {"automation_id": automation["id"]})
    assert (run["status"], get_actions(run)[0]["attempts"]) == ("completed", 2)
    assert [request.headers["Idempotency-Key"] for request in receiver.at("/x")] == [f"{run['id']}-0"] * 2


async def test_database_writes_of_an_action_happen_once_despite_crashes(
    caller: Caller, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = (await caller.post("/v1/phone-numbers", {"phone_number": fresh_number()})).json["id"]
    text: Json = {"type": "send_sms", "params": {"from_number_id": number, "to_number": CONTACT, "body": "Hello"}}
    with monkeypatch.context() as patch:
        patch.setattr(runs, "_complete", raise_killed)
        with pytest.raises(Killed):
            await run_once(runtime, caller, text)
    assert list_items(await caller.get("/v1/sms/conversations")) == []
    (automation,) = list_items(await caller.get("/v1/automations"))
    run = await advance_again(runtime, caller, {"automation_id": automation["id"]})
    assert await advance_again(runtime, caller, run) == run
    (conversation,) = list_items(await caller.get("/v1/sms/conversations"))
    (message,) = list_items(await caller.get(f"/v1/sms/conversations/{conversation['id']}/messages"))
    assert (message["author"], get_actions(run)[0]["result"]) == ("automation", {"message_id": message["id"]})


async def test_an_action_that_kills_its_worker_each_time_is_given_up(
    caller: Caller, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    automation = await create_automation(caller)
    await publish_message(runtime, caller)
    with monkeypatch.context() as patch:
        patch.setattr(runs, "_complete", raise_killed)
        for _ in range(3):
            with pytest.raises(Killed):
                await advance_runs(runtime, caller)
            await let_time_pass(runtime, caller)
    await advance_runs(runtime, caller)
    run = await get_only_run(caller, automation)
    assert (run["status"], run["error_message"]) == (
        "failed",
        "actions.0 (tag_contact) failed: The worker stopped during each attempt.",
    )


async def test_ten_workers_run_an_action_once(caller: Caller, runtime: Runtime, receiver: Receiver) -> None:
    await create_automation(caller, build_request(f"{receiver.url}/x"))
    await publish_message(runtime, caller)
    await advance_runs(runtime, caller, steps=0)
    async with runtime.database.write(caller.organization_id) as session:
        run_id = (await session.exec(select(AutomationRun.id))).one()
    await asyncio.gather(
        *(
            runs.advance_run(runtime.call(Extensions), runtime.call(ActionServices), caller.organization_id, run_id)
            for _ in range(10)
        )
    )
    assert len(receiver.at("/x")) == 1


async def test_a_worker_with_an_expired_lease_writes_nothing(
    caller: Caller, runtime: Runtime, receiver: Receiver
) -> None:
    receiver.hangs.add("/x")
    automation = await create_automation(caller, build_request(f"{receiver.url}/x"), TAG)
    await publish_message(runtime, caller)
    frozen = asyncio.create_task(advance_runs(runtime, caller))
    await receiver.first("/x")
    receiver.hangs.clear()
    await let_time_pass(runtime, caller)
    await advance_runs(runtime, caller)
    before = await get_only_run(caller, automation)
    receiver.release()
    await frozen
    assert (await get_only_run(caller, automation), before["status"]) == (before, "completed")


async def test_a_run_whose_key_was_destroyed_fails_before_its_next_action(
    runtime: Runtime, organizations: Organizations, receiver: Receiver, operator: Operator
) -> None:
    caller = await organizations.create(policy=Policy(encryption=Encryption(texts=True)))
    receiver.statuses["/x"] = [503, 200]
    waiting = await run_once(runtime, caller, build_request(f"{receiver.url}/x"), TAG)
    assert [action["type"] for action in get_actions(waiting)] == ["http_request", "tag_contact"]
    operator.ask("keys", "shred", "--org", str(caller.organization_id), "--yes")
    run = await advance_again(runtime, caller, waiting)
    assert (run["status"], run["error_message"], get_actions(run)) == ("failed", runs.LOST, [])
    assert len(receiver.at("/x")) == 1
    retried = await caller.post(f"/v1/automations/{run['automation_id']}/runs/{run['id']}/retry")
    assert retried.status == 409
