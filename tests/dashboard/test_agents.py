"""The pages of agents: setting up, pausing, deleting, versions, test calls."""

from unittest.mock import AsyncMock

import pytest
from switchboard.apps.dashboard.ui.version_diff import compare_settings
from switchboard.runtime import Runtime
from switchboard_offline.scripted import ScriptedLLM

from tests.fixtures.app import UNKNOWN_ID, Caller, create_bakery, fresh_number
from tests.fixtures.dashboard import People, Person, Window
from tests.fixtures.json_access import Json, at

Fields = dict[str, str | list[str]]
FORM: Fields = {
    "name": "Front desk",
    "system_prompt": "You answer.",
    "greeting_message": "Hello {{customer}}",
    "llm_provider": "scripted",
    "tts_provider": "espeak",
    "stt_provider": "pocketsphinx",
    "allow_interruptions": "true",
    "knowledge_base_ids[]": [""],
    "pronunciations": "Siobhan = Shivawn\n\nCaius = Keys",
    "webhook_secret": "",
}
PIN = {
    "tools.0.needs": '[{"name": "pin", "least_origin": "keypad"}]',
    "variables.1.name": "pin",
    "variables.1.source": "keypad",
    "variables.1.max_digits": "4",
}
LIMITS: Fields = {
    "plain_claims[]": ["booked"],
    "claims.1.name": "ticket",
    "claims.1.phrases": "a ticket is open\nI opened a ticket",
    "claims.1.tools": "open_ticket, find_ticket",
    "banned_phrases": "guaranteed return\n",
    "banned_topics": "legal advice: court, sue\npolitics",
    "check_model": "small",
    "guardrails.1.name": "insults",
    "guardrails.1.watches": "content",
    "guardrails.1.description": "insults",
    "guardrails.1.action": "end",
}
SAVED_LIMITS: Json = {
    "claims": [
        {"name": "booked", "phrases": [], "tools": []},
        {
            "name": "ticket",
            "phrases": ["a ticket is open", "I opened a ticket"],
            "tools": ["open_ticket", "find_ticket"],
        },
    ],
    "banned_phrases": ["guaranteed return"],
    "banned_topics": [{"name": "legal advice", "keywords": ["court", "sue"]}, {"name": "politics", "keywords": []}],
    "check_model": "small",
    "guardrails": [
        {"name": "insults", "watches": "content", "description": "insults", "action": "end", "text": ""},
    ],
}
KEY_TWO = '[{"field": "keys", "operator": "eq", "value": "2"}]'
TOOL: Fields = {
    "tools.0.name": "find_order",
    "tools.0.description": "Look up an order.",
    "tools.0.url": "https://example.com/find",
    "tools.0.parameters": '{"type": "object", "properties": {"number": {"type": "string"}}}',
    "tools.0.time_limit_seconds": "",
}


@pytest.fixture
async def member(people: People, caller: Caller) -> Person:
    return await people.join(caller.organization_id)


async def create_agent(caller: Caller, **fields: object) -> str:
    """Create an agent, and return the address of its page."""
    return f"/dashboard/agents/{(await caller.post('/v1/agents', {'name': 'Front desk', **fields})).json['id']}"


async def get_agent(caller: Caller, page: str) -> Json:
    """Return the agent as the API shows it."""
    return dict((await caller.get(page.replace("/dashboard", "/v1"))).json)


async def test_an_agent_is_created_configured_and_restored_to_an_earlier_version(window: Window) -> None:
    page = window.page
    await window.open("/dashboard/agents")
    await page.get_by_role("link", name="New agent").click()
    await page.get_by_role("link", name="Blank agent").click()
    await page.get_by_role("textbox", name="Name", exact=True).fill("Front desk")
    await page.get_by_label("Prompt").fill("You answer the phone of a bakery.\nBe friendly.\nBe brief.")
    await page.get_by_role("button", name="Create agent").click()
    await page.get_by_text("Front desk was created.").wait_for()
    await window.check_accessibility()
    await page.get_by_label("Prompt").fill("You answer the phone of a pastry shop.\nBe friendly.\nBe brief.")
    await page.get_by_role("button", name="Add a field").click()
    await page.get_by_role("group", name="Field 1").get_by_label("Name").fill("order")
    await page.get_by_role("button", name="Add a field").click()
    await page.get_by_role("group", name="Field 2").get_by_label("Name").fill("bread")
    await page.get_by_role("group", name="Field 1").get_by_role("button", name="Remove").click()
    await page.get_by_role("button", name="Save and publish").click()
    await page.get_by_text("Version 2 is published").wait_for()
    assert await page.get_by_role("group", name="Field 1").get_by_label("Name").input_value() == "bread"
    await page.get_by_role("link", name="Versions").click()
    await page.get_by_text("Prompt, After the call").wait_for()
    await window.check_accessibility()
    await page.get_by_role("link", name="Version 2").click()
    assert await page.locator(".gone mark").all_text_contents() == ["bakery"]
    assert await page.locator(".new mark").first.text_content() == "pastry shop"
    await window.check_accessibility()
    await page.go_back()
    await window.press("Restore")
    await page.get_by_text("Version 1 was restored as version 3.").wait_for()
    assert "bakery" in await page.get_by_label("Prompt").input_value()


async def test_every_field_is_saved_and_cleared_fields_are_empty(member: Person, caller: Caller) -> None:
    base = str((await caller.post("/v1/knowledge-bases", {"name": "Bakery"})).json["id"])
    fields: Fields = {
        "extraction.0.name": "size",
        "extraction.0.type": "string",
        "extraction.0.enum": "small, large",
        "extraction.0.required": "true",
        "knowledge_base_ids[]": ["", base],
        "webhook_url": "https://example.com/hook",
        "webhook_secret": "hush-hush",
        "voice_speed": "1.2",
        "disabled_tools[]": ["press_digits", "find_order"],
        "allowed_numbers": "+15550100001\n+15550100002\n",
        "any_number": "true",
        "redaction.kinds[]": ["card_number", "pin"],
        "redaction.visible_to_model[]": ["pin"],
        "disclosure.ai_notice": "true",
        "disclosure.consent": "ask",
        "disclosure.presets[]": ["eu-de"],
        "disclosure.countries": '{"US-CA": {"consent": "notice"}}',
        "turn_detection.mode": "text",
        "turn_detection.max_silence_seconds": "3.5",
        "voicemail_policy.action": "leave_message",
        "voicemail_policy.message": "Hello {{name}}, please call back.",
        "voicemail_policy.carrier_detection": "false",
    }
    other = (await create_agent(caller)).rpartition("/")[2]
    fields |= {"handoffs.1.agent_id": other, "handoffs.1.conditions": KEY_TWO, **PIN, **LIMITS}
    response = await member.post("/dashboard/agents/new", {**FORM, **TOOL, **fields})
    assert response.status == 303, response.html
    agent = await get_agent(caller, response.location)
    assert agent["pronunciations"] == {"Siobhan": "Shivawn", "Caius": "Keys"}
    assert at(agent, "tools", 0, "parameters", "properties") == {"number": {"type": "string"}}
    assert at(agent, "extraction_schema", "properties", "size", "enum") == ["small", "large"]
    assert at(agent, "extraction_schema", "required") == ["size"]
    assert (agent["knowledge_base_ids"], agent["voice_speed"]) == ([base], 1.2)
    assert (agent["disabled_tools"], agent["any_number"]) == (["press_digits", "find_order"], True)
    assert agent["allowed_numbers"] == ["+15550100001", "+15550100002"]
    assert [at(agent, "disclosure", name) for name in ("consent", "presets")] == ["ask", ["eu-de"]]
    assert at(agent, "disclosure", "countries", "US-CA", "consent") == "notice"
    assert agent["turn_detection"] == {"mode": "text", "min_silence_seconds": 0.2, "max_silence_seconds": 3.5}
    assert agent["voicemail_policy"] == {
        "action": "leave_message",
        "message": "Hello {{name}}, please call back.",
        "prompt": "",
        "carrier_detection": False,
    }
    assert [at(agent, "handoffs", 0, name) for name in ("agent_id", "last_turns")] == [other, 6]
    assert at(agent, "handoffs", 0, "conditions", 0, "value") == "2"
    assert (at(agent, "tools", 0, "needs", 0, "name"), at(agent, "variables", 0, "max_digits")) == ("pin", 4)
    assert {name: agent[name] for name in SAVED_LIMITS} == SAVED_LIMITS
    assert agent["redaction"] == {"kinds": ["card_number", "pin"], "visible_to_model": ["pin"]}
    page = (await member.get(response.location)).html
    for shown in ("Siobhan = Shivawn", 'value="press_digits" checked', f'value="{other}" selected'):
        assert shown in page, shown
    assert "hush-hush" not in page
    cleared = {**FORM, "greeting_message": "", "pronunciations": "", "timezone": "Europe/Berlin"}
    assert (await member.post(response.location, cleared)).status == 303
    agent = await get_agent(caller, response.location)
    assert (agent["greeting_message"], agent["tools"], agent["extraction_schema"]) == ("", [], None)
    assert (agent["knowledge_base_ids"], agent["handoffs"]) == ([], [])


WRONG: list[tuple[Fields, str, str]] = [
    (
        {"tools.3.name": "x", "tools.3.url": "https://example.com", "tools.3.parameters": "{"},
        "tools.1.parameters",
        "This is not JSON: line 1",
    ),
    (
        {"tools.1.name": "no spaces", "tools.1.description": "d", "tools.1.url": "https://example.com"},
        "tools.1.name",
        "should match pattern",
    ),
    ({"tools.1.name": "x", "tools.1.description": "d", "tools.1.url": "http://127.0.0.1/"}, "tools.1.url", ""),
    (
        {"extraction.0.name": "", "extraction.1.name": "9", "extraction.1.type": "string"},
        "extraction.1.name",
        "should match pattern",
    ),
    (
        {"extraction.0.description": "No name", "extraction.0.type": "string"},
        "extraction.0.name",
        "should match pattern",
    ),
    ({"pronunciations": "a = b\nc"}, "pronunciations", "Line 2: write word = pronunciation."),
    ({"llm_provider": "openai"}, "llm_provider", "openai is not configured"),
    ({"tts_voice_id": "nobody"}, "tts_voice_id", "espeak has no voice nobody"),
    ({"name": " "}, "name", "is required"),
    ({"turn_detection.mode": "telepathy"}, "turn_detection.mode", ""),
    ({"voicemail_policy.action": "leave_message"}, "voicemail_policy.message", "needs either"),
    ({"turn_detection.min_silence_seconds": "0.1"}, "turn_detection.min_silence_seconds", ""),
    ({"turn_detection.min_silence_seconds": "4"}, "turn_detection.max_silence_seconds", "must not be less"),
    ({"allowed_numbers": "+15550100001\n030"}, "allowed_numbers", "must be an E.164 phone number"),
    ({"disabled_tools[]": "fly"}, "disabled_tools", "fly is not a tool"),
    ({"redaction.kinds[]": ["secrets"]}, "redaction.kinds", "must be one of"),
    ({"disclosure.countries": "DE"}, "disclosure.countries", "This is not JSON"),
    ({"disclosure.countries": '{"ZZ": {}}'}, "disclosure.countries", "ZZ is not a country"),
    ({"disclosure.texts": "Hello"}, "disclosure.texts", "This is not JSON"),
    ({"handoffs.2.agent_id": "unknown"}, "handoffs.0.conditions", "are needed without a description"),
    (
        {"handoffs.1.agent_id": UNKNOWN_ID, "handoffs.1.description": "Bread."},
        "handoffs.0.agent_id",
        "is not an agent of the organization",
    ),
    ({"handoffs.0.agent_id": "x", "handoffs.0.conditions": "["}, "handoffs.0.conditions", "This is not JSON: line 1"),
    ({"handoffs.0.agent_id": "x", "handoffs.0.last_turns": "0"}, "handoffs.0.last_turns", ""),
    ({"variables.1.name": "Pin"}, "variables.0.name", ""),
    ({"variables.1.name": "pin", "variables.1.source": "tool"}, "variables.0.path", "and tool are needed"),
    ({"claims.1.name": "ticket"}, "claims.0.phrases", "are needed for ticket"),
    ({"plain_claims[]": ["booked"], "claims.0.name": "booked"}, "plain_claims", "booked is a duplicate"),
    ({"guardrails.1.name": "x", "guardrails.1.watches": "content"}, "guardrails.0.description", "is needed"),
    (
        {"guardrails.0.name": "x", "guardrails.0.watches": "override", "guardrails.0.action": "answer"},
        "guardrails.0.text",
        "is needed",
    ),
    ({"banned_topics": ": court"}, "banned_topics", ""),
    ({"knowledge_base_ids[]": ["", "unknown"]}, "knowledge_base_ids", "there is no knowledge base unknown"),
    (
        {"appointment_type_ids[]": ["", "unknown"]},
        "appointment_type_ids",
        "is not an appointment type of the organization",
    ),
]


async def test_errors_appear_at_their_fields_and_keep_the_input(member: Person, caller: Caller) -> None:
    """An empty row before the invalid one counts in the index, and is no tool."""
    empty: Fields = {"tools.0.name": "", "tools.0.description": "", "tools.0.url": "", "greeting_message": "Good <day>"}
    await create_agent(caller)
    page = await create_agent(caller)
    for fields, field, message in WRONG:
        refused = await member.post(page, {**FORM, **empty, **fields})
        assert (refused.status, f'id="fault-{field}"' in refused.html, message in refused.html) == (422, True, True), (
            field,
            refused.html,
        )
        assert "Good &lt;day&gt;" in refused.html
    refused = await member.post(
        page, {**FORM, **TOOL, "tools.0.parameters": "{", "pronunciations": "a", "voice_speed": "9", "name": ""}
    )
    for field in ("tools.0.parameters", "pronunciations", "voice_speed", "name"):
        assert f'id="fault-{field}"' in refused.html, "all at once"
    assert (await get_agent(caller, page))["version"] == 1


async def test_concurrent_edits_are_not_overwritten_silently(member: Person, caller: Caller) -> None:
    page = await create_agent(caller, greeting_message="One")
    assert 'name="seen_version" value="1"' in (await member.get(page)).html
    await caller.send("PUT", page.replace("/dashboard", "/v1"), {"greeting_message": "Two"})
    refused = await member.post(page, {**FORM, "greeting_message": "Three", "seen_version": "1"})
    assert (refused.status, "Version 2 was published after" in refused.html, "Three" in refused.html) == (
        409,
        True,
        True,
    )
    assert 'name="seen_version" value="2"' in refused.html
    assert (await get_agent(caller, page))["greeting_message"] == "Two"
    assert (await member.post(page, {**FORM, "greeting_message": "Three", "seen_version": "2"})).status == 303


async def test_an_agent_is_paused_activated_and_deleted(member: Person, caller: Caller) -> None:
    page = await create_agent(caller)
    await member.post(f"{page}/pause")
    assert (await get_agent(caller, page))["status"] == "paused"
    assert "paused" in (await member.get("/dashboard/agents")).html
    await member.post(f"{page}/activate")
    assert (await get_agent(caller, page))["status"] == "active"
    assert (await member.post(f"{page}/delete")).location == "/dashboard/agents"
    assert "No agents yet" in (await member.get("/dashboard/agents")).html


async def test_versions_name_their_author_and_can_be_restored(member: Person, caller: Caller) -> None:
    base = str((await caller.post("/v1/knowledge-bases", {"name": "Bakery"})).json["id"])
    page = await create_agent(caller, knowledge_base_ids=[base], tools=[], greeting_message="One")
    await member.post(page, {**FORM, **TOOL, "greeting_message": "Two"})
    await caller.send("DELETE", f"/v1/knowledge-bases/{base}")
    html = (await member.get(f"{page}/versions")).html
    assert member.email in html
    assert "key test" in html
    assert "Greeting, Prompt" in html
    await member.post(f"{page}/pause")
    await member.post(f"{page}/versions/1/restore")
    agent = await get_agent(caller, page)
    assert (agent["version"], agent["greeting_message"], agent["tools"], agent["knowledge_base_ids"]) == (
        4,
        "One",
        [],
        [],
    )
    assert agent["status"] == "paused"
    compared = await member.get(f"{page}/versions/4?to=2")
    assert "Version 2 to 4" in compared.html
    assert "find_order" in compared.html
    for number in ("9", "0", "x", "9" * 30):
        assert (await member.get(f"{page}/versions/{number}")).status == 404


async def test_the_line_ends_of_browsers_are_no_change(member: Person, caller: Caller) -> None:
    """A browser sends the lines of a text area with CR LF, as HTML says of form submission."""
    prompt = "Answer politely.\nAsk for the day.\nAsk for the number of guests."
    page = await create_agent(caller, system_prompt=prompt)
    sent = prompt.replace("\n", "\r\n")
    await member.post(page, {**FORM, "system_prompt": sent, "greeting_message": "Two"})
    assert (await get_agent(caller, page))["system_prompt"] == prompt
    await caller.send("PUT", page.replace("/dashboard", "/v1"), {"system_prompt": sent})
    await member.post(page, {**FORM, "system_prompt": sent, "greeting_message": "Three"})
    versions = (await member.get(f"{page}/versions")).html
    assert ("Greeting" in versions, "Prompt" in versions) == (True, False)
    assert "Prompt" not in (await member.get(f"{page}/versions/4")).html


async def test_voices_and_models_are_listed_by_provider(
    member: Person, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ScriptedLLM, "list_models", AsyncMock(return_value=["first <model>"]))
    assert (
        '<option value="first &lt;model&gt;">' in (await member.get("/dashboard/agents/models?provider=scripted")).html
    )
    assert "<option" not in (await member.get("/dashboard/agents/models?provider=nobody")).html
    await caller.post("/v1/agents", {"name": "Other", "llm_model": "a model in use"})
    assert '<option value="a model in use">' in (await member.get("/dashboard/agents/new")).html
    assert 'value="de"' in (await member.get("/dashboard/agents/voices?provider=espeak")).html
    assert "<option" not in (await member.get("/dashboard/agents/voices?provider=nobody")).html


async def test_a_test_call_is_placed_to_a_telephone(people: People, caller: Caller, runtime: Runtime) -> None:
    member = await people.join(caller.organization_id, role="builder")
    empty = await member.get(f"{await create_agent(caller)}/try")
    assert "You need a phone number first" in empty.html
    shop = await create_bakery(runtime, caller, fresh_number())
    page = f"/dashboard/agents/{shop.agent_id}"
    assert "metadata.customer" in (await member.get(f"{page}/try")).html
    refused = await member.post(f"{page}/call", {"to_number": "12", "from_number_id": shop.number_id})
    assert refused.status == 422
    assert "must be an E.164 phone number" in refused.html
    response = await member.post(
        f"{page}/call", {"to_number": "+15550100001", "from_number_id": shop.number_id, "metadata.customer": "Ada"}
    )
    assert response.status == 303
    call = (await caller.get(response.location.replace("/dashboard", "/v1"))).json
    assert (call["agent_id"], call["to_number"], call["metadata"]) == (
        shop.agent_id,
        "+15550100001",
        {"customer": "Ada"},
    )
    await member.post(f"{page}/pause")
    paused = await member.post(f"{page}/call", {"to_number": "+15550100001", "from_number_id": shop.number_id})
    assert paused.status == 409
    assert "The agent is paused" in paused.html


async def test_other_organizations_agents_are_unreachable(member: Person, stranger: Caller) -> None:
    page = await create_agent(stranger, system_prompt="A secret recipe.")
    for path in ("", "/try", "/versions", "/versions/1", "/simulations", "/simulations/new", "/simulations/rows"):
        assert (await member.get(page + path)).status == 404
    for path in ("/pause", "/activate", "/delete", "/versions/1/restore"):
        assert (await member.post(page + path)).status == 404
    assert (await member.post(page, FORM)).status == 404
    assert (await member.post(f"{page}/call", {"to_number": "+15550100001", "from_number_id": "x"})).status == 404
    assert (await get_agent(stranger, page))["version"] == 1


def test_long_texts_are_compared_by_line_and_huge_ones_quickly() -> None:
    old = "\n".join(f"Line {number}" for number in range(12))
    [change] = compare_settings({"system_prompt": old}, {"system_prompt": old.replace("Line 6", "Line six")}, {})
    changed_lines = [(line.kind, "".join(text for text, _ in line.words)) for line in change.lines]
    assert changed_lines[0] == ("gap", "")
    assert changed_lines[3:5] == [("gone", "Line 6"), ("new", "Line six")]
    assert [text for text, is_changed in change.lines[4].words if is_changed] == ["six"]
    [huge] = compare_settings({"system_prompt": "a\nb\n" * 20_000}, {"system_prompt": "b\na\n" * 20_000}, {})
    assert len(huge.lines) == 80_000


async def test_a_member_edits_an_agent_without_the_fields_of_owners(people: People, caller: Caller) -> None:
    tool = {"name": "find_order", "description": "Find an order.", "url": "https://example.com/orders"}
    path = await create_agent(caller, tools=[tool], webhook_url="https://example.com/hook")
    owner = await people.join(caller.organization_id)
    member = await people.join(caller.organization_id, role="builder")
    pages = [(await person.get(path)).html for person in (owner, member)]
    for name in ("tools.0.url", "webhook_url", "webhook_secret"):
        assert [f'name="{name}"' in page for page in pages] == [True, False]
    assert "find_order" in pages[1]
    saved = await member.post(path, {**FORM, "name": "Reception"})
    assert saved.status == 303, saved.html
    agent = await get_agent(caller, path)
    assert (agent["name"], agent["webhook_url"]) == ("Reception", "https://example.com/hook")
    assert at(agent, "tools", 0, "name") == "find_order"
