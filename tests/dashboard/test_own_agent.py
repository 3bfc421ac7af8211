"""From an empty dashboard to an agent of one's own that answers from one's own document, as
`docs/tutorials/your-own-agent.md` has it.
"""

from pathlib import Path

from playwright.async_api import expect

from tests.fixtures.dashboard import Window


async def test_a_new_agent_answers_from_an_uploaded_document(window: Window, tmp_path: Path) -> None:
    page = window.page
    rules = tmp_path / "rules.txt"
    rules.write_text("Dogs are welcome on the terrace, but not inside.\n")
    await window.open("/dashboard")
    await page.get_by_role("link", name="Knowledge").click()
    await page.get_by_role("link", name="New knowledge base").first.click()
    await page.get_by_label("Name").fill("House rules")
    await page.get_by_role("button", name="Create").click()
    await page.get_by_label("Drop files here, or choose files").set_input_files(rules)
    await page.locator(".badge", has_text="ready").wait_for()
    await page.get_by_role("link", name="Create an agent").click()
    await page.get_by_role("link", name="Restaurant").click()
    await page.get_by_label("House rules").check()
    await page.get_by_role("button", name="Create agent").click()
    await page.get_by_placeholder("Write as a caller would speak").fill("Are dogs welcome inside?")
    await page.get_by_role("button", name="Send").click()
    await expect(page.locator(".chat p", has_text="Dogs are welcome on the terrace, but not inside.")).to_be_visible()
    await expect(page.locator(".chat").get_by_text("1 passage")).to_be_visible()
