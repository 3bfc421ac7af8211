"""Isolation, generated from the dashboard's routes: every page and action answers an id of another organization like an
unknown id, and nothing of the other organization changes. New pages are covered automatically.
"""

import json
import re
from uuid import uuid4

from switchboard.apps.server import app
from switchboard.runtime import Runtime
from werkzeug.routing import Rule

from tests.fixtures.app import Caller, LivePlatform, Organizations
from tests.fixtures.dashboard import People, Person
from tests.fixtures.isolation import populate, read_rows, wait_until_quiet

# Placeholders that are no ids of an organization's resources, or belong to superadmins, which other tests cover.
NO_IDS = {
    "nowhere",
    "filename",
    "token",
    "capability",
    "name",
    "organization_id",
    "account_id",
    "client_id",
    "application_id",
}
NOUNS = {
    "number": "phone_number",
    "base": "knowledge_base",
    "document": "knowledge_document",
    "endpoint": "event_target",
    "run": "automation_run",
    "key": "api_key",
    "conversation": "sms_conversation",
    "entry": "do_not_call_entry",
    "request": "privacy_request",
    "media": "sms_media",
    "view": "saved_view",
    "type": "appointment_type",
}


def list_pages() -> list[tuple[str, Rule]]:
    application = app.create_routes()
    dashboard_rules = [rule for rule in application.url_map.iter_rules() if rule.endpoint.startswith("dashboard.")]
    return [
        (method, rule)
        for rule in sorted(dashboard_rules, key=lambda rule: rule.rule)
        for method in sorted((rule.methods or set()) - {"HEAD", "OPTIONS"})
        if rule.arguments and not rule.arguments & NO_IDS
    ]


def build_path(rule: Rule, ids: dict[str, str]) -> str:
    return re.sub(r"<(\w+)>", lambda placeholder: ids.get(placeholder[1], "1"), rule.rule)


async def request_page(person: Person, method: str, rule: Rule, ids: dict[str, str]) -> tuple[int, str, str]:
    """Return status, page, and the notice after it, without the requested ids and without values that always
    differ.
    """
    path = build_path(rule, ids)
    response = await (person.get(path) if method == "GET" else person.post(path))
    html = re.sub(r"Request [\w-]+|[0-9a-f]{64}", "", response.html)
    notice = re.search(r'class="notice \w+".*?</p>', (await person.get("/dashboard/organizations")).html)
    notice_text = notice[0] if notice else ""
    for name, value in ids.items():
        html, notice_text = html.replace(value, name), notice_text.replace(value, name)
    return response.status, html, notice_text


async def find_ids(
    runtime: Runtime, victim: Caller, rule: Rule, existing_ids: dict[str, list[str]], member: Person
) -> dict[str, str]:
    ids = {"user_id": str(member.user_id)}
    for name in rule.arguments - {"user_id", "number", "change", "session_id", "passkey_id"}:
        noun = name.removesuffix("_id")
        lines = existing_ids.get(NOUNS.get(noun, noun), [])
        assert lines, f"{rule.rule}: the organization has no {noun}"
        ids[name] = str(json.loads(lines[0])["id"])
    return {name: ids.get(name, str(uuid4()) if name.endswith("_id") else "1") for name in rule.arguments}


async def test_foreign_ids_are_answered_like_unknown_ids_on_every_page(
    live: LivePlatform, organizations: Organizations, people: People
) -> None:
    victim = await populate(live)
    member = await people.join(victim.organization_id)
    await member.post("/dashboard/team", {"email": "somebody@example.com", "role": "builder"})
    await member.post("/dashboard/calls/views", {"name": "Busy", "query": "status=busy"})
    stranger = await people.join((await organizations.create()).organization_id)
    await wait_until_quiet(live.runtime, victim)
    before = await read_rows(live.runtime, victim)
    routes = list_pages()
    assert len(routes) > 80
    for method, rule in routes:
        foreign = await find_ids(live.runtime, victim, rule, before, member)
        unknown = {name: str(uuid4()) if name.endswith("_id") else value for name, value in foreign.items()}
        expected = await request_page(stranger, method, rule, unknown)
        actual = await request_page(stranger, method, rule, foreign)
        assert actual == expected, f"{method} {rule.rule} tells of another organization"
        assert expected[0] in (404, 303, 422), f"{method} {rule.rule} answers {expected[0]}"
        assert method == "POST" or expected[0] == 404, f"GET {rule.rule} answers {expected[0]} for what nobody has"
    assert await read_rows(live.runtime, victim) == before
