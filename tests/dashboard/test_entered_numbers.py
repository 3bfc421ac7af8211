"""The page that enters the numbers of a SIP trunk."""

from switchboard.runtime import Runtime

from tests.fixtures.app import Caller, fresh_number
from tests.fixtures.dashboard import People, Window
from tests.fixtures.json_access import at
from tests.fixtures.sip_account import add_sip_trunk

PAGE = "/dashboard/numbers/import"


async def test_owners_enter_a_list_after_its_faults_are_shown(people: People, caller: Caller, runtime: Runtime) -> None:
    owner, member = await people.join(caller.organization_id), await people.join(caller.organization_id, role="builder")
    assert PAGE not in (await owner.get("/dashboard/numbers")).html
    await add_sip_trunk(runtime, caller.organization_id)
    assert PAGE in (await owner.get("/dashboard/numbers")).html
    assert (await member.get(PAGE)).status == 403
    number = fresh_number()
    rows = f"{number}, Front desk\nnobody, Nothing\n{number}, Another name"
    assert (await member.post(PAGE, {"people": rows})).status == 403
    preview = (await owner.post(f"{PAGE}/preview", {"people": rows})).html
    assert ("1 line cannot be used." in preview, "1 phone number, 1 duplicate removed" in preview) == (True, True)
    assert "Another name</td>" not in preview
    assert (await owner.post(PAGE, {"people": rows})).status == 422
    assert (await caller.get("/v1/phone-numbers")).json["total"] == 0
    assert (await owner.post(PAGE, {"people": rows, "leave_out": "true"})).status == 303
    shown = at((await caller.get("/v1/phone-numbers")).json, "items", 0)
    assert (at(shown, "phone_number"), at(shown, "friendly_name")) == (number, "Front desk")
    again = await owner.post(PAGE, {"people": number})
    assert again.status == 409 or "already in use" in again.html


async def test_the_page_has_no_barriers(window: Window, runtime: Runtime, caller: Caller) -> None:
    await add_sip_trunk(runtime, caller.organization_id)
    await window.open(PAGE)
    await window.check_accessibility()
    await window.page.get_by_label("Lines").fill(f"{fresh_number()}, Desk")
    await window.page.get_by_role("button", name="Preview the list").click()
    await window.page.get_by_text("1 phone number.").wait_for()
    await window.check_accessibility()
