"""The documentation in a browser: search by keyboard, languages of samples, requests to try, and accessibility."""

from collections.abc import AsyncIterator

import pytest_asyncio
from playwright.async_api import Browser, expect

from tests.fixtures.app import LivePlatform
from tests.fixtures.dashboard import Window, assert_no_complaints, open_context

MAX_BYTES = 100_000
COUNT_BYTES = "performance.getEntries().reduce((sum, one) => sum + (one.transferSize ?? 0), 0)"
PAGES = ("/docs", "/docs/api/agents", "/docs/api/errors", "/docs/api/events", "/docs/guides", "/docs/guides/api")


@pytest_asyncio.fixture
async def reader(browser: Browser, live: LivePlatform) -> AsyncIterator[Window]:
    """Somebody who is not signed in."""
    async with open_context(browser, live.runtime.settings.base_url) as context:
        window = Window(await context.new_page(), live.runtime.settings.base_url)
        yield window
        assert_no_complaints(window.complaints)


async def test_pages_are_accessible_fit_and_stay_within_their_budget(reader: Window) -> None:
    """Each is loaded once, without cookies and cache, on a phone, whose window is then widened."""
    page = reader.page
    client = await page.context.new_cdp_session(page)
    await client.send("Network.setCacheDisabled", {"cacheDisabled": True})
    for path in (*PAGES, "/docs/guides/how-to/dashboard", "/docs/nothing"):
        await page.context.clear_cookies()
        await page.set_viewport_size({"width": 390, "height": 900})
        await reader.open(path)
        size = await page.evaluate(COUNT_BYTES)
        assert 0 < size < MAX_BYTES or path not in PAGES, f"{path} has {size} bytes"
        for width in (390, 1440):
            await page.set_viewport_size({"width": width, "height": 900})
            await reader.check_accessibility()
            wide = await page.evaluate("document.documentElement.scrollWidth")
            assert wide <= width, f"{path} is {wide} wide"
    reader.complaints = [complaint for complaint in reader.complaints if "404" not in complaint]


async def test_search_works_with_the_keyboard_and_opens_the_menu_of_a_small_screen(reader: Window) -> None:
    page = reader.page
    await reader.open("/docs")
    await page.keyboard.press("/")
    await page.keyboard.type("start an outbound")
    await expect(page.get_by_role("option").first).to_contain_text("Start an outbound call")
    await page.keyboard.press("ArrowDown")
    await expect(page.get_by_role("option", selected=True)).to_have_count(1)
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/docs/api/calls#create_call")
    await page.keyboard.press("/")
    await page.keyboard.type("zzzzzz")
    await expect(page.get_by_role("option")).to_have_text("Nothing found.")
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("listbox")).to_be_hidden()
    await page.set_viewport_size({"width": 390, "height": 844})
    await reader.open("/docs")
    await page.keyboard.press("/")
    await expect(page.get_by_role("combobox")).to_be_focused()
    await page.keyboard.type("idempotency")
    await expect(page.get_by_role("option").first).to_be_visible()


async def test_the_chosen_language_holds_for_all_samples(reader: Window) -> None:
    page = reader.page
    await reader.open("/docs/api/calls")
    sample = page.locator("#create_call .samples")
    await expect(sample.locator("pre:visible")).to_contain_text("curl -X POST")
    await sample.get_by_role("button", name="Python").click()
    await expect(sample.locator("pre:visible")).to_contain_text("client.calls.create(")
    await reader.open("/docs/api/agents")
    await expect(page.locator("#list_agents pre:visible")).to_contain_text("client.agents.list(")


async def test_a_request_is_tried_with_a_key_that_is_stored_nowhere(reader: Window, live: LivePlatform) -> None:
    page = reader.page
    await reader.open("/docs/api/contacts")
    listing, creation = page.locator("#list_contacts"), page.locator("#create_contact")
    await listing.get_by_text("Try it").click()
    await listing.get_by_role("button", name="Send").click()
    await expect(listing.get_by_role("status")).to_contain_text("Enter an API key")
    await page.get_by_label("API key or access token").fill(live.caller.key)
    await listing.get_by_label("limit").fill("1")
    await listing.get_by_role("button", name="Send").click()
    await expect(listing.get_by_role("status")).to_contain_text('"total": 0')

    await creation.get_by_text("Try it").click()
    await creation.get_by_role("button", name="Send").click()
    await page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    assert (await live.caller.get("/v1/contacts")).json["total"] == 0
    await creation.get_by_role("button", name="Send").click()
    await page.get_by_role("dialog").get_by_role("button", name="Send").click()
    await expect(creation.get_by_role("status")).to_contain_text("201")
    assert (await live.caller.get("/v1/contacts")).json["total"] == 1

    kept = await page.evaluate(
        "JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie, location.href])"
    )
    assert live.caller.key not in kept
    await reader.open("/docs")
    await page.go_back()
    await expect(page.get_by_label("API key or access token")).to_have_value("")


async def test_pages_work_without_scripts(browser: Browser, live: LivePlatform) -> None:
    context = await browser.new_context(java_script_enabled=False)
    page = await context.new_page()
    await page.goto(f"{live.runtime.settings.base_url}/docs/api/calls")
    await expect(page.locator("#create_call pre:visible")).to_have_count(3)
    await expect(page.get_by_text("Try it").first).to_be_hidden()
    await expect(page.get_by_label("API key or access token")).to_be_hidden()
    await context.close()
