"""Credentials and links that expire, tried after their life: a server of the instance has a clock that goes ahead."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from urllib.parse import urlsplit

from tests.attack.http_client import HttpClient
from tests.attack.oauth_client import ORGANIZATION, Application
from tests.attack.organization import API_KEY, PASSWORD, find_match, join
from tests.attack.planted_accounts import invite
from tests.attack.report import AttackResult
from tests.attack.scene import LaterServer, Scene

HOURS, MONTHS = timedelta(hours=3), timedelta(days=100)
"""Longer than the lives of links, codes, access tokens, and support sessions, and than those of all others."""
KEY = {"name": "Short", "days": "30", "scopes[]": "agents:read"}


@dataclass(frozen=True, slots=True)
class Expiring:
    """Something that expires, and a function that returns whether the later server accepts it.

    It is tried in its time too, unless it works once, or a server remembers its credential for five seconds.
    """

    name: str
    is_accepted: Callable[[], Awaitable[bool]]
    works_once: bool = False
    is_remembered: bool = False


class TimeAttack:
    """Credentials and links that the attacker holds when the clock moves."""

    def __init__(self, scene: Scene, later: LaterServer) -> None:
        self.scene, self.stranger, self.later = scene, scene.stranger, later
        self.nobody = self.move(scene.nobody)
        self.application = Application(scene, scene.credentials.application)
        self.later_application = Application(replace(scene, nobody=self.nobody), scene.credentials.application)

    def move(self, client: HttpClient) -> HttpClient:
        """Return the same client of the later server."""
        return replace(client, base_url=self.later.url, cookies=dict(client.cookies))

    def open(self, name: str, client: HttpClient, path: str) -> Expiring:
        """Return a credential that opens a page, or reads an operation."""

        async def is_accepted() -> bool:
            return (await client.get(path)).status == 200

        return Expiring(name, is_accepted)

    async def hold_links(self) -> list[Expiring]:
        """Ask for links to files, which need no credential."""
        call, media, export = (self.stranger.find_id(f"{noun}_id") for noun in ("call", "media", "privacy_request"))
        links = {
            "a recording": f"/v1/calls/{call}/recording-url",
            "a picture": f"/v1/sms/media/{media}/url",
            "an export": f"/v1/privacy-requests/{export}/export-url",
        }
        return [
            self.open(f"a link to {name}", self.nobody, urlsplit((await self.stranger.api.get(path)).json["url"]).path)
            for name, path in links.items()
        ]

    async def hold_code(self) -> Expiring:
        code = await self.application.obtain_code(self.stranger.owner)

        async def is_accepted() -> bool:
            return (await self.later_application.redeem(code)).status == 200

        return Expiring("an authorization code", is_accepted, works_once=True)

    async def hold_tokens(self) -> tuple[Expiring, Expiring]:
        """Obtain an access token, and the refresh token that came with it."""
        tokens = await self.application.obtain_tokens(self.stranger.owner)

        async def is_accepted() -> bool:
            return (await self.later_application.refresh(tokens["refresh_token"])).status == 200

        holder = self.move(self.stranger.api.with_token(tokens["access_token"]))
        access = replace(self.open("an access token", holder, "/v1/agents"), is_remembered=True)
        return access, Expiring("a refresh token", is_accepted, works_once=True)

    async def hold_support_session(self) -> list[Expiring]:
        given = self.scene.credentials.superadmin
        if given is None:
            return []
        page = await self.application.request_consent(self.stranger.owner)
        (organization_id,) = ORGANIZATION.findall(page.text)
        operator = HttpClient(self.scene.base_url, "stranger", self.scene.nobody.watch, self.scene.nobody.session)
        await operator.sign_in(given.email, given.password)
        await operator.submit(f"/dashboard/console/organizations/{organization_id}/support", {"reason": "attack"})
        return [self.open("a support session", self.move(operator), "/dashboard/agents")]

    async def hold_password_link(self) -> Expiring:
        _, email = await join(self.stranger.owner, self.stranger.canary, "viewer")
        link = await self.later.create_password_link(email)
        # The page shows the user's address.
        return self.open("a link to a new password", replace(self.nobody, reader="stranger"), urlsplit(link).path)

    async def hold_session(self) -> Expiring:
        person, _ = await join(self.stranger.owner, self.stranger.canary, "viewer")
        return self.open("a browser session", self.move(person), "/dashboard")

    async def hold_invitation(self) -> Expiring:
        link = await invite(self.stranger, f"{self.stranger.canary}-later@example.com")
        assert link is not None

        async def is_accepted() -> bool:
            return (await self.nobody.send("POST", link, form={"password": PASSWORD})).status == 303

        return Expiring("an invitation", is_accepted, works_once=True)

    async def hold_key(self) -> Expiring:
        made = await self.stranger.owner.submit("/dashboard/keys/new", KEY)
        holder = self.move(self.stranger.api.with_token(find_match(API_KEY, made)))
        return replace(self.open("an API key of 30 days", holder, "/v1/agents"), is_remembered=True)


async def attack_time(scene: Scene, result: AttackResult) -> None:
    """Hold what expires, let the clock go ahead, and use it."""
    if scene.open_later_server is None:
        result.left_out.append("only an instance of the attacks' own has a clock that they can move")
        return
    async with scene.open_later_server() as later:
        attack = TimeAttack(scene, later)
        access, refresh = await attack.hold_tokens()
        short = [*await attack.hold_links(), access, *await attack.hold_support_session()]
        short += [await attack.hold_code(), await attack.hold_password_link()]
        long = [refresh, await attack.hold_session(), await attack.hold_invitation(), await attack.hold_key()]
        for held in (*short, *long):
            if not held.works_once and not held.is_remembered:
                result.check(await held.is_accepted(), f"{held.name} in its time", "refused")
        for passed, holdings in ((HOURS, short), (MONTHS, long)):
            later.advance(passed)
            for held in holdings:
                result.check(not await held.is_accepted(), f"{held.name} after {passed}", "accepted")
