"""A user connects an application in Chromium. The application is a separate server with an independent client
library.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest
from aiohttp import ClientSession, web
from oauthlib.oauth2 import WebApplicationClient
from playwright.async_api import Browser, Page
from switchboard.resources.oauth import clients

from tests.fixtures.app import LivePlatform
from tests.fixtures.dashboard import PASSWORD, Window, assert_no_complaints, create_person, open_context


class CalendarSync:
    """The application: `/` redirects to the consent page, `/cb` receives the response and redirects to `/done`."""

    def __init__(self, platform: str) -> None:
        self.platform = platform
        self.library, self.secret, self.url = WebApplicationClient(""), "", ""
        self.agents, self.scope = 0, "agents:read calls:read"

    async def begin(self, _request: web.Request) -> web.Response:
        verifier = self.library.create_code_verifier(64)
        challenge = self.library.create_code_challenge(verifier, "S256")
        url, _, _ = self.library.prepare_authorization_request(
            f"{self.platform}/oauth/authorize",
            state="state of the browser",
            redirect_url=f"{self.url}/cb",
            scope=self.scope,
            code_challenge=challenge,
            code_challenge_method="S256",
        )
        raise web.HTTPSeeOther(url)

    async def hear(self, request: web.Request) -> web.Response:
        if "error" in request.query:
            raise web.HTTPSeeOther(f"{self.url}/done?{request.query['error']}")
        url, headers, body = self.library.prepare_token_request(
            f"{self.platform}/api/oauth/token",
            authorization_response=str(request.url),
            redirect_url=f"{self.url}/cb",
            state="state of the browser",
            client_secret=self.secret,
            code_verifier=self.library.code_verifier,
        )
        async with ClientSession() as http:
            async with http.post(url, data=body, headers=headers) as response:
                self.library.parse_request_body_response(await response.text())
            uri, bearer, _ = self.library.add_token(f"{self.platform}/v1/agents", headers={})
            async with http.get(uri, headers=bearer) as response:
                self.agents = (await response.json())["total"]
        raise web.HTTPSeeOther(f"{self.url}/done")

    async def show(self, _request: web.Request) -> web.Response:
        return web.Response(
            text='<!doctype html><html lang="en"><title>Connected</title><link rel="icon" href="data:,">Connected',
            content_type="text/html",
        )


@asynccontextmanager
async def run_calendar_sync(live: LivePlatform) -> AsyncIterator[CalendarSync]:
    """Run the registered application."""
    sync = CalendarSync(live.runtime.settings.base_url)
    server = web.Application()
    server.add_routes([web.get("/", sync.begin), web.get("/cb", sync.hear), web.get("/done", sync.show)])
    runner = web.AppRunner(server)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    sync.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    client, secret = await clients.register_client(
        live.runtime.database, name="Calendar sync", redirect_uris=[f"{sync.url}/cb"]
    )
    sync.library, sync.secret = WebApplicationClient(client.client_id), str(secret)
    try:
        yield sync
    finally:
        await runner.cleanup()


async def sign_in(page: Page, email: str) -> None:
    await page.get_by_label("E-mail address").fill(email)
    await page.get_by_label("Password").fill(PASSWORD)
    await page.get_by_role("button", name="Sign in", exact=True).click()


async def test_a_user_connects_an_application_and_disconnects_it(
    browser: Browser, live: LivePlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OAUTHLIB_INSECURE_TRANSPORT", "1")
    owner = await create_person(live.runtime, live.caller.client, live.caller.organization_id)
    stranger = await create_person(live.runtime, live.caller.client, None)
    async with open_context(browser, live.runtime.settings.base_url) as context, run_calendar_sync(live) as sync:
        page = await context.new_page()
        window = Window(page, live.runtime.settings.base_url)
        await page.goto(sync.url)
        await sign_in(page, stranger.email)
        await page.get_by_text("You do not belong to an organization yet").wait_for()
        await page.get_by_role("button", name="Sign out").click()
        await sign_in(page, owner.email)
        await page.get_by_role("heading", name="Calendar sync requests access").wait_for()
        await window.check_accessibility()
        await page.get_by_role("button", name="Allow").click()
        await page.wait_for_url(f"{sync.url}/done")
        assert sync.agents == 1
        await window.open("/dashboard/connected-apps")
        await window.check_accessibility()
        await window.press("Disconnect")
        await page.get_by_text("No connected applications").wait_for()
        assert_no_complaints(
            [complaint for complaint in window.complaints if urlsplit(sync.url).netloc not in complaint]
        )


async def test_an_invalid_request_is_redirected_right_after_sign_in(
    browser: Browser, live: LivePlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chromium applies the sign-in page's policy to redirects after its form; the application is on another host."""
    monkeypatch.setenv("OAUTHLIB_INSECURE_TRANSPORT", "1")
    owner = await create_person(live.runtime, live.caller.client, live.caller.organization_id)
    async with open_context(browser, live.runtime.settings.base_url) as context, run_calendar_sync(live) as sync:
        sync.scope = "everything"
        page = await context.new_page()
        await page.goto(sync.url)
        await sign_in(page, owner.email)
        await page.wait_for_url(f"{sync.url}/done?invalid_scope")
        await page.goto(sync.url)
        await page.wait_for_url(f"{sync.url}/done?invalid_scope")
