"""Work for anybody: guesses, costly pages and documents, and requests that no client of good will sends."""

import asyncio
import json
import secrets
import time

from tests.attack.http_client import Answer, HttpClient
from tests.attack.organization import PERSON
from tests.attack.report import AttackResult
from tests.attack.scene import Scene
from tests.fixtures.eventually import eventually
from tests.fixtures.raw_http import H2C_UPGRADE, HTTP2_PREFACE, TWO_LENGTHS, exchange

MAX_GUESSES = 60
PUBLIC_PAGES = ("/openapi.json", "/docs")
MAX_SECONDS = 0.1
"""Mean duration of a request that is revalidated; building the document anew took 0.2 s."""
ODD_PATHS = (
    "/%00",
    "/v1/calls/%00",
    "/dashboard/static/nope.js",
    "/dashboard/static/%00",
    "/dashboard/invitations/%00",
    "/v1/../v1/calls",
    "//v1/calls",
    "/dashboard/static/../../settings.py",
    "/dashboard/static/..%2f..%2fsettings.py",
)
ODD_MOMENTS = ("0001-01-01T00:00:00Z", "9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00+14:00")
ODD_RANGES = (
    "bytes=",
    "bytes=-",
    "bytes=a-b",
    "bytes=9-1",
    "bytes=-0",
    "bytes=99999999999999999999-",
    "0-1",
    "bytes=0-0,-",
)
SLOW_PAGE = "<div>" * 900_000
SHORT_PAGE = "<p>open</p>\n"
UPLOAD_SECONDS = 45
"""Two uploads of the other organization may keep a server's parser busy for ten seconds each."""


def build_browser(scene: Scene) -> HttpClient:
    return HttpClient(scene.base_url, "", scene.nobody.watch, scene.nobody.session)


async def guess(browser: HttpClient, email: str, password: str, address: str) -> Answer:
    """Sign in from an address that a trusted proxy would have added."""
    form = {"email": email, "password": password, "after": ""}
    headers = {"X-Forwarded-For": address}
    return await browser.send("POST", "/dashboard/sign-in", form=form, headers=headers, wait=False)


def make_address() -> str:
    return ":".join(["2a00", *(secrets.token_hex(2) for _ in range(7))])


async def attack_sign_in(scene: Scene, result: AttackResult) -> None:
    """Guess passwords of an account that exists and of one that does not, and lock out the account's owner."""
    owner, credentials = scene.victim.owner, scene.credentials.victim
    emails = (credentials.email, f"nobody-{secrets.token_hex(6)}@example.com")
    answers: dict[str, list[Answer]] = {email: [] for email in emails}
    for email in emails:
        for _ in range(12):
            answers[email].append(await guess(build_browser(scene), email, "wrong", make_address()))
    known, unknown = (
        [(answer.status, answer.text.replace(email, "")) for answer in answers[email]] for email in emails
    )
    if all(status == 429 for status, _ in unknown[1:]):
        result.left_out.append("the instance limits this address, and ignores X-Forwarded-For: locks were not tried")
    else:
        result.check(known == unknown, "wrong passwords of an account, and of none", known[0])
        result.check(known[-1][0] == 429, "twelve wrong passwords", known[-1])
        locked = await guess(build_browser(scene), emails[0], credentials.password, make_address())
        result.check(locked.status == 429, "the right password while it is guessed, from an unknown browser", locked)
        browser = HttpClient(scene.base_url, "victim", owner.watch, owner.session, cookies=dict(owner.cookies))
        signed_in = await guess(browser, emails[0], credentials.password, make_address())
        result.check(signed_in.status == 303, "the owner's own browser while somebody guesses", signed_in)
    network = make_address().rsplit(":", 4)[0]
    guesses = [
        await guess(build_browser(scene), f"{number}@example.com", "wrong", f"{network}::{number + 1:x}")
        for number in range(40)
    ]
    result.check(guesses[-1].status == 429, "forty guesses from one IPv6 network", guesses[-1])
    await _attack_limits(scene, result)


async def _attack_limits(scene: Scene, result: AttackResult) -> None:
    """Repeat what costs the server work, until it is limited."""
    for name, path, form in (
        ("invitation", "/dashboard/invitations/x", {"password": "a long enough password"}),
        ("token", "/api/oauth/token", {"grant_type": "authorization_code", "client_id": "x"}),
    ):
        statuses: set[int] = set()
        for _ in range(10):
            sent = (scene.nobody.send("POST", path, form=form, wait=False) for _ in range(MAX_GUESSES))
            statuses |= {answer.status for answer in await asyncio.gather(*sent)}
            if 429 in statuses:
                break
        result.check(429 in statuses, f"POST {path} ({name}) without end", statuses)


async def attack_public_pages(scene: Scene, result: AttackResult) -> None:
    """Ask for what anybody may read, again and again, and for metrics."""
    for path in PUBLIC_PAGES:
        first = await scene.nobody.get(path)
        headers = {"If-None-Match": first.headers.get("ETag", "")}
        began = time.perf_counter()
        again = [await scene.nobody.send("GET", path, headers=headers) for _ in range(20)]
        mean = (time.perf_counter() - began) / len(again)
        result.check({answer.status for answer in again} == {304}, f"GET {path} revalidated", again[-1].status)
        result.check(mean < MAX_SECONDS, f"GET {path}: mean duration", f"{mean:.3f} s")
    elsewhere = {"X-Forwarded-For": "192.0.2.1"}
    metrics = await scene.nobody.send("GET", "/metrics", headers=elsewhere)
    result.check(metrics.status in (401, 403, 404), "GET /metrics from elsewhere", metrics)


async def attack_requests(scene: Scene, result: AttackResult) -> None:
    """Send what no client of good will sends: each request gets a 4xx, or is closed."""
    api = scene.stranger.api
    upgrade, preface = await exchange(scene.base_url, H2C_UPGRADE), await exchange(scene.base_url, HTTP2_PREFACE)
    result.check(b" 101 " not in upgrade[:20], "h2c upgrade", upgrade[:80])
    result.check(preface.startswith(b"HTTP/1.1 ") or not preface, "HTTP/2 preface in clear text", preface[:80])
    two = await exchange(scene.base_url, TWO_LENGTHS)
    result.check(two.startswith(b"HTTP/1.1 4") and two.count(b"HTTP/1.1") == 1, "two lengths", two[:200])
    head = f"POST /v1/contacts HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {api.token}\r\nContent-Length: 50\r\n\r\n{{"
    unfinished = await exchange(scene.base_url, head.encode(), end=True)
    result.check(b" 500 " not in unfinished[:20], "unfinished body", unfinished[:80])
    for path in ODD_PATHS:
        answer = await api.get(path)
        result.check(
            answer.status in (301, 308, 400, 401, 404, 405) or path.endswith("/v1/calls"), f"GET {path}", answer
        )
    nul = await scene.nobody.send("POST", "/dashboard/sign-in", form={"email": "a\0b@x.example", "password": "x"})
    result.check(nul.status == 422, "NUL in an e-mail address", nul)
    recording = f"/v1/calls/{scene.stranger.ids['calls'][0]}/recording"
    for given in ODD_RANGES:
        answer = await api.send("GET", recording, headers={"Range": given})
        result.check(answer.status < 500, f"Range: {given!r}", answer.status)
    fields = {"name": "x", "agent_id": "x", "phone_number_id": "x", "contacts": [{"phone_number": PERSON}]}
    for moment in ODD_MOMENTS:
        answer = await api.post("/v1/campaigns", {**fields, "scheduled_at": moment})
        result.check(answer.status == 422, f"scheduled_at {moment}", answer)
    await _attack_bodies(scene, result)


async def _attack_bodies(scene: Scene, result: AttackResult) -> None:
    """Send bodies of errors, to every operation that takes a body."""
    unknown = {f"field{number}": 1 for number in range(300_000)}
    deep: object = 1
    for _ in range(500):
        deep = [deep]
    for operation in scene.stranger.operations:
        if operation.body is None:
            continue
        path, body = operation.fill(scene.stranger.find_id)
        for name, given in (("a nested", {**(body or {}), "x": deep}), ("a list as", [body]), ("a text as", "x")):
            answer = await scene.stranger.api.send(operation.method, path, given)
            result.check(answer.status in (400, 422), f"{operation.method} {path} with {name} body", answer)
    began = time.perf_counter()
    answer = await scene.stranger.api.post("/v1/campaigns", unknown)
    seconds = time.perf_counter() - began
    short = answer.status in (413, 422) and len(answer.json.get("errors", [])) <= 50 and len(answer.body) < 20_000
    result.check(short, "POST /v1/campaigns with 300 000 unknown keys", answer)
    result.check(seconds < 10, "time for 300 000 unknown keys", f"{seconds:.1f} s")
    for raw in (
        b"{",
        b"\xff",
        b'{"name": "\x00"}',
        b'{"name": NaN}',
        b"[" * 100_000,
        json.dumps("x" * 9_000_000).encode(),
    ):
        headers = {"Content-Type": "application/json"}
        answer = await scene.stranger.api.send("POST", "/v1/agents", data=raw, headers=headers)
        result.check(400 <= answer.status < 500, f"POST /v1/agents with {raw[:20]!r}", answer)


async def attack_documents(scene: Scene, result: AttackResult) -> None:
    """Upload two pages that take long to parse, and measure how long the short page of another organization takes."""
    # The scene's victim uploads, so that the waiting organization is the one whose rows may change.
    attacker, waiting = scene.victim.api, scene.stranger.api
    bases = [
        (await client.post("/v1/knowledge-bases", {"name": "Uploads"})).json["id"] for client in (attacker, waiting)
    ]
    slow, short = (f"/v1/knowledge-bases/{base}/documents" for base in bases)
    for number in range(2):
        page = {"filename": f"{number}.html", "content": SLOW_PAGE + str(number), "content_type": "text/html"}
        uploaded = await attacker.post(slow, page)
        assert uploaded.status == 201, uploaded
    began = time.perf_counter()
    page = {"filename": "short.html", "content": SHORT_PAGE, "content_type": "text/html"}
    document = (await waiting.post(short, page)).json["id"]
    read = await eventually(
        lambda: waiting.get(f"/v1/documents/{document}"),
        lambda answer: answer.json["status"] in ("ready", "failed"),
        seconds=300,
    )
    seconds = time.perf_counter() - began
    result.check(read.json["status"] == "ready", "the short page", read)
    result.check(seconds < UPLOAD_SECONDS, "a short page behind two slow ones of others", f"{seconds:.1f} s")
    for client, base in zip((attacker, waiting), bases, strict=True):
        await client.send("DELETE", f"/v1/knowledge-bases/{base}")
