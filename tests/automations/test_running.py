"""Automation runs: actions in order, retries, waits, and crashes, without more attempts than necessary."""

import asyncio
from datetime import timedelta

import pytest
from sqlmodel import col, select
from switchboard.apps.worker.retention import delete_expired_data
from switchboard.foundation.database import now
from switchboard.foundation.encryption.content import open_content, seal_content
from switchboard.plugin_sdk import (
    ActionContext,
    ActionError,
    ActionParams,
    ActionPostponed,
    AutomationAction,
    JsonObject,
    hookimpl,
)
from switchboard.plugin_sdk.registry import Registry
from switchboard.resources.automations.actions import MAX_TEXTS_AN_HOUR
from switchboard.resources.automations.models import AutomationRun
from switchboard.resources.calls.models import Call
from switchboard.resources.calls.states import finish_call
from switchboard.resources.identity.policy import Policy, Prices
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
    get_automation,
    get_due_delay,
    get_only_run,
    get_statuses,
    let_time_pass,
    list_runs,
    publish_message,
    run_once,
)
from tests.fixtures.json_access import Json
from tests.fixtures.receiver import Receiver
from tests.fixtures.repeated_messages import repeat_message
from tests.fixtures.webhooks import list_items, parse_time

pytestmark = pytest.mark.local_receivers


class EchoParams(ActionParams):
    word: str
    answer: object = None


class Echo(AutomationAction[EchoParams]):
    """An action that behaves as its parameters say."""

    name, title, Params = "echo", "Echo", EchoParams

    async def run(self, context: ActionContext, params: EchoParams) -> JsonObject:
        match params.word:
            case "break":
                raise RuntimeError("sk_live_secret")
            case "refuse":
                raise ActionError("no", retryable=False)
            case "hang":
                await asyncio.Event().wait()
            case "poll" if now() < context.began_at + timedelta(seconds=1000):
                raise ActionPostponed(now() + timedelta(seconds=10))
            case "object":
                return {"answer": object()}  # type: ignore[dict-item] # what a careless plugin may do
            case "much":
                return {"answer": "x" * 20_000}
        return {"answer": params.word}


class Plugin:
    """A third-party plugin."""

    @hookimpl
    def automation_actions(self) -> list[type[Echo]]:
        return [Echo]


@pytest.fixture
def registry() -> Registry:
    registry = Registry.discover()
    assert not registry.add("echo", Plugin()).faults
    return registry


def build_echo(word: str) -> Json:
    return {"type": "echo", "params": {"word": word}}


async def backdate_run(runtime: Runtime, caller: Caller, run: Json) -> Json:
    """Return the run, with its first action started an hour ago."""
    async with runtime.database.write(caller.organization_id) as session:
        stored_run = (await session.exec(select(AutomationRun))).one()
        await open_content(session, stored_run)
        records = stored_run.records()
        records[0].started_at = now() - timedelta(hours=1)
        stored_run.keep(records)
        await seal_content(session, stored_run)
    return await advance_again(runtime, caller, run)


async def test_actions_run_in_order_and_keep_their_results(
    caller: Caller, runtime: Runtime, receiver: Receiver
) -> None:
    contact: Json = {
        "phone_number": "{{ data.from_number }}",
        "name": "{{ data.contact_name | default('Nobody') }}",
        "is_favorite": True,
    }
    run = await run_once(
        runtime,
        caller,
        {"type": "upsert_contact", "params": contact},
        build_request(f"{receiver.url}/a", method="GET"),
        TAG,
        TAG,
        build_echo("{{ data.body }}"),
    )
    assert (run["status"], get_statuses(run)) == ("completed", ["completed"] * 5)
    (stored_contact,) = list_items(await caller.get("/v1/contacts"))
    assert (stored_contact["name"], stored_contact["is_favorite"], stored_contact["tags"]) == ("Nobody", True, "seen")
    assert list_items(await caller.get("/v1/contacts?search=nobody")) == [stored_contact]
    upserted, called, tagged, repeated, echoed = get_actions(run)
    assert upserted["result"] == {"contact_id": stored_contact["id"], "created": True}
    assert tagged["result"] == {"contact_id": stored_contact["id"], "added": True}
    assert repeated["result"] == {"contact_id": stored_contact["id"], "added": False}
    assert echoed["result"] == {"answer": "Hello"}
    (request,) = receiver.at("/a")
    assert (request.body, request.headers["User-Agent"]) == (b"", "Switchboard/1.0")
    moments = [parse_time(at) for action in get_actions(run) for at in (action["started_at"], action["completed_at"])]
    assert moments == sorted(moments)
    assert parse_time(run["completed_at"]) == moments[-1]
    assert (called["index"], called["type"], called["attempts"], called["error"]) == (1, "http_request", 1, None)


async def test_a_failing_action_is_tried_three_times_with_one_key(
    caller: Caller, runtime: Runtime, receiver: Receiver
) -> None:
    receiver.statuses["/x"] = [500, 429, 200]
    run = await run_once(
        runtime, caller, build_request(f"{receiver.url}/x", body="Plain", headers={"content-type": "text/csv"}), TAG
    )
    assert (run["status"], get_statuses(run)) == ("running", ["running", "pending"])
    assert (get_actions(run)[0]["attempts"], get_actions(run)[0]["error"]) == (1, "the endpoint returned status 500")
    assert 3 < await get_due_delay(runtime, caller) <= 5
    run = await advance_again(runtime, caller, run)
    assert (get_actions(run)[0]["attempts"], get_actions(run)[0]["error"]) == (2, "the endpoint returned status 429")
    assert 28 < await get_due_delay(runtime, caller) <= 30
    run = await advance_again(runtime, caller, run)
    assert (run["status"], get_statuses(run), get_actions(run)[0]["error"]) == ("completed", ["completed"] * 2, None)
    assert {request.headers["Idempotency-Key"] for request in receiver.at("/x")} == {f"{run['id']}-0"}
    assert [(request.body, request.headers["Content-Type"]) for request in receiver.at("/x")] == [
        (b"Plain", "text/csv")
    ] * 3


async def test_the_third_failure_fails_the_run_and_skips_the_rest(
    caller: Caller, runtime: Runtime, receiver: Receiver
) -> None:
    receiver.statuses["/x"] = [503]
    run = await run_once(runtime, caller, build_request(f"{receiver.url}/x"), TAG)
    run = await advance_again(runtime, caller, await advance_again(runtime, caller, run))
    assert (run["status"], get_statuses(run)) == ("failed", ["failed", "skipped"])
    assert run["error_message"] == "actions.0 (http_request) failed: the endpoint returned status 503"
    assert await advance_again(runtime, caller, run) == run
    assert len(receiver.at("/x")) == 3


async def test_a_retried_run_resumes_at_the_failed_action(caller: Caller, runtime: Runtime, receiver: Receiver) -> None:
    receiver.statuses["/x"] = [404, 200]
    run = await run_once(runtime, caller, TAG, build_request(f"{receiver.url}/x"), build_echo("after"))
    assert (run["status"], get_statuses(run)) == ("failed", ["completed", "failed", "skipped"])
    path = f"/v1/automations/{run['automation_id']}/runs/{run['id']}/retry"
    response = await caller.post(path)
    assert (response.status, response.json["status"], get_statuses(response.json)) == (
        200,
        "running",
        ["completed", "pending", "pending"],
    )
    assert (response.json["error_message"], response.json["completed_at"]) == (None, None)
    assert get_actions(response.json)[0] == get_actions(run)[0], "what was done is not done again"
    finished = await advance_again(runtime, caller, run)
    assert (finished["status"], get_statuses(finished)) == ("completed", ["completed"] * 3)
    assert len({request.headers["Idempotency-Key"] for request in receiver.at("/x")}) == 1
    refused = await caller.post(path)
    assert (refused.status, refused.json["code"]) == (409, "invalid_state")


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ("404", "the endpoint returned status 404"),
        ("302", "the endpoint returned status 302"),
        (build_request("http://{{ data.body }}/"), "destination address is not allowed"),
        (
            {"type": "tag_contact", "params": {"phone_number": "{{ data.body }}", "tag": "x"}},
            "params.phone_number: must be an E.164 phone number",
        ),
        (
            {"type": "tag_contact", "params": {"phone_number": CONTACT, "tag": "{{ data.bdoy }}"}},
            "params.tag: there is no bdoy",
        ),
        (
            {"type": "tag_contact", "params": {"phone_number": CONTACT, "tag": "{{ data.body / 2 }}"}},
            "params.tag: unsupported operand",
        ),
        (
            {"type": "tag_contact", "params": {"phone_number": CONTACT, "tag": "{{ '  ' }}"}},
            "params.tag: must be one tag",
        ),
        (
            {"type": "wait", "params": {"seconds": "{{ data.contact_name }}"}},
            "params.seconds: Input should be a valid integer",
        ),
        (
            {"type": "tag_contact", "params": {"phone_number": CONTACT, "tag": "x" * 255}},
            "the contact's tags would have more than 255 characters",
        ),
        (build_echo("refuse"), "no"),
        (build_echo("object"), "The action's result is not JSON."),
        (build_echo("much"), "longer than 16000"),
    ],
)
async def test_permanent_failures_are_not_retried(
    caller: Caller, runtime: Runtime, receiver: Receiver, action: Json | str, message: str
) -> None:
    if isinstance(action, str):
        receiver.statuses[f"/{action}"] = [int(action)]
        action = build_request(f"{receiver.url}/{action}")
    await caller.post("/v1/contacts", {"phone_number": CONTACT, "tags": "vip"})
    run = await run_once(runtime, caller, action, TAG, body="127.0.0.1:1@10.0.0.1")
    assert (run["status"], get_statuses(run)) == ("failed", ["failed", "skipped"])
    assert message in str(get_actions(run)[0]["error"])
    assert get_actions(run)[0]["attempts"] == 1
    assert list_items(await caller.get("/v1/contacts"))[0]["tags"] == "vip"


async def create_text_and_call_actions(caller: Caller) -> tuple[Json, Json, str]:
    """Create an automation that texts and calls the sender, and return it with the agent's id."""
    number = (await caller.post("/v1/phone-numbers", {"phone_number": fresh_number()})).json["id"]
    agent = (await caller.post("/v1/agents", {"name": "Agent"})).json["id"]
    text: Json = {
        "type": "send_sms",
        "params": {"from_number_id": number, "to_number": "{{ data.from_number }}", "body": "{{ data.body }}"},
    }
    call: Json = {
        "type": "start_call",
        "params": {"from_number_id": number, "agent_id": agent, "to_number": "{{ data.from_number }}"},
    }
    return text, call, str(agent)


async def test_automations_follow_the_same_rules_as_users(caller: Caller, runtime: Runtime) -> None:
    text, call, agent = await create_text_and_call_actions(caller)
    texting, calling = await create_automation(caller, text), await create_automation(caller, call)

    async def errors() -> list[object]:
        await publish_message(runtime, caller)
        await advance_runs(runtime, caller)
        newest = [(await list_runs(caller, each))[0] for each in (texting, calling)]
        assert all(run["status"] != "running" and get_actions(run)[0]["attempts"] == 1 for run in newest)
        return [get_actions(run)[0]["error"] for run in newest]

    assert await errors() == [None, None]
    await caller.send("PUT", f"/v1/agents/{agent}", {"status": "paused"})
    assert await errors() == [None, "The agent is paused: it takes and places no calls."]
    assert (await caller.send("DELETE", f"/v1/agents/{agent}")).status == 204
    assert await errors() == [None, "agent_id: is not an agent of the organization"]
    await caller.post("/v1/do-not-call", {"phone_number": CONTACT})
    assert (await errors())[0] == "The recipient has opted out."


async def test_an_insufficient_balance_fails_an_action_permanently(
    organizations: Organizations, runtime: Runtime
) -> None:
    caller = await organizations.create(policy=Policy(billing_mode="prepaid", prices=Prices(text_segment=1)))
    text, *_ = await create_text_and_call_actions(caller)
    run = await run_once(runtime, caller, text)
    assert run["status"] == "failed"
    assert get_actions(run)[0]["error"] == "The organization's balance does not cover this."


async def test_a_call_waits_for_capacity(organizations: Organizations, runtime: Runtime) -> None:
    caller = await organizations.create(policy=Policy(max_concurrent_calls=1))
    _, call, _ = await create_text_and_call_actions(caller)
    run = await run_once(runtime, caller, call, call)
    assert (get_statuses(run), get_actions(run)[1]["attempts"]) == (["completed", "running"], 1)
    async with runtime.database.write(caller.organization_id) as session:
        await finish_call(session, (await session.exec(select(Call))).one(), "failed")
    assert (await advance_again(runtime, caller, run))["status"] == "completed"


async def test_a_waiting_run_does_nothing(caller: Caller, runtime: Runtime) -> None:
    run = await run_once(runtime, caller, {"type": "wait", "params": {"seconds": 3600}}, TAG)
    assert (run["status"], get_statuses(run)) == ("running", ["running", "pending"])
    assert 3590 < await get_due_delay(runtime, caller) <= 3600
    unchanged = await advance_again(runtime, caller, run)
    assert (get_statuses(unchanged), get_actions(unchanged)[0]["attempts"]) == (["running", "pending"], 0)
    run = await backdate_run(runtime, caller, run)
    assert (run["status"], get_statuses(run), get_actions(run)[0]["result"]) == (
        "completed",
        ["completed"] * 2,
        {"seconds": 3600},
    )


async def test_a_slow_endpoint_times_out(caller: Caller, runtime: Runtime, receiver: Receiver) -> None:
    receiver.hangs.add("/x")
    run = await run_once(runtime, caller, build_request(f"{receiver.url}/x"))
    assert (run["status"], get_actions(run)[0]["error"]) == ("running", "no response in time")


async def test_a_plugin_action_may_fail_hang_and_ask_for_a_retry(caller: Caller, runtime: Runtime) -> None:
    broken, hanging, polling = [await create_automation(caller, build_echo(word)) for word in ("break", "hang", "poll")]
    await publish_message(runtime, caller)
    await advance_runs(runtime, caller)
    assert get_actions(await get_only_run(caller, broken))[0]["error"] == "The action raised RuntimeError."
    assert "took longer" in str(get_actions(await get_only_run(caller, hanging))[0]["error"])
    for _ in range(5):
        await let_time_pass(runtime, caller)
        await advance_runs(runtime, caller)
    assert [(await get_only_run(caller, each))["status"] for each in (broken, hanging, polling)] == [
        "failed",
        "failed",
        "running",
    ]
    assert get_actions(await get_only_run(caller, polling))[0]["attempts"] == 0


async def test_a_run_is_unaffected_by_later_changes_of_its_automation(caller: Caller, runtime: Runtime) -> None:
    run = await run_once(runtime, caller, {"type": "wait", "params": {"seconds": 3600}}, build_echo("before"))
    path = f"/v1/automations/{run['automation_id']}"
    await caller.send("PATCH", path, {"enabled": False, "actions": [build_echo("after")]})
    assert get_actions(await backdate_run(runtime, caller, run))[1]["result"] == {"answer": "before"}


async def test_runs_of_a_deleted_automation_stop(caller: Caller, runtime: Runtime) -> None:
    run = await run_once(runtime, caller, {"type": "wait", "params": {"seconds": 1}}, TAG)
    assert (await caller.send("DELETE", f"/v1/automations/{run['automation_id']}")).status == 204
    await let_time_pass(runtime, caller)
    await advance_runs(runtime, caller)
    assert list_items(await caller.get("/v1/contacts")) == []
    async with runtime.database.write(caller.organization_id) as session:
        assert (await session.exec(select(AutomationRun))).all() == []


async def test_an_action_of_a_removed_plugin_fails_the_run(
    caller: Caller, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    automation = await create_automation(caller, build_echo("x"))
    await publish_message(runtime, caller)
    monkeypatch.setattr(Registry, "action", lambda *_: None)
    await advance_runs(runtime, caller)
    assert (await get_only_run(caller, automation))[
        "error_message"
    ] == "actions.0 (echo) failed: no plugin provides the action echo"


async def test_two_automatic_repliers_stop_at_the_hourly_limit(caller: Caller, runtime: Runtime) -> None:
    number = (await caller.post("/v1/phone-numbers", {"phone_number": fresh_number()})).json["id"]
    params: Json = {"from_number_id": number, "to_number": "{{ data.from_number }}", "body": "You said {{ data.body }}"}
    automation = await create_automation(caller, {"type": "send_sms", "params": params})
    for count in range(3):
        await publish_message(runtime, caller, str(count))
        await advance_runs(runtime, caller)
        if count == 0:
            async with runtime.database.write(caller.organization_id) as session:
                await repeat_message(session, "automation", MAX_TEXTS_AN_HOUR - 2)
    runs = await list_runs(caller, automation)
    assert [run["status"] for run in runs] == ["failed", "completed", "completed"]
    assert "60 text messages within the hour" in str(runs[0]["error_message"])


async def test_old_runs_are_deleted_and_still_counted(caller: Caller, runtime: Runtime) -> None:
    automation = await create_automation(caller)
    for _ in range(2):
        await publish_message(runtime, caller)
    await advance_runs(runtime, caller)
    async with runtime.database.write(caller.organization_id) as session:
        old = (await session.exec(select(AutomationRun).order_by(col(AutomationRun.id)))).first()
        assert old is not None
        old.completed_at = now() - timedelta(days=31)
    await runtime.call(delete_expired_data)
    assert [run["id"] for run in await list_runs(caller, automation)] != [str(old.id)]
    assert len(await list_runs(caller, automation)) == 1
    assert (await get_automation(caller, automation))["run_count"] == 2
