"""Triggers of automations: filters, conditions, the loop guard, and exact counters."""

import asyncio
from typing import Any
from uuid import UUID

from pydantic import JsonValue
from sqlmodel import col, select
from switchboard.apps.worker import worker
from switchboard.foundation.events.models import Event
from switchboard.plugin_sdk import TextMessageReceived
from switchboard.resources.automations import triggers
from switchboard.resources.calls.models import Call
from switchboard.resources.calls.states import finish_call
from switchboard.resources.sms import inbound
from switchboard.resources.sms.models import SmsMessage
from switchboard.resources.sms.sender import MessageSender
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller, LivePlatform, fresh_number
from tests.fixtures.automations import (
    CONTACT,
    actions_of,
    automation_now,
    make,
    over,
    publish_text,
    runs_of,
    work_through,
)
from tests.fixtures.eventually import eventually
from tests.fixtures.json_access import Json
from tests.fixtures.webhooks import items


async def test_only_the_enabled_automations_of_an_event_run(caller: Caller, stranger: Caller, runtime: Runtime) -> None:
    wanted = await make(caller)
    other = await make(caller, trigger_type="sms.sent")
    disabled = await make(caller, enabled=False)
    foreign = await make(stranger)
    patched = await make(caller, trigger_type="sms.sent")
    await caller.send("PATCH", f"/v1/automations/{patched['id']}", {"trigger_type": "sms.received"})
    await publish_text(runtime, caller)
    await work_through(runtime, caller)
    ran = [len(await runs_of(caller, each)) for each in (wanted, other, disabled, patched)]
    assert (ran, await runs_of(stranger, foreign)) == ([1, 0, 0, 1], [])


async def test_an_event_before_an_automation_or_after_its_end_is_none_of_its_business(
    caller: Caller, runtime: Runtime
) -> None:
    await make(caller)
    stopped = await make(caller)
    await publish_text(runtime, caller)
    late = await make(caller)
    await caller.send("PATCH", f"/v1/automations/{stopped['id']}", {"enabled": False})
    await work_through(runtime, caller)
    assert (await runs_of(caller, late), await runs_of(caller, stopped)) == ([], [])


async def test_a_filter_that_does_not_match_leaves_no_trace(caller: Caller, runtime: Runtime) -> None:
    matching = await make(
        caller, trigger_filters={"data.direction": "inbound", "data.contact_name": None, "event": "sms.received"}
    )
    failing = await make(caller, trigger_filters={"data.direction": "inbound", "data.body": "Goodbye"})
    await publish_text(runtime, caller)
    await work_through(runtime, caller)
    assert len(await runs_of(caller, matching)) == 1
    assert await runs_of(caller, failing) == []
    assert await automation_now(caller, failing) == failing


async def test_a_condition_that_does_not_hold_is_told_by_the_run(caller: Caller, runtime: Runtime) -> None:
    automation = await make(
        caller,
        conditions=[{"field": "id", "operator": "exists"}, {"field": "data.body", "operator": "eq", "value": "Bye"}],
    )
    await publish_text(runtime, caller)
    await work_through(runtime, caller)
    (run,) = await runs_of(caller, automation)
    assert (run["status"], run["error_message"]) == ("skipped", "conditions.1 did not hold: data.body eq")
    assert run["completed_at"] == run["started_at"]
    (action,) = actions_of(run)
    assert (action["status"], action["attempts"], action["started_at"]) == ("skipped", 0, None)
    counted = await automation_now(caller, automation)
    assert (counted["run_count"], counted["last_run_at"]) == (1, run["started_at"])
    assert (await caller.get("/v1/contacts")).json["total"] == 0


DATA: dict[str, Any] = {
    "number": 5,
    "float": 5.0,
    "text": "Fünf Äpfel",
    "yes": True,
    "null": None,
    "list": [1, "two", {"three": 3}],
    "at": "2026-11-21T09:00:00.000Z",
    "object": {"a": {"b": "c"}, "items": 1},
}
HOLD: list[tuple[str, str, JsonValue]] = [
    ("number", "eq", 5),
    ("number", "eq", 5.0),
    ("float", "eq", 5),
    ("text", "eq", "Fünf Äpfel"),
    ("null", "eq", None),
    ("missing", "eq", None),
    ("list", "eq", [1, "two", {"three": 3}]),
    ("yes", "eq", True),
    ("number", "neq", "5"),
    ("missing", "neq", 1),
    ("yes", "neq", 1),
    ("number", "gt", 4),
    ("number", "gte", 5),
    ("number", "lt", 5.5),
    ("number", "lte", 5),
    ("at", "gt", "2026-11-21"),
    ("text", "lt", "G"),
    ("number", "in", ["5", 5]),
    ("number", "not_in", ["5"]),
    ("missing", "not_in", [1]),
    ("text", "contains", "äpfel"),
    ("list", "contains", "two"),
    ("list", "contains", {"three": 3}),
    ("text", "exists", None),
    ("null", "not_exists", None),
    ("missing", "not_exists", None),
    ("list.1", "eq", "two"),
    ("list.2.three", "eq", 3),
    ("object.a.b", "eq", "c"),
    ("object.items", "eq", 1),
]
FAIL: list[tuple[str, str, JsonValue]] = [
    ("number", "eq", "5"),
    ("number", "eq", 6),
    ("yes", "eq", 1),
    ("text", "eq", "fünf äpfel"),
    ("number", "neq", 5),
    ("number", "gt", 5),
    ("number", "gt", "4"),
    ("text", "gt", 4),
    ("yes", "gt", 0),
    ("null", "lte", 0),
    ("missing", "lt", 1),
    ("list", "gt", 0),
    ("object", "lt", "a"),
    ("number", "lt", 5),
    ("number", "gte", 6),
    ("number", "lte", 4),
    ("number", "in", [True, "5"]),
    ("yes", "in", [1]),
    ("number", "not_in", [5]),
    ("text", "contains", "Birnen"),
    ("number", "contains", 5),
    ("number", "contains", "5"),
    ("null", "contains", "n"),
    ("list", "contains", "tw"),
    ("object", "contains", "a"),
    ("null", "exists", None),
    ("missing", "exists", None),
    ("number", "not_exists", None),
    ("list.9", "exists", None),
    ("list.-1", "exists", None),
    ("list.one", "exists", None),
    ("text.0", "exists", None),
    ("object.a.x.y", "exists", None),
]


def condition(case: tuple[str, str, JsonValue]) -> Json:
    field, operator, value = case
    return {"field": f"data.metadata.{field}", "operator": operator, "value": value}


async def test_conditions_hold_or_do_not_and_never_raise(caller: Caller, runtime: Runtime) -> None:
    holding = await make(caller, conditions=[condition(case) for case in HOLD])
    failing = [await make(caller, conditions=[condition(case)]) for case in FAIL]
    async with runtime.database.tenant(caller.organization_id) as session:
        triggered = [UUID(str(automation["id"])) for automation in (holding, *failing)]
        data = {"from_number": CONTACT, "metadata": DATA}
        event = Event(organization_id=caller.organization_id, name="sms.received", data=data, triggered=triggered)
        event.trigger_due_at = event.created_at
        session.add(event)
    await work_through(runtime, caller)
    (run,) = await runs_of(caller, holding)
    assert (run["status"], run["error_message"]) == ("completed", None)
    for automation, case in zip(failing, FAIL, strict=True):
        (run,) = await runs_of(caller, automation)
        assert run["status"] == "skipped", case


async def test_an_event_is_one_run_and_counters_are_exact_whoever_asks_at_once(
    caller: Caller, runtime: Runtime
) -> None:
    automation = await make(caller)
    skipping = await make(caller, conditions=[{"field": "data.body", "operator": "eq", "value": "3"}])
    await asyncio.gather(*(publish_text(runtime, caller, str(number)) for number in range(8)))
    async with runtime.database.tenant(caller.organization_id) as session:
        events = (await session.exec(select(Event.id))).all()
    await asyncio.gather(
        *(
            triggers.record_triggered_runs(runtime.database, caller.organization_id, event)
            for event in [*events, *events, *events]
        )
    )
    for each in (automation, skipping):
        runs = await runs_of(caller, each)
        assert {run["event_id"] for run in runs} == set(map(str, events))
        counted = await automation_now(caller, each)
        assert (counted["run_count"], counted["last_run_at"]) == (8, runs[0]["started_at"])
    assert [run["status"] for run in await runs_of(caller, skipping)].count("running") == 1


async def test_the_sweep_finds_what_lost_its_wake_up(caller: Caller, runtime: Runtime) -> None:
    automation = await make(caller)
    await publish_text(runtime, caller)
    await runtime.redis.flushall()
    stop = asyncio.Event()
    working = asyncio.create_task(worker.run_worker(runtime, stop))
    (run,) = await over(caller, automation)
    stop.set()
    await working
    assert run["status"] == "completed"


async def test_the_loop_guard_counts_what_runs_cause(caller: Caller, runtime: Runtime) -> None:
    automation = await make(caller)
    for depth in (4, 5, 99):
        await publish_text(runtime, caller, depth=depth)
    await work_through(runtime, caller)
    assert sorted((run["depth"], run["status"]) for run in await runs_of(caller, automation)) == [
        (5, "completed"), (6, "skipped"), (100, "skipped"),
    ]  # fmt: skip


async def test_a_call_that_an_automation_starts_carries_its_depth(caller: Caller, runtime: Runtime) -> None:
    number = (await caller.post("/v1/phone-numbers", {"phone_number": fresh_number()})).json["id"]
    agent = (await caller.post("/v1/agents", {"name": "Agent"})).json["id"]
    params: Json = {
        "from_number_id": number,
        "agent_id": agent,
        "to_number": "{{ data.from_number }}",
        "metadata": {"said": "{{ data.body }}"},
    }
    automation = await make(caller, {"type": "start_call", "params": params})
    await publish_text(runtime, caller, "Call me", depth=2)
    await work_through(runtime, caller)
    (run,) = await runs_of(caller, automation)
    (call,) = items(await caller.get("/v1/calls"))
    assert actions_of(run)[0]["result"] == {"call_id": call["id"]}
    assert (call["to_number"], call["metadata"]) == (CONTACT, {"said": "Call me"})
    async with runtime.database.tenant(caller.organization_id) as session:
        await finish_call(session, (await session.exec(select(Call))).one(), "failed")
    async with runtime.database.tenant(caller.organization_id) as session:
        ended = (await session.exec(select(Event).where(col(Event.name) == "call.failed"))).one()
    assert ended.depth == 3


async def test_somebody_who_is_added_to_a_campaign_is_called_once(live: LivePlatform) -> None:
    own: Json = {
        "name": "Callbacks",
        "agent_id": live.agent_id,
        "phone_number_id": live.number_id,
        "contacts": [{"phone_number": "+15550100022"}],
    }
    campaign = (await live.caller.post("/v1/campaigns", own)).json
    params: Json = {
        "campaign_id": campaign["id"],
        "phone_number": "+15550100040",
        "name": "{{ data.contact_name | default(none) }}",
    }
    automation = await make(live.caller, {"type": "add_to_campaign", "params": params})
    again = await make(live.caller, {"type": "add_to_campaign", "params": params}, trigger_type="call.started")
    await publish_text(live.runtime, live.caller)
    (run,) = await over(live.caller, automation)
    assert actions_of(run)[0]["result"] == {"campaign_id": campaign["id"], "added": True}
    assert (await live.caller.post(f"/v1/campaigns/{campaign['id']}/start")).status == 200
    (run,) = await over(live.caller, again)
    assert (run["depth"], run["status"], actions_of(run)[0]["attempts"]) == (2, "completed", 1)
    assert actions_of(run)[0]["result"] == {"campaign_id": campaign["id"], "added": False}
    path = f"/v1/campaigns/{campaign['id']}"
    answer = await eventually(lambda: live.caller.get(path), lambda found: found.json["status"] == "completed")
    ended = answer.json
    assert (ended["total_contacts"], ended["called"]) == (2, 2)
    await publish_text(live.runtime, live.caller)
    late = (await over(live.caller, automation, 2))[0]
    assert (late["status"], actions_of(late)[0]["error"]) == ("failed", "The campaign is completed.")


async def test_a_text_to_an_own_number_does_not_shed_its_depth_on_the_way(caller: Caller, runtime: Runtime) -> None:
    ours, other = fresh_number(), fresh_number()
    number = (await caller.post("/v1/phone-numbers", {"phone_number": ours})).json["id"]
    await caller.post("/v1/phone-numbers", {"phone_number": other})
    await make(caller, {"type": "send_sms", "params": {"from_number_id": number, "to_number": other, "body": "Ping"}})
    await publish_text(runtime, caller, depth=3)
    await work_through(runtime, caller)
    for text_id, sender in (("in-1", ours), ("in-2", CONTACT)):
        await inbound.receive_message(
            runtime.database, caller.organization_id, "loopback", TextMessageReceived(text_id, sender, other, "HELP")
        )
    async with runtime.database.tenant(caller.organization_id) as session:
        received = select(SmsMessage).where(col(SmsMessage.direction) == "inbound").order_by(col(SmsMessage.created_at))
        assert [message.cause_depth for message in (await session.exec(received)).all()] == [4, 0]
        texts = select(SmsMessage).where(col(SmsMessage.direction) == "outbound").order_by(col(SmsMessage.created_at))
        sent, *confirmed = (await session.exec(texts)).all()
        assert [(message.author, message.cause_depth) for message in confirmed] == [("platform", 4), ("platform", 0)]
    message_sender = MessageSender(runtime.database, runtime.providers, runtime.settings.base_url)
    await message_sender.send_queued_message(caller.organization_id, sent.id)
    async with runtime.database.tenant(caller.organization_id) as session:
        events = (await session.exec(select(Event.name, Event.depth).order_by(col(Event.created_at)))).all()
    assert events == [("sms.received", 3), ("sms.received", 4), ("sms.received", 0), ("sms.sent", 4)]
