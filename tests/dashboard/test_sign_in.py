"""Signing in, and attacks on it."""

import re
from contextlib import AsyncExitStack
from datetime import timedelta
from uuid import uuid4

import pytest
from sqlalchemy import update
from sqlmodel import col
from switchboard.apps.dashboard.sign_in_limits import PER_ACCOUNT, PER_ADDRESS
from switchboard.apps.server import app
from switchboard.foundation.database import now
from switchboard.resources.identity.models import Membership, UserSession
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller, Client
from tests.fixtures.dashboard import PASSWORD, People, Person, create_person


@pytest.fixture
async def owner(runtime: Runtime, client: Client, caller: Caller) -> Person:
    return await create_person(runtime, client, caller.organization_id)


async def test_an_anonymous_user_signs_in_first_and_continues(owner: Person) -> None:
    response = await owner.get("/dashboard/contacts?search=ada")
    assert (response.status, response.location) == (303, "/dashboard/sign-in?after=/dashboard/contacts?search%3Dada")
    assert (await owner.get(response.location)).html.count('value="/dashboard/contacts?search=ada"') == 1
    assert (await owner.sign_in(after="/dashboard/contacts?search=ada")).location == "/dashboard/contacts?search=ada"
    page = await owner.get("/dashboard")
    assert page.status == 200
    assert owner.email in page.html


async def test_a_page_says_that_the_database_refuses_connections(
    owner: Person, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(_closing: AsyncExitStack) -> None:
        raise ConnectionRefusedError

    await owner.sign_in()
    monkeypatch.setattr(runtime.database, "_connect", refuse)
    page = await owner.get("/dashboard/contacts")
    assert page.status == 503
    assert "try again" in page.html.lower()


async def test_the_root_page_redirects_to_the_dashboard(owner: Person) -> None:
    assert (await owner.get("/")).location == "/dashboard"


async def test_a_wrong_password_and_an_unknown_address_look_alike(owner: Person) -> None:
    refused = await owner.sign_in("something else entirely")
    owner.email, known_email = "nobody@example.com", owner.email
    unknown = await owner.sign_in()
    assert refused.status == unknown.status == 422
    assert refused.html.replace(known_email, "") == unknown.html.replace("nobody@example.com", "")
    assert (await owner.get("/dashboard")).status == 303


def move(person: Person) -> None:
    """Give the person's browser another network."""
    person.address = ":".join(["fd00", *re.findall("....", uuid4().hex[4:])])


async def exhaust_attempts(stranger: Person, attempts: int = PER_ACCOUNT.burst) -> None:
    for _ in range(attempts):
        move(stranger)
        assert (await stranger.sign_in("a wrong password")).status == 422


async def test_guesses_are_limited_for_known_and_unknown_addresses_alike(owner: Person) -> None:
    known = owner.email
    pages = []
    for email in (known, f"{uuid4().hex}@example.com"):
        owner.email = email
        await exhaust_attempts(owner)
        move(owner)
        refused = await owner.sign_in()
        assert refused.status == 429
        assert int(refused.headers["Retry-After"]) > 60
        pages.append(refused.html.replace(email, ""))
    assert pages[0] == pages[1]


async def test_a_stranger_does_not_lock_the_owner_out(owner: Person, runtime: Runtime) -> None:
    assert (await owner.sign_in()).status == 303
    stranger = Person(owner.user_id, owner.email, app.create_app(runtime).test_client())
    await exhaust_attempts(stranger)
    move(stranger)
    assert (await stranger.sign_in()).status == 429
    assert (await owner.sign_in()).status == 303


async def test_a_sign_in_leaves_strangers_as_many_guesses_as_an_unknown_address_has(
    owner: Person, runtime: Runtime
) -> None:
    for browser in range(3):
        someone = Person(owner.user_id, owner.email, app.create_app(runtime).test_client())
        move(someone)
        assert (await someone.sign_in()).status == 303, browser
    stranger = Person(owner.user_id, owner.email, app.create_app(runtime).test_client())
    await exhaust_attempts(stranger)
    move(stranger)
    assert (await stranger.sign_in()).status == 429


async def test_a_known_browser_has_ten_attempts_and_knows_one_account(
    owner: Person, runtime: Runtime, client: Client, caller: Caller
) -> None:
    assert (await owner.sign_in()).status == 303
    await exhaust_attempts(owner)
    move(owner)
    assert (await owner.sign_in()).status == 429
    other = await create_person(runtime, client, caller.organization_id)
    await exhaust_attempts(Person(other.user_id, other.email, app.create_app(runtime).test_client()))
    owner.email = other.email
    move(owner)
    assert (await owner.sign_in()).status == 429, "the browser is a stranger to this account"


async def test_the_addresses_of_one_subscriber_are_counted_together(owner: Person) -> None:
    statuses = []
    for n in range(PER_ADDRESS.burst + 1):
        owner.address = f"fd00:1:2:3::{n:x}"
        statuses.append(
            (await owner.send("/dashboard/sign-in", {"email": f"{uuid4().hex}@x.example", "password": "x"})).status
        )
    assert statuses == [422] * PER_ADDRESS.burst + [429]


async def test_a_client_address_with_too_many_attempts_must_wait(owner: Person) -> None:
    statuses = [
        (await owner.send("/dashboard/sign-in", {"email": f"{uuid4().hex}@example.com", "password": "x"})).status
        for _ in range(30)
    ]
    assert statuses[0] == 422
    assert statuses[-1] == 429


@pytest.mark.parametrize(
    "after",
    [
        "https://evil.example/",
        "//evil.example/",
        "///evil.example",
        "/\\evil.example",
        "\\\\evil.example",
        "https:evil.example",
        "javascript:alert(1)",
        "http:///evil.example",
        "/\t/evil.example",
        "/\n//evil.example",
        "evil.example",
        " //evil.example",
        "/%09/../..//\\evil.example\r\nX: y",
        "data:text/html,x",
        "",
    ],
)
async def test_sign_in_redirects_only_to_own_pages(owner: Person, after: str) -> None:
    assert (await owner.sign_in(after=after)).location == "/dashboard"


async def test_sign_in_replaces_a_planted_session(owner: Person) -> None:
    owner.headers["Cookie"] = "switchboard=planted-by-somebody"
    response = await owner.sign_in()
    token = response.headers["Set-Cookie"].partition("=")[2].partition(";")[0]
    assert token != "planted-by-somebody"
    assert (await owner.get("/dashboard")).status == 303, "what was planted is no session"
    owner.headers["Cookie"] = f"switchboard={token}"
    again = (await owner.sign_in()).headers["Set-Cookie"]
    assert token not in again, "each sign-in begins a session of its own"


async def test_the_cookie_is_hidden_from_scripts_and_other_sites(owner: Person) -> None:
    cookie = (await owner.sign_in()).headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
    assert "Path=/" in cookie


async def test_only_a_hash_of_the_token_is_stored(owner: Person, runtime: Runtime) -> None:
    token = (await owner.sign_in()).headers["Set-Cookie"].partition("=")[2].partition(";")[0]
    async with runtime.database.system() as session:
        rows = UserSession.__table__.select()  # type: ignore[attr-defined]
        sessions = await session.exec(rows.where(UserSession.user_id == owner.user_id))
    assert token not in str(sessions.all())


async def test_signing_out_invalidates_a_copied_cookie(owner: Person) -> None:
    token = (await owner.sign_in()).headers["Set-Cookie"].partition(";")[0]
    assert (await owner.post("/dashboard/sign-out")).location == "/dashboard/sign-in"
    owner.headers["Cookie"] = token
    assert (await owner.get("/dashboard")).status == 303


@pytest.mark.parametrize("age", [{"last_seen_at": timedelta(days=15)}, {"created_at": timedelta(days=91)}])
async def test_a_session_expires(owner: Person, runtime: Runtime, age: dict[str, timedelta]) -> None:
    await owner.sign_in()
    assert (await owner.get("/dashboard")).status == 200
    async with runtime.database.system() as session:
        times = {name: now() - by for name, by in age.items()}
        await session.exec(update(UserSession).where(col(UserSession.user_id) == owner.user_id).values(**times))
    assert (await owner.get("/dashboard")).status == 303


async def test_forms_of_other_sites_are_refused(people: People, caller: Caller) -> None:
    owner = await people.join(caller.organization_id)
    fields: dict[str, str | list[str]] = {"phone_number": "+15550100001"}
    assert (await owner.send("/dashboard/contacts/new", fields)).status == 403, "no token"
    assert (await owner.send("/dashboard/contacts/new", {**fields, "csrf_token": "0" * 64})).status == 403
    for origin in ("https://evil.example", "null", "http://127.0.0.1:1", "http://localhost.evil.example"):
        owner.headers["Origin"] = origin
        assert (await owner.post("/dashboard/contacts/new", fields)).status == 403, origin
        assert (await owner.sign_in()).status == 403, f"nobody is signed in by {origin}"
    del owner.headers["Origin"]
    assert "No contacts yet" in (await owner.get("/dashboard/contacts")).html
    assert (await owner.post("/dashboard/contacts/new", fields)).status == 303


async def test_a_token_is_invalid_in_another_session_or_organization(
    people: People, caller: Caller, stranger: Caller, runtime: Runtime
) -> None:
    one, other = await people.join(caller.organization_id), await people.join(caller.organization_id)
    token = (await one.get("/dashboard/contacts/new")).html.partition('name="csrf_token" value="')[2][:64]
    fields: dict[str, str | list[str]] = {"phone_number": "+15550100001", "csrf_token": token}
    assert (await other.send("/dashboard/contacts/new", fields)).status == 403
    both = await people.join(caller.organization_id)
    async with runtime.database.system() as session:
        session.add(Membership(organization_id=stranger.organization_id, user_id=both.user_id))
    assert (await both.post(f"/dashboard/organizations/{caller.organization_id}")).status == 303
    token = (await both.get("/dashboard/contacts/new")).html.partition('name="csrf_token" value="')[2][:64]
    assert (await both.post(f"/dashboard/organizations/{stranger.organization_id}")).status == 303
    refused = await both.send("/dashboard/contacts/new", {**fields, "csrf_token": token})
    assert refused.status == 403
    assert "another organization" in refused.html


async def test_users_cannot_enter_other_organizations(people: People, caller: Caller, stranger: Caller) -> None:
    owner = await people.join(caller.organization_id)
    assert (await owner.post(f"/dashboard/organizations/{stranger.organization_id}")).status == 404
    assert str(stranger.organization_id) not in (await owner.get("/dashboard/organizations")).html


async def test_pages_cannot_be_framed_and_load_no_external_resources(people: People, caller: Caller) -> None:
    owner = await people.join(caller.organization_id)
    for path in ("/dashboard", "/dashboard/sign-in", "/dashboard/nowhere"):
        response = await owner.get(path)
        policy = response.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert response.headers["X-Frame-Options"] == "DENY"
        assert response.headers["Cache-Control"] == "no-store"
        assert "<script>" not in response.html
        assert " style=" not in response.html


async def test_the_address_is_case_insensitive(owner: Person) -> None:
    owner.email = owner.email.upper()
    assert (await owner.sign_in(PASSWORD)).status == 303


async def test_the_single_sign_on_button_requires_an_identity_provider(owner: Person) -> None:
    assert "single-sign-on" not in (await owner.get("/dashboard/sign-in")).html
    assert (await owner.get("/dashboard/sign-in/single-sign-on")).status == 404
