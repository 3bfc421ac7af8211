"""Attacks on pages, applications, and addresses find the smallest hole of their kind, which a proxy plants."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
import pytest_asyncio
from aiohttp import web

from tests.attack import actions, anonymous, carrier_callbacks, crawl, outbound_urls, visitors
from tests.attack.attacks import ATTACKS
from tests.attack.credentials import REDIRECT_URI, create_credentials
from tests.attack.http_client import HttpClient
from tests.attack.proxy import BODY, Holes, run_proxy
from tests.attack.scene import LaterServer, Scene, open_scene, run_attacks
from tests.fixtures.app import LivePlatform
from tests.fixtures.command_line import Operator
from tests.fixtures.hostile_urls import HOSTILE_URLS


@dataclass(frozen=True, slots=True)
class Planted:
    """Holes, planted by a function, and the requests of their findings."""

    attack: str
    plant: Callable[[Scene, Holes], None]
    findings: tuple[str, ...]


def show_foreign_rows(scene: Scene, holes: Holes) -> None:
    """Forget the organization on pages of an agent, a picture, and an export, and for a deleted view; and look up no
    contact before its fields are checked.
    """
    find_id = scene.victim.find_id
    pages = (
        f"/dashboard/agents/{find_id('agent_id')}",
        f"/dashboard/texts/media/{find_id('media_id')}",
        f"/dashboard/privacy/{find_id('privacy_request_id')}/file",
    )
    holes.replace_cookie = lambda request: format_cookies(scene.victim.owner) if request.path in pages else None

    def replace(request: web.Request, response: web.Response) -> web.Response:
        if request.path == f"/dashboard/calls/views/{find_id('view_id')}/delete":
            return web.Response(status=303, headers={"Location": "/dashboard/calls"})
        is_contact = request.method == "POST" and request.path.startswith("/dashboard/contacts/")
        return web.Response(status=422) if is_contact and response.status == 404 else response

    holes.replace_response = replace


def call_with_foreign_agent(scene: Scene, holes: Holes) -> None:
    """Forget the organization of the agent in a form's field."""
    agent = scene.victim.find_id("agent_id").encode()

    def replace(request: web.Request, response: web.Response) -> web.Response:
        is_foreign = request.path == "/dashboard/calls/new" and agent in request[BODY]
        return web.Response(status=303, headers={"Location": "/dashboard/calls"}) if is_foreign else response

    holes.replace_response = replace


def ignore_origin(_: Scene, holes: Holes) -> None:
    holes.dropped = ("Origin", "Referer")


def forget_role(scene: Scene, holes: Holes) -> None:
    """Forget the role on the page of the audit log."""
    holes.replace_cookie = lambda request: (
        format_cookies(scene.victim.owner) if request.path == "/dashboard/audit" else None
    )


def widen_roles(scene: Scene, holes: Holes) -> None:
    """Forget the role in a form, and the scope of an operation."""
    accept_post("/dashboard/contacts/new", 303)(scene, holes)
    key = scene.credentials.victim.api_key
    holes.replace_key = lambda request: key if (request.method, request.path) == ("GET", "/v1/webhook-events") else None


def trust_support(scene: Scene, holes: Holes) -> None:
    """Let a support session create a widget, and show it a stored secret."""

    def replace(request: web.Request, response: web.Response) -> web.Response:
        if request.path.endswith("/widgets") and response.status == 403:
            return web.Response(status=303)
        is_shown = request.path == "/dashboard/keys" and response.status == 200
        return web.Response(text=scene.nobody.watch.secrets[-1]) if is_shown else response

    holes.replace_response = replace


def stop_clocks(scene: Scene, holes: Holes) -> None:
    """Let nothing expire."""

    async def create_password_link(email: str) -> str:
        return "/dashboard/sign-in"  # any page that is open to everybody

    @asynccontextmanager
    async def open_later_server() -> AsyncIterator[LaterServer]:
        yield LaterServer(holes.url, lambda time: None, create_password_link)

    scene.open_later_server = open_later_server


def starve_neighbor(scene: Scene, holes: Holes) -> None:
    """Refuse requests of one organization while another is busy."""
    key = f"Bearer {scene.credentials.victim.api_key}"

    def replace(request: web.Request, response: web.Response) -> web.Response:
        is_starved = request.path == "/v1/agents" and request.headers.get("Authorization") == key
        return web.Response(status=503) if is_starved else response

    holes.replace_response = replace


def let_visitors_in(token: str) -> Callable[[Scene, Holes], None]:
    """Give visitors a token of clients, and forget the limit of their calls at the same time."""

    def plant(_: Scene, holes: Holes) -> None:
        given: list[str] = []

        def replace(request: web.Request, response: web.Response) -> web.Response:
            if not (request.path.startswith("/widget/") and request.path.endswith("/calls") and response.status == 200):
                return response
            given.append(request.path)
            # The first call of the second widget.
            is_first = len(set(given)) == 2 and given.count(request.path) == 1
            found = json.loads(response.body or b"")  # type: ignore[arg-type]
            return web.json_response({**found, "token": token}) if is_first else response

        holes.replace_response = replace
        holes.replace_body = lambda request: request[BODY].replace(
            f'"max_concurrent_sessions": {visitors.MAX_CALLS}'.encode(), b'"max_concurrent_sessions": 10'
        )

    return plant


def keep_ended_session(_: Scene, holes: Holes) -> None:
    """Sign out in the browser only."""
    holes.replace_cookie = lambda request: "nobody=1" if request.path == "/dashboard/sign-out" else None


def keep_planted_session(scene: Scene, holes: Holes) -> None:
    """Leave who made an account signed in to it, in the organization that its person joins."""
    holes.replace_cookie = lambda request: format_cookies(scene.victim.owner) if request.path == "/dashboard" else None


def redirect_anywhere(_: Scene, holes: Holes) -> None:
    """Send the errors of an authorization request to an address that is not registered."""

    def replace(request: web.Request, response: web.Response) -> web.Response:
        target = request.query.get("redirect_uri", REDIRECT_URI)
        refused = request.path == "/oauth/authorize" and response.status == 400
        return web.Response(status=303, headers={"Location": ascii(target)}) if refused else response

    holes.replace_response = replace


def accept_post(path: str, status: int) -> Callable[[Scene, Holes], None]:
    """Answer a refused POST with a success."""

    def plant(_: Scene, holes: Holes) -> None:
        def replace(request: web.Request, response: web.Response) -> web.Response:
            refused = (request.method, request.path) == ("POST", path) and response.status >= 400
            return web.json_response({}, status=status) if refused else response

        holes.replace_response = replace

    return plant


def forget_action_scopes(scene: Scene, holes: Holes) -> None:
    """Let every key that may write automations write all actions."""
    key = scene.credentials.stranger.api_key
    holes.replace_key = lambda request: key if request.path == "/v1/automations" else None


def fail_documents(_: Scene, holes: Holes) -> None:
    """Let the documents of all organizations fail while one is parsed."""

    def replace(request: web.Request, response: web.Response) -> web.Response:
        return web.json_response({"status": "failed"}) if request.path.startswith("/v1/documents/") else response

    holes.replace_response = replace


def limit_nothing(_: Scene, holes: Holes) -> None:
    holes.replace_response = lambda _, response: web.Response(status=422) if response.status == 429 else response


def serve_files(_: Scene, holes: Holes) -> None:
    """Serve the files that were refused."""

    def replace(request: web.Request, response: web.Response) -> web.Response:
        refused = request.path.startswith("/v1/sms/media/") and response.status == 404
        return web.Response(text="calls_total 1") if refused else response

    holes.replace_response = replace


# Forged forms come last: with their hole, they end the sessions of the owner.
PLANTED = (
    Planted("oauth", redirect_anywhere, ("authorize",)),
    Planted("outbound-urls", accept_post("/v1/webhook-endpoints", 201), ("POST /v1/webhook-endpoints",)),
    Planted("carrier-callbacks", serve_files, ("file of telnyx at",)),
    Planted("actions-beyond-scopes", forget_action_scopes, ("by a narrow key",)),
    Planted("toll-fraud", accept_post("/v1/calls", 201), ("call +",)),
    Planted("hostile-requests", accept_post("/v1/agents", 200), ("POST /v1/agents with",)),
    Planted("slow-documents", fail_documents, ("the short page",)),
    Planted(
        "dashboard-foreign-pages",
        show_foreign_rows,
        (
            "GET /dashboard/agents/",
            "GET /dashboard/texts/media/",
            "GET /dashboard/privacy/",
            "POST /dashboard/calls/views/",
            "the id is not looked up",
        ),
    ),
    Planted(
        "dashboard-foreign-fields",
        call_with_foreign_agent,
        ("POST /dashboard/calls/new with agent_id",),
    ),
    Planted("role-table", widen_roles, ("POST /dashboard/contacts/new as viewer", "GET /v1/webhook-events as agent")),
    Planted(
        "support-sessions",
        trust_support,
        ("/widgets in a support session", "GET /dashboard/keys as victim"),
    ),
    Planted(
        "passing-time",
        stop_clocks,
        (
            "a link to a recording after",
            "a link to a picture after",
            "a link to an export after",
            "an access token after",
            "an authorization code after",
            "a support session after",
            "a link to a new password after",
            "a refresh token after",
            "a browser session after",
            "an invitation after",
            "an API key of 30 days after",
        ),
    ),
    Planted("neighbors", starve_neighbor, ("GET /v1/agents beside costly requests",)),
    Planted("dashboard-roles", forget_role, ("GET /dashboard/audit without the role",)),
    Planted("dashboard-sessions", keep_ended_session, ("a session that has ended",)),
    Planted("planted-accounts", keep_planted_session, ("the session of before",)),
    Planted("sign-in", limit_nothing, ("twelve wrong passwords",)),
    Planted("website-widgets", ignore_origin, ("POST widget messages from",)),
    Planted("dashboard-forged-forms", ignore_origin, ("evil.example",)),
)


VISITORS_FINDINGS = ("a visitor's token waits for calls", "calls with a widget at the same time")


def format_cookies(browser: HttpClient) -> str:
    return "; ".join(f"{name}={value}" for name, value in browser.cookies.items())


@pytest.fixture(autouse=True)
def short_attacks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out variants and repetitions, which find no other holes than the first."""
    monkeypatch.setattr(crawl, "MAX_OF_KIND", 2)
    monkeypatch.setattr(outbound_urls, "HOSTILE_URLS", HOSTILE_URLS[:2])
    monkeypatch.setattr(outbound_urls, "LOOPBACK", outbound_urls.LOOPBACK[:1])
    monkeypatch.setattr(carrier_callbacks, "LOOPBACK", outbound_urls.LOOPBACK[:1])
    monkeypatch.setattr(outbound_urls, "TEMPLATES", outbound_urls.TEMPLATES[:1])
    monkeypatch.setattr(actions, "FRAUD", actions.FRAUD[:1])
    monkeypatch.setattr(anonymous, "SLOW_PAGE", "<p>slow</p>")
    monkeypatch.setattr(anonymous, "MAX_GUESSES", 5)
    monkeypatch.setattr(visitors, "MAX_CONVERSATIONS", 30)


@pytest_asyncio.fixture
async def holes(live: LivePlatform) -> AsyncIterator[Holes]:
    async with run_proxy(live.runtime.settings.base_url) as proxy:
        yield proxy


@pytest.mark.system
@pytest.mark.timeout(1200)
async def test_each_attack_finds_its_planted_hole(holes: Holes, operator: Operator) -> None:
    credentials = await asyncio.to_thread(create_credentials, operator.ask)
    async with open_scene(holes.url, credentials) as scene:
        missed = []
        client = (await scene.stranger.api.post("/v1/browser-call/token?identity=visitor")).json["token"]
        for planted in (Planted("website-widgets", let_visitors_in(client), VISITORS_FINDINGS), *PLANTED):
            planted.plant(scene, holes)
            results = await run_attacks(scene, [(planted.attack, ATTACKS[planted.attack])])
            holes.close()
            requests = [finding.request for result in results for finding in result.findings]
            missed += [
                (planted.attack, finding)
                for finding in planted.findings
                if not any(finding in request for request in requests)
            ]
        assert missed == []
