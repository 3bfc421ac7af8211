"""The widget in Chromium, on a page of another origin with a strict content security policy."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import pytest_asyncio
from aiohttp import web
from playwright.async_api import Browser, Frame, Page

from tests.dashboard.test_talking import write_microphone_file
from tests.fixtures.app import LivePlatform
from tests.fixtures.dashboard import find_violations, find_violations_in_both_schemes, launch_browser
from tests.fixtures.http_server import serve_application
from tests.fixtures.json_access import Json, objects_at

POLICY = (
    "default-src 'none'; script-src {origin}; frame-src {origin}; base-uri 'none'; require-trusted-types-for 'script'"
)
HOST_PAGE = """<!doctype html><html lang="en"><head><title>Shop</title>
<meta name="viewport" content="width=device-width"></head>
<body><main><h1>Shop</h1><p>Bread and rolls.</p><button>Buy</button></main>
<script src="{origin}/widget/v1.js" data-key="{key}" {attributes} async></script></body></html>"""


@dataclass(slots=True)
class Shop:
    """A site that shows a widget."""

    live: LivePlatform
    url: str
    widget: Json
    attributes: list[str] = field(default_factory=list)

    async def change(self, **fields: object) -> None:
        response = await self.live.caller.send("PATCH", f"/v1/widgets/{self.widget['id']}", fields)
        assert response.status == 200, response.body


@pytest_asyncio.fixture
async def shop(live: LivePlatform) -> AsyncIterator[Shop]:
    origin, attributes = live.runtime.settings.base_url, list[str]()
    widget = (await live.caller.post("/v1/widgets", {"name": "Shop", "agent_id": live.agent_id})).json

    async def show(_request: web.Request) -> web.Response:
        shown = HOST_PAGE.format(origin=origin, key=widget["public_key"], attributes=" ".join(attributes))
        policy = {"Content-Security-Policy": POLICY.format(origin=origin), "Referrer-Policy": "no-referrer"}
        return web.Response(text=shown, content_type="text/html", headers=policy)

    application = web.Application()
    application.router.add_get("/", show)
    async with serve_application(application) as url:
        made = Shop(live, url, widget, attributes)
        await made.change(allowed_origins=[url])
        yield made


@asynccontextmanager
async def open_page(
    browser: Browser, *, width: int = 1440, language: str = "en-US", refused: Sequence[str] = ()
) -> AsyncIterator[Page]:
    """Open a page, on which any complaint of the browser fails the test: violations of a policy are some. `refused` are
    words of complaints about an expected refusal.
    """
    context = await browser.new_context(viewport={"width": width, "height": 844}, locale=language)
    context.set_default_timeout(20_000)
    complaints: list[str] = []
    try:
        page = await context.new_page()
        page.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        yield page
    finally:
        await context.close()
    unexpected = [complaint for complaint in complaints if not any(word in complaint for word in refused)]
    assert not unexpected, unexpected


async def find_frame(page: Page) -> Frame:
    """Wait for the widget's frame."""
    element = await page.wait_for_selector("iframe", state="visible")
    frame = await element.content_frame() if element is not None else None
    assert frame is not None
    return frame


@pytest.mark.parametrize("width", [390, 1440])
async def test_a_visitor_writes_on_a_page_with_a_strict_policy(browser: Browser, shop: Shop, width: int) -> None:
    async with open_page(browser, width=width) as page:
        await page.goto(shop.url)
        frame = await find_frame(page)
        assert await find_violations_in_both_schemes(page, frame) == []
        await frame.get_by_role("button", name="Chat with us").click()
        field = frame.get_by_label("Message")
        assert await field.evaluate("field => field === document.activeElement")
        await field.fill("What are your opening hours?")
        await field.press("Enter")
        await frame.get_by_role("log").get_by_text("We are open from seven to six").wait_for()
        assert await find_violations_in_both_schemes(page, frame) == []
        box = await page.locator("iframe").bounding_box()
        assert box is not None
        assert (box["width"] == width) == (width == 390), "a phone shows the panel on the whole screen"
        await page.reload()
        frame = await find_frame(page)
        await frame.get_by_role("button", name="Chat with us").click()
        await frame.get_by_text("We are open from seven to six").wait_for()
        assert await frame.get_by_role("log").locator("p").count() == 3, "the conversation goes on, with one greeting"


async def test_the_keyboard_stays_in_the_panel_until_escape(browser: Browser, shop: Shop) -> None:
    async with open_page(browser) as page:
        await page.goto(shop.url)
        frame = await find_frame(page)
        await frame.get_by_role("button", name="Chat with us").focus()
        await page.keyboard.press("Enter")
        await frame.get_by_role("dialog").wait_for()
        seen = []
        for _ in range(12):
            await page.keyboard.press("Tab")
            seen.append(await frame.evaluate("document.activeElement.id || document.activeElement.className"))
        assert set(seen) == {"call", "close", "messages", "text", "send"}
        await page.keyboard.press("Escape")
        assert await frame.evaluate("document.activeElement.id") == "launcher"


@pytest.mark.real_time
async def test_a_visitor_goes_on_with_the_chat_by_microphone(shop: Shop, tmp_path: Path) -> None:
    recording = write_microphone_file(tmp_path / "said.wav", "Can you repeat that?")
    # A look for messages may come after the call has ended.
    async with launch_browser(microphone=recording) as browser, open_page(browser, refused=["404"]) as page:
        await page.goto(shop.url)
        frame = await find_frame(page)
        await frame.get_by_role("button", name="Chat with us").click()
        await frame.get_by_label("Message").fill("What are your opening hours?")
        await frame.get_by_label("Message").press("Enter")
        answers = frame.get_by_role("log").get_by_text("We are open from seven")
        await answers.first.wait_for()
        await frame.get_by_role("button", name="Talk").click()
        await frame.get_by_text("Connected.").wait_for()
        await answers.nth(1).wait_for(timeout=120_000)
        assert await frame.get_by_label("Message").is_disabled()
        assert await find_violations(frame) == []
        await frame.get_by_role("button", name="Hang up").click()
        await frame.get_by_text("The call has ended.").wait_for()
    call, chat = objects_at((await shop.live.caller.get("/v1/calls")).json, "items")
    lines = objects_at((await shop.live.caller.get(f"/v1/calls/{call['id']}/transcript")).json, "items")
    assert (lines[0]["role"], "We are open from seven" in str(lines[1]["content"])) == ("user", True), "no greeting"
    ended = await shop.live.wait_for_end(call["id"])
    assert (ended["status"], ended["from_number"], ended["agent_id"]) == ("completed", "widget", shop.live.agent_id)
    assert ended["metadata"] == {"widget_id": shop.widget["id"], "widget": "Shop", "chat_id": chat["id"]}


async def test_a_site_that_is_not_allowed_shows_nothing(browser: Browser, shop: Shop) -> None:
    await shop.change(allowed_origins=["https://www.example.com"])
    async with open_page(browser, refused=["403", "frame-ancestors", "allowed sites"]) as page:
        explained = page.expect_console_message(lambda said: f"{shop.url} is not among its allowed sites" in said.text)
        async with page.expect_response("**/frame") as asked, explained:
            await page.goto(shop.url)
        assert (await asked.value).status == 403
        assert await page.locator("iframe").is_hidden()


async def test_limits_are_explained_in_the_visitors_language(browser: Browser, shop: Shop) -> None:
    await shop.change(max_spend_per_day=0)
    async with open_page(browser, language="de-DE", refused=["429"]) as page:
        await page.goto(shop.url)
        frame = await find_frame(page)
        await frame.get_by_role("button", name="Chatten Sie mit uns").click()
        await frame.get_by_label("Nachricht").fill("Hallo")
        await frame.evaluate(
            'window.fetch = () => Promise.resolve(new Response(\'{"code": "spend_limit_reached"}\', {status: 429}))'
        )
        await frame.get_by_role("button", name="Senden").click()
        await frame.get_by_text("heute nicht mehr verfügbar").wait_for()
        assert await frame.get_by_label("Nachricht").input_value() == "Hallo"


async def test_a_page_chooses_the_language_and_the_widget_its_corner(browser: Browser, shop: Shop) -> None:
    shop.attributes.append('data-language="fr"')
    await shop.change(position="left", color="#ffd400", title="Boulangerie")
    async with open_page(browser) as page:
        await page.goto(shop.url)
        frame = await find_frame(page)
        await frame.get_by_role("button", name="Discutez avec nous").click()
        await frame.get_by_role("heading", name="Boulangerie", level=2).wait_for()
        box = await page.locator("iframe").bounding_box()
        assert box is not None
        assert box["x"] == 0
        assert await find_violations(frame) == [], "text on a light color is dark"


@pytest.mark.parametrize("width", [390, 1440])
async def test_the_demo_page_needs_no_site(browser: Browser, shop: Shop, width: int) -> None:
    await shop.change(demo_enabled=True, allowed_origins=[])
    async with open_page(browser, width=width) as page:
        await page.goto(f"{shop.live.runtime.settings.base_url}/demo/{shop.widget['public_key']}")
        frame = await find_frame(page)
        await frame.get_by_role("dialog", name="Agent").wait_for()
        assert await find_violations(page) == []
        await frame.get_by_label("Message").fill("What are your opening hours?")
        await frame.get_by_role("button", name="Send").click()
        await frame.get_by_text("We are open from seven").wait_for()
