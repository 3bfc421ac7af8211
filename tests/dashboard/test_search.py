"""Search over everything, by the page, by the dialog, and by keyboard shortcuts."""

import re

from playwright.async_api import expect
from switchboard.foundation.database import now
from switchboard.resources.knowledge_bases.models import KnowledgeBase
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller, LivePlatform
from tests.fixtures.calls import add_call
from tests.fixtures.campaigns import create_agent_and_number
from tests.fixtures.dashboard import People, Window


async def test_rows_of_each_kind_are_found_by_name_number_and_id(
    people: People, caller: Caller, stranger: Caller, runtime: Runtime
) -> None:
    owner = await people.join(caller.organization_id)
    own = await create_agent_and_number(runtime, caller)
    for owning in (caller, stranger):
        await owning.post("/v1/agents", {"name": "Front Desk 100%"})
        await owning.post("/v1/contacts", {"phone_number": "+15550100007", "name": "Ada Front", "company": "Desk Ltd"})
    call = await add_call(runtime, caller, now(), from_number="+15550100007")
    foreign = await add_call(runtime, stranger, now())
    async with runtime.database.write(caller.organization_id) as session:
        base = KnowledgeBase(organization_id=caller.organization_id, name="Front matters")
        session.add(base)

    async def search(words: str) -> str:
        return (await owner.get(f"/dashboard/search?q={words}")).html

    found = await search("front")
    assert found.count("Front Desk 100%") == 1
    assert found.count("Ada Front") == 1
    assert f"/dashboard/knowledge/{base.id}" in found
    assert "/dashboard/calls?transcript=front" in found
    kinds = re.findall(r'<h2 id="hits-\d+">([^<]*)</h2>', found)
    assert kinds == ["Agents", "Contacts", "Knowledge", "Calls"], "the words of transcripts come last"
    assert "Front Desk" in await search("100%25")
    assert "Front Desk" not in await search("1%25")
    assert "/dashboard/calls?phone=%2B15550100007" in await search("%2B1 555-010-0007")
    assert f'href="/dashboard/calls/{call.id}"' in await search(str(call.id))
    assert f'href="/dashboard/calls/{foreign.id}"' not in await search(str(foreign.id))
    assert f"/dashboard/numbers/{own['phone_number_id']}" in await search("%2B1 555")


async def test_only_pages_that_the_viewer_may_open_are_offered(people: People, caller: Caller) -> None:
    owner = await people.join(caller.organization_id)
    member = await people.join(caller.organization_id, role="builder")
    results = "/dashboard/search/results?q=key"
    assert 'href="/dashboard/keys/new"' in (await owner.get(results)).html
    assert "/dashboard/keys" not in (await member.get(results)).html
    assert 'href="/dashboard/calls/new"' in (await member.get("/dashboard/search/results")).html


async def test_the_dialog_finds_a_contact_and_opens_it_by_keyboard(window: Window, live: LivePlatform) -> None:
    contact = await live.caller.post("/v1/contacts", {"phone_number": "+15550100001", "name": "Grace Hopper"})
    await window.open("/dashboard")
    await window.page.keyboard.press("Control+k")
    field = window.page.get_by_role("combobox", name="Find anything")
    await expect(field).to_be_focused()
    await expect(window.page.get_by_role("option", name="Live calls")).to_be_visible()
    await window.check_accessibility()
    await field.fill("hopper")
    await expect(window.page.get_by_role("option", name="Grace Hopper")).to_be_visible()
    await window.page.keyboard.press("ArrowDown")
    await window.page.keyboard.press("ArrowUp")
    await window.page.keyboard.press("Enter")
    await window.page.wait_for_url(f"**/dashboard/contacts/{contact.json['id']}")


PRESS_AT_ONCE = (
    "keys => keys.forEach(key => document.body.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true})))"
)
"""Press keys of which the second one is due within a second and a half, which a busy machine may take between them."""


async def test_keys_open_pages_until_they_are_switched_off(window: Window) -> None:
    await window.open("/dashboard")
    await window.page.evaluate(PRESS_AT_ONCE, ["g", "c"])
    await window.page.wait_for_url("**/dashboard/calls")
    await window.page.keyboard.press("Shift+?")
    shortcuts = window.page.get_by_role("dialog", name="Keyboard shortcuts")
    await expect(shortcuts).to_be_visible()
    await window.check_accessibility()
    await shortcuts.get_by_label("Shortcuts of a single key").uncheck()
    await shortcuts.get_by_role("button", name="Close").click()
    await window.page.keyboard.press("/")
    await expect(window.page.get_by_role("combobox", name="Find anything")).to_be_hidden()
    await window.page.get_by_role("link", name="Search").click()
    await expect(window.page.get_by_role("combobox", name="Find anything")).to_be_visible()
