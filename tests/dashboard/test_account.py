"""The page of the user's account."""

import re

import pytest
from switchboard.apps.server import app
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller
from tests.fixtures.dashboard import PASSWORD, People, Person, Window

NEW = "another long password"


@pytest.fixture
async def owner(people: People, caller: Caller) -> Person:
    return await people.join(caller.organization_id)


async def sign_in_elsewhere(runtime: Runtime, owner: Person) -> Person:
    other = Person(owner.user_id, owner.email, app.create_app(runtime).test_client(), {"User-Agent": "A telephone"})
    await other.sign_in()
    return other


async def test_changing_the_password_ends_all_other_sessions(owner: Person, runtime: Runtime) -> None:
    other = await sign_in_elsewhere(runtime, owner)
    wrong = await owner.post("/dashboard/account/password", {"current": "not it at all", "new": NEW})
    assert wrong.status == 422
    assert "The current password is wrong." in wrong.html
    short = await owner.post("/dashboard/account/password", {"current": PASSWORD, "new": "short"})
    assert "at least 10 characters" in short.html
    assert (await owner.post("/dashboard/account/password", {"current": PASSWORD, "new": NEW})).status == 303
    assert (await other.get("/dashboard")).status == 303
    assert (await owner.get("/dashboard")).status == 200
    assert (await other.sign_in(PASSWORD)).status == 422
    assert (await other.sign_in(NEW)).status == 303


async def test_attempts_at_the_current_password_are_limited(owner: Person) -> None:
    statuses = [
        (await owner.post("/dashboard/account/password", {"current": f"guess number {n}", "new": NEW})).status
        for n in range(12)
    ]
    assert set(statuses[:10]) == {422}
    assert statuses[-1] == 429
    assert (await owner.post("/dashboard/account/password", {"current": PASSWORD, "new": NEW})).status == 429


async def test_other_sessions_are_listed_and_signed_out(owner: Person, runtime: Runtime) -> None:
    one, two = await sign_in_elsewhere(runtime, owner), await sign_in_elsewhere(runtime, owner)
    page = (await owner.get("/dashboard/account")).html
    assert page.count(">A telephone<") == 2
    end = re.findall(r"/dashboard/account/sessions/[\w-]+/end", page)
    assert (await owner.post(end[0])).status == 303
    assert sorted([(await one.get("/dashboard")).status, (await two.get("/dashboard")).status]) == [200, 303]
    assert (await owner.post("/dashboard/account/sessions/end")).status == 303
    assert {(await one.get("/dashboard")).status, (await two.get("/dashboard")).status} == {303}
    assert (await owner.get("/dashboard")).status == 200


async def test_users_cannot_end_other_users_sessions(
    owner: Person, people: People, caller: Caller, runtime: Runtime
) -> None:
    await sign_in_elsewhere(runtime, owner)
    theirs = re.findall(r"/dashboard/account/sessions/[\w-]+/end", (await owner.get("/dashboard/account")).html)[0]
    colleague = await people.join(caller.organization_id)
    await colleague.post(theirs)
    assert (await owner.get("/dashboard/account")).html.count(">A telephone<") == 1


async def test_the_account_page_works_in_a_browser(window: Window) -> None:
    await window.open("/dashboard/account")
    await window.check_accessibility()
