"""Roles: what each may open, submit, and grant to applications."""

import re
from uuid import uuid4

import pytest
from switchboard.apps.dashboard.blueprint import iterate_pages
from switchboard.apps.server import app
from switchboard.foundation.web.principal import ROLES, SCOPES, get_least_role
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller
from tests.fixtures.dashboard import People
from tests.fixtures.oauth import Application, register_application

ANOTHER = str(uuid4())


def list_forbidden(role: str) -> list[tuple[str, str]]:
    """Return method and path of the pages and actions that a role lacks, with an unknown id for each parameter."""
    return sorted(
        (method, re.sub("<[^>]*>", ANOTHER, rule.rule))
        for rule, method, declared in iterate_pages(app.create_routes())
        if declared.role not in ("user", *ROLES[: ROLES.index(role) + 1])
    )


@pytest.mark.parametrize("role", ROLES)
async def test_pages_and_actions_beyond_a_role_are_refused(people: People, caller: Caller, role: str) -> None:
    person = await people.join(caller.organization_id, role=role)
    token = re.search(r'name="csrf_token" value="(\w+)"', (await person.get("/dashboard/organizations")).html)
    assert token
    forbidden = list_forbidden(role)
    assert forbidden
    for method, path in forbidden:
        answer = await (person.get(path) if method == "GET" else person.send(path, {"csrf_token": token[1]}))
        assert answer.status == 403, (method, path)


@pytest.mark.parametrize("role", ROLES)
async def test_a_role_opens_its_pages_and_sees_no_others_in_the_navigation(
    people: People, caller: Caller, role: str
) -> None:
    person = await people.join(caller.organization_id, role=role)
    html = (await person.get("/dashboard")).html
    for path in re.findall(r'<li><a href="(/dashboard[^"]*)"', html):
        assert (await person.get(path)).status == 200, path
    assert ("/dashboard/keys" in html) == (role == "owner")


async def test_a_viewer_sees_no_buttons_of_actions(people: People, caller: Caller) -> None:
    viewer = await people.join(caller.organization_id, role="viewer")
    contact = (await caller.post("/v1/contacts", {"phone_number": "+15550100001"})).json
    html = (await viewer.get(f"/dashboard/contacts/{contact['id']}")).html
    assert "Your role can read this, and not change it." in html
    assert "/delete" not in html
    agent = await people.join(caller.organization_id, role="agent")
    assert (await agent.post(f"/dashboard/contacts/{contact['id']}", {"name": "Ada"})).status == 303


@pytest.mark.parametrize("role", ROLES)
async def test_an_application_gets_the_scopes_of_its_users_role(
    people: People, caller: Caller, runtime: Runtime, role: str
) -> None:
    person = await people.join(caller.organization_id, role=role)
    application: Application = await register_application(runtime, caller.client, caller, person.user_id)
    tokens = await application.obtain_tokens(scope=" ".join(SCOPES))
    rank = ROLES.index(role)
    assert set(tokens["scope"].split()) == {scope for scope in SCOPES if ROLES.index(get_least_role(scope)) <= rank}


async def test_a_lesser_role_takes_effect_at_once(people: People, caller: Caller, runtime: Runtime) -> None:
    owner, person = [await people.join(caller.organization_id) for _ in range(2)]
    application = await register_application(runtime, caller.client, caller, person.user_id)
    user = application.build_caller(await application.obtain_tokens(scope="contacts:read contacts:write"))
    changed = await owner.post(f"/dashboard/team/{person.user_id}/role", {"role": "viewer"})
    assert changed.status == 303
    assert (await user.get("/v1/contacts")).status == 200
    assert (await user.post("/v1/contacts", {"phone_number": "+15550100001"})).status == 403
    assert (await person.post("/dashboard/contacts/new", {"phone_number": "+15550100001"})).status == 403
