"""The life of an account of somebody else's address: a stranger makes it, and the person of the address comes later."""

import re
import secrets

import pyotp

from tests.attack.http_client import Answer, HttpClient
from tests.attack.organization import PASSWORD, Organization
from tests.attack.report import AttackResult
from tests.attack.scene import Scene

LINK = re.compile(r"/dashboard/invitations/[\w-]+")
REMOVAL = re.compile(r"/dashboard/team/[0-9a-f-]{36}/remove")
PERSONS_PASSWORD = secrets.token_urlsafe(18)


async def attack_accounts(scene: Scene, result: AttackResult) -> None:
    """Take an address before the victim invites its person, and come back with what was enrolled."""
    email = f"person-{secrets.token_hex(6)}@example.com"
    link = await invite(scene.stranger, email)
    if link is None:
        result.left_out.append("the instance sends e-mail: no link is shown, so no address can be taken")
        return
    planted = open_browser(scene, "stranger")
    taken = await planted.send("POST", link, form={"password": PASSWORD})
    assert taken.status == 303, taken
    wanted = await invite(scene.victim, email)
    assert wanted is not None
    refused = await planted.submit(wanted, {"password": PASSWORD})
    result.check(refused.status == 422, "an unproven account joins a second organization", refused)
    await check_app(planted, result)
    # The stranger lets the address go, and keeps the session and the password.
    await remove_member(scene.stranger, email)
    person = open_browser(scene, "victim")
    joined = await person.send("POST", wanted, form={"password": PERSONS_PASSWORD})
    result.check(joined.status == 303, "the person joins with the link of the victim", joined)
    opened = await planted.get("/dashboard")
    result.check(opened.status == 303, "the session of before in the organization of the victim", opened)
    entered = await open_browser(scene, "stranger").sign_in(email, PASSWORD)
    result.check(entered.status == 422, "the password of before", entered)
    await remove_member(scene.victim, email)


async def check_app(browser: HttpClient, result: AttackResult) -> None:
    """Add an authenticator app without the password, as a stolen session would."""
    secret = pyotp.random_base32()
    fields = {"secret": secret, "code": pyotp.TOTP(secret).now(), "password": ""}
    added = await browser.submit("/dashboard/account/second-factor", fields)
    result.check(added.status == 422, "an authenticator app without the password", added)


async def remove_member(organization: Organization, email: str) -> None:
    page = (await organization.owner.get("/dashboard/team")).text
    removal = REMOVAL.search(page.partition(f"<strong>{email}<")[2])
    if removal is not None:
        await organization.owner.submit(removal[0])


async def invite(organization: Organization, email: str) -> str | None:
    """Invite an address, and return the link that the page shows, if any."""
    invited: Answer = await organization.owner.submit("/dashboard/team", {"email": email, "role": "viewer"})
    assert invited.status == 200, invited
    found = LINK.search(invited.text)
    return found[0] if found else None


def open_browser(scene: Scene, reader: str) -> HttpClient:
    return HttpClient(scene.base_url, reader, scene.nobody.watch, scene.nobody.session)
