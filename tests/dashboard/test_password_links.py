"""New passwords and invitations by e-mail."""

import re
from collections.abc import AsyncIterator
from email.message import EmailMessage
from uuid import uuid4

import pytest
import pytest_asyncio
from pydantic import SecretStr
from switchboard.apps.dashboard.pages.sign_in import LINKS_PER_ACCOUNT
from switchboard.apps.server import app
from switchboard.foundation.settings import Settings
from switchboard.resources.identity.models import User
from switchboard.resources.identity.password_links import LINK_SECONDS, PasswordLinks
from switchboard.runtime import Runtime

from tests.fixtures.app import UNKNOWN_ID, Caller, Client
from tests.fixtures.dashboard import PASSWORD, People, Person, create_person
from tests.fixtures.eventually import eventually
from tests.fixtures.mail import MailServer, serve_mail
from tests.fixtures.virtual_clock import CLOCK

NEW_PASSWORD = "another long password"
pytestmark = pytest.mark.usefixtures("running_worker")
FORGOTTEN = "/dashboard/forgotten-password"


@pytest_asyncio.fixture
async def mail() -> AsyncIterator[MailServer]:
    async with serve_mail() as server:
        yield server


@pytest.fixture
def settings(settings: Settings, mail: MailServer) -> Settings:
    return settings.model_copy(update={"smtp_url": SecretStr(f"smtp://127.0.0.1:{mail.port}")})


@pytest_asyncio.fixture
async def owner(runtime: Runtime, caller: Caller) -> Person:
    return await create_person(runtime, app.create_app(runtime).test_client(), caller.organization_id)


def create_browser(runtime: Runtime) -> Person:
    return Person(UNKNOWN_ID, "", app.create_app(runtime).test_client())  # type: ignore[arg-type]


async def receive_link(runtime: Runtime, mail: MailServer, email: str) -> str:
    """Ask for a link as somebody who is not signed in, and return the path of the one that is sent."""
    before = len(mail.messages)
    browser = create_browser(runtime)
    assert (await browser.send(FORGOTTEN, {"email": email})).status == 200

    async def list_received() -> list[EmailMessage]:
        return [message for message in mail.messages[before:] if message["To"] == email.lower()]

    message = (await eventually(list_received, bool))[-1]
    link = re.search(rf"{runtime.settings.base_url}(/dashboard/new-password/\S+)", message.get_content())
    assert link
    return link[1]


async def test_a_user_chooses_a_new_password_by_e_mail(owner: Person, runtime: Runtime, mail: MailServer) -> None:
    assert (await owner.sign_in()).status == 303
    assert FORGOTTEN in (await create_browser(runtime).get("/dashboard/sign-in")).html
    link = await receive_link(runtime, mail, owner.email.upper())
    browser = create_browser(runtime)
    assert owner.email in (await browser.get(link)).html
    short = await browser.send(link, {"password": "short"})
    assert short.status == 422
    assert "at least 10 characters" in short.html
    changed = await browser.send(link, {"password": NEW_PASSWORD})
    assert "Password changed" in changed.html
    assert "Set-Cookie" not in changed.headers, "whoever has only the link gets no session with it"
    assert (await owner.get("/dashboard")).status == 303, "all browsers are signed out"
    assert (await owner.sign_in()).status == 422
    assert (await owner.sign_in(NEW_PASSWORD)).status == 303


async def test_a_link_works_once_and_for_an_hour(owner: Person, runtime: Runtime, mail: MailServer) -> None:
    first, second = [await receive_link(runtime, mail, owner.email) for _ in range(2)]
    browser = create_browser(runtime)
    assert (await browser.send(first, {"password": NEW_PASSWORD})).status == 200
    for used in (first, second):
        assert (await browser.send(used, {"password": PASSWORD})).status == 404, "the password has changed since"
    third = await receive_link(runtime, mail, owner.email)
    forged = f"{third[:-1]}{'A' if third[-1] != 'A' else 'B'}"
    CLOCK.advance(LINK_SECONDS + 1)
    for dead in (third, forged, "/dashboard/new-password/x"):
        refused = await browser.get(dead)
        assert refused.status == 404
        assert "Ask for a new one" in refused.html


async def test_nobody_learns_which_addresses_have_accounts(owner: Person, runtime: Runtime, mail: MailServer) -> None:
    unknown = f"{uuid4().hex[:12]}@example.com"
    async with runtime.database.system() as session:
        by_provider = User(email=f"{uuid4().hex[:12]}@example.com", password_hash="")
        session.add(by_provider)
    browser = create_browser(runtime)
    shown = [
        (await browser.send(FORGOTTEN, {"email": email})).html.replace(email, "")
        for email in (owner.email, unknown, by_provider.email, "no address")
    ]
    assert shown.count(shown[0]) == len(shown)
    await receive_link(runtime, mail, owner.email)
    assert {message["To"] for message in mail.messages} == {owner.email}


async def test_an_address_gets_three_e_mails(owner: Person, runtime: Runtime, mail: MailServer) -> None:
    pages_shown = set[str]()
    for _ in range(LINKS_PER_ACCOUNT.burst + 2):
        pages_shown.add((await create_browser(runtime).send(FORGOTTEN, {"email": owner.email})).html)
    assert len(pages_shown) == 1
    other = await create_person(runtime, create_browser(runtime).client, None)
    await receive_link(runtime, mail, other.email)

    async def list_recipients() -> list[str]:
        return [message["To"] for message in mail.messages]

    sent = await eventually(list_recipients, lambda sent: len(sent) > LINKS_PER_ACCOUNT.burst)
    assert sent.count(owner.email) == LINKS_PER_ACCOUNT.burst


async def test_a_refused_link_is_logged_without_the_address(
    owner: Person,
    runtime: Runtime,
    mail: MailServer,
    capsys: pytest.CaptureFixture[str],
) -> None:
    mail.refused.add(owner.email)
    await runtime.call(PasswordLinks).request(owner.email)
    logged = ""

    async def read_log() -> str:
        nonlocal logged
        logged += capsys.readouterr().out
        return logged

    await eventually(read_log, lambda text: "smtp_status=550" in text)
    assert owner.email not in logged


async def test_the_link_of_an_invitation_goes_by_e_mail_alone(
    people: People, caller: Caller, runtime: Runtime, mail: MailServer
) -> None:
    owner = await people.join(caller.organization_id)
    page = await owner.post("/dashboard/team", {"email": "new@example.com", "role": "builder"})
    assert "An e-mail with a link is on its way to new@example.com." in page.html
    assert "/dashboard/invitations/" not in page.html
    text = mail.messages[0].get_content()
    assert owner.email in text
    link = re.search(r"/dashboard/invitations/\S+", text)
    assert link
    assert link[0] not in (await owner.get("/dashboard/team")).html
    assert (await create_browser(runtime).send(link[0], {"password": PASSWORD})).location == "/dashboard"


@pytest.mark.parametrize("email", ["nobody@example.com", "n\u00f6body@example.com"])
async def test_an_invitation_whose_e_mail_is_refused_is_passed_on(
    people: People, caller: Caller, runtime: Runtime, mail: MailServer, email: str
) -> None:
    owner = await people.join(caller.organization_id)
    mail.refused.add(email)
    page = await owner.post("/dashboard/team", {"email": email, "role": "builder"})
    assert page.status == 200
    assert "The e-mail was not sent" in page.html
    assert "It does not prove the address" in page.html
    link = re.search(r"/dashboard/invitations/[\w-]+", page.html)
    assert link
    person = create_browser(runtime)
    assert (await person.send(link[0], {"password": PASSWORD})).location == "/dashboard"
    assert "Nobody has confirmed that this is your e-mail address" in (await person.get("/dashboard/account")).html


async def test_the_link_of_a_refused_e_mail_that_arrives_works_no_more(
    people: People, caller: Caller, runtime: Runtime, mail: MailServer
) -> None:
    owner = await people.join(caller.organization_id)
    mail.is_full = True
    page = await owner.post("/dashboard/team", {"email": "new@example.com", "role": "builder"})
    assert "The e-mail was not sent" in page.html
    sent = re.search(r"/dashboard/invitations/\S+", mail.messages[0].get_content())
    assert sent
    assert sent[0] not in page.html
    assert (await create_browser(runtime).get(sent[0])).status == 404


@pytest.mark.parametrize("email", ["a,b@example.com", "a(b)@example.com", "a;b@example.com", 'a"b@example.com'])
async def test_an_address_names_one_mailbox(people: People, caller: Caller, mail: MailServer, email: str) -> None:
    owner = await people.join(caller.organization_id)
    page = await owner.post("/dashboard/team", {"email": email, "role": "builder"})
    assert page.status == 422
    assert "is not an e-mail address" in page.html
    assert not mail.messages


class TestWithoutMailServer:
    @pytest.fixture
    def settings(self, settings: Settings) -> Settings:
        return settings.model_copy(update={"smtp_url": None})

    async def test_the_page_says_where_to_get_a_link(self, client: Client, runtime: Runtime, owner: Person) -> None:
        browser = create_browser(runtime)
        for page in (await browser.get(FORGOTTEN), await browser.send(FORGOTTEN, {"email": owner.email})):
            assert "switchboard users password-link" in page.html
        link = (await runtime.call(PasswordLinks).create(owner.email)).removeprefix(runtime.settings.base_url)
        assert (await browser.send(link, {"password": NEW_PASSWORD})).status == 200
        assert (await owner.sign_in(NEW_PASSWORD)).status == 303
