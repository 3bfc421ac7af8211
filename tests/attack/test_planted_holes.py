"""Attacks on pages, applications, and addresses find the smallest hole of their kind, which a proxy plants."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import pytest
import pytest_asyncio
from aiohttp import web

from tests.attack import actions, anonymous, carrier_callbacks, crawl, outbound_urls, visitors
from tests.attack.attacks import ATTACKS
from tests.attack.credentials import REDIRECT_URI, create_credentials
from tests.attack.http_client import HttpClient
from tests.attack.proxy import Holes, run_proxy
from tests.attack.scene import Scene, open_scene, run_attacks
from tests.fixtures.app import LivePlatform
from tests.fixtures.command_line import Operator
from tests.fixtures.hostile_urls import HOSTILE_URLS

PAGES = 80
"""Pages that are crawled here: the first ones of each kind."""


@dataclass(frozen=True, slots=True)
class Planted:
    """A hole, planted by a function, and the request of the finding."""

    attack: str
    plant: Callable[[Scene, Holes], None]
    finding: str


def show_foreign_agent(scene: Scene, holes: Holes) -> None:
    """Forget the organization on the page of an agent."""
    path = f"/dashboard/agents/{scene.victim.find_id('agent_id')}"
    holes.replace_cookie = lambda request: format_cookies(scene.victim.owner) if request.path == path else None


def ignore_origin(_: Scene, holes: Holes) -> None:
    holes.dropped = ("Origin", "Referer")


def forget_role(scene: Scene, holes: Holes) -> None:
    """Forget the role on the page of the audit log."""
    holes.replace_cookie = lambda request: (
        format_cookies(scene.victim.owner) if request.path == "/dashboard/audit" else None
    )


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
    Planted("oauth", redirect_anywhere, "authorize"),
    Planted("outbound-urls", accept_post("/v1/webhook-endpoints", 201), "POST /v1/webhook-endpoints"),
    Planted("carrier-callbacks", serve_files, "file of telnyx at"),
    Planted("actions-beyond-scopes", forget_action_scopes, "by a narrow key"),
    Planted("toll-fraud", accept_post("/v1/calls", 201), "call +"),
    Planted("hostile-requests", accept_post("/v1/agents", 200), "POST /v1/agents with"),
    Planted("slow-documents", fail_documents, "the short page"),
    Planted("dashboard-foreign-pages", show_foreign_agent, "/dashboard/agents/"),
    Planted("dashboard-roles", forget_role, "GET /dashboard/audit without the role"),
    Planted("dashboard-sessions", keep_ended_session, "a session that has ended"),
    Planted("planted-accounts", keep_planted_session, "the session of before"),
    Planted("sign-in", limit_nothing, "twelve wrong passwords"),
    Planted("website-widgets", ignore_origin, "POST widget messages from"),
    Planted("dashboard-forged-forms", ignore_origin, "evil.example"),
)


def format_cookies(browser: HttpClient) -> str:
    return "; ".join(f"{name}={value}" for name, value in browser.cookies.items())


@pytest.fixture(autouse=True)
def short_attacks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out variants and repetitions, which find no other holes than the first."""
    monkeypatch.setattr(crawl, "MAX_PAGES", PAGES)
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


@pytest.mark.timeout(600)
async def test_each_attack_finds_its_planted_hole(holes: Holes, operator: Operator) -> None:
    credentials = await asyncio.to_thread(create_credentials, operator.ask)
    async with open_scene(holes.url, credentials) as scene:
        missed = []
        for planted in PLANTED:
            planted.plant(scene, holes)
            result, *_ = await run_attacks(scene, [(planted.attack, ATTACKS[planted.attack])])
            holes.close()
            if not [finding for finding in result.findings if planted.finding in finding.request]:
                missed.append(planted.attack)
        assert missed == []
