"""Every page and form of the dashboard, found by its links: with ids of another organization, without a role, without a
session, and from another site.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import uuid4

from tests.attack.crawl import Crawled, Form, crawl_dashboard
from tests.attack.http_client import Answer, HttpClient
from tests.attack.organization import PASSWORD, UUID
from tests.attack.report import AttackResult
from tests.attack.scene import Scene, gather_limited

SUPERADMIN_PAGES = (
    "/dashboard/console",
    "/dashboard/console/organizations",
    "/dashboard/console/plugins",
    "/dashboard/console/users",
    "/dashboard/oauth-clients",
    "/dashboard/oauth-clients/new",
)
EVIL = "https://evil.example.com"
OPEN_REDIRECTS = (EVIL, "//evil.example.com", "/\\evil.example.com", "/dashboard@evil.example.com", "javascript:x")


NOT_TRIED = {
    "/chat": "the script that posts it sends the conversation as JSON",
    "/talk/transcript": "the script that posts it names the call by its id at the carrier",
}
"""Endings of the addresses whose forms no page has, so that they are refused before their ids are looked up."""
CHANGES = re.compile(r"Request [\w-]+|[0-9a-f]{64}|\"request_id\": *\"[^\"]*\"")
"""What differs from response to response: ids of requests, and form tokens."""


@dataclass(frozen=True, slots=True)
class FormAnswer:
    """A response to a page or form, and the notice that the next page shows."""

    status: int
    text: str
    location: str
    notice: str = ""

    @classmethod
    def from_answer(cls, answer: Answer, notice: str = "") -> "FormAnswer":
        return cls(answer.status, CHANGES.sub("", answer.text), answer.headers.get("Location", ""), notice)

    def without(self, *keys: str) -> "FormAnswer":
        """Return the same without the ids that the request had."""
        parts = [self.text, self.location, self.notice]
        for key in keys:
            parts = [part.replace(key, "ID") for part in parts]
        return FormAnswer(self.status, *parts)


async def submit_form(browser: HttpClient, path: str, fields: Sequence[tuple[str, str]]) -> FormAnswer:
    """Post a form, and read the notice that the next page shows."""
    answer = await browser.submit(path, fields)
    notice = re.search(r'class="notice \w+".*?</p>', (await browser.get("/dashboard/organizations")).text)
    return FormAnswer.from_answer(answer, notice[0] if notice else "")


async def attack_pages(scene: Scene, result: AttackResult) -> None:
    """Open and post every address of the victim as a user of another organization, and as nobody.

    Forms are posted as the victim's pages show them: one that is refused for a missing field hides whether the id in
    its address is looked up.
    """
    crawled = await crawl_dashboard(scene.victim.owner)
    await crawl_dashboard(scene.stranger.owner)
    stranger = scene.stranger.owner

    async def attack_as_stranger(method: str, path: str) -> None:
        async def send(target: str) -> FormAnswer:
            form = crawled.forms.get(path, Form())
            if method == "POST":
                answer = await submit_form(stranger, target, form.fields)
            else:
                answer = FormAnswer.from_answer(await stranger.get(target))
            return answer.without(*UUID.findall(target))

        expected, actual = await send(UUID.sub(lambda _: str(uuid4()), path)), await send(path)
        result.check(actual == expected, f"{method} {path} as another organization", f"{actual}, not {expected}")
        reasons = [reason for ending, reason in NOT_TRIED.items() if method == "POST" and path.endswith(ending)]
        result.left_out += [f"{method} {path}: {reason}" for reason in reasons]
        allowed = (404, 405) if method == "GET" else (303, 404, 405)
        is_looked_up = expected.status in allowed or bool(reasons)
        result.check(is_looked_up, f"{method} {path}: the id is not looked up", expected)

    async def attack_as_nobody(method: str, path: str) -> None:
        answer = await scene.nobody.send(method, path)
        to_sign_in = answer.status in (302, 303) and "/dashboard/sign-in" in answer.headers["Location"]
        refused = to_sign_in or answer.status in (401, 403, 404, 405)
        result.check(refused, f"{method} {path} without a session", answer)

    targets = [("GET", path) for path in sorted(crawled.pages)] + [("POST", path) for path in sorted(crawled.actions)]
    # One after the other: a notice is shown on the next page of the session.
    for method, path in targets:
        if UUID.search(path):
            await attack_as_stranger(method, path)
    await gather_limited(attack_as_nobody(method, path) for method, path in targets)


async def attack_forms(scene: Scene, result: AttackResult) -> None:
    """Post every form without its token, with another session's token, and from another site."""
    victim = scene.victim.owner
    crawled = await crawl_dashboard(victim)
    own, foreign = await victim.read_csrf_token(), await scene.stranger.owner.read_csrf_token()
    member = await scene.victim.member.read_csrf_token()
    forgeries: list[tuple[dict[str, str], dict[str, str]]] = [
        ({}, {}),
        *(({"csrf_token": token}, {}) for token in ("", foreign, member, own[:-1], own.upper())),
    ]
    forgeries += [
        ({"csrf_token": own}, {"Origin": origin}) for origin in (EVIL, "null", f"{scene.base_url}.evil.example")
    ]

    async def attack(path: str, form: dict[str, str], headers: dict[str, str]) -> None:
        answer = await victim.send("POST", path, form={**form, "x": "y"}, headers=headers)
        result.check(answer.status in (403, 405), f"POST {path} with {form or 'no token'} {headers}", answer)

    await gather_limited(attack(path, form, headers) for path in sorted(crawled.actions) for form, headers in forgeries)


async def attack_roles(scene: Scene, result: AttackResult) -> None:
    """Open and post as a member what only the owner's pages link to, and as an owner what only superadmins see."""
    owner, member = scene.victim.owner, scene.victim.member
    owners, members = await crawl_dashboard(owner), await crawl_dashboard(member)
    only = Crawled(owners.pages - members.pages, owners.actions - members.actions)

    own = {path for path in only.actions if path.startswith("/dashboard/account/")}
    for path in sorted(own):
        await member.submit(path)
    answer = await owner.get("/dashboard/account")
    result.check(answer.status == 200, "a member ends sessions of the owner", answer)

    async def attack(browser: HttpClient, method: str, path: str) -> None:
        answer = await (browser.get(path) if method == "GET" else browser.submit(path))
        result.check(answer.status in (403, 404, 405), f"{method} {path} without the role", answer)

    await gather_limited(attack(member, "GET", path) for path in sorted(only.pages))
    await gather_limited(attack(member, "POST", path) for path in sorted(only.actions - own))
    await gather_limited(
        attack(browser, method, path)
        for browser in (owner, member)
        for path in SUPERADMIN_PAGES
        for method in ("GET", "POST")
    )


async def attack_sessions(scene: Scene, result: AttackResult) -> None:
    """Fix a session before it is signed in, use it after signing out, and redirect elsewhere after signing in."""
    victim, nobody = scene.victim, scene.nobody
    (name,) = [cookie for cookie in victim.member.cookies if cookie.endswith("switchboard")]
    fixed = victim.member.cookies[name]
    browser = HttpClient(nobody.base_url, "victim", nobody.watch, nobody.session, cookies={name: "f" * len(fixed)})
    signed_in = await browser.sign_in(victim.member_email, PASSWORD)
    result.check(browser.cookies[name] not in ("f" * len(fixed), fixed), "session fixation", signed_in)
    flags = signed_in.headers.get("Set-Cookie", "")
    result.check("HttpOnly" in flags and "SameSite=Lax" in flags, "flags of the session cookie", flags)
    for after in OPEN_REDIRECTS:
        answer = await browser.get(f"/dashboard/sign-in?after={after}")
        result.check(answer.headers.get("Location") == "/dashboard", f"sign-in?after={after}", answer)
    old = dict(browser.cookies)
    await browser.submit("/dashboard/sign-out")
    for cookies in (old, {name: "0" * len(fixed)}, {name: "x"}, {name: scene.credentials.victim.api_key}):
        stale = HttpClient(nobody.base_url, "", nobody.watch, nobody.session, cookies=cookies)
        answer = await stale.get("/dashboard/account")
        result.check(answer.status in (303, 401), "a session that has ended, or that never was", answer)
