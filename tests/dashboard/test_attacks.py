"""Attacks by another site's page in the browser of a signed-in user."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from aiohttp import web
from playwright.async_api import Browser

from tests.fixtures.app import LivePlatform
from tests.fixtures.dashboard import PASSWORD, create_person, open_context, sign_in_window

TRICKS = """<!doctype html><title>Kittens</title>
<iframe id="frame" src="{victim}/dashboard/sign-in"></iframe>
<form id="add" method="post" action="{victim}/dashboard/contacts/new">
<input name="phone_number" value="+15550100077"></form>
<form id="login" method="post" action="{victim}/dashboard/sign-in">
  <input name="email" value="{email}"><input name="password" value="{password}"></form>"""


@asynccontextmanager
async def serve_evil_site(port: int, victim: str, email: str) -> AsyncIterator[str]:
    """Serve another site, with another host name, so that same-site cookies are not sent."""

    async def page(_request: web.Request) -> web.Response:
        return web.Response(text=TRICKS.format(victim=victim, email=email, password=PASSWORD), content_type="text/html")

    application = web.Application()
    application.router.add_get("/", page)
    runner = web.AppRunner(application)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", port).start()
        yield f"http://localhost:{port}/"
    finally:
        await runner.cleanup()


async def test_another_site_cannot_frame_post_or_sign_in(
    browser: Browser, live: LivePlatform, unused_tcp_port: int
) -> None:
    base_url = live.runtime.settings.base_url
    owner = await create_person(live.runtime, live.caller.client, live.caller.organization_id)
    attacker = await create_person(live.runtime, live.caller.client, live.caller.organization_id)
    async with (
        open_context(browser, base_url) as context,
        serve_evil_site(unused_tcp_port, base_url, attacker.email) as evil,
    ):
        window = await sign_in_window(context, live, email=owner.email)
        page = await context.new_page()
        await page.goto(evil)
        framed = page.frame(url=lambda url: url.startswith(base_url))
        assert framed is None or "Password" not in await framed.content(), "clickjacking"
        # Without its cookie the request is anonymous and is redirected to sign in, which has the cookie and leads home.
        for form, path, status in (("add", "/dashboard", 200), ("login", "/dashboard/sign-in", 403)):
            await page.goto(evil)
            async with page.expect_navigation() as answered:
                await page.eval_on_selector(f"#{form}", "form => form.submit()")
            response = await answered.value
            assert (urlsplit(response.url).path, response.status) == (path, status), form
        await window.open("/dashboard/contacts")
        await window.page.get_by_text("No contacts yet").wait_for()
        await window.page.get_by_text(owner.email).wait_for()
