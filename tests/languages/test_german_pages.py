"""A user chooses German in a browser, and has German pages, numbers, and dates."""

import re

import pytest
from playwright.async_api import Browser

from tests.fixtures.app import LivePlatform
from tests.fixtures.dashboard import open_owner_window

pytestmark = pytest.mark.system
GERMAN_DAY = re.compile(r"\b\d{1,2}\. (Jan|Feb|März|Apr|Mai|Juni|Juli|Aug|Sept|Okt|Nov|Dez)")


async def test_a_user_who_chooses_german_gets_german_pages_numbers_and_dates(
    browser: Browser, live: LivePlatform
) -> None:
    async with open_owner_window(browser, live) as window:
        page = window.page
        await window.open("/dashboard/account")
        await page.select_option("select[name=language]", "de")
        await page.locator("form", has=page.locator("select[name=language]")).get_by_role("button").click()
        await page.wait_for_selector("html[lang=de]")
        assert await page.inner_text("h1") == "Ihr Konto"
        await window.open("/dashboard")
        shown = await page.inner_text("main")
        assert "0,00\xa0$" in shown
        assert GERMAN_DAY.search(await page.text_content("main") or ""), shown
