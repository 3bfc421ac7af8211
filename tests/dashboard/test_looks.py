"""The layout of pages with any content."""

from playwright.async_api import expect
from switchboard.foundation.database import now

from tests.fixtures.app import LivePlatform
from tests.fixtures.calls import add_call
from tests.fixtures.dashboard import Window, find_violations_in_both_schemes
from tests.fixtures.json_access import Json

WORDS = "Zahnarztpraxis Dr. Müller-Lüdenscheidt, Terminvereinbarung und Notfallannahme, Außenstelle Süd, nachmittags"
COUNT_NARROW_TILES = """amount => [...document.querySelectorAll(".tile")].filter((tile) => {
  tile.querySelector("dd").firstChild.textContent = amount;
  return tile.scrollWidth > tile.clientWidth;
}).length"""
LIST_WIDE_PARTS = """() => {
  document.body.style.letterSpacing = "0.12em";
  return [...document.querySelectorAll(".navigation, .navigation .sections")]
    .filter((part) => part.scrollWidth > part.clientWidth)
    .map((part) => `${part.className}: ${part.scrollWidth} of ${part.clientWidth}`);
}"""
"""Parts of the navigation that scroll sideways, with the letters apart (WCAG 2.2, 1.4.12): other fonts are wider."""
ADDRESS = f"https://example.com/hooks/{'a-path-without-an-end/' * 5}?token={'x' * 60}"


async def test_long_words_widen_no_page(window: Window, live: LivePlatform) -> None:
    caller = live.caller
    agent = await caller.post("/v1/agents", {"name": WORDS})
    endpoint = await caller.post("/v1/webhook-endpoints", {"url": ADDRESS})
    contact = await caller.post("/v1/contacts", {"phone_number": "+15550100001", "name": "x" * 200, "company": WORDS})
    calendar = await caller.post("/v1/calendars", {"provider": "local", "name": WORDS})
    hours: Json = {"slots": [{"days": ["mon", "wed", "fri"], "start": "09:00", "end": "17:00"}]}
    fields: Json = {"name": WORDS, "calendar_ids": [calendar.json["id"]], "hours": hours}
    kind = await caller.post("/v1/appointment-types", fields)
    assert agent.status == endpoint.status == contact.status == kind.status == 201
    await window.page.set_viewport_size({"width": 390, "height": 844})
    pages = (f"/agents/{agent.json['id']}", f"/webhooks/{endpoint.json['id']}", f"/contacts/{contact.json['id']}")
    for path in (
        "/calls",
        "/calls/new",
        "/agents",
        "/contacts",
        "/webhooks",
        "/webhooks/deliveries",
        "/campaigns/new",
        "/usage",
        "/audit",
        "/calendars",
        "/appointment-types",
        f"/appointment-types/{kind.json['id']}",
        *pages,
    ):
        await window.open(f"/dashboard{path}")
        wide = await window.page.evaluate("document.documentElement.scrollWidth")
        assert wide <= 390, f"{path} is {wide} wide"


async def test_long_words_of_each_language_widen_no_page(window: Window, live: LivePlatform) -> None:
    await live.caller.post("/v1/calendars", {"provider": "local", "name": "Front desk"})
    page = window.page
    for language in ("de", "es", "fr"):
        await page.set_viewport_size({"width": 1280, "height": 800})
        await window.open("/dashboard/account")
        await page.select_option("select[name=language]", language)
        await page.locator("form", has=page.locator("select[name=language]")).get_by_role("button").click()
        await page.wait_for_selector(f"html[lang={language}]")
        assert await page.evaluate(LIST_WIDE_PARTS) == [], language
        await page.set_viewport_size({"width": 390, "height": 844})
        for path in (
            "",
            "/account",
            "/agents",
            "/appointment-types/new",
            "/appointments",
            "/calls",
            "/general",
            "/providers",
            "/team",
            "/usage",
        ):
            await window.open(f"/dashboard{path}")
            wide = await page.evaluate("document.documentElement.scrollWidth")
            assert wide <= 390, f"{path} is {wide} wide ({language})"
            assert await page.evaluate(COUNT_NARROW_TILES, "−1.234,5678\xa0US$") == 0, f"{path} ({language})"


async def test_phones_show_rows_as_cards_that_are_still_a_table(window: Window, live: LivePlatform) -> None:
    await add_call(live.runtime, live.caller, now(), from_number="+15550100001")
    await window.page.set_viewport_size({"width": 390, "height": 844})
    await window.open("/dashboard/calls")
    row = window.page.get_by_role("table").get_by_role("row").filter(has_text="+1 555-010-0001")
    labels = await row.evaluate("row => [...row.cells].map(cell => getComputedStyle(cell, '::before').content)")
    assert labels[1:4] == ['"Contact"', '"Agent"', '"Direction"']
    places = [await cell.bounding_box() for cell in await row.get_by_role("cell").all()]
    tops = [place["y"] for place in places[1:] if place]
    assert tops == sorted(set(tops)), "the cells are below each other"
    await expect(window.page.get_by_role("columnheader", name="Duration")).to_be_attached()
    await window.check_accessibility()
    await row.get_by_role("checkbox", name="Select the call with +1 555-010-0001").check()
    await row.get_by_role("link").click()
    await window.page.wait_for_url("**/dashboard/calls/*")


PLANT_FAULTS = """() => {
  const list = `<ul><li>First</li><li>Second</li><li>Third</li></ul>`;
  const image = `<img src="data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAA=">`;
  document.querySelector("main").insertAdjacentHTML("beforeend", list + image);
  document.querySelector("main > ul > li:nth-child(2)").style.background = "#999";
}"""
"""An image without a text, and one of three words that is hard to read in dark mode."""


async def test_the_check_of_accessibility_finds_faults_between_elements_that_have_none(window: Window) -> None:
    """Of elements with the same colors only two are compared with what is behind them."""
    await window.open("/dashboard/contacts")
    await window.page.evaluate(PLANT_FAULTS)
    found = await find_violations_in_both_schemes(window.page)
    assert [(violation.split(": ")[:2], "Second" in violation) for violation in found] == [
        (["light", "image-alt"], False),
        (["dark", "color-contrast"], True),
    ], found
