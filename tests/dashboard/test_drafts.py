"""Drafts on the pages of agents: kept by the browser, saved, compared, tried in a chat, tested, and published."""

import json

import pytest
from switchboard.runtime import Runtime

from tests.dashboard.test_agents import FORM, create_agent, get_agent
from tests.fixtures.app import Caller
from tests.fixtures.dashboard import People, Person, Window
from tests.fixtures.json_access import at, objects_at, text_at
from tests.fixtures.simulations import run_simulation

SCRIPT = (
    'When the caller says "hello": say "Good day, {{name}}."\nWhen the caller says "bye": say "Bye." and call end_call'
)


@pytest.fixture
async def member(people: People, caller: Caller) -> Person:
    return await people.join(caller.organization_id)


async def test_a_draft_is_kept_by_the_browser_saved_compared_and_published(window: Window) -> None:
    page = window.page
    await window.open("/dashboard/agents")
    await page.get_by_role("link", name="Agent", exact=True).click()
    prompt = page.get_by_role("textbox", name="Prompt", exact=True)
    await prompt.fill(f"{SCRIPT}\n# changed")
    await page.get_by_role("button", name="Add a tool").click()
    await page.get_by_role("group", name="Tool 1").get_by_label("Name").fill("find_order")
    address = page.url
    await page.goto("about:blank")
    await page.goto(address)
    assert "changed" not in await prompt.input_value()
    await page.get_by_text("You have unsaved changes").wait_for()
    await window.check_accessibility()
    await page.get_by_role("button", name="Restore them").click()
    assert "changed" in await prompt.input_value()
    tool = page.get_by_role("group", name="Tool 1")
    assert await tool.get_by_label("Name").input_value() == "find_order"
    await tool.get_by_role("button", name="Remove").click()
    await page.get_by_role("button", name="Save draft").click()
    await page.get_by_text("Draft saved.").wait_for()
    assert "changed" in await prompt.input_value()
    assert not await page.get_by_text("You have unsaved changes").is_visible()
    await window.check_accessibility()
    await page.get_by_role("link", name="Compare with version").click()
    await page.get_by_role("heading", name="Prompt").wait_for()
    await window.check_accessibility()
    await page.go_back()
    await page.get_by_role("button", name="Save and publish").click()
    await page.get_by_text("Version 2 is published").wait_for()
    assert not await page.get_by_role("region", name="Draft").is_visible()


async def test_a_chat_runs_the_settings_of_the_form(window: Window) -> None:
    page = window.page
    await window.open("/dashboard/agents")
    await page.get_by_role("link", name="Agent", exact=True).click()
    await page.get_by_role("textbox", name="Prompt", exact=True).fill(SCRIPT)
    await page.get_by_label("Value of name in the chat").fill("Ada")
    chat = page.get_by_role("complementary", name="Chat")
    await chat.get_by_label("Message to the agent").fill("Hello")
    await chat.get_by_role("button", name="Send").click()
    await chat.get_by_text("Good day, Ada.").wait_for()
    await window.check_accessibility()
    await chat.get_by_label("Message to the agent").fill("Bye")
    await chat.get_by_label("Message to the agent").press("Enter")
    await chat.get_by_text("Tool end_call").wait_for()
    await chat.get_by_text("The agent ended the call.").wait_for()
    await window.check_accessibility()


async def test_required_simulations_are_run_from_the_page(member: Person, caller: Caller, runtime: Runtime) -> None:
    page = await create_agent(caller, system_prompt=SCRIPT)
    path = page.replace("/dashboard", "/v1")
    simulation = {"name": "Greets", "lines": ["Hello"], "assertions": [{"type": "said", "text": "Good day"}]}
    await caller.post(f"{path}/simulations", simulation)
    await member.post(page, {**FORM, "system_prompt": SCRIPT, "required_simulations[]": ["Greets"]})
    assert (await get_agent(caller, page))["required_simulations"] == ["Greets"]
    form = {**FORM, "system_prompt": SCRIPT, "greeting_message": "Hi", "required_simulations[]": ["Greets"]}
    refused = await member.post(page, form)
    assert (refused.status, "Greets (not run)" in refused.html) == (409, True)
    assert (await member.post(f"{page}/draft", form)).status == 303
    shown = (await member.get(page)).html
    assert ("not run" in shown, 'value="Greets" checked' in shown) == (True, True)
    assert (await member.post(f"{page}/draft/simulations")).status == 303
    run = objects_at((await caller.get(f"{path}/simulations")).json, "items")[0]
    done = await run_simulation(runtime, caller, path.rpartition("/")[2], text_at(run, "id"))
    assert done["status"] == "passed"
    revision = str((await caller.get(f"{path}/draft")).json["revision"])
    assert (await member.post(page, {**form, "seen_revision": revision})).status == 303
    assert (await get_agent(caller, page))["greeting_message"] == "Hi"


async def test_two_forms_do_not_overwrite_each_other(member: Person, caller: Caller) -> None:
    page = await create_agent(caller)
    assert (await member.post(f"{page}/draft", {**FORM, "name": "One"})).status == 303
    for action in (f"{page}/draft", page):
        refused = await member.post(action, {**FORM, "name": "Two", "seen_revision": ""})
        assert (refused.status, "Another draft was saved" in refused.html, "Two" in refused.html) == (409, True, True)
    assert 'value="One"' in (await member.get(page)).html
    assert (await member.post(f"{page}/draft/discard")).status == 303
    assert 'value="Front desk"' in (await member.get(page)).html
    secret = await member.post(f"{page}/draft", {**FORM, "webhook_secret": "hush"})
    assert (secret.status, "A draft keeps no secret" in secret.html) == (422, True)


async def test_a_chat_names_what_is_wrong(member: Person, caller: Caller) -> None:
    page = await create_agent(caller)
    message = {"entries": [], "text": "Hello", "variables": {}, "runs_tools": False}
    cases = [
        ({"voice_speed": "9"}, json.dumps(message), "voice_speed"),
        ({}, "{", "JSON"),
        ({}, json.dumps({**message, "text": ""}), "text"),
        ({}, json.dumps({**message, "entries": [{"role": "tool", "content": "x"}]}), "JSON"),
    ]
    for fields, chat, fault in cases:
        refused = await member.post(f"{page}/chat", {**FORM, **fields, "chat": chat})
        assert (refused.status, fault in text_at(json.loads(refused.html), "fault")) == (422, True), refused.html
    answer = await member.post(f"{page}/chat", {**FORM, "system_prompt": SCRIPT, "chat": json.dumps(message)})
    assert at(json.loads(answer.html), "entries", 0) == {"role": "agent", "content": "Hello "}
    assert (await get_agent(caller, page))["version"] == 1, "nothing is saved"
