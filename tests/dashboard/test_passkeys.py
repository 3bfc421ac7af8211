"""Passkeys: adding, removing, and signing in with them; answers that are replayed, forged, old, or another's."""

import json
import re
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import CDPSession
from switchboard.apps.server import app
from switchboard.foundation.settings import Settings
from switchboard.resources.identity import passkeys, second_factors
from switchboard.runtime import Runtime

from tests.dashboard.test_second_factor import Phone, starts_session
from tests.fixtures.app import Caller
from tests.fixtures.dashboard import PASSWORD, PageResponse, People, Person, Window
from tests.fixtures.software_authenticator import PRESENT, SoftwareAuthenticator
from tests.fixtures.virtual_clock import CLOCK

ACCOUNT, NEW = "/dashboard/account", "/dashboard/account/passkeys/new"
SIGN_IN = "/dashboard/sign-in/passkey"


@pytest.fixture
def settings(settings: Settings, request: pytest.FixtureRequest) -> Settings:
    """Settings with localhost as the public address, or with the parameter: browsers accept no passkeys for an IP
    address.
    """
    return settings.model_copy(update={"public_url": getattr(request, "param", f"http://localhost:{settings.port}")})


async def ask(person: Person, path: str) -> dict[str, Any]:
    """Return the server's request."""
    page = await person.get(path)
    assert page.status == 200, page.html
    return json.loads(page.html)  # type: ignore[no-any-return]


async def add(person: Person, authenticator: SoftwareAuthenticator, **changed: str) -> PageResponse:
    """Add a passkey to a person's account."""
    asked = await ask(person, "/dashboard/account/passkeys/request")
    answer = {"state": asked["state"], "credential": authenticator.create(asked["options"])}
    return await person.post(NEW, {"name": "My key", "password": PASSWORD, **answer, **changed})


async def sign_in(other: Person, authenticator: SoftwareAuthenticator) -> PageResponse:
    """Sign in with a passkey."""
    asked = await ask(other, SIGN_IN)
    answer = {"state": asked["state"], "credential": authenticator.get(asked["options"])}
    return await other.send(SIGN_IN, {**answer, "after": "/dashboard/calls"})


def refuses(page: PageResponse) -> bool:
    return page.status == 422 and not starts_session(page)


@pytest_asyncio.fixture
async def person(people: People, caller: Caller) -> Person:
    return await people.join(caller.organization_id)


@pytest_asyncio.fixture
async def authenticator(person: Person, settings: Settings) -> SoftwareAuthenticator:
    """The person's authenticator, with a passkey."""
    made = SoftwareAuthenticator(settings.base_url)
    assert (await add(person, made)).location == ACCOUNT
    return made


@pytest.fixture
def other(person: Person, runtime: Runtime) -> Person:
    """Another browser of the person."""
    return Person(person.user_id, person.email, app.create_app(runtime).test_client())


async def test_a_passkey_signs_in_and_is_removed(
    person: Person, other: Person, authenticator: SoftwareAuthenticator, people: People, caller: Caller
) -> None:
    entered = await sign_in(other, authenticator)
    assert entered.location == "/dashboard/calls"
    assert starts_session(entered)
    page = (await other.get(ACCOUNT)).html
    assert "My key" in page
    remove = re.search(r'action="(/dashboard/account/passkeys/[\w-]+/remove)"', page)
    assert remove
    stranger = await people.join(caller.organization_id)
    assert (await stranger.post(remove[1])).status == 404
    assert (await person.post(remove[1])).location == ACCOUNT
    assert "My key" not in (await person.get(ACCOUNT)).html
    assert refuses(await sign_in(other, authenticator))
    actions = [action for _, action, _ in await people.list_audit_entries(caller.organization_id)]
    assert actions[-2:] == ["user.passkey_added", "user.passkey_removed"]


async def test_a_passkey_takes_the_place_of_password_and_code(
    person: Person, other: Person, authenticator: SoftwareAuthenticator
) -> None:
    await Phone.set_up(person)
    assert "Enter a code" in (await other.sign_in()).html
    assert starts_session(await sign_in(other, authenticator))


async def test_an_answer_works_once(other: Person, authenticator: SoftwareAuthenticator) -> None:
    asked = await ask(other, SIGN_IN)
    answer = {"state": asked["state"], "credential": authenticator.get(asked["options"])}
    assert starts_session(await other.send(SIGN_IN, {**answer}))
    again = await other.send(SIGN_IN, {**answer})
    assert refuses(again)
    assert "was used or has expired" in again.html
    newer = {**answer, "credential": authenticator.get(asked["options"])}
    assert refuses(await other.send(SIGN_IN, {**newer}))


async def test_a_challenge_is_spent_by_a_wrong_answer(other: Person, authenticator: SoftwareAuthenticator) -> None:
    asked = await ask(other, SIGN_IN)
    assert refuses(await other.send(SIGN_IN, {"state": asked["state"], "credential": "{}"}))
    right = {"state": asked["state"], "credential": authenticator.get(asked["options"])}
    assert refuses(await other.send(SIGN_IN, {**right}))


async def test_a_challenge_belongs_to_one_browser(
    person: Person, other: Person, authenticator: SoftwareAuthenticator, people: People, caller: Caller
) -> None:
    victim = await people.join(caller.organization_id)
    await ask(victim, SIGN_IN)
    asked = await ask(other, SIGN_IN)
    answer = {"state": asked["state"], "credential": authenticator.get(asked["options"])}
    assert refuses(await victim.send(SIGN_IN, {**answer}))
    assert starts_session(await other.send(SIGN_IN, {**answer})), "the other browser has not spent it"
    # Neither a challenge for signing in, nor one of another session, adds a passkey.
    mine = await ask(person, "/dashboard/account/passkeys/request")
    for asked in (await ask(person, SIGN_IN), await ask(victim, "/dashboard/account/passkeys/request")):
        options = {**asked["options"], "user": mine["options"]["user"]}
        made = SoftwareAuthenticator(authenticator.origin).create(options)
        fields = {"name": "x", "password": PASSWORD, "state": asked["state"], "credential": made}
        assert (await person.post(NEW, {**fields})).status == 422


async def test_a_challenge_expires(other: Person, authenticator: SoftwareAuthenticator) -> None:
    asked = await ask(other, SIGN_IN)
    CLOCK.advance(passkeys.CHALLENGE_SECONDS + 1)
    late = {"state": asked["state"], "credential": authenticator.get(asked["options"])}
    assert "has expired" in (await other.send(SIGN_IN, {**late})).html


async def test_forged_answers_are_refused(other: Person, authenticator: SoftwareAuthenticator) -> None:
    stolen = replace(authenticator, key=SoftwareAuthenticator("").key)
    wrong = (
        replace(authenticator, origin="http://localhost.example.com"),
        replace(authenticator, host="example.com"),
        replace(authenticator, flags=PRESENT),
        replace(authenticator, user_id=b"somebody else"),
        replace(authenticator, credential_id=b"unknown"),
        stolen,
    )
    for forged in wrong:
        assert refuses(await sign_in(other, forged)), forged
    for credential in ("", "x", "[]", '{"id": 1}', '{"id": "é", "rawId": "é", "type": "public-key", "response": {}}'):
        state = (await ask(other, SIGN_IN))["state"]
        assert refuses(await other.send(SIGN_IN, {"state": state, "credential": credential}))
    assert starts_session(await sign_in(other, authenticator))


async def test_a_copied_authenticator_is_refused(other: Person, authenticator: SoftwareAuthenticator) -> None:
    copy = replace(authenticator)
    assert starts_session(await sign_in(other, authenticator))
    assert refuses(await sign_in(other, copy)), "its counter has not grown"
    assert starts_session(await sign_in(other, authenticator))


async def test_attempts_are_limited_by_client_address(other: Person, authenticator: SoftwareAuthenticator) -> None:
    for _ in range(20):
        assert refuses(await other.send(SIGN_IN, {"state": "x", "credential": "{}"}))
    refused = await sign_in(other, authenticator)
    assert refused.status == 429
    assert "Too many attempts" in refused.html


async def test_adding_needs_the_password_and_user_verification(person: Person, settings: Settings) -> None:
    new = SoftwareAuthenticator(settings.base_url)
    wrong = await add(person, new, password="not the password")
    assert wrong.status == 422
    assert "password is wrong" in wrong.html
    assert (await add(person, replace(new, flags=PRESENT))).status == 422
    assert (await add(person, new, name=" ")).status == 422
    assert (await add(person, new)).status == 303
    assert "was added already" in (await add(person, new)).html


async def test_the_operator_removes_lost_passkeys(
    other: Person, authenticator: SoftwareAuthenticator, runtime: Runtime
) -> None:
    await runtime.call(second_factors.SecondFactors).reset(other.email)
    assert refuses(await sign_in(other, authenticator))
    assert (await other.sign_in()).status == 303


@pytest.mark.parametrize(
    ("address", "is_usable"),
    [
        ("https://voice.example.com", True),
        ("http://localhost:8000", True),
        ("http://voice.example.com", False),
        ("https://192.0.2.1", False),
        ("http://127.0.0.1:8000", False),
        ("https://[::1]", False),
    ],
)
def test_browsers_need_https_or_localhost(address: str, *, is_usable: bool) -> None:
    assert passkeys.can_have_passkeys(address) is is_usable


@pytest.mark.parametrize("settings", [""], indirect=True)
async def test_pages_say_which_address_passkeys_need(person: Person) -> None:
    assert "SWITCHBOARD_PUBLIC_URL" in (await person.get(NEW)).html
    assert (await person.get(SIGN_IN)).status == 404


async def add_virtual_authenticator(window: Window) -> tuple[CDPSession, str]:
    """Give the browser an authenticator that knows its user."""
    devtools = await window.page.context.new_cdp_session(window.page)
    await devtools.send("WebAuthn.enable")
    options = {"protocol": "ctap2", "transport": "internal", "hasResidentKey": True, "hasUserVerification": True}
    added = await devtools.send("WebAuthn.addVirtualAuthenticator", {"options": {**options, "isUserVerified": True}})
    return devtools, str(added["authenticatorId"])


async def test_passkeys_in_a_browser(window: Window) -> None:
    page = window.page
    devtools, authenticator = await add_virtual_authenticator(window)
    await window.open(ACCOUNT)
    await page.get_by_role("link", name="Add a passkey").click()
    await page.get_by_label("Name").fill("Laptop")
    await page.get_by_label("Password").fill(PASSWORD)
    await window.check_accessibility()
    await page.get_by_role("button", name="Add").click()
    await page.get_by_text("The passkey was added").wait_for()
    await window.check_accessibility()
    # Without the presence of a person, the suggestion below the e-mail address does not answer by itself.
    presence = {"authenticatorId": authenticator, "enabled": False}
    await devtools.send("WebAuthn.setAutomaticPresenceSimulation", presence)
    await page.get_by_role("button", name="Sign out").click()
    button = page.get_by_role("button", name="Sign in with a passkey")
    await button.wait_for()
    await window.check_accessibility()
    await devtools.send("WebAuthn.setAutomaticPresenceSimulation", {**presence, "enabled": True})
    await button.click()
    await page.get_by_role("heading", name="Overview").wait_for()
    async with page.expect_response(lambda answer: answer.request.method == "POST" and answer.url.endswith(SIGN_IN)):
        await page.get_by_role("button", name="Sign out").click()
    await page.get_by_role("heading", name="Overview").wait_for()
    await window.open(ACCOUNT)
    await window.press("Remove")
    await page.get_by_text("The passkey was removed").wait_for()
