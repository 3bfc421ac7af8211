"""Accounts of addresses that nobody has proven: a stranger makes one, and the person of the address comes later."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final
from urllib.parse import urlencode
from uuid import uuid4

import pytest
import pytest_asyncio
from pydantic import SecretStr
from sqlmodel import SQLModel, col, func, select, text, update
from switchboard.apps.server import app
from switchboard.foundation.database import SystemSession, now
from switchboard.foundation.settings import Settings
from switchboard.resources.identity.email_verification import verify_email
from switchboard.resources.identity.models import Organization, User, UserSession
from switchboard.runtime import Runtime

from tests.dashboard.test_passkeys import add as add_passkey
from tests.dashboard.test_passkeys import sign_in as sign_in_with_passkey
from tests.dashboard.test_second_factor import Phone, enter, starts_session
from tests.dashboard.test_single_sign_on import Provider, serve_provider
from tests.fixtures.app import UNKNOWN_ID, Caller
from tests.fixtures.command_line import Operator
from tests.fixtures.dashboard import PASSWORD, PageResponse, People, Person
from tests.fixtures.eventually import eventually
from tests.fixtures.mail import MailServer, serve_mail
from tests.fixtures.oauth import Application, parse_redirect
from tests.fixtures.software_authenticator import SoftwareAuthenticator

THEIRS, STRANGERS = "Wanted", "Unwanted"
"""Names of the organizations of the owner, and of the stranger, which comes first in the list."""
OWN_PASSWORD: Final = "a password of the person"
INVITATION: Final = re.compile(r"/dashboard/invitations/[\w-]+")
PASSWORD_LINK: Final = re.compile(r"/dashboard/new-password/[\w.-]+")
pytestmark = pytest.mark.usefixtures("running_worker")


@pytest_asyncio.fixture
async def mail() -> AsyncIterator[MailServer]:
    async with serve_mail() as server:
        yield server


@pytest_asyncio.fixture
async def provider(unused_tcp_port: int) -> AsyncIterator[Provider]:
    provider = Provider(issuer=f"http://127.0.0.1:{unused_tcp_port}")
    async with serve_provider(provider):
        yield provider


@pytest.fixture
def settings(settings: Settings, mail: MailServer, provider: Provider) -> Settings:
    """Settings with a mail server, an identity provider, and an address that can have passkeys."""
    changes = {
        "smtp_url": SecretStr(f"smtp://127.0.0.1:{mail.port}"),
        "oidc_issuer": provider.issuer,
        "public_url": f"http://localhost:{settings.port}",
    }
    return settings.model_copy(update=changes)


def find_link(pattern: re.Pattern[str], content: str) -> str:
    found = pattern.search(content)
    assert found, content
    return found[0]


@dataclass(slots=True)
class Scene:
    """A stranger, who owns an organization, and an owner of another one, who wants the person to join."""

    runtime: Runtime
    mail: MailServer
    provider: Provider
    people: People
    owner: Person
    stranger: Person
    email: str = field(default_factory=lambda: f"{uuid4().hex[:12]}@example.com")

    def open_browser(self) -> Person:
        """Return a browser in which nobody is signed in, to sign in with the person's address."""
        return Person(UNKNOWN_ID, self.email, app.create_app(self.runtime).test_client())  # type: ignore[arg-type]

    async def invite_by_shown_link(self, owner: Person) -> str:
        """Invite the person while the mail server refuses the address; return the link that the page shows."""
        self.mail.refused.add(self.email)
        page = await owner.post("/dashboard/team", {"email": self.email, "role": "owner"})
        self.mail.refused.clear()
        return find_link(INVITATION, page.html)

    async def invite_by_mail(self, owner: Person) -> str:
        """Invite the person, and return the link of the e-mail."""
        page = await owner.post("/dashboard/team", {"email": self.email, "role": "owner"})
        assert not INVITATION.search(page.html)
        return find_link(INVITATION, self.mail.messages[-1].get_content())

    async def plant_account(self) -> Person:
        """Create the person's account as the stranger; return the stranger's browser."""
        browser = self.open_browser()
        link = await self.invite_by_shown_link(self.stranger)
        assert starts_session(await browser.send(link, {"password": PASSWORD}))
        return browser

    async def read_password_link(self) -> str:
        """Ask for a new password, and return the link of the e-mail."""
        before = len(self.mail.messages)
        await self.open_browser().send("/dashboard/forgotten-password", {"email": self.email})

        async def is_sent() -> bool:
            return len(self.mail.messages) > before

        await eventually(is_sent)
        return find_link(PASSWORD_LINK, self.mail.messages[-1].get_content())

    async def sign_in_at_provider(self, browser: Person) -> PageResponse:
        self.provider.email = self.email
        begun = await browser.get("/dashboard/sign-in/single-sign-on")
        return await browser.get(self.provider.consent(begun.location))

    async def sees_theirs(self, browser: Person) -> bool:
        """Return whether a browser may act in the organization of the owner."""
        return f"<strong>{THEIRS}</strong>" in (await browser.get("/dashboard/organizations")).html


@pytest_asyncio.fixture
async def owners(runtime: Runtime, people: People, caller: Caller, stranger: Caller) -> tuple[Person, Person]:
    """The owner, and the stranger."""
    async with runtime.database.system() as session:
        for organization_id, name in ((caller.organization_id, THEIRS), (stranger.organization_id, STRANGERS)):
            await session.exec(update(Organization).where(col(Organization.id) == organization_id).values(name=name))
    return await people.join(caller.organization_id), await people.join(stranger.organization_id)


@pytest_asyncio.fixture
async def scene(
    runtime: Runtime, mail: MailServer, provider: Provider, people: People, owners: tuple[Person, Person]
) -> Scene:
    return Scene(runtime, mail, provider, people, *owners)


async def choose_by_mail(scene: Scene, browser: Person) -> None:
    """Choose a new password by e-mail, sign in, and accept an invitation."""
    await browser.send(await scene.read_password_link(), {"password": OWN_PASSWORD})
    assert starts_session(await browser.sign_in(OWN_PASSWORD)), "no code is asked for"
    assert (await browser.post(await scene.invite_by_mail(scene.owner))).location == "/dashboard"


async def open_invitation(scene: Scene, browser: Person) -> None:
    """Open the invitation of the e-mail, and choose a password."""
    link = await scene.invite_by_mail(scene.owner)
    assert "resets its account" in (await browser.get(link)).html
    short = await browser.send(link, {"password": "short"})
    assert "at least 10 characters" in short.html
    assert starts_session(await browser.send(link, {"password": OWN_PASSWORD}))
    assert scene.owner.email in (await browser.get("/dashboard/team")).html, "the organization of the invitation"


async def use_single_sign_on(scene: Scene, browser: Person) -> None:
    """Sign in through the identity provider, which accepts every invitation."""
    await scene.invite_by_mail(scene.owner)
    assert starts_session(await scene.sign_in_at_provider(browser))


async def ask_operator(scene: Scene, browser: Person) -> None:
    """Have the operator confirm the address, choose a password by the operator's link, and accept an invitation."""
    operator = await scene.people.join(None, superadmin=True)
    search = f"/dashboard/console/users?search={scene.email}"
    page = (await operator.get(search)).html
    assert "not confirmed" in page
    shown = await operator.post(find_link(re.compile(r"/dashboard/console/users/[\w-]+/confirm"), page))
    assert "not confirmed" not in (await operator.get(search)).html
    await browser.send(find_link(PASSWORD_LINK, shown.html), {"password": OWN_PASSWORD})
    assert starts_session(await browser.sign_in(OWN_PASSWORD))
    link = await scene.invite_by_shown_link(scene.owner)
    assert (await browser.post(link)).location == "/dashboard"


async def approve(browser: Person, application: Application) -> PageResponse:
    """Let an application act for the account."""
    consent = f"/oauth/authorize?{urlencode(application.request())}"
    organization_id = str(application.caller.organization_id)
    return await browser.post(consent, {"decision": "approve", "organization_id": organization_id})


@pytest.mark.parametrize("prove_address", [choose_by_mail, open_invitation, use_single_sign_on, ask_operator])
async def test_a_proof_drops_what_a_stranger_has_enrolled(
    scene: Scene,
    application: Application,
    stranger: Caller,
    prove_address: Callable[[Scene, Person], Awaitable[None]],
) -> None:
    planted, again, person = await scene.plant_account(), scene.open_browser(), scene.open_browser()
    authenticator = SoftwareAuthenticator(scene.runtime.settings.base_url)
    assert (await add_passkey(planted, authenticator)).status == 303
    phone = await Phone.set_up(planted)
    waiting = re.search(r'name="proof" value="([\w.-]+)"', (await again.sign_in()).html)
    assert waiting, "a sign-in that waits for its code"
    application.caller = stranger
    code = parse_redirect((await approve(planted, application)).location)["code"]
    tokens = (await application.redeem(code)).json

    await prove_address(scene, person)

    assert await scene.sees_theirs(person)
    page = (await person.get("/dashboard/organizations")).html
    assert f"<strong>{STRANGERS}</strong>" in page, "an owner of it has invited the address"
    phone.show_next_code()
    assert (await planted.get("/dashboard")).status == 303, "the session has ended"
    assert not starts_session(await again.sign_in()), "the password is another"
    assert not starts_session(await sign_in_with_passkey(again, authenticator))
    for code in (phone.recovery_codes[0], phone.code):
        fields = {"proof": waiting[1], "code": code, "after": ""}
        assert not starts_session(await again.send("/dashboard/sign-in/code", {**fields}))
    assert (
        await application.build_caller({"access_token": str(tokens["access_token"])}).get("/v1/agents")
    ).status == 401
    assert (await application.refresh(tokens["refresh_token"])).status == 400
    entries = await scene.people.list_audit_entries(stranger.organization_id)
    assert [action for _, action, _ in entries].count("user.email_verified") == 1


async def test_an_unproven_account_joins_no_second_organization(scene: Scene) -> None:
    planted = await scene.plant_account()
    link = await scene.invite_by_shown_link(scene.owner)
    for browser in (planted, scene.open_browser()):
        assert "its account belongs to one organization only" in (await browser.get(link)).html
        refused = await (browser.post if browser is planted else browser.send)(link, {"password": PASSWORD})
        assert refused.status == 422
        assert "ask whoever runs this installation" in refused.html
    assert not await scene.sees_theirs(planted)
    # The refusal spoils nothing: the person proves the address, and opens the link again.
    person = scene.open_browser()
    await person.send(await scene.read_password_link(), {"password": OWN_PASSWORD})
    await person.sign_in(OWN_PASSWORD)
    assert (await person.post(link)).location == "/dashboard"
    assert await scene.sees_theirs(person)
    # A second proof takes nothing from a proven account: a mailbox alone is no second factor.
    other = scene.open_browser()
    phone = await Phone.set_up(person, OWN_PASSWORD)
    await other.send(await scene.read_password_link(), {"password": PASSWORD})
    phone.show_next_code()
    assert starts_session(await enter(other, phone.code))


async def test_an_account_without_an_organization_is_replaced(scene: Scene) -> None:
    planted = await scene.plant_account()
    authenticator = SoftwareAuthenticator(scene.runtime.settings.base_url)
    assert (await add_passkey(planted, authenticator)).status == 303
    removal = find_link(
        re.compile(r"/dashboard/team/[\w-]+/remove"),
        (await scene.stranger.get("/dashboard/team")).html.partition(scene.email)[2],
    )
    assert (await scene.stranger.post(removal)).status == 303
    link, person = await scene.invite_by_shown_link(scene.owner), scene.open_browser()
    assert (await person.send(link, {"password": OWN_PASSWORD})).location == "/dashboard"
    assert await scene.sees_theirs(person)
    assert (await planted.get("/dashboard")).status == 303
    for entered in (
        await planted.sign_in(),
        await sign_in_with_passkey(planted, authenticator),
    ):
        assert not starts_session(entered)
    # The new account is as unproven: it joins nothing else.
    third = await scene.invite_by_shown_link(scene.stranger)
    assert (await person.post(third, {"password": OWN_PASSWORD})).status == 422


async def change_password(session: SystemSession, user: User) -> None:
    user.password_hash = "another"


async def prove(session: SystemSession, user: User) -> None:
    await verify_email(session, user)


class TestRaces:
    """Requests of a stranger that the database holds up while the person changes the account."""

    @pytest.fixture
    def waits(self, scene: Scene) -> Callable[[], Awaitable[bool]]:
        async def count() -> bool:
            waiting = select(func.count()).select_from(text("pg_locks")).where(text("not granted"))
            async with scene.runtime.database.system() as session:
                return (await session.exec(waiting)).one() > 0

        return count

    async def race(
        self,
        scene: Scene,
        request: Awaitable[PageResponse],
        waits: Callable[[], Awaitable[bool]],
        change: Callable[[SystemSession, User], Awaitable[None]] = change_password,
    ) -> PageResponse:
        """Change the account while a request waits for its row; return the response."""
        rows = select(User).where(col(User.email) == scene.email)
        async with scene.runtime.database.system() as session:
            user = (await session.exec(rows.with_for_update())).one()
            sent = asyncio.ensure_future(request)
            await eventually(waits)
            await change(session, user)
        return await sent

    async def test_a_sign_in_with_the_old_password(self, scene: Scene, waits: Callable[[], Awaitable[bool]]) -> None:
        await scene.plant_account()
        assert not starts_session(await self.race(scene, scene.open_browser().sign_in(), waits))

    async def test_a_passkey(self, scene: Scene, waits: Callable[[], Awaitable[bool]]) -> None:
        planted = await scene.plant_account()
        authenticator = SoftwareAuthenticator(scene.runtime.settings.base_url)
        assert (await self.race(scene, add_passkey(planted, authenticator), waits)).status == 422
        assert not starts_session(await sign_in_with_passkey(scene.open_browser(), authenticator))

    async def test_a_new_password(self, scene: Scene, waits: Callable[[], Awaitable[bool]]) -> None:
        planted = await scene.plant_account()
        change = planted.post("/dashboard/account/password", {"current": PASSWORD, "new": OWN_PASSWORD})
        assert (await self.race(scene, change, waits)).status == 422
        assert not starts_session(await scene.open_browser().sign_in(OWN_PASSWORD))

    async def test_an_application(
        self, scene: Scene, waits: Callable[[], Awaitable[bool]], application: Application, stranger: Caller
    ) -> None:
        planted = await scene.plant_account()
        application.caller = stranger
        approval = approve(planted, application)
        assert (await self.race(scene, approval, waits, prove)).status == 400


async def test_the_operator_confirms_on_the_command_line(scene: Scene, operator: Operator, caller: Caller) -> None:
    planted = await scene.plant_account()
    adding = ("users", "add", "--email", scene.email, "--org", str(caller.organization_id))
    refused = await asyncio.to_thread(operator.run, *adding)
    assert refused.returncode == 1
    assert "switchboard users confirm" in refused.stderr
    shown = await asyncio.to_thread(operator.ask, "users", "confirm", "--email", scene.email)
    assert (await planted.get("/dashboard")).status == 303
    assert not starts_session(await planted.sign_in())
    assert (await asyncio.to_thread(operator.run, *adding)).returncode == 0
    again = await asyncio.to_thread(operator.run, "users", "confirm", "--email", scene.email)
    assert (again.returncode, again.stdout) == (1, "")
    assert "is confirmed already" in again.stderr
    person = scene.open_browser()
    await person.send(find_link(PASSWORD_LINK, shown["link"]), {"password": OWN_PASSWORD})
    assert starts_session(await person.sign_in(OWN_PASSWORD))
    assert await scene.sees_theirs(person)


def test_the_database_deletes_everything_that_refers_to_a_user() -> None:
    references = [
        (key.parent.table.name, key.ondelete)
        for table in SQLModel.metadata.tables.values()
        for key in table.foreign_keys
        if key.column.table.name == User.__tablename__
    ]
    assert {"passkey", "authenticator_app", "recovery_code", "user_session", "oauth_grant"} <= {
        name for name, _ in references
    }
    assert {rule for _, rule in references} == {"CASCADE"}


async def test_a_first_password_needs_a_recent_sign_in(scene: Scene) -> None:
    await scene.invite_by_mail(scene.owner)
    person = scene.open_browser()
    await scene.sign_in_at_provider(person)
    rows = update(UserSession).where(
        col(UserSession.user_id).in_(select(User.id).where(col(User.email) == scene.email))
    )
    async with scene.runtime.database.system() as session:
        await session.exec(rows.values(created_at=now() - timedelta(minutes=11)))
    assert "sign in again" in (await person.get("/dashboard/account")).html
    assert (await person.post("/dashboard/account/password", {"new": OWN_PASSWORD})).status == 422
    assert not starts_session(await scene.open_browser().sign_in(OWN_PASSWORD))
    await scene.sign_in_at_provider(person)
    assert 'name="new"' in (await person.get("/dashboard/account")).html
    assert (await person.post("/dashboard/account/password", {"new": OWN_PASSWORD})).status == 303
    assert starts_session(await scene.open_browser().sign_in(OWN_PASSWORD))
