"""Signing in with a second factor: codes of an authenticator app, and recovery codes."""

import re

import pyotp
import pytest
import pytest_asyncio
from switchboard.apps.dashboard.sign_in_limits import PER_CODE
from switchboard.apps.server import app
from switchboard.foundation.database import now
from switchboard.resources.identity import second_factors
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller
from tests.fixtures.dashboard import PASSWORD, PageResponse, People, Person, Window
from tests.fixtures.virtual_clock import CLOCK

PAGE = "/dashboard/account/second-factor"


class Phone:
    """A person's authenticator app, which knows the secret of the page."""

    def __init__(self, person: Person, secret: str) -> None:
        self.person, self._app = person, pyotp.TOTP(secret)
        self.recovery_codes: list[str] = []

    @classmethod
    async def set_up(cls, person: Person, password: str = PASSWORD) -> "Phone":
        """Turn the second factor of a signed-in person on, when a code has just begun to be valid."""
        CLOCK.advance(-now().timestamp() % second_factors.STEP_SECONDS + 1)
        page = await person.get(PAGE)
        secret = re.search(r'name="secret" value="(\w+)"', page.html)
        assert secret
        phone = cls(person, secret[1])
        shown = await person.post(PAGE, {"secret": secret[1], "code": phone.code, "password": password})
        phone.recovery_codes = re.findall(r"<li><code>([\w-]+)</code>", shown.html)
        return phone

    @property
    def code(self) -> str:
        return self._app.at(now())

    def show_next_code(self) -> None:
        CLOCK.advance(second_factors.STEP_SECONDS)


def starts_session(page: PageResponse) -> bool:
    return any(cookie.startswith("switchboard=") for cookie in page.headers.getlist("Set-Cookie"))


async def enter(other: Person, code: str, *, after_seconds: float = 0.0) -> PageResponse:
    """Sign in with the right password, and some seconds later a code."""
    page = await other.sign_in()
    assert page.status == 200
    assert "Enter a code" in page.html
    assert not starts_session(page)
    proof = re.search(r'name="proof" value="([\w.-]+)"', page.html)
    assert proof
    CLOCK.advance(after_seconds)
    return await other.send("/dashboard/sign-in/code", {"proof": proof[1], "code": code, "after": "/dashboard/keys"})


@pytest_asyncio.fixture
async def phone(people: People, caller: Caller) -> Phone:
    return await Phone.set_up(await people.join(caller.organization_id))


@pytest.fixture
def other(phone: Phone, runtime: Runtime) -> Person:
    """Another browser of the person."""
    return Person(phone.person.user_id, phone.person.email, app.create_app(runtime).test_client())


async def test_a_code_is_asked_for_after_the_password(phone: Phone, other: Person) -> None:
    assert len(phone.recovery_codes) == second_factors.RECOVERY_CODES
    assert "10 recovery codes are left" in (await phone.person.get("/dashboard/account")).html
    wrong = await enter(other, "000000")
    assert wrong.status == 422
    assert "This code is wrong" in wrong.html
    assert (await other.get("/dashboard")).status == 303
    phone.show_next_code()
    entered = await enter(other, f"{phone.code[:3]} {phone.code[3:]}")
    assert entered.location == "/dashboard/keys"
    assert starts_session(entered)
    assert (await other.get("/dashboard")).status == 200


async def test_a_code_works_once_and_for_a_minute(phone: Phone, other: Person) -> None:
    assert (await enter(other, phone.code)).status == 422, "it turned the second factor on"
    phone.show_next_code()
    code = phone.code
    assert (await enter(other, code)).status == 303
    assert (await enter(other, code)).status == 422
    phone.show_next_code()
    late = phone.code
    CLOCK.advance(60)
    assert (await enter(other, late)).status == 422


async def test_a_recovery_code_works_once(phone: Phone, other: Person) -> None:
    code = phone.recovery_codes[3]
    assert (await enter(other, code.upper())).status == 303
    assert (await enter(other, code)).status == 422
    assert "9 recovery codes are left" in (await other.get(PAGE)).html


async def test_codes_are_counted_for_each_user(phone: Phone, other: Person) -> None:
    for _ in range(PER_CODE.burst):
        assert (await enter(other, "000000")).status == 422
    phone.show_next_code()
    refused = await enter(other, phone.code)
    assert refused.status == 422
    assert "Too many codes" in refused.html


async def test_a_proof_is_not_forged_and_expires(phone: Phone, other: Person) -> None:
    phone.show_next_code()
    forged = await other.send("/dashboard/sign-in/code", {"proof": "x", "code": phone.code, "after": ""})
    assert forged.status == 422
    old = await enter(other, phone.code, after_seconds=second_factors.PROOF_SECONDS + 1)
    assert old.status == 422
    assert "This sign-in has expired" in old.html


async def test_a_code_without_the_right_secret_or_the_password_turns_nothing_on(people: People, caller: Caller) -> None:
    person = await people.join(caller.organization_id)
    for secret in (pyotp.random_base32(), "short", ""):
        refused = await person.post(PAGE, {"secret": secret, "code": "000000", "password": PASSWORD})
        assert refused.status == 422
    secret = pyotp.random_base32()
    right = {"secret": secret, "code": pyotp.TOTP(secret).at(now())}
    for wrong in ({}, {"password": ""}, {"password": "not the password"}):
        refused = await person.post(PAGE, {**right, **wrong})
        assert refused.status == 422
        assert f'value="{secret}"' in refused.html, "the app that has scanned it still fits"
    assert (await person.sign_in()).status == 303


async def test_the_second_factor_is_removed_with_a_code(
    phone: Phone, other: Person, people: People, caller: Caller
) -> None:
    assert (await phone.person.post(f"{PAGE}/remove", {"code": "000000"})).status == 422
    phone.show_next_code()
    assert (await phone.person.post(f"{PAGE}/remove", {"code": phone.code})).location == "/dashboard/account"
    assert (await other.sign_in()).status == 303
    actions = [action for _, action, _ in await people.list_audit_entries(caller.organization_id)]
    assert actions[-2:] == ["user.second_factor_added", "user.second_factor_removed"]


async def test_the_operator_resets_a_lost_second_factor(phone: Phone, other: Person, runtime: Runtime) -> None:
    await runtime.call(second_factors.SecondFactors).reset(other.email)
    assert (await other.sign_in()).status == 303


async def test_it_is_set_up_in_a_browser(window: Window) -> None:
    page = window.page
    await window.open("/dashboard/account")
    email = await page.get_by_text(re.compile(r"^\w+@example.com$")).first.inner_text()
    await page.get_by_role("link", name="Set up an authenticator app").click()
    await page.get_by_alt_text("QR code").wait_for()
    await window.check_accessibility()
    secret = await page.locator("#key").inner_text()
    await page.get_by_label("Code that the app shows").fill(pyotp.TOTP(secret).now())
    await page.get_by_label("Password").fill(PASSWORD)
    await page.get_by_role("button", name="Turn on").click()
    await page.get_by_role("heading", name="Save these recovery codes").wait_for()
    await window.check_accessibility()
    code = await page.locator(".codes code").first.inner_text()
    await page.get_by_role("button", name="Sign out").click()
    await page.get_by_label("Password").wait_for()
    await window.check_accessibility()
    await page.get_by_label("E-mail address").fill(email)
    await page.get_by_label("Password").fill(PASSWORD)
    await page.get_by_role("button", name="Sign in", exact=True).click()
    await page.get_by_role("heading", name="Enter a code").wait_for()
    await window.check_accessibility()
    await page.get_by_label("Code").fill(code)
    await page.get_by_role("button", name="Sign in", exact=True).click()
    await page.get_by_role("heading", name="Overview").wait_for()
