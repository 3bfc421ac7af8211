"""Scopes of what automations and agents do: nobody does by way of them what they may not do themselves."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, get_args

import pytest
from sqlmodel import col, update
from switchboard.foundation.web.principal import SCOPES, get_role_scopes
from switchboard.plugin_sdk import (
    ActionContext,
    ActionParams,
    ActionScope,
    AutomationAction,
    JsonObject,
    hookimpl,
)
from switchboard.plugin_sdk.registry import Registry
from switchboard.resources.automations.actions import automation_actions
from switchboard.resources.identity.models import Membership
from switchboard.runtime import Runtime

from tests.fixtures.app import ApiResponse, Caller, Organizations
from tests.fixtures.automations import advance_runs, create_automation, get_only_run, publish_message
from tests.fixtures.dashboard import People
from tests.fixtures.json_access import Json, objects_at
from tests.fixtures.oauth import Application

PATH = "/v1/automations"
NEEDED = {
    "send_sms": "sms:write",
    "start_call": "calls:write",
    "http_request": "webhooks:write",
    "upsert_contact": "contacts:write",
    "tag_contact": "contacts:write",
    "add_to_campaign": "campaigns:write",
    "book_appointment": "calendar:write",
    "wait": "campaigns:write",
    "page": "webhooks:write",
}
"""The scope of each action. `page` is a plugin's, which declares none."""
TOOL: Json = {"name": "find_order", "description": "Find an order.", "url": "https://example.com/orders"}
HOOK = "https://example.com/hooks/agent"


class PageParams(ActionParams):
    """Parameters of the action."""

    pager: str


class Page(AutomationAction[PageParams]):
    """A plugin's action without a scope."""

    name, title, Params = "page", "Page somebody", PageParams

    async def run(self, context: ActionContext, params: PageParams) -> JsonObject:
        return {}


@hookimpl(specname="automation_actions")
def list_actions() -> Sequence[type[Page]]:
    return [Page]


@pytest.fixture
def registry() -> Registry:
    registry = Registry.discover()
    assert not registry.add("pager", SimpleNamespace(automation_actions=list_actions)).faults
    return registry


KINDS: list[type[AutomationAction[Any]]] = [*automation_actions(), Page]
ACTIONS = {kind.name: kind for kind in KINDS}


def build_action(name: str) -> Json:
    """Return an action whose parameters are templates, so that it is valid, and fails when it runs."""
    kind = ACTIONS[name]
    required = [field for field, info in kind.Params.model_fields.items() if info.is_required()]
    return {"type": name, "params": dict.fromkeys(required, "{{ data.nothing }}")}


def build_body(name: str) -> Json:
    return {"name": "A", "trigger_type": "sms.received", "actions": [build_action(name)]}


def assert_needs(response: ApiResponse, scope: str) -> None:
    """Assert that the response names the missing scope."""
    assert (response.status, response.json["code"]) == (403, "insufficient_scope"), response.body
    assert response.headers["WWW-Authenticate"] == f'Bearer error="insufficient_scope", scope="{scope}"'


def test_every_action_has_a_scope_that_a_key_can_have() -> None:
    assert {name: kind.scope or "campaigns:write" for name, kind in ACTIONS.items()} == NEEDED
    assert set(get_args(ActionScope)) == {scope for scope in SCOPES if scope.endswith(":write")}


@pytest.mark.parametrize("action", NEEDED)
async def test_a_key_writes_an_action_only_with_its_scope(
    caller: Caller, organizations: Organizations, runtime: Runtime, action: str
) -> None:
    needed = NEEDED[action]
    automation = await create_automation(caller, build_action(action))
    await publish_message(runtime, caller)
    await advance_runs(runtime, caller)
    run = await get_only_run(caller, automation)
    assert run["status"] == "failed"
    path = f"{PATH}/{automation['id']}"
    requests: list[tuple[str, str, object]] = [
        ("POST", PATH, build_body(action)),
        ("PATCH", path, {"actions": [build_action("wait"), build_action(action)]}),
        ("PATCH", path, {"trigger_type": "call.completed"}),
        ("PATCH", path, {"enabled": True}),
        ("PATCH", path, {"enabled": False, "name": "B"}),
    ]
    # Scopes only add permissions: what a key with all the others may not do, no key with one of them may.
    others = [scope for scope in SCOPES if scope not in (needed, "campaigns:write")]
    for scopes in (["campaigns:write", *others], ["campaigns:write"], ["campaigns:write", needed]):
        holder = await organizations.create_key(caller.organization_id, scopes=scopes)
        may = needed in scopes
        for method, url, body in requests:
            response = await holder.send(method, url, body)
            if may:
                assert response.status in (200, 201), response.body
            else:
                assert_needs(response, needed)
                assert f"The action {action} " in str(response.json["detail"])
        if not may:
            assert_needs(await holder.post(f"{path}/runs/{run['id']}/retry"), needed)
        assert (await holder.send("PATCH", path, {"enabled": False})).status == 200, "anybody may stop an automation"
    holder = await organizations.create_key(caller.organization_id, scopes=["campaigns:write", needed])
    assert (await holder.post(f"{path}/runs/{run['id']}/retry")).status == 200


@pytest.mark.parametrize("role", ["builder", "owner"])
@pytest.mark.parametrize("action", NEEDED)
async def test_users_write_actions_in_the_dashboard_and_through_applications_as_their_role_allows(
    caller: Caller, people: People, application: Application, *, runtime: Runtime, action: str, role: str
) -> None:
    may = NEEDED[action] in get_role_scopes(role)
    user = await people.join(caller.organization_id, role=role)
    params = build_action(action)["params"]
    assert isinstance(params, dict)
    form: dict[str, str | list[str]] = {
        "name": "A",
        "description": "",
        "enabled": "true",
        "trigger_type": "sms.received",
        "actions.0.type": action,
        **{f"actions.0.params.{name}": str(value) for name, value in params.items()},
    }
    made = await user.post("/dashboard/automations/new", form)
    assert made.status == (303 if may else 403), made.html
    assert may or NEEDED[action] in made.html

    automation = await create_automation(caller, build_action(action))
    page = f"/dashboard/automations/{automation['id']}"
    assert (await user.post(page, {**form, "name": "B"})).status == (303 if may else 403)
    for enabled in ("false", "true"):
        await user.post(f"{page}/enabled", {"enabled": enabled})
        kept = (await caller.get(f"{PATH}/{automation['id']}")).json
        assert kept["enabled"] is (enabled == "true" and may), "anybody may stop an automation"

    async with runtime.database.system() as session:
        members = update(Membership).where(col(Membership.user_id) == application.user_id)
        await session.exec(members.values(role=role))
    holder = application.build_caller(await application.obtain_tokens(scope=" ".join(SCOPES)))
    response = await holder.post(PATH, build_body(action))
    if may:
        assert response.status == 201, response.body
    else:
        assert_needs(response, NEEDED[action])
    narrow = application.build_caller(await application.obtain_tokens(scope="campaigns:write"))
    response = await narrow.post(PATH, build_body(action))
    assert response.status == (201 if NEEDED[action] == "campaigns:write" else 403)


async def test_an_action_of_a_removed_plugin_needs_the_strictest_scope(
    caller: Caller, organizations: Organizations, registry: Registry
) -> None:
    automation = await create_automation(caller, build_action("page"))
    registry.actions[:] = [kind for kind in registry.actions if kind.name != "page"]
    holder = await organizations.create_key(
        caller.organization_id, scopes=[scope for scope in SCOPES if scope != "webhooks:write"]
    )
    assert_needs(await holder.send("PATCH", f"{PATH}/{automation['id']}", {"enabled": True}), "webhooks:write")


async def test_a_key_gives_an_agent_tools_only_with_the_scope_of_webhooks(
    caller: Caller, organizations: Organizations
) -> None:
    holder = await organizations.create_key(caller.organization_id, scopes=["agents:write", "agents:read"])
    assert_needs(await holder.post("/v1/agents", {"name": "A", "tools": [TOOL]}), "webhooks:write")
    agent = (await caller.post("/v1/agents", {"name": "A", "tools": [{**TOOL, "time_limit_seconds": 7.0}]})).json
    path = f"/v1/agents/{agent['id']}"
    for changed in ({"url": "https://example.org"}, {"description": "Find any order."}, {"name": "find"}):
        assert_needs(
            await holder.send("PUT", path, {"tools": [*objects_at(agent, "tools"), {**TOOL, **changed}]}),
            "webhooks:write",
        )
    same = await holder.send("PUT", path, {"system_prompt": "Be kind.", "tools": agent["tools"]})
    assert (same.status, same.json["tools"]) == (200, agent["tools"])
    assert (await holder.send("PUT", path, {"tools": []})).json["tools"] == []
    assert_needs(await holder.send("PUT", path, {"tools": agent["tools"]}), "webhooks:write")


async def test_a_key_sets_an_agents_webhook_as_the_specification_says(
    caller: Caller, organizations: Organizations
) -> None:
    holder = await organizations.create_key(caller.organization_id, scopes=["agents:write"])
    made = await holder.post("/v1/agents", {"name": "A", "webhook_url": HOOK, "webhook_secret": "a secret"})
    assert (made.status, made.json["webhook_url"]) == (201, HOOK)


@pytest.mark.parametrize("role", ["builder", "owner"])
async def test_an_application_sets_an_agents_receivers_only_with_the_scope_of_webhooks(
    caller: Caller, application: Application, runtime: Runtime, role: str
) -> None:
    async with runtime.database.system() as session:
        members = update(Membership).where(col(Membership.user_id) == application.user_id)
        await session.exec(members.values(role=role))
    agent = (await caller.post("/v1/agents", {"name": "A", "webhook_url": HOOK})).json
    path = f"/v1/agents/{agent['id']}"
    everything = application.build_caller(await application.obtain_tokens(scope=" ".join(SCOPES)))
    narrow = application.build_caller(await application.obtain_tokens(scope="agents:write"))
    for holder, may in ((narrow, False), (everything, role == "owner")):
        for given in ({"webhook_url": "https://example.org/mine"}, {"webhook_secret": "mine"}, {"tools": [TOOL]}):
            for response in (
                await holder.post("/v1/agents", {"name": "B", **given}),
                await holder.send("PUT", path, given),
            ):
                if may:
                    assert response.status in (200, 201), response.body
                else:
                    assert_needs(response, "webhooks:write")
        kept = await caller.get(path)
        assert (await holder.send("PUT", path, {"name": "C", "webhook_url": kept.json["webhook_url"]})).status == 200


async def test_a_member_edits_an_agent_but_not_its_receivers(caller: Caller, people: People) -> None:
    member = await people.join(caller.organization_id, role="builder")
    agent = (await caller.post("/v1/agents", {"name": "A"})).json
    older = {"webhook_url": HOOK, "tools": [{**TOOL, "time_limit_seconds": 7.0}]}
    path, page = f"/v1/agents/{agent['id']}", f"/dashboard/agents/{agent['id']}"
    assert (await caller.send("PUT", path, older)).status == 200
    assert (await caller.send("PUT", path, {"webhook_url": None, "tools": []})).status == 200
    refused = await member.post(f"{page}/versions/2/restore")
    assert refused.status == 303
    assert (await caller.get(path)).json["webhook_url"] is None, "an old version is no way around"
    assert (await caller.send("PUT", path, older)).status == 200
    form: dict[str, str | list[str]] = {
        "name": "Renamed",
        "webhook_url": HOOK,
        **{f"tools.0.{name}": str(value) for name, value in TOOL.items()},
        "tools.0.parameters": "",
        "tools.0.time_limit_seconds": "7",
    }
    saved = await member.post(page, form)
    assert (saved.status, (await caller.get(path)).json["name"]) == (303, "Renamed"), saved.html
    for changed in ({"webhook_url": "https://example.org/mine"}, {"tools.0.url": "https://example.org/mine"}):
        refused = await member.post(page, {**form, **changed})
        assert refused.status == 403
        assert "webhooks:write" in refused.html
