"""The account of one address, under a stranger who owns an organization, the person of the address, an owner who wants
the person to join another organization, and the operator, in any order.
"""

import re
from contextlib import AsyncExitStack
from typing import ClassVar, Final
from urllib.parse import urlsplit
from uuid import UUID, uuid4

import pyotp
import pytest
from argon2 import PasswordHasher
from hypothesis import strategies
from hypothesis.stateful import initialize, invariant, rule
from pydantic import SecretStr
from quart import Quart
from sqlalchemy import update
from sqlmodel import col
from switchboard.apps.embedded import DataDirectory
from switchboard.apps.server import app
from switchboard.plugin_sdk.registry import Registry
from switchboard.resources.identity import passwords
from switchboard.resources.identity import service as identity
from switchboard.resources.identity.models import Organization
from switchboard.resources.identity.password_links import PasswordLinks

from tests.dashboard.test_passkeys import add as add_passkey
from tests.dashboard.test_passkeys import sign_in as sign_in_with_passkey
from tests.dashboard.test_second_factor import PAGE as SECOND_FACTOR
from tests.dashboard.test_second_factor import starts_session
from tests.dashboard.test_single_sign_on import Provider, serve_provider
from tests.fixtures.app import UNKNOWN_ID
from tests.fixtures.dashboard import PASSWORD, PageResponse, Person, create_person
from tests.fixtures.free_ports import find_free_port
from tests.fixtures.mail import MailServer, serve_mail
from tests.fixtures.software_authenticator import SoftwareAuthenticator
from tests.machines.machine import PlatformMachine, play

THEIRS, STRANGERS = "Wanted", "Unwanted"
OWN_PASSWORD: Final = "a password of the person"
INVITATION: Final = re.compile(r"/dashboard/invitations/[\w-]+")
REMOVAL: Final = re.compile(r"/dashboard/team/[\w-]+/remove")
CHEAP: Final = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)


class AccountMachine(PlatformMachine):
    """One address. The stranger sees what the stranger's organization shows; the person has the mailbox, and whatever
    the owner and the operator hand over.
    """

    mail: ClassVar[MailServer]
    provider: ClassVar[Provider]
    application: ClassVar[Quart | None] = None

    @classmethod
    async def prepare(cls, stack: AsyncExitStack) -> dict[str, object]:
        cls.mail = await stack.enter_async_context(serve_mail())
        cls.application = None
        cls.provider = Provider(issuer=f"http://127.0.0.1:{find_free_port()}")
        await stack.enter_async_context(serve_provider(cls.provider))
        return {
            "smtp_url": SecretStr(f"smtp://127.0.0.1:{cls.mail.port}"),
            "oidc_issuer": cls.provider.issuer,
            "public_url": "http://localhost:8000",
        }

    @classmethod
    def open_application(cls) -> Quart:
        """Return the application of all examples: creating one takes longer than many steps."""
        cls.application = cls.application or app.create_app(cls.runtime)
        return cls.application

    async def begin(self) -> None:
        self.email = f"{uuid4().hex[:12]}@example.com"
        async with self.runtime.database.system() as session:
            self.strangers_id: UUID = identity.create_organization(session, name=STRANGERS).id
            named = update(Organization).where(col(Organization.id) == self.organization_id)
            await session.exec(named.values(name=THEIRS))
        self.owner, self.stranger = [
            await create_person(self.runtime, self.open_application().test_client(), organization_id)
            for organization_id in (self.organization_id, self.strangers_id)
        ]
        for owner in (self.owner, self.stranger):
            assert starts_session(await owner.sign_in())
        self.strangers_browsers: list[Person] = []
        self.strangers_passkeys: list[SoftwareAuthenticator] = []
        self.persons_links: list[str] = []

    def open_browser(self) -> Person:
        return Person(UNKNOWN_ID, self.email, self.open_application().test_client())  # type: ignore[arg-type]

    async def sees_theirs(self, browser: Person) -> bool:
        return f"<strong>{THEIRS}</strong>" in (await browser.get("/dashboard/organizations")).html

    async def open_link(self, link: str, browser: Person, password: str) -> PageResponse:
        """Submit the form of an invitation, or of a new password, as a browser does."""
        path = urlsplit(link).path
        found = re.search(r'name="csrf_token" value="(\w+)"', (await browser.get(path)).html)
        return await browser.send(path, {"password": password, **({"csrf_token": found[1]} if found else {})})

    async def invite(self, owner: Person, *, by_mail: bool) -> str:
        """Invite the address, and return the link, from the e-mail or the page."""
        before = len(self.mail.messages)
        self.mail.refused = set() if by_mail else {self.email}
        page = (await owner.post("/dashboard/team", {"email": self.email, "role": "owner"})).html
        shown = INVITATION.search(page)
        assert (shown is None) == by_mail, f"only the link of an e-mail is not shown: {page}"
        assert len(self.mail.messages) == before + by_mail
        found = shown or INVITATION.search(self.mail.messages[-1].get_content())
        assert found
        return found[0]

    async def remove(self, owner: Person) -> None:
        page = (await owner.get("/dashboard/team")).html
        removal = REMOVAL.search(page.partition(f"<strong>{self.email}")[2]) if self.email in page else None
        if removal is not None:
            await owner.post(removal[0])

    @initialize(planted=strategies.sampled_from(((), ("passkey",), ("app",), ("passkey", "app"), None)))
    def stranger_plants_an_account(self, planted: tuple[str, ...] | None) -> None:
        """Most lives begin so: what comes later matters."""
        if planted is not None:
            self.stranger_takes_the_address()
            for kind in planted:
                self.stranger_enrolls(kind)

    @rule()
    def stranger_takes_the_address(self) -> None:
        """Accept an invitation of the stranger's organization, in a new browser and in one that is signed in."""
        for browser in (self.open_browser(), *self.strangers_browsers[-1:]):
            self.run(self.redis_forgets())
            link = self.run(self.invite(self.stranger, by_mail=False))
            if starts_session(self.run(self.open_link(link, browser, PASSWORD))):
                self.strangers_browsers.append(browser)

    @rule(kind=strategies.sampled_from(("passkey", "app")))
    def stranger_enrolls(self, kind: str) -> None:
        for browser in self.strangers_browsers[-1:]:
            self.run(self.enroll(browser, kind))

    @rule()
    def stranger_signs_in_with_what_was_planted(self) -> None:
        self.run(self.try_planted())

    @rule()
    def stranger_asks_for_e_mails(self) -> None:
        """The person gets an invitation, and then a link for a new password."""
        self.persons_links.append(self.run(self.invite(self.stranger, by_mail=True)))
        self.run(self.send_password_link())

    @rule(by=strategies.sampled_from(("stranger", "owner")))
    def member_is_removed(self, by: str) -> None:
        self.run(self.remove(self.stranger if by == "stranger" else self.owner))

    @rule(by_mail=strategies.booleans(), password=strategies.sampled_from((None, PASSWORD, OWN_PASSWORD)))
    def person_is_invited(self, by_mail: bool, password: str | None) -> None:
        """Open the link, by e-mail or from the owner, in a new browser, or signed in with the person's password or with
        one that the stranger has told the person.
        """
        browser = self.open_browser()
        if password is not None:
            self.run(browser.sign_in(password))
        self.persons_links.append(self.run(self.invite(self.owner, by_mail=by_mail)))
        self.run(self.open_link(self.persons_links[-1], browser, OWN_PASSWORD))

    @rule()
    def person_opens_an_older_link(self) -> None:
        if self.persons_links:
            self.run(self.open_link(self.persons_links[-1], self.open_browser(), OWN_PASSWORD))

    @rule()
    def person_signs_in_at_the_provider(self) -> None:
        async def sign_in(browser: Person) -> None:
            self.provider.email = self.email
            begun = await browser.get("/dashboard/sign-in/single-sign-on")
            await browser.get(self.provider.consent(begun.location))

        self.run(sign_in(self.open_browser()))

    @rule()
    def operator_confirms(self) -> None:
        """The operator hands the link to the person."""

        async def confirm() -> None:
            try:
                self.persons_links.append(await self.runtime.call(PasswordLinks).confirm(self.email))
            except identity.IdentityError:
                """There is no account, or it is confirmed."""

        self.run(confirm())

    @invariant()
    def the_stranger_is_kept_out(self) -> None:
        async def look() -> None:
            await self.redis_forgets()
            for browser in self.strangers_browsers:
                assert not await self.sees_theirs(browser)

        self.run(look())

    async def redis_forgets(self) -> None:
        """Empty Redis: attempts are limited, which would refuse what must be refused anyway."""
        await self.runtime.redis.flushdb()

    async def enroll(self, browser: Person, kind: str) -> None:
        """Add a passkey or an authenticator app to the account of a browser, if it is still signed in."""
        if (await browser.get(SECOND_FACTOR)).status != 200:
            return
        if kind == "passkey":
            authenticator = SoftwareAuthenticator(self.runtime.settings.base_url)
            if (await add_passkey(browser, authenticator)).status == 303:
                self.strangers_passkeys.append(authenticator)
        else:
            secret = pyotp.random_base32()
            fields = {"secret": secret, "code": pyotp.TOTP(secret).now(), "password": PASSWORD}
            await browser.post(SECOND_FACTOR, {**fields})

    async def send_password_link(self) -> None:
        try:
            link = await self.runtime.call(PasswordLinks).create(self.email)
        except identity.IdentityError:
            return
        self.persons_links.append(link)

    async def try_planted(self) -> None:
        """Sign in with each credential of the stranger."""
        attempts = [(None, self.open_browser()), *((key, self.open_browser()) for key in self.strangers_passkeys)]
        for passkey, browser in attempts:
            entered = await (sign_in_with_passkey(browser, passkey) if passkey else browser.sign_in(PASSWORD))
            if starts_session(entered):
                self.strangers_browsers.append(browser)

    async def _end(self) -> None:
        """The person can always join by an e-mail, and then the stranger is still kept out."""
        link, browser = await self.invite(self.owner, by_mail=True), self.open_browser()
        await self.open_link(link, browser, OWN_PASSWORD)
        if not await self.sees_theirs(browser):
            reset = await self.runtime.call(PasswordLinks).create(self.email)
            await self.open_link(reset, browser, OWN_PASSWORD)
            assert starts_session(await browser.sign_in(OWN_PASSWORD)), "nothing of the stranger's asks for a code"
            await self.open_link(link, browser, OWN_PASSWORD)
        assert await self.sees_theirs(browser)
        await self.try_planted()
        for planted in self.strangers_browsers:
            assert not await self.sees_theirs(planted)
        await self.deleter.execute("delete from organization where id = $1", self.strangers_id)
        await super()._end()


def test_only_who_has_proven_the_address_acts_for_it(
    servers: DataDirectory, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passwords, "HASHER", CHEAP)
    play(AccountMachine, servers, registry, examples=6, steps=8)
