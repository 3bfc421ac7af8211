"""The timeline of a contact."""

from datetime import timedelta

from switchboard.foundation.database import now
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller, create_bakery, fresh_number
from tests.fixtures.calls import add_call
from tests.fixtures.dashboard import People, Window

CONTACT = "+15550100001"


async def test_calls_and_messages_are_in_one_list_newest_first(
    people: People, caller: Caller, stranger: Caller, runtime: Runtime
) -> None:
    owner = await people.join(caller.organization_id)
    platform = await create_bakery(runtime, caller, fresh_number())
    contact = (await caller.post("/v1/contacts", {"phone_number": CONTACT, "notes": "Likes rye."})).json
    at = now() - timedelta(days=1)
    await add_call(runtime, caller, at, call_summary="Asked for rye.")
    await add_call(runtime, caller, at, from_number="+15550100009", call_summary="Somebody else.")
    await add_call(runtime, stranger, at, call_summary="Of strangers.")
    for body in ("First <b>.", "Second."):
        await caller.post("/v1/sms", {"to_number": CONTACT, "from_number_id": platform.number_id, "body": body})
    path = f"/dashboard/contacts/{contact['id']}/timeline"
    html = (await owner.get(path)).html
    assert html.index("Second.") < html.index("First &lt;b&gt;.") < html.index("Asked for rye.")
    assert "Likes rye." in html
    assert "Somebody else." not in html
    assert "Of strangers." not in html
    assert 'href="' + path in (await owner.get(f"/dashboard/contacts/{contact['id']}")).html


async def test_a_long_timeline_has_pages_without_gaps(people: People, caller: Caller, runtime: Runtime) -> None:
    owner = await people.join(caller.organization_id)
    contact = (await caller.post("/v1/contacts", {"phone_number": CONTACT})).json
    moment = now()
    for minutes in range(120):
        await add_call(runtime, caller, moment - timedelta(minutes=minutes), call_summary=f"Call number {minutes}.")
    shown: list[str] = []
    path = f"/dashboard/contacts/{contact['id']}/timeline"
    while path:
        html = (await owner.get(path)).html
        shown += [part.split(".")[0] for part in html.split("Call number ")[1:]]
        path = html.split('rel="next" href="')[1].split('"')[0] if 'rel="next"' in html else ""
    assert shown == [str(minutes) for minutes in range(120)]


async def test_the_page_is_accessible(window: Window) -> None:
    page = window.page
    await window.open("/dashboard/contacts/new")
    await page.get_by_label("Phone number").fill(CONTACT)
    await page.get_by_label("Name").fill("Ada")
    await page.get_by_role("button", name="Save").click()
    await page.get_by_role("link", name="Ada", exact=True).click()
    await page.get_by_role("link", name="Text", exact=True).click()
    await page.get_by_label("Message *").fill("Your bread is ready.")
    await page.get_by_role("button", name="Send").click()
    await page.get_by_role("link", name="Contact", exact=True).click()
    await page.get_by_role("link", name="Timeline").click()
    await page.get_by_text("Your bread is ready.").wait_for()
    await window.check_accessibility()
