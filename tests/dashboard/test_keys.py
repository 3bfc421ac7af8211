"""The pages of API keys."""

import re
from datetime import timedelta

from sqlalchemy import update
from sqlmodel import col
from switchboard.foundation.database import now
from switchboard.resources.identity.models import ApiKey
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller
from tests.fixtures.dashboard import People, Window


async def test_a_key_is_created_shown_once_used_and_revoked(people: People, caller: Caller) -> None:
    owner = await people.join(caller.organization_id)
    response = await owner.post(
        "/dashboard/keys/new", {"name": "Reports", "scopes[]": ["calls:read", "calls:write"], "days": "30"}
    )
    key = re.search(r'<code id="key">(svc_live_\w+)</code>', response.html)
    assert key
    program = Caller(caller.organization_id, caller.key_id, key[1], caller.client)
    assert (await program.get("/v1/calls")).status == 200
    assert (await program.get("/v1/agents")).status == 403
    page = (await owner.get("/dashboard/keys")).html
    assert key[1] not in page
    assert f"…{key[1][-4:]}" in page
    revoke = next(path for path in re.findall(r"/dashboard/keys/[\w-]+/revoke", page) if str(caller.key_id) not in path)
    assert (await owner.post(revoke)).status == 303
    assert (await program.get("/v1/calls")).status == 401, "at once, whatever is cached"


async def test_a_key_is_rotated_without_interruption(people: People, caller: Caller, runtime: Runtime) -> None:
    owner = await people.join(caller.organization_id)
    response = await owner.post(f"/dashboard/keys/{caller.key_id}/rotate", {"hours": "24"})
    fresh = re.search(r'<code id="key">(svc_live_\w+)</code>', response.html)
    assert fresh
    program = Caller(caller.organization_id, caller.key_id, fresh[1], caller.client)
    assert (await program.get("/v1/agents")).status == 200
    assert (await caller.get("/v1/agents")).status == 200
    async with runtime.database.system() as session:
        await session.exec(
            update(ApiKey).where(col(ApiKey.id) == caller.key_id).values(expires_at=now() - timedelta(seconds=1))
        )
    other = Caller(
        caller.organization_id, caller.key_id, caller.key, (await people.join(caller.organization_id)).client
    )
    assert (await other.get("/v1/agents")).status == 401, "to a process that has not cached it"
    await owner.post(f"/dashboard/keys/{caller.key_id}/rotate", {"hours": "24"})
    assert "the key was expired already" in (await owner.get("/dashboard/keys")).html


async def test_a_key_requires_a_name_and_a_scope(people: People, caller: Caller) -> None:
    owner = await people.join(caller.organization_id)
    refused = await owner.post("/dashboard/keys/new", {"name": "", "days": "soon"})
    assert refused.status == 422
    assert 'id="fault-name"' in refused.html
    assert 'id="fault-days"' in refused.html
    forged = await owner.post("/dashboard/keys/new", {"name": "x", "scopes[]": "everything"})
    assert forged.status == 422


async def test_other_organizations_keys_are_unreachable(people: People, caller: Caller, stranger: Caller) -> None:
    owner = await people.join(caller.organization_id)
    for action in ("revoke", "rotate"):
        await owner.post(f"/dashboard/keys/{stranger.key_id}/{action}", {"hours": "0"})
        assert "there is no API key" in (await owner.get("/dashboard/keys")).html
    assert (await stranger.get("/v1/agents")).status == 200


PRESS_TWICE = """() => {
  const form = document.querySelector("main form");
  form.requestSubmit();
  return form.dispatchEvent(new Event("submit", { cancelable: true, bubbles: true }));
}"""


async def test_the_keys_page_works_in_a_browser(window: Window) -> None:
    page = window.page
    await window.open("/dashboard/keys/new")
    await window.check_accessibility()
    await page.get_by_label("Name").fill("Reports")
    await page.get_by_label("calls:read").check()
    assert not await page.evaluate(PRESS_TWICE), "the second time is stopped"
    await page.get_by_text("shown only once").wait_for()
    await window.check_accessibility()
    await page.evaluate("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    await page.get_by_role("button", name="Copy").click()
    await page.get_by_text("Selected. Press Ctrl+C to copy.").wait_for()
    assert (await page.evaluate("getSelection().toString()")).startswith("svc_live_"), "as over plain http"
    await window.open("/dashboard/keys")
    await page.get_by_text("Reports").wait_for()
    await window.check_accessibility()
