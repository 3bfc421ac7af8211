"""The pages of contacts."""

from tests.fixtures.app import Caller
from tests.fixtures.dashboard import People, Window


async def test_a_contact_is_added_found_changed_and_deleted(window: Window) -> None:
    page = window.page
    await window.open("/dashboard/contacts")
    await page.get_by_role("link", name="Add a contact").click()
    await page.get_by_label("Phone number").fill("+15550100077")
    await page.get_by_label("Name").fill("Ada Lovelace")
    await page.get_by_role("button", name="Save").click()
    await page.get_by_text("Ada Lovelace was added.").wait_for()
    await page.get_by_label("Search").fill("lovel")
    await page.get_by_label("Search").press("Enter")
    await window.check_accessibility()
    await page.get_by_role("link", name="Ada Lovelace").click()
    await page.get_by_label("Company").fill("Analytical Engines")
    await page.get_by_role("button", name="Save").click()
    await page.get_by_text("Saved.").wait_for()
    assert await page.get_by_label("Company").input_value() == "Analytical Engines"
    await window.check_accessibility()
    page.once("dialog", lambda dialog: dialog.accept())
    await page.get_by_role("button", name="Delete").click()
    await page.get_by_text("The contact was deleted.").wait_for()
    await page.get_by_text("No contacts yet").wait_for()


async def test_what_is_wrong_stands_at_its_field_and_nothing_typed_is_lost(people: People, caller: Caller) -> None:
    owner = await people.join(caller.organization_id)
    refused = await owner.post("/dashboard/contacts/new", {"phone_number": "12", "name": "Ada <b>"})
    assert refused.status == 422
    assert "must be an E.164 phone number" in refused.html
    assert 'value="Ada &lt;b&gt;"' in refused.html
    await owner.post("/dashboard/contacts/new", {"phone_number": "+15550100001"})
    twice = await owner.post("/dashboard/contacts/new", {"phone_number": "+15550100001"})
    assert twice.status == 409
    assert "There is a contact with this phone number already." in twice.html


async def test_nobody_sees_another_organizations_contacts(people: People, caller: Caller, stranger: Caller) -> None:
    theirs = (await stranger.post("/v1/contacts", {"phone_number": "+15550100001", "name": "Grace"})).json
    owner = await people.join(caller.organization_id)
    assert "Grace" not in (await owner.get("/dashboard/contacts")).html
    assert (await owner.get(f"/dashboard/contacts/{theirs['id']}")).status == 404
    assert (await owner.post(f"/dashboard/contacts/{theirs['id']}", {"name": "Mine"})).status == 404
    assert (await owner.post(f"/dashboard/contacts/{theirs['id']}/delete")).status == 404


async def test_what_is_done_is_noted_with_who_did_it_and_without_values(people: People, caller: Caller) -> None:
    owner = await people.join(caller.organization_id)
    await owner.post("/dashboard/contacts/new", {"phone_number": "+15550100001", "name": "Ada"})
    entries = await people.audit(caller.organization_id)
    assert (f"user:{owner.user_id}", "add_contact", "contacts/new name, phone_number") in entries
