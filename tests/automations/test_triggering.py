"""Triggers of automations: filters, conditions, the loop guard, and exact counters."""

import asyncio
from typing import Any
from uuid import UUID

from pydantic import JsonValue
from sqlmodel import col, select
from switchboard.apps.worker import worker
from switchboard.foundation.encryption.content import Content, seal_content
from switchboard.foundation.events.models import DueEvent, Event
from switchboard.plugin_sdk import TextMessageReceived
from switchboard.resources.automations import jobs
from switchboard.resources.calls.models import Call
from switchboard.resources.calls.states import finish_call
from switchboard.resources.sms import inbound
from switchboard.resources.sms.models import SmsMessage
from switchboard.resources.sms.sender import MessageSender
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller, LivePlatform, fresh_number
from tests.fixtures.automations import (
    CONTACT,
    advance_runs,
    create_automation,
    get_actions,
    get_automation,
    list_runs,
    publish_message,
    wait_for_finished_runs,
)
from tests.fixtures.eventually import eventually
from tests.fixtures.json_access import Json
from tests.fixtures.webhooks import list_items


async def test_only_enabled_automations_of_the_event_run(caller: Caller, stranger: Caller, runtime: Runtime) -> None:
    matching = await create_automation(caller)
    other = await create_automation(caller, trigger_type="sms.sent")
    disabled = await create_automation(caller, enabled=False)
    foreign = await create_automation(stranger)
    patched = await create_automation(caller, trigger_type="sms.sent")
    await caller.send("PATCH", f"/v1/automations/{patched['id']}", {"trigger_type": "sms.received"})
    await publish_message(runtime, caller)
    await advance_runs(runtime, caller)
    run_counts = [len(await list_runs(caller, each)) for each in (matching, other, disabled, patched)]
    assert (run_counts, await list_runs(stranger, foreign)) == ([1, 0, 0, 1], [])


async def test_events_outside_an_automations_lifetime_are_ignored(caller: Caller, runtime: Runtime) -> None:
    await create_automation(caller)
    stopped = await create_automation(caller)
    await publish_message(runtime, caller)
    late = await create_automation(caller)
    await caller.send("PATCH", f"/v1/automations/{stopped['id']}", {"enabled": False})
    await advance_runs(runtime, caller)
    assert (await list_runs(caller, late), await list_runs(caller, stopped)) == ([], [])


async def test_an_unmatched_filter_creates_no_run(caller: Caller, runtime: Runtime) -> None:
    matching = await create_automation(
        caller, trigger_filters={"data.direction": "inbound", "data.contact_name": None, "event": "sms.received"}
    )
    failing = await create_automation(caller, trigger_filters={"data.direction": "inbound", "data.body": "Goodbye"})
    await publish_message(runtime, caller)
    await advance_runs(runtime, caller)
    assert len(await list_runs(caller, matching)) == 1
    assert await list_runs(caller, failing) == []
    assert await get_automation(caller, failing) == failing


async def test_a_false_condition_is_shown_in_the_run(caller: Caller, runtime: Runtime) -> None:
    automation = await create_automation(
        caller,
        conditions=[{"field": "id", "operator": "exists"}, {"field": "data.body", "operator": "eq", "value": "Bye"}],
    )
    await publish_message(runtime, caller)
    await advance_runs(runtime, caller)
    (run,) = await list_runs(caller, automation)
    assert (run["status"], run["error_message"]) == ("skipped", "conditions.1 did not hold: data.body eq")
    assert run["completed_at"] == run["started_at"]
    (action,) = get_actions(run)
    assert (action["status"], action["attempts"], action["started_at"]) == ("skipped", 0, None)
    counted = await get_automation(caller, automation)
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


def build_condition(case: tuple[str, str, JsonValue]) -> Json:
    field, operator, value = case
    return {"field": f"data.metadata.{field}", "operator": operator, "value": value}


async def test_conditions_evaluate_without_raising(caller: Caller, runtime: Runtime) -> None:
    holding = await create_automation(caller, conditions=[build_condition(case) for case in HOLD])
    failing = [await create_automation(caller, conditions=[build_condition(case)]) for case in FAIL]
    async with runtime.database.write(caller.organization_id) as session:
        triggered = [UUID(str(automation["id"])) for automation in (holding, *failing)]
        data = {"from_number": CONTACT, "metadata": DATA}
        event = Event(
            organization_id=caller.organization_id, name="sms.received", data=Content(data), triggered=triggered
        )
        await seal_content(session, event)
        due = DueEvent(id=event.id, organization_id=caller.organization_id, trigger_due_at=event.created_at)
        session.add_all([event, due])
    await advance_runs(runtime, caller)
    (run,) = await list_runs(caller, holding)
    assert (run["status"], run["error_message"]) == ("completed", None)
    for automation, case in zip(failing, FAIL, strict=True):
        (run,) = await list_runs(caller, automation)
        assert run["status"] == "skipped", case


async def test_concurrent_triggers_create_one_run_and_exact_counters(caller: Caller, runtime: Runtime) -> None:
    automation = await create_automation(caller)
    skipping = await create_automation(caller, conditions=[{"field": "data.body", "operator": "eq", "value": "3"}])
    await asyncio.gather(*(publish_message(runtime, caller, str(number)) for number in range(8)))
    async with runtime.database.write(caller.organization_id) as session:
        events = (await session.exec(select(Event.id))).all()
    await asyncio.gather(
        *(
            jobs.evaluate_triggers(runtime.database, organization_id=caller.organization_id, event_id=event)
            for event in [*events, *events, *events]
        )
    )
    for each in (automation, skipping):
        runs = await list_runs(caller, each)
        assert {run["event_id"] for run in runs} == set(map(str, events))
        counted = await get_automation(caller, each)
        assert (counted["run_count"], counted["last_run_at"]) == (8, runs[0]["started_at"])
    assert [run["status"] for run in await list_runs(caller, skipping)].count("running") == 1


async def test_the_reconciler_finds_runs_with_lost_wake_ups(caller: Caller, runtime: Runtime) -> None:
    automation = await create_automation(caller)
    await publish_message(runtime, caller)
    await runtime.redis.flushall()
    stop = asyncio.Event()
    running_worker = asyncio.create_task(worker.run_worker(runtime, stop))
    (run,) = await wait_for_finished_runs(caller, automation)
    stop.set()
    await running_worker
    assert run["status"] == "completed"


async def test_the_loop_guard_counts_automation_depth(caller: Caller, runtime: Runtime) -> None:
    automation = await create_automation(caller)
    for depth in (4, 5, 99):
        await publish_message(runtime, caller, depth=depth)
    await advance_runs(runtime, caller)
    assert sorted((run["depth"], run["status"]) for run in await list_runs(caller, automation)) == [
        (5, "completed"), (6, "skipped"), (100, "skipped"),
    ]  # fmt: skip


async def test_a_call_started_by_an_automation_carries_its_depth(caller: Caller, runtime: Runtime) -> None:
    number = (await caller.post("/v1/phone-numbers", {"phone_number": fresh_number()})).json["id"]
    agent = (await caller.post("/v1/agents", {"name": "Agent"})).json["id"]
    params: Json = {
        "from_number_id": number,
        "agent_id": agent,
        "to_number": "{{ data.from_number }}",
        "metadata": {"said": "{{ data.body }}"},
    }
    automation = await create_automation(caller, {"type": "start_call", "params": params})
    await publish_message(runtime, caller, "Call me", depth=2)
    await advance_runs(runtime, caller)
    (run,) = await list_runs(caller, automation)
    (call,) = list_items(await caller.get("/v1/calls"))
    assert get_actions(run)[0]["result"] == {"call_id": call["id"]}
    assert (call["to_number"], call["metadata"]) == (CONTACT, {"said": "Call me"})
    async with runtime.database.write(caller.organization_id) as session:
        await finish_call(session, (await session.exec(select(Call))).one(), "failed")
    async with runtime.database.write(caller.organization_id) as session:
        event = (await session.exec(select(Event).where(col(Event.name) == "call.failed"))).one()
    assert event.depth == 3


async def test_a_contact_added_to_a_campaign_is_called_once(live: LivePlatform) -> None:
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
    automation = await create_automation(live.caller, {"type": "add_to_campaign", "params": params})
    again = await create_automation(
        live.caller, {"type": "add_to_campaign", "params": params}, trigger_type="call.started"
    )
    await publish_message(live.runtime, live.caller)
    (run,) = await wait_for_finished_runs(live.caller, automation)
    assert get_actions(run)[0]["result"] == {"campaign_id": campaign["id"], "added": True}
    assert (await live.caller.post(f"/v1/campaigns/{campaign['id']}/start")).status == 200
    (run,) = await wait_for_finished_runs(live.caller, again)
    assert (run["depth"], run["status"], get_actions(run)[0]["attempts"]) == (2, "completed", 1)
    assert get_actions(run)[0]["result"] == {"campaign_id": campaign["id"], "added": False}
    path = f"/v1/campaigns/{campaign['id']}"
    result = await eventually(lambda: live.caller.get(path), lambda response: response.json["status"] == "completed")
    event = result.json
    assert (event["total_contacts"], event["called"]) == (2, 2)
    await publish_message(live.runtime, live.caller)
    late = (await wait_for_finished_runs(live.caller, automation, 2))[0]
    assert (late["status"], get_actions(late)[0]["error"]) == ("failed", "The campaign is completed.")


async def test_a_message_between_own_numbers_keeps_its_depth(caller: Caller, runtime: Runtime) -> None:
    own_number, other = fresh_number(), fresh_number()
    number = (await caller.post("/v1/phone-numbers", {"phone_number": own_number})).json["id"]
    await caller.post("/v1/phone-numbers", {"phone_number": other})
    await create_automation(
        caller, {"type": "send_sms", "params": {"from_number_id": number, "to_number": other, "body": "Ping"}}
    )
    await publish_message(runtime, caller, depth=3)
    await advance_runs(runtime, caller)
    for text_id, sender in (("in-1", own_number), ("in-2", CONTACT)):
        await inbound.receive_message(
            runtime.database,
            caller.organization_id,
            "loopback",
            TextMessageReceived(text_id, sender, other, "HELP"),
            base_url="http://localhost",
        )
    async with runtime.database.write(caller.organization_id) as session:
        received = select(SmsMessage).where(col(SmsMessage.direction) == "inbound").order_by(col(SmsMessage.created_at))
        assert [message.cause_depth for message in (await session.exec(received)).all()] == [4, 0]
        texts = select(SmsMessage).where(col(SmsMessage.direction) == "outbound").order_by(col(SmsMessage.created_at))
        sent, *confirmed = (await session.exec(texts)).all()
        assert [(message.author, message.cause_depth) for message in confirmed] == [("platform", 4), ("platform", 0)]
    message_sender = runtime.call(MessageSender)
    await message_sender.send_due_message(caller.organization_id, sent.id)
    async with runtime.database.write(caller.organization_id) as session:
        events = (await session.exec(select(Event.name, Event.depth).order_by(col(Event.created_at)))).all()
    assert events == [("sms.received", 3), ("sms.received", 4), ("sms.received", 0), ("sms.sent", 4)]
