"""Beginnings of new agents: templates, files, and copies."""

import json
from io import BytesIO

import pytest
from pydantic import JsonValue
from switchboard.resources.agents.templates import load_templates
from werkzeug.datastructures import FileStorage

from tests.dashboard.test_agents import FORM, create_agent, get_agent
from tests.fixtures.app import Caller
from tests.fixtures.dashboard import PageResponse, People, Person, Window
from tests.fixtures.json_access import Json, at

TOOL: JsonValue = {"name": "find_order", "description": "Find an order.", "url": "https://example.com/find"}


@pytest.fixture
async def owner(people: People, caller: Caller) -> Person:
    return await people.join(caller.organization_id)


async def import_file(person: Person, content: bytes, name: str = "agent.json") -> PageResponse:
    token = (await person.get("/dashboard/agents/templates")).html.partition('name="csrf_token" value="')[2][:64]
    response = await person.client.post(
        "/dashboard/agents/import",
        form={"csrf_token": token.partition('"')[0]},
        files={"file": FileStorage(BytesIO(content), filename=name)},
        headers=person.headers,
    )
    return PageResponse(response.status_code, response.headers, await response.get_data(as_text=True))


async def test_an_agent_begins_with_a_template(window: Window) -> None:
    page = window.page
    await window.open("/dashboard/agents")
    await page.get_by_role("link", name="New agent").click()
    await window.check_accessibility()
    await page.get_by_role("link", name="Online shop").click()
    assert "order number" in await page.get_by_label("Greeting").input_value()
    await page.get_by_role("button", name="Add find_order").click()
    tool = page.get_by_role("group", name="Tool 1")
    assert await tool.get_by_label("Name").first.input_value() == "find_order"
    await window.check_accessibility()
    await tool.get_by_label("URL").fill("https://example.com/find")
    await page.get_by_role("button", name="Create agent").click()
    await page.get_by_text("Customer service was created.").wait_for()
    await page.get_by_text("More", exact=True).click()
    await page.get_by_role("button", name="Duplicate").click()
    await page.get_by_text("Copy of Customer service was created.").wait_for()


async def test_every_template_makes_an_agent(owner: Person, caller: Caller) -> None:
    templates = load_templates().values()
    assert len(templates) >= 8
    for template in templates:
        shown = (await owner.get(f"/dashboard/agents/new?template={template.id}")).html
        assert template.title in shown
        fields = {"name": template.name, "system_prompt": template.system_prompt}
        tools = [
            {"name": tool.name, "description": tool.description, "parameters": tool.parameters, "url": "https://x.com/"}
            for tool in template.tools
        ]
        created = await caller.post("/v1/agents", {**fields, "tools": tools})
        assert created.status == 201, created.body
    assert (await owner.get("/dashboard/agents/new?template=unknown")).status == 200


async def test_an_exported_agent_is_imported_without_secrets_and_ids(owner: Person, caller: Caller) -> None:
    base = (await caller.post("/v1/knowledge-bases", {"name": "Menu"})).json["id"]
    page = await create_agent(
        caller, tools=[TOOL], webhook_secret="hush", knowledge_base_ids=[base], pronunciations={"Caius": "Keys"}
    )
    exported = await owner.get(f"{page}/export")
    assert 'filename="front-desk.json"' in exported.headers["Content-Disposition"]
    fields: Json = json.loads(exported.html)
    assert "hush" not in exported.html
    assert not {"id", "knowledge_base_ids", "webhook_secret", "version", "created_at"} & fields.keys()
    created = await caller.post("/v1/agents", fields)
    assert (created.status, at(created.json, "tools", 0, "name")) == (201, "find_order")
    shown = await import_file(owner, exported.html.encode())
    assert shown.status == 200
    assert ("Caius = Keys" in shown.html, 'value="find_order"' in shown.html) == (True, True)
    assert 'action="/dashboard/agents/new"' in shown.html, "the form is sent like that of any new agent"
    answer = (await caller.get(page.replace("/dashboard", "/v1"))).body
    assert (await import_file(owner, answer)).status == 200, "an answer of the API is a file, too"


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"", "is not JSON"),
        (b"[]", "is not a JSON object"),
        (b"{}", "required"),
        (b'{"name": "A", "voice_speed": 9}', "voice speed"),
        (b'{"name": "A", "nmae": 1}', "nmae"),
        (b'{"name": "A", "tools": [{"name": "x"}]}', "tools 1 description"),
    ],
)
async def test_a_bad_file_is_refused_with_its_fault(owner: Person, caller: Caller, content: bytes, fault: str) -> None:
    refused = await import_file(owner, content)
    assert (refused.status, fault in refused.html) == (422, True), refused.html
    assert (await caller.get("/v1/agents")).json["total"] == 0


async def test_members_import_no_tools(people: People, caller: Caller) -> None:
    member = await people.join(caller.organization_id, role="builder")
    refused = await import_file(member, json.dumps({"name": "A", "tools": [TOOL]}).encode())
    assert (refused.status, "owners of the organization" in refused.html) == (422, True)
    assert (await import_file(member, b'{"name": "A"}')).status == 200


async def test_an_agent_is_duplicated(owner: Person, caller: Caller) -> None:
    base = (await caller.post("/v1/knowledge-bases", {"name": "Menu"})).json["id"]
    page = await create_agent(caller, tools=[TOOL], knowledge_base_ids=[base])
    await owner.post(page, {**FORM, "timezone": "Europe/Berlin", "knowledge_base_ids[]": [str(base)]})
    copied = await owner.post(f"{page}/duplicate")
    old, new = await get_agent(caller, page), await get_agent(caller, copied.location)
    assert new["name"] == "Copy of Front desk"
    own = {"id", "name", "version", "created_at", "updated_at"}
    assert {name: value for name, value in new.items() if name not in own} == {
        name: value for name, value in old.items() if name not in own
    }
    assert 'value="Europe/Berlin"' in (await owner.get(copied.location)).html


async def test_the_placeholder_of_a_voicemail_message_is_shown_as_it_is_written(owner: Person) -> None:
    assert "Spoken after the beep; {{name}} is replaced" in (await owner.get("/dashboard/agents/new")).html
