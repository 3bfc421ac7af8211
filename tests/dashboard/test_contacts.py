"""The pages of contacts."""

from tests.fixtures.app import Caller, LivePlatform
from tests.fixtures.dashboard import People, Window
from tests.fixtures.json_access import objects_at
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
    member = await people.join(caller.organization_id, role="builder")
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


async def test_contacts_are_imported_from_csv_after_a_preview(people: People, caller: Caller) -> None:
    owner = await people.join(caller.organization_id)
    known = await caller.post("/v1/contacts", {"phone_number": "+15550100001", "name": "Ada", "notes": "Kept"})
    rows = (
        "name,phone number,email,tags,company\n"
        'Ada Lovelace,+15550100001,ada@example.com,"vip, late",\n'
        "Grace,+1 555 010 0002,,,Navy\n"
        "Grace again,+15550100002,,,\n"
        "Nobody,12,,,\n"
    )
    preview = (await owner.post("/dashboard/contacts/import/preview", {"people": rows})).html
    assert "1 duplicate removed" in preview
    assert "1 line</strong>" in preview or "1 line cannot be used" in preview
    assert (await caller.get("/v1/contacts")).json["total"] == 1, "a preview saves nothing"
    assert (await owner.post("/dashboard/contacts/import", {"people": rows})).status == 422
    imported = await owner.post("/dashboard/contacts/import", {"people": rows, "leave_out": "true"})
    assert imported.status == 303
    assert "1 contacts were created, and 1 updated." in (await owner.get("/dashboard/contacts")).html
    ada = (await caller.get(f"/v1/contacts/{known.json['id']}")).json
    assert [ada[name] for name in ("name", "notes", "email", "tags")] == [
        "Ada Lovelace",
        "Kept",
        "ada@example.com",
        "vip, late",
    ]
    found = objects_at((await caller.get("/v1/contacts?search=navy")).json, "items")
    assert [item["phone_number"] for item in found] == ["+15550100002"], "imported contacts are searched"
    entries = await people.list_audit_entries(caller.organization_id)
    assert entries[-1][1:] == ("contacts.imported", "1 created, 1 updated")


async def test_an_export_of_contacts_is_imported_again(people: People, caller: Caller, stranger: Caller) -> None:
    owner, other = await people.join(caller.organization_id), await people.join(stranger.organization_id)
    contact = {"phone_number": "+15550100001", "name": "Ada", "tags": "vip, late", "address": "12 Mill Lane"}
    await caller.post("/v1/contacts", contact)
    exported = (await owner.get("/dashboard/exports/contacts")).html
    assert (await other.post("/dashboard/contacts/import", {"people": exported})).status == 303
    copied = objects_at((await stranger.get("/v1/contacts")).json, "items")
    assert [{name: item[name] for name in contact} for item in copied] == [contact]


async def test_a_cell_that_is_too_long_is_named_with_its_line(people: People, caller: Caller) -> None:
    owner = await people.join(caller.organization_id)
    rows = f"phone,name,company\n+15550100001,Ada,Navy\n+15550100002,Grace,{'x' * 256}\n"
    refused = await owner.post("/dashboard/contacts/import", {"people": rows})
    assert refused.status == 422
    assert "line 3: company" in refused.html
    assert (await caller.get("/v1/contacts")).json["total"] == 0


async def test_selected_contacts_are_tagged_not_called_and_deleted(
    people: People, caller: Caller, stranger: Caller
) -> None:
    owner = await people.join(caller.organization_id)
    ids = []
    for number in ("+15550100001", "+15550100002", "+15550100003"):
        ids.append(str((await caller.post("/v1/contacts", {"phone_number": number, "tags": "vip"})).json["id"]))
    foreign = str((await stranger.post("/v1/contacts", {"phone_number": "+15550100001"})).json["id"])
    chosen = [*ids[:2], foreign]
    url = "/dashboard/contacts/selected"
    assert (await owner.post(url, {"ids[]": chosen, "act": "tag", "tag": "Late"})).status == 303
    page = (await owner.get("/dashboard/contacts")).html
    assert "2 contacts were tagged." in page
    assert page.count("vip, Late") == 2
    await owner.post(url, {"ids[]": chosen, "act": "do_not_call"})
    blocked = objects_at((await caller.get("/v1/do-not-call")).json, "items")
    assert {entry["phone_number"] for entry in blocked} == {"+15550100001", "+15550100002"}
    await owner.post(url, {"ids[]": chosen, "act": "delete"})
    left = objects_at((await caller.get("/v1/contacts")).json, "items")
    assert [item["id"] for item in left] == ids[2:]
    assert (await stranger.get("/v1/contacts")).json["total"] == 1
    assert (await owner.post(url, {"act": "delete"})).status == 303
    assert "required" in (await owner.get("/dashboard/contacts")).html


async def test_all_contacts_of_a_page_are_selected_at_once(window: Window, live: LivePlatform) -> None:
    for number in ("+15550100001", "+15550100002"):
        await live.caller.post("/v1/contacts", {"phone_number": number})
    await window.open("/dashboard/contacts")
    await window.page.get_by_label("Select all on this page").check()
    await window.page.get_by_label("Tag", exact=True).fill("spring")
    await window.check_accessibility()
    await window.press("Apply")
    await window.page.get_by_text("2 contacts were tagged.").wait_for()
    await window.page.get_by_role("link", name="Import").click()
    await window.page.get_by_label("Lines").fill("+15550100003, Grace")
    await window.page.get_by_role("button", name="Preview the list").click()
    await window.check_accessibility()
    await window.page.get_by_role("button", name="Import", exact=True).click()
    await window.page.get_by_text("1 contacts were created, and 0 updated.").wait_for()


async def test_the_contacts_that_match_a_search_are_exported(people: People, caller: Caller) -> None:
    owner = await people.join(caller.organization_id)
    for number, name in (("+15550100001", "Ada Lovelace"), ("+15550100002", "Grace Hopper")):
        await caller.post("/v1/contacts", {"phone_number": number, "name": name})
    page = (await owner.get("/dashboard/contacts?search=lovelace")).html
    link = "/dashboard/exports/contacts?format=csv&amp;search=lovelace"
    assert link in page
    exported = (await owner.get(link.replace("&amp;", "&"))).html
    assert "Ada Lovelace" in exported
    assert "Grace" not in exported
