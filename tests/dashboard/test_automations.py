"""The pages of automations: the builder with and without scripts, the switch, the runs."""

import asyncio
import re
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import Field
from switchboard.apps.dashboard.forms.automation import ActionTypes, automation_to_form, read_automation_form
from switchboard.plugin_sdk import ActionContext, ActionParams, AutomationAction, JsonObject, hookimpl
from switchboard.plugin_sdk.registry import Registry
from switchboard.resources.automations.models import Automation
from switchboard.runtime import Runtime
from uuid_utils.compat import uuid7

from tests.fixtures.app import UNKNOWN_ID, Caller, LivePlatform
from tests.fixtures.automations import TAG, advance_runs, create_automation, get_automation, list_runs, publish_message
from tests.fixtures.dashboard import People, Person, Window
from tests.fixtures.json_access import Json

Fields = dict[str, str | list[str]]
BASE: Fields = {"name": "Refunds", "description": "", "enabled": "true", "trigger_type": "sms.received"}
TAGGING: Fields = {
    "actions.0.type": "tag_contact",
    "actions.0.params.phone_number": "{{ data.from_number }}",
    "actions.0.params.tag": "refund",
}


class HootParams(ActionParams):
    """Parameters of the action."""

    times: int = Field(1, le=9, description="How often to hoot.")
    loud: bool = False


class Hoot(AutomationAction[HootParams]):
    """Action that hoots."""

    name, title, Params = "hoot", "Hoot", HootParams

    async def run(self, context: ActionContext, params: HootParams) -> JsonObject:
        return {}


@hookimpl
def automation_actions() -> Sequence[type[Hoot]]:
    return [Hoot]


@pytest.fixture
def registry() -> Registry:
    registry = Registry.discover()
    assert not registry.add("hoot", SimpleNamespace(automation_actions=automation_actions)).faults
    return registry


@pytest.fixture
async def owner(people: People, caller: Caller) -> Person:
    return await people.join(caller.organization_id)


async def get_only_automation(caller: Caller) -> Json:
    items = (await caller.get("/v1/automations")).json["items"]
    assert isinstance(items, list)
    (automation,) = items
    assert isinstance(automation, dict)
    return automation


async def test_an_automation_is_built_and_its_run_is_shown(window: Window, live: LivePlatform) -> None:
    page = window.page
    await window.open("/dashboard/automations")
    await page.get_by_role("link", name="New automation").first.click()
    await page.get_by_label("Name").fill("Refunds")
    await page.get_by_label("Event").select_option("sms.received")
    await page.locator('#event-fields option[value="data.body"]').wait_for(state="attached")
    assert await page.get_by_label("Name").input_value() == "Refunds", "nothing is lost when the builder changes"
    await page.get_by_role("button", name="Add a condition").click()
    await page.get_by_label("Field", exact=True).fill("data.body")
    await page.get_by_label("Comparison").select_option("contains")
    await page.get_by_label("Value").fill("refund")
    await page.get_by_label("First action").select_option("wait")
    await page.get_by_role("button", name="Add action").click()
    await page.get_by_label("Seconds").fill("1")
    await page.get_by_label("Next action").select_option("tag_contact")
    await page.get_by_role("button", name="Add action").click()
    await page.get_by_label("Tag").fill("refund")
    await page.get_by_label("Phone number").fill("{{ data.from_number }}")
    await window.check_accessibility()
    await page.get_by_role("button", name="Move action 2 up").click()
    await page.get_by_role("heading", name="Tag a contact").and_(page.locator("fieldset:first-of-type h3")).wait_for()
    assert await page.evaluate("document.activeElement.value") == "down:actions:0", (
        "the keyboard stays with the row that moved"
    )
    await page.get_by_role("button", name="Create automation").click()
    await page.get_by_text("Refunds was created.").wait_for()
    await window.check_accessibility()
    await publish_message(live.runtime, live.caller, "I want a refund")
    automation = await get_only_automation(live.caller)
    await window.open(f"/dashboard/automations/{automation['id']}/runs")
    async with asyncio.timeout(60):
        while not await page.get_by_role("cell", name="sms.received").count():
            await page.reload()
    await window.check_accessibility()
    await page.get_by_role("row").nth(1).get_by_role("link").click()
    await page.locator("dl").get_by_text("completed").wait_for()
    await page.get_by_text('"contact_id"').wait_for()
    await window.check_accessibility()


async def test_the_builder_works_without_scripts(owner: Person, caller: Caller) -> None:
    draft = "/dashboard/automations/new/draft"
    html = (await owner.post(draft, {**BASE, "change": "add:conditions"})).html
    assert 'name="conditions.0.operator"' in html
    assert 'value="Refunds"' in html
    fields: Fields = {
        **BASE,
        "conditions.0.field": "data.body",
        "conditions.0.operator": "in",
        "conditions.0.value": "refund, money back",
    }
    html = (await owner.post(draft, {**fields, "change": "add:actions", "new_action": "send_sms"})).html
    assert 'value="refund, money back"' in html
    assert 'name="actions.0.params.body"' in html
    two: Fields = {
        **fields,
        **TAGGING,
        "actions.1.type": "hoot",
        "actions.1.params.times": "3",
        "actions.1.params.loud": "",
    }
    html = (await owner.post(draft, {**two, "change": "up:actions:1"})).html
    assert re.search(r'name="actions.0.type" value="hoot"', html)
    assert 'name="actions.1.params.tag"' in html
    html = (await owner.post(draft, {**two, "change": "remove:actions:0"})).html
    assert 'name="actions.1.type"' not in html
    assert "No automations yet" in (await owner.get("/dashboard/automations")).html, "a draft is kept nowhere"
    assert (await owner.post("/dashboard/automations/new", two)).status == 303
    automation = await get_only_automation(caller)
    assert automation["conditions"] == [{"field": "data.body", "operator": "in", "value": ["refund", "money back"]}]
    assert automation["actions"] == [
        {"type": "tag_contact", "params": {"phone_number": "{{ data.from_number }}", "tag": "refund"}},
        {"type": "hoot", "params": {"times": 3}},
    ]


async def test_errors_appear_at_their_rows_despite_empty_rows(owner: Person) -> None:
    invalid: Fields = {
        **BASE,
        **TAGGING,
        "name": "",
        "filters.0.field": "",
        "filters.0.value": "",
        "filters.1.field": "body",
        "filters.1.value": "x",
        "conditions.0.field": "",
        "conditions.0.operator": "eq",
        "conditions.0.value": "",
        "conditions.1.field": "data.body",
        "conditions.1.operator": "contains",
        "conditions.1.value": "",
        "actions.0.params.tag": "one, two",
        "actions.1.type": "http_request",
        "actions.1.params.url": "https://example.com",
        "actions.1.params.headers": "Host: example.com",
        "actions.1.params.body": '{"a": {{ data.body }}}',
        "actions.2.type": "hoot",
        "actions.2.params.times": "99",
    }
    refused = await owner.post("/dashboard/automations/new", invalid)
    assert refused.status == 422
    for field in ("name", "filters.0.field", "conditions.0.value", "actions.1.params.body"):
        assert f'id="fault-{field}"' in refused.html, field
    assert 'value="one, two"' in refused.html
    readable: Fields = {
        **invalid,
        "name": "Refunds",
        "filters.1.field": "data.body",
        "conditions.1.value": "refund",
        "actions.1.params.body": "",
    }
    refused = await owner.post("/dashboard/automations/new", readable)
    for field in ("actions.0.params.tag", "actions.1.params.headers", "actions.2.params.times"):
        assert f'id="fault-{field}"' in refused.html, field
    assert "Host: is set by the platform" in refused.html
    refused = await owner.post("/dashboard/automations/new", BASE)
    assert "Add at least one action." in refused.html


async def test_ids_are_chosen_from_lists_and_templates_are_kept(owner: Person, caller: Caller) -> None:
    agent = (await caller.post("/v1/agents", {"name": "Night shift"})).json
    draft: Fields = {**BASE, "change": "add:actions", "new_action": "start_call"}
    assert (
        f'<option value="{agent["id"]}">Night shift</option>'
        in (await owner.post("/dashboard/automations/new/draft", draft)).html
    )
    call: Json = {
        "agent_id": "{{ data.metadata.agent }}",
        "from_number_id": "{{ data.metadata.number }}",
        "to_number": "{{ data.from_number }}",
    }
    automation = await create_automation(caller, {"type": "start_call", "params": {**call, "metadata": {"order": 17}}})
    page = (await owner.get(f"/dashboard/automations/{automation['id']}")).html
    assert '<option value="{{ data.metadata.agent }}" selected>' in page
    assert "&#34;order&#34;: 17" in page


AUTOMATION: dict[str, Any] = {
    "name": "Everything",
    "description": "All of it",
    "enabled": False,
    "trigger_type": "simulation.completed",
    "trigger_filters": {
        "data.status": "failed",
        "data.turns": 3,
        "data.criteria.1.passed": False,
        "data.name": "17",
        "data.error_message": None,
    },
    "conditions": [
        {"field": "data.name", "operator": "in", "value": ["a", "b, c", "null", "5"]},
        {"field": "data.turns", "operator": "in", "value": [1, "1", None]},
        {"field": "data.score", "operator": "gte", "value": 0.5},
        {"field": "data.name", "operator": "contains", "value": "[urgent]"},
        {"field": "data.name", "operator": "exists", "value": None},
        {"field": "data.turns", "operator": "eq", "value": "true"},
        {"field": "data.name", "operator": "not_in", "value": []},
        {"field": "data.criteria", "operator": "eq", "value": [{"passed": True}]},
    ],
    "actions": [
        {"type": "hoot", "params": {"times": "{{ data.turns }}", "loud": True}},
        {
            "type": "http_request",
            "params": {"url": "https://example.com", "headers": {"X-A": "1"}, "body": "17", "method": "PUT"},
        },
        {"type": "http_request", "params": {"url": "https://example.com", "body": {"a": ["{{ data.name }}", 1, None]}}},
    ],
}


def test_an_unchanged_form_is_saved_unchanged(registry: Registry) -> None:
    kinds = ActionTypes(registry, {}, {})
    automation = Automation(id=uuid7(), organization_id=uuid7(), **AUTOMATION)
    form = {**automation_to_form(automation, kinds), "enabled": "false"}
    assert read_automation_form(form, kinds).model_dump(mode="json") == AUTOMATION


async def test_an_action_of_a_removed_plugin_is_reported_and_kept_until_removed(
    owner: Person, caller: Caller, runtime: Runtime
) -> None:
    automation = await create_automation(caller, TAG, {"type": "hoot", "params": {"times": 3}})
    runtime.registry._found.pop(("automation_action", "hoot"))
    path = f"/dashboard/automations/{automation['id']}"
    escaped_params = "{&#34;times&#34;: 3}"
    assert escaped_params in (await owner.get(path)).html
    fields: Fields = {**BASE, **TAGGING, "actions.1.type": "hoot", "actions.1.kept": '{"times": 3}'}
    moved_html = (await owner.post(f"{path}/draft", {**fields, "change": "up:actions:1"})).html
    assert f'name="actions.0.kept" value="{escaped_params}"' in moved_html
    refused = await owner.post(path, fields)
    assert refused.status == 422
    assert "hoot is not an action" in refused.html
    assert (await get_automation(caller, automation))["actions"] == [TAG, {"type": "hoot", "params": {"times": 3}}]


async def test_an_automation_is_changed_enabled_and_deleted(owner: Person, caller: Caller) -> None:
    automation = await create_automation(
        caller, conditions=[{"field": "data.body", "operator": "contains", "value": "refund"}], description="Old"
    )
    path = f"/dashboard/automations/{automation['id']}"
    assert 'value="Old"' in (await owner.get(path)).html
    assert (await owner.post(path, {**BASE, **TAGGING, "name": "New", "trigger_type": "call.failed"})).status == 303
    changed = await get_automation(caller, automation)
    assert (changed["name"], changed["trigger_type"], changed["conditions"], changed["description"]) == (
        "New",
        "call.failed",
        [],
        None,
    )
    await owner.post(f"{path}/enabled", {"enabled": "false"})
    assert (await get_automation(caller, automation))["enabled"] is False
    assert ">Enable<" in (await owner.get("/dashboard/automations")).html
    await owner.post(f"{path}/enabled", {"enabled": "true", "name": "Smuggled"})
    assert (await get_automation(caller, automation))["name"] == "New"
    assert (await owner.post(f"{path}/delete")).status == 303
    assert "No automations yet" in (await owner.get("/dashboard/automations")).html


async def test_runs_are_filtered_and_show_their_errors(owner: Person, caller: Caller, runtime: Runtime) -> None:
    bad: Json = {"type": "tag_contact", "params": {"phone_number": "{{ data.nothing }}", "tag": "x"}}
    automation = await create_automation(
        caller, TAG, bad, TAG, conditions=[{"field": "data.body", "operator": "contains", "value": "<b>"}]
    )
    await publish_message(runtime, caller, "Say <b>hello</b>")
    await publish_message(runtime, caller, "No changes")
    await advance_runs(runtime, caller)
    path = f"/dashboard/automations/{automation['id']}/runs"
    failed, skipped = sorted(await list_runs(caller, automation), key=lambda run: str(run["status"]))
    shown_failed = (await owner.get(f"{path}?status=failed")).html
    assert str(failed["id"]) in shown_failed
    assert str(skipped["id"]) not in shown_failed
    page = (await owner.get(f"{path}/{failed['id']}")).html
    assert "there is no nothing" in page
    assert "&lt;b&gt;hello&lt;/b&gt;" in page
    assert page.count('<span class="badge ') == 4
    page = (await owner.get(f"{path}/{skipped['id']}")).html
    assert "conditions.0" in page
    assert "Retry from" not in page


async def test_a_failed_run_is_retried(owner: Person, caller: Caller, runtime: Runtime) -> None:
    bad: Json = {"type": "tag_contact", "params": {"phone_number": "{{ data.nothing }}", "tag": "x"}}
    automation = await create_automation(caller, bad)
    await publish_message(runtime, caller)
    await advance_runs(runtime, caller)
    (run,) = await list_runs(caller, automation)
    path = f"/dashboard/automations/{automation['id']}/runs/{run['id']}"
    again = await owner.post(f"{path}/retry")
    assert (again.status, again.location) == (303, path)
    assert "The run continues from the failed action." in (await owner.get(path)).html
    assert [found["status"] for found in await list_runs(caller, automation)] == ["running"]
    await advance_runs(runtime, caller)
    assert "Retry from the failed action" in (await owner.get(path)).html


async def test_other_organizations_automations_are_unreachable(
    owner: Person, people: People, caller: Caller, stranger: Caller, runtime: Runtime
) -> None:
    automation = await create_automation(caller, TAG)
    await publish_message(runtime, caller)
    await advance_runs(runtime, caller)
    (run,) = await list_runs(caller, automation)
    thief = await people.join(stranger.organization_id)
    foreign_automation = await create_automation(stranger, TAG)
    assert str(automation["id"]) not in (await thief.get("/dashboard/automations")).html
    for automation_id in (automation["id"], UNKNOWN_ID):
        path = f"/dashboard/automations/{automation_id}"
        for way in ("", "/runs", f"/runs/{run['id']}", f"/runs/{run['id']}/live"):
            assert (await thief.get(path + way)).status == 404, way
        for way in ("", "/draft", "/enabled", "/delete"):
            fields: Fields = {"enabled": "false"} if way == "/enabled" else {**BASE, **TAGGING}
            assert (await thief.post(path + way, fields)).status == 404, way
    assert (await thief.get(f"/dashboard/automations/{foreign_automation['id']}/runs/{run['id']}")).status == 404
    assert (await thief.send("/dashboard/automations/new/draft", {**BASE, "change": "add:filters"})).status == 403
    assert (await get_automation(caller, automation))["enabled"] is True


async def test_a_member_is_offered_no_action_of_owners(people: People, caller: Caller) -> None:
    owner = await people.join(caller.organization_id)
    member = await people.join(caller.organization_id, role="builder")
    option = '<option value="http_request">'
    assert option in (await owner.get("/dashboard/automations/new")).html
    page = (await member.get("/dashboard/automations/new")).html
    assert option not in page
    assert '<option value="tag_contact">' in page
