"""The pages of contacts."""

from tests.fixtures.app import Caller, LivePlatform
from tests.fixtures.dashboard import People, Window
from tests.fixtures.webhooks import list_items


async def test_a_contact_is_added_found_changed_and_deleted(window: Window) -> None:
    page = window.page
    await window.open("/dashboard/contacts")
    await page.get_by_role("link", name="Add contact").click()
    await page.get_by_label("Phone number").fill("+15550100077")
    await page.get_by_label("Name").fill("Ada Lovelace")
    await page.get_by_role("button", name="Save").click()
    await page.get_by_text("Ada Lovelace was created.").wait_for()
    await page.get_by_label("Search").fill("lovel")
    await page.get_by_label("Search").press("Enter")
    await window.check_accessibility()
    await page.get_by_role("link", name="Ada Lovelace").click()
    await page.get_by_label("Company").fill("Analytical Engines")
    await page.get_by_role("button", name="Save").click()
    await page.get_by_text("Saved.").wait_for()
    assert await page.get_by_label("Company").input_value() == "Analytical Engines"
    await window.check_accessibility()
    await page.get_by_role("button", name="Delete").click()
    await window.check_accessibility()
    await page.get_by_role("button", name="Cancel").click()
    await page.get_by_role("dialog").wait_for(state="hidden")
    await window.press("Delete")
    await page.get_by_text("Contact deleted.").wait_for()
    await page.get_by_text("No contacts yet").wait_for()


async def test_errors_appear_at_their_fields_and_keep_the_input(people: People, caller: Caller) -> None:
    owner = await people.join(caller.organization_id)
    refused = await owner.post("/dashboard/contacts/new", {"phone_number": "12", "name": "Ada <b>"})
    assert refused.status == 422
    assert "must be an E.164 phone number" in refused.html
    assert 'value="Ada &lt;b&gt;"' in refused.html
    await owner.post("/dashboard/contacts/new", {"phone_number": "+15550100001"})
    twice = await owner.post("/dashboard/contacts/new", {"phone_number": "+15550100001"})
    assert twice.status == 409
    assert "A contact with this phone number exists already." in twice.html


async def test_other_organizations_contacts_are_not_visible(people: People, caller: Caller, stranger: Caller) -> None:
    foreign_contact = (await stranger.post("/v1/contacts", {"phone_number": "+15550100001", "name": "Grace"})).json
    owner = await people.join(caller.organization_id)
    assert "Grace" not in (await owner.get("/dashboard/contacts")).html
    assert (await owner.get(f"/dashboard/contacts/{foreign_contact['id']}")).status == 404
    assert (await owner.post(f"/dashboard/contacts/{foreign_contact['id']}", {"name": "Mine"})).status == 404
    assert (await owner.post(f"/dashboard/contacts/{foreign_contact['id']}/delete")).status == 404


async def test_changes_are_audited_with_their_actor_and_without_values(people: People, caller: Caller) -> None:
    owner = await people.join(caller.organization_id)
    await owner.post("/dashboard/contacts/new", {"phone_number": "+15550100001", "name": "Ada"})
    (contact,) = list_items(await caller.get("/v1/contacts"))
    entries = await people.list_audit_entries(caller.organization_id)
    assert [entry for entry in entries if entry[0] == f"user:{owner.user_id}"] == [
        (f"user:{owner.user_id}", "contact.created", f"{contact['id']} name, phone_number")
    ]


async def test_a_do_not_call_entry_is_listed_found_and_removed(window: Window, live: LivePlatform) -> None:
    page, caller = window.page, live.caller
    contact = await caller.post("/v1/contacts", {"phone_number": "+15550100078", "name": "Grace Hopper"})
    await window.open(f"/dashboard/contacts/{contact.json['id']}")
    await window.press("Do not call")
    await page.get_by_text("+1 555-010-0078 was added to the do-not-call list.").wait_for()
    await page.get_by_text("Grace Hopper").wait_for()
    await window.check_accessibility()
    await window.open(f"/dashboard/contacts/{contact.json['id']}")
    assert await page.get_by_role("link", name="Call", exact=True).count() == 0
    await page.get_by_role("link", name="Not called").click()
    await window.press("Remove from list")
    await page.get_by_text("The list is empty").wait_for()
    assert (await caller.get("/v1/do-not-call")).json["total"] == 0


async def test_a_number_is_added_to_the_do_not_call_list_with_a_note(
    people: People, caller: Caller, stranger: Caller
) -> None:
    member = await people.join(caller.organization_id, role="member")
    page = "/dashboard/contacts/do-not-call"
    refused = await member.post(page, {"phone_number": "12", "note": "Asked by <letter>"})
    assert (
        refused.status,
        "must be an E.164 phone number" in refused.html,
        'value="Asked by &lt;letter&gt;"' in refused.html,
    ) == (422, True, True)
    assert (await member.post(page, {"phone_number": "+15550100079", "note": "Asked by <letter>"})).status == 303
    assert "Asked by &lt;letter&gt;" in (await member.get(page)).html
    assert "This number is not on the list" in (await member.get(f"{page}?phone_number=%2B15550100080")).html
    other = await people.join(stranger.organization_id)
    assert "letter" not in (await other.get(page)).html


async def test_a_page_beyond_the_end_of_a_list_shows_the_last_page(people: People, caller: Caller) -> None:
    """The case after the only row of the last page was deleted."""
    for n in range(3):
        await caller.post("/v1/contacts", {"phone_number": f"+1555010008{n}", "name": f"Person {n}"})
    owner = await people.join(caller.organization_id)
    page = (await owner.get("/dashboard/contacts?limit=2&offset=4")).html
    assert "Person 0" in page
    assert "Person 1" not in page
    assert "3–3 of 3" in page
    assert 'rel="prev" href="/dashboard/contacts?limit=2&amp;offset=0"' in page
