"""Isolation, generated from the dashboard's routes: an id of another organization is answered like one that nobody has,
by every page and action, and nothing of the other organization changes. A new page is covered as it is.
"""

import json
import re
from uuid import uuid4

import pytest
from quart import Quart
from switchboard.apps.server import app
from switchboard.runtime import Runtime
from werkzeug.routing import Rule

from tests.fixtures.app import Caller, LivePlatform, Organizations
from tests.fixtures.dashboard import People, Person
from tests.fixtures.isolation import populate, quiet, rows

# Placeholders that are no ids of an organization's things, or are a superadmin's, which tests of their own cover.
NO_IDS = {"nowhere", "filename", "token", "capability", "name", "organization_id", "client_id", "application_id"}
NOUNS = {
    "number": "phone_number",
    "base": "knowledge_base",
    "document": "knowledge_document",
    "endpoint": "event_target",
    "run": "automation_run",
    "key": "api_key",
    "conversation": "sms_conversation",
    "entry": "do_not_call_entry",
}


def pages() -> list[tuple[str, Rule]]:
    application = Quart("switchboard")
    for blueprint in app.BLUEPRINTS:
        application.register_blueprint(blueprint)
    of_dashboard = [rule for rule in application.url_map.iter_rules() if rule.endpoint.startswith("dashboard.")]
    return [
        (method, rule)
        for rule in sorted(of_dashboard, key=lambda rule: rule.rule)
        for method in sorted((rule.methods or set()) - {"HEAD", "OPTIONS"})
        if rule.arguments and not rule.arguments & NO_IDS
    ]


def path_of(rule: Rule, ids: dict[str, str]) -> str:
    return re.sub(r"<(\w+)>", lambda placeholder: ids.get(placeholder[1], "1"), rule.rule)


async def ask(person: Person, method: str, rule: Rule, ids: dict[str, str]) -> tuple[int, str, str]:
    """Status, page, and what is said about it afterwards; without the ids that were asked for, and what is another each
    time.
    """
    path = path_of(rule, ids)
    seen = await (person.get(path) if method == "GET" else person.post(path))
    html = re.sub(r"Request [\w-]+|[0-9a-f]{64}", "", seen.html)
    notice = re.search(r'class="notice".*?</p>', (await person.get("/dashboard/organizations")).html)
    told = notice[0] if notice else ""
    for name, value in ids.items():
        html, told = html.replace(value, name), told.replace(value, name)
    return seen.status, html, told


async def ids_of(
    runtime: Runtime, victim: Caller, rule: Rule, had: dict[str, list[str]], member: Person
) -> dict[str, str]:
    found = {"user_id": str(member.user_id)}
    for name in rule.arguments - {"user_id", "number", "session_id"}:
        noun = name.removesuffix("_id")
        lines = had.get(NOUNS.get(noun, noun), [])
        assert lines, f"{rule.rule}: the organization has no {noun}"
        found[name] = str(json.loads(lines[0])["id"])
    return {name: found.get(name, str(uuid4()) if name.endswith("_id") else "1") for name in rule.arguments}


@pytest.mark.timeout(180)
async def test_an_id_of_another_organization_is_an_unknown_id_on_every_page(
    live: LivePlatform, organizations: Organizations, people: People
) -> None:
    victim = await populate(live)
    member = await people.join(victim.organization_id)
    await member.post("/dashboard/team", {"email": "somebody@example.com", "role": "member"})
    stranger = await people.join((await organizations.make()).organization_id)
    await quiet(live.runtime, victim)
    before = await rows(live.runtime, victim)
    asked = pages()
    assert len(asked) > 80
    for method, rule in asked:
        foreign = await ids_of(live.runtime, victim, rule, before, member)
        unknown = {name: str(uuid4()) if name.endswith("_id") else value for name, value in foreign.items()}
        expected = await ask(stranger, method, rule, unknown)
        told = await ask(stranger, method, rule, foreign)
        assert told == expected, f"{method} {rule.rule} tells of another organization"
        assert expected[0] in (404, 303, 422), f"{method} {rule.rule} answers {expected[0]}"
        assert method == "POST" or expected[0] == 404, f"GET {rule.rule} answers {expected[0]} for what nobody has"
    assert await rows(live.runtime, victim) == before
