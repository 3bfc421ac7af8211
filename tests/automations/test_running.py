"""Automation runs: actions in order, retries, waits, and crashes, without more attempts than necessary."""

import asyncio
from datetime import timedelta

import pytest
from sqlmodel import col, select
from switchboard.foundation.database import now
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
from switchboard.resources.automations import runs
from switchboard.resources.automations.actions import http_request, send_sms
from switchboard.resources.automations.jobs import delete_old_runs
from switchboard.resources.automations.models import AutomationRun
from switchboard.resources.calls.models import Call
from switchboard.resources.calls.states import finish_call
from switchboard.resources.identity.policy import Policy, Prices
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller, Organizations, fresh_number
from tests.fixtures.automations import (
    CONTACT,
    TAG,
    actions_of,
    again,
    automation_now,
    due_in,
    http,
    make,
    publish_text,
    run_now,
    run_once,
    runs_of,
    states,
    time_passes,
    work_through,
)
from tests.fixtures.json_access import Json
from tests.fixtures.receiver import Receiver
from tests.fixtures.webhooks import items, moment

pytestmark = pytest.mark.local_receivers


class EchoParams(ActionParams):
    what: str
    answer: object = None


class Echo(AutomationAction[EchoParams]):
    """An action that behaves as its parameters say."""

    name, title, Params = "echo", "Echo", EchoParams

    async def run(self, context: ActionContext, params: EchoParams) -> JsonObject:
        match params.what:
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
        return {"answer": params.what}


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


def echo(what: str) -> Json:
    return {"type": "echo", "params": {"what": what}}


async def after_an_hour(runtime: Runtime, caller: Caller, run: Json) -> Json:
    """Return the run, with its first action started an hour ago."""
    async with runtime.database.tenant(caller.organization_id) as session:
        kept = (await session.exec(select(AutomationRun))).one()
        records = kept.records()
        records[0].started_at = now() - timedelta(hours=1)
        kept.keep(records)
    return await again(runtime, caller, run)


async def test_actions_are_taken_in_order_and_their_results_kept(
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
        http(f"{receiver.url}/a", method="GET"),
        TAG,
        TAG,
        echo("{{ data.body }}"),
    )
    assert (run["status"], states(run)) == ("completed", ["completed"] * 5)
    (kept,) = items(await caller.get("/v1/contacts"))
    assert (kept["name"], kept["is_favorite"], kept["tags"]) == ("Nobody", True, "seen")
    assert items(await caller.get("/v1/contacts?search=nobody")) == [kept]
    upserted, called, tagged, repeated, echoed = actions_of(run)
    assert upserted["result"] == {"contact_id": kept["id"], "created": True}
    assert tagged["result"] == {"contact_id": kept["id"], "added": True}
    assert repeated["result"] == {"contact_id": kept["id"], "added": False}
    assert echoed["result"] == {"answer": "Hello"}
    (got,) = receiver.at("/a")
    assert (got.body, got.headers["User-Agent"]) == (b"", "Switchboard/1.0")
    moments = [moment(value) for action in actions_of(run) for value in (action["started_at"], action["completed_at"])]
    assert moments == sorted(moments)
    assert moment(run["completed_at"]) == moments[-1]
    assert (called["index"], called["type"], called["attempts"], called["error"]) == (1, "http_request", 1, None)


async def test_an_action_that_fails_is_tried_three_times_with_one_key(
    caller: Caller, runtime: Runtime, receiver: Receiver
) -> None:
    receiver.statuses["/x"] = [500, 429, 200]
    run = await run_once(
        runtime, caller, http(f"{receiver.url}/x", body="Plain", headers={"content-type": "text/csv"}), TAG
    )
    assert (run["status"], states(run)) == ("running", ["running", "pending"])
    assert (actions_of(run)[0]["attempts"], actions_of(run)[0]["error"]) == (1, "the endpoint returned status 500")
    assert 3 < await due_in(runtime, caller) <= 5
    run = await again(runtime, caller, run)
    assert (actions_of(run)[0]["attempts"], actions_of(run)[0]["error"]) == (2, "the endpoint returned status 429")
    assert 28 < await due_in(runtime, caller) <= 30
    run = await again(runtime, caller, run)
    assert (run["status"], states(run), actions_of(run)[0]["error"]) == ("completed", ["completed"] * 2, None)
    assert {request.headers["Idempotency-Key"] for request in receiver.at("/x")} == {f"{run['id']}-0"}
    assert [(request.body, request.headers["Content-Type"]) for request in receiver.at("/x")] == [
        (b"Plain", "text/csv")
    ] * 3


async def test_after_the_third_failure_the_run_has_failed_and_nothing_follows(
    caller: Caller, runtime: Runtime, receiver: Receiver
) -> None:
    receiver.statuses["/x"] = [503]
    run = await run_once(runtime, caller, http(f"{receiver.url}/x"), TAG)
    run = await again(runtime, caller, await again(runtime, caller, run))
    assert (run["status"], states(run)) == ("failed", ["failed", "skipped"])
    assert run["error_message"] == "actions.0 (http_request) failed: the endpoint returned status 503"
    assert await again(runtime, caller, run) == run
    assert len(receiver.at("/x")) == 3


async def test_a_failed_run_is_taken_up_where_it_failed(caller: Caller, runtime: Runtime, receiver: Receiver) -> None:
    receiver.statuses["/x"] = [404, 200]
    run = await run_once(runtime, caller, TAG, http(f"{receiver.url}/x"), echo("after"))
    assert (run["status"], states(run)) == ("failed", ["completed", "failed", "skipped"])
    path = f"/v1/automations/{run['automation_id']}/runs/{run['id']}/retry"
    taken_up = await caller.post(path)
    assert (taken_up.status, taken_up.json["status"], states(taken_up.json)) == (
        200,
        "running",
        ["completed", "pending", "pending"],
    )
    assert (taken_up.json["error_message"], taken_up.json["completed_at"]) == (None, None)
    assert actions_of(taken_up.json)[0] == actions_of(run)[0], "what was done is not done again"
    done = await again(runtime, caller, run)
    assert (done["status"], states(done)) == ("completed", ["completed"] * 3)
    assert len({request.headers["Idempotency-Key"] for request in receiver.at("/x")}) == 1
    refused = await caller.post(path)
    assert (refused.status, refused.json["code"]) == (409, "invalid_state")


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ("404", "the endpoint returned status 404"),
        ("302", "the endpoint returned status 302"),
        (http("http://{{ data.body }}/"), "destination address is not allowed"),
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
        (echo("refuse"), "no"),
        (echo("object"), "The action's result is not JSON."),
        (echo("much"), "longer than 16000"),
    ],
)
async def test_what_cannot_be_helped_is_not_tried_again(
    caller: Caller, runtime: Runtime, receiver: Receiver, action: Json | str, message: str
) -> None:
    if isinstance(action, str):
        receiver.statuses[f"/{action}"] = [int(action)]
        action = http(f"{receiver.url}/{action}")
    await caller.post("/v1/contacts", {"phone_number": CONTACT, "tags": "vip"})
    run = await run_once(runtime, caller, action, TAG, body="127.0.0.1:1@10.0.0.1")
    assert (run["status"], states(run)) == ("failed", ["failed", "skipped"])
    assert message in str(actions_of(run)[0]["error"])
    assert actions_of(run)[0]["attempts"] == 1
    assert items(await caller.get("/v1/contacts"))[0]["tags"] == "vip"


async def texting_and_calling(caller: Caller) -> tuple[Json, Json, str]:
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


async def test_what_may_not_be_done_by_hand_may_not_be_done_by_an_automation(caller: Caller, runtime: Runtime) -> None:
    text, call, agent = await texting_and_calling(caller)
    texting, calling = await make(caller, text), await make(caller, call)

    async def errors() -> list[object]:
        await publish_text(runtime, caller)
        await work_through(runtime, caller)
        newest = [(await runs_of(caller, each))[0] for each in (texting, calling)]
        assert all(run["status"] != "running" and actions_of(run)[0]["attempts"] == 1 for run in newest)
        return [actions_of(run)[0]["error"] for run in newest]

    assert await errors() == [None, None]
    await caller.send("PUT", f"/v1/agents/{agent}", {"status": "paused"})
    assert await errors() == [None, "The agent is paused: it takes and places no calls."]
    assert (await caller.send("DELETE", f"/v1/agents/{agent}")).status == 204
    assert await errors() == [None, "agent_id: is not an agent of the organization"]
    await caller.post("/v1/do-not-call", {"phone_number": CONTACT})
    assert (await errors())[0] == "The recipient has opted out."


async def test_a_balance_that_does_not_cover_it_fails_an_action_for_good(
    organizations: Organizations, runtime: Runtime
) -> None:
    caller = await organizations.make(policy=Policy(billing_mode="prepaid", prices=Prices(text_segment=1)))
    text, *_ = await texting_and_calling(caller)
    run = await run_once(runtime, caller, text)
    assert (run["status"], actions_of(run)[0]["error"]) == ("failed", "The organization's balance does not cover this.")


async def test_a_call_waits_for_room(organizations: Organizations, runtime: Runtime) -> None:
    caller = await organizations.make(policy=Policy(max_concurrent_calls=1))
    _, call, _ = await texting_and_calling(caller)
    run = await run_once(runtime, caller, call, call)
    assert (states(run), actions_of(run)[1]["attempts"]) == (["completed", "running"], 1)
    async with runtime.database.tenant(caller.organization_id) as session:
        await finish_call(session, (await session.exec(select(Call))).one(), "failed")
    assert (await again(runtime, caller, run))["status"] == "completed"


async def test_nothing_happens_while_a_run_waits(caller: Caller, runtime: Runtime) -> None:
    run = await run_once(runtime, caller, {"type": "wait", "params": {"seconds": 3600}}, TAG)
    assert (run["status"], states(run)) == ("running", ["running", "pending"])
    assert 3590 < await due_in(runtime, caller) <= 3600
    early = await again(runtime, caller, run)
    assert (states(early), actions_of(early)[0]["attempts"]) == (["running", "pending"], 0)
    run = await after_an_hour(runtime, caller, run)
    assert (run["status"], states(run), actions_of(run)[0]["result"]) == (
        "completed",
        ["completed"] * 2,
        {"seconds": 3600},
    )


async def test_a_slow_endpoint_is_left_in_time(
    caller: Caller, runtime: Runtime, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_request, "SECONDS", 0.1)
    receiver.hangs.add("/x")
    run = await run_once(runtime, caller, http(f"{receiver.url}/x"))
    assert (run["status"], actions_of(run)[0]["error"]) == ("running", "no response in time")


async def test_a_plugins_action_may_break_hang_and_ask_to_be_called_again(
    caller: Caller, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "ACTION_SECONDS", 0.05)
    broken, hanging, polling = [await make(caller, echo(what)) for what in ("break", "hang", "poll")]
    await publish_text(runtime, caller)
    await work_through(runtime, caller)
    assert actions_of(await run_now(caller, broken))[0]["error"] == "The action raised RuntimeError."
    assert "took longer" in str(actions_of(await run_now(caller, hanging))[0]["error"])
    for _ in range(5):
        await time_passes(runtime, caller)
        await work_through(runtime, caller)
    assert [(await run_now(caller, each))["status"] for each in (broken, hanging, polling)] == [
        "failed",
        "failed",
        "running",
    ]
    assert actions_of(await run_now(caller, polling))[0]["attempts"] == 0


async def test_a_run_goes_on_as_it_began_whatever_becomes_of_the_automation(caller: Caller, runtime: Runtime) -> None:
    run = await run_once(runtime, caller, {"type": "wait", "params": {"seconds": 3600}}, echo("before"))
    path = f"/v1/automations/{run['automation_id']}"
    await caller.send("PATCH", path, {"enabled": False, "actions": [echo("after")]})
    assert actions_of(await after_an_hour(runtime, caller, run))[1]["result"] == {"answer": "before"}


async def test_a_deleted_automations_runs_stop(caller: Caller, runtime: Runtime) -> None:
    run = await run_once(runtime, caller, {"type": "wait", "params": {"seconds": 1}}, TAG)
    assert (await caller.send("DELETE", f"/v1/automations/{run['automation_id']}")).status == 204
    await time_passes(runtime, caller)
    await work_through(runtime, caller)
    assert items(await caller.get("/v1/contacts")) == []
    async with runtime.database.tenant(caller.organization_id) as session:
        assert (await session.exec(select(AutomationRun))).all() == []


async def test_an_action_whose_plugin_is_gone_fails_the_run(
    caller: Caller, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    automation = await make(caller, echo("x"))
    await publish_text(runtime, caller)
    monkeypatch.setattr(Registry, "action", lambda *_: None)
    await work_through(runtime, caller)
    assert (await run_now(caller, automation))[
        "error_message"
    ] == "actions.0 (echo) failed: no plugin provides the action echo"


async def test_machines_that_answer_each_other_stop(
    caller: Caller, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(send_sms, "MAX_TEXTS_AN_HOUR", 2)
    number = (await caller.post("/v1/phone-numbers", {"phone_number": fresh_number()})).json["id"]
    params: Json = {"from_number_id": number, "to_number": "{{ data.from_number }}", "body": "You said {{ data.body }}"}
    automation = await make(caller, {"type": "send_sms", "params": params})
    for count in range(3):
        await publish_text(runtime, caller, str(count))
        await work_through(runtime, caller)
    found = await runs_of(caller, automation)
    assert [run["status"] for run in found] == ["failed", "completed", "completed"]
    assert "2 text messages within the hour" in str(found[0]["error_message"])


async def test_old_runs_are_forgotten_and_still_counted(caller: Caller, runtime: Runtime) -> None:
    automation = await make(caller)
    for _ in range(2):
        await publish_text(runtime, caller)
    await work_through(runtime, caller)
    async with runtime.database.tenant(caller.organization_id) as session:
        old = (await session.exec(select(AutomationRun).order_by(col(AutomationRun.id)))).first()
        assert old is not None
        old.completed_at = now() - timedelta(days=31)
    await delete_old_runs(runtime)
    assert [run["id"] for run in await runs_of(caller, automation)] != [str(old.id)]
    assert len(await runs_of(caller, automation)) == 1
    assert (await automation_now(caller, automation))["run_count"] == 2
