"""Members, roles, and invitations by link."""

import re
from datetime import timedelta

import pytest
from sqlalchemy import update
from switchboard.apps.server import app
from switchboard.foundation.database import now
from switchboard.resources.identity.models import Invitation
from switchboard.runtime import Runtime

from tests.fixtures.app import UNKNOWN_ID, Caller, Client
from tests.fixtures.dashboard import PASSWORD, People, Person, Window, create_person


async def invite(owner: Person, email: str, role: str = "builder") -> str:
    page = await owner.post("/dashboard/team", {"email": email, "role": role})
    match = re.search(r"/dashboard/invitations/[\w-]+", page.html)
    assert match, page.html
    return match[0]


def create_newcomer(runtime: Runtime, email: str) -> Person:
    return Person(UNKNOWN_ID, email, app.create_app(runtime).test_client())  # type: ignore[arg-type]


async def test_a_new_user_joins_by_a_single_use_link(people: People, caller: Caller, runtime: Runtime) -> None:
    owner = await people.join(caller.organization_id)
    link = await invite(owner, "New@Example.com")
    person = create_newcomer(runtime, f"{owner.email}.new")
    assert "new@example.com is invited to join as a builder" in (await person.get(link)).html
    short = await person.send(link, {"password": "short"})
    assert short.status == 422
    assert "at least 10 characters" in short.html
    assert (await person.send(link, {"password": PASSWORD})).location == "/dashboard"
    assert (await person.get("/dashboard")).status == 200
    assert "new@example.com" in (await owner.get("/dashboard/team")).html
    assert (await create_newcomer(runtime, "").get(link)).status == 404
    assert (await create_newcomer(runtime, "").send(link, {"password": PASSWORD})).status == 404


async def test_an_existing_user_joins_with_the_same_account(
    people: People, caller: Caller, stranger: Caller, runtime: Runtime
) -> None:
    owner, existing_user = await people.join(caller.organization_id), await people.join(stranger.organization_id)
    link = await invite(owner, existing_user.email, "owner")
    anonymous = await create_newcomer(runtime, "").get(link)
    assert "Sign in to join" in anonymous.html
    assert "Choose a password" not in anonymous.html
    assert (await existing_user.post(link)).location == "/dashboard"
    assert (await existing_user.get("/dashboard/organizations")).html.count("<strong>Test ") == 2
    assert (await existing_user.get("/dashboard/keys")).status == 200
    assert existing_user.email in (await owner.get("/dashboard/team")).html


async def test_a_link_works_only_for_the_invited_address(
    people: People, caller: Caller, stranger: Caller, runtime: Runtime
) -> None:
    owner, other = await people.join(caller.organization_id), await people.join(stranger.organization_id)
    link = await invite(owner, "somebody@example.com")
    refused = await other.post(link)
    assert refused.status == 422
    assert "This invitation is for somebody@example.com" in refused.html
    other_link = await invite(owner, other.email)
    hijack = await create_newcomer(runtime, "").send(other_link, {"password": "a password of mine"})
    assert hijack.status == 422, "an invitation is no way into an account that exists"
    assert (await other.get("/dashboard")).status == 200


@pytest.mark.parametrize("spoiled", ["withdrawn", "repeated", "old"])
async def test_replaced_expired_and_withdrawn_invitations_are_refused(
    people: People, caller: Caller, runtime: Runtime, spoiled: str
) -> None:
    owner = await people.join(caller.organization_id)
    link = await invite(owner, "somebody@example.com")
    if spoiled == "repeated":
        await invite(owner, "somebody@example.com")
    elif spoiled == "old":
        async with runtime.database.write(caller.organization_id) as session:
            await session.exec(update(Invitation).values(expires_at=now() - timedelta(seconds=1)))
    else:
        withdraw = re.search(r"/dashboard/team/invitations/[\w-]+/withdraw", (await owner.get("/dashboard/team")).html)
        assert withdraw
        assert (await owner.post(withdraw[0])).status == 303
    assert (await create_newcomer(runtime, "").send(link, {"password": PASSWORD})).status == 404


async def test_members_cannot_perform_owner_actions(people: People, caller: Caller) -> None:
    owner, member = await people.join(caller.organization_id), await people.join(caller.organization_id, role="builder")
    for path in ("/dashboard/keys", "/dashboard/keys/new", "/dashboard/audit"):
        assert (await member.get(path)).status == 403
        assert f'href="{path}"' not in (await member.get("/dashboard")).html
    for path, fields in (
        ("/dashboard/keys/new", {"name": "mine", "scopes[]": "agents:read"}),
        (f"/dashboard/keys/{caller.key_id}/revoke", {}),
        (f"/dashboard/keys/{caller.key_id}/rotate", {"hours": "0"}),
        ("/dashboard/team", {"email": "friend@example.com", "role": "owner"}),
        (f"/dashboard/team/{owner.user_id}/remove", {}),
        (f"/dashboard/team/{member.user_id}/role", {"role": "owner"}),
    ):
        assert (await member.post(path, dict(fields))).status == 403, path
    assert (await caller.get("/v1/agents")).status == 200


async def test_an_organization_keeps_at_least_one_owner(people: People, caller: Caller) -> None:
    owner, member = await people.join(caller.organization_id), await people.join(caller.organization_id, role="builder")
    await owner.post(f"/dashboard/team/{owner.user_id}/role", {"role": "builder"})
    assert "An organization needs an owner" in (await owner.get("/dashboard/team")).html
    await owner.post(f"/dashboard/team/{member.user_id}/role", {"role": "owner"})
    assert (await owner.post(f"/dashboard/team/{owner.user_id}/remove")).status == 303
    assert (await owner.get("/dashboard")).status == 403, "who is no member sees nothing any more, at once"
    assert (await member.get("/dashboard/keys")).status == 200


async def test_members_of_other_organizations_are_unreachable(people: People, caller: Caller, stranger: Caller) -> None:
    owner, other = await people.join(caller.organization_id), await people.join(stranger.organization_id)
    link = await invite(other, "somebody@example.com")
    page = (await other.get("/dashboard/team")).html
    foreign_link = re.search(r"/dashboard/team/invitations/[\w-]+/withdraw", page)
    assert foreign_link
    assert (await owner.post(foreign_link[0])).status == 404
    assert (await owner.post(f"/dashboard/team/{other.user_id}/remove")).status == 404
    assert (await owner.post(f"/dashboard/team/{other.user_id}/role", {"role": "builder"})).status == 404
    assert (await owner.post(f"/dashboard/team/{UNKNOWN_ID}/remove")).status == 404
    assert (await other.get(link)).status == 200, "the invitation still stands"


async def test_the_team_page_works_in_a_browser(window: Window) -> None:
    page = window.page
    await window.open("/dashboard/team")
    await window.check_accessibility()
    await page.get_by_label("E-mail address").fill("colleague@example.com")
    await page.get_by_role("button", name="Create invitation").click()
    link = await page.locator("#link").inner_text()
    await window.check_accessibility()
    await page.get_by_role("button", name="Sign out").click()
    await page.goto(link)
    await window.check_accessibility()
    await page.get_by_label("Choose a password").fill(PASSWORD)
    await page.get_by_role("button", name="Join").click()
    await page.get_by_role("heading", name="Overview").wait_for()
    await page.get_by_text("colleague@example.com").wait_for()


async def test_a_user_without_an_organization_is_told_so(runtime: Runtime, client: Client) -> None:
    person = await create_person(runtime, client, None)
    await person.sign_in()
    page = await person.get("/dashboard")
    assert page.status == 403
    assert "Ask an owner to invite you" in page.html
