"""Every page and form of the dashboard, found by its links: with ids of another organization, without a role, without a
session, and from another site.
"""

import re
from uuid import uuid4

from tests.attack.crawl import Crawled, crawl_dashboard
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


def normalize(answer: Answer, path: str, notice: str = "") -> tuple[int, str, str, str]:
    """Strip ids of the address and of the request, and form tokens, from a response and the notice after it."""
    parts = [answer.text, answer.headers.get("Location", ""), notice]
    for key in UUID.findall(path):
        parts = [part.replace(key, "ID") for part in parts]
    text = re.sub(r"Request [\w-]+|[0-9a-f]{64}|\"request_id\": *\"[^\"]*\"", "", parts[0])
    return answer.status, text, parts[1], parts[2]


async def open_page(browser: HttpClient, path: str) -> tuple[int, str, str, str]:
    return normalize(await browser.get(path), path)


async def submit_form(browser: HttpClient, path: str) -> tuple[int, str, str, str]:
    """Post a form without fields, and read the notice that the next page shows."""
    answer = await browser.submit(path)
    notice = re.search(r'class="notice".*?</p>', (await browser.get("/dashboard/organizations")).text)
    return normalize(answer, path, notice[0] if notice else "")


async def attack_pages(scene: Scene, result: AttackResult) -> None:
    """Open and post every address of the victim as a user of another organization, and as nobody."""
    crawled = await crawl_dashboard(scene.victim.owner)
    await crawl_dashboard(scene.stranger.owner)
    stranger = scene.stranger.owner

    async def attack_as_stranger(method: str, path: str) -> None:
        unknown = UUID.sub(lambda _: str(uuid4()), path)
        send = open_page if method == "GET" else submit_form
        expected, actual = await send(stranger, unknown), await send(stranger, path)
        allowed = (404, 405) if method == "GET" else (303, 404, 405, 422)
        is_refused = actual == expected and actual[0] in allowed
        result.check(is_refused, f"{method} {path} as another organization", f"{actual}, not {expected}")

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
