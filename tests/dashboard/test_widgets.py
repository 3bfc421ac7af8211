"""Widgets in the dashboard: setting up, the preview, and usage."""

import re

import pytest

from tests.fixtures.app import Caller, LivePlatform
from tests.fixtures.dashboard import People, Window, find_violations, find_violations_in_both_schemes


async def create_widget(caller: Caller) -> tuple[str, str]:
    """Create a widget of a new agent; return the paths of both pages."""
    agent = (await caller.post("/v1/agents", {"name": "Bakery", "greeting_message": "Hello."})).json["id"]
    widget = (await caller.post("/v1/widgets", {"name": "Website", "agent_id": agent})).json["id"]
    return f"/dashboard/agents/{agent}/widgets", f"/dashboard/widgets/{widget}"


async def test_a_member_sets_up_a_widget(people: People, caller: Caller) -> None:
    member = await people.join(caller.organization_id, role="builder")
    agent = (await caller.post("/v1/agents", {"name": "Bakery"})).json["id"]
    assert "No widgets yet" in (await member.get(f"/dashboard/agents/{agent}/widgets")).html
    page = (await member.post(f"/dashboard/agents/{agent}/widgets")).location
    shown = (await member.get(page)).html
    assert re.search(r"/widget/v1\.js&#34; data-key=&#34;pk_\w{32}|/widget/v1\.js\" data-key=\"pk_\w{32}", shown)
    fields: dict[str, str | list[str]] = {
        "name": "Shop",
        "allowed_origins[]": "https://www.example.com\r\n\r\n https://*.example.org \r\n",
        "demo_enabled": "true",
        "text_enabled": "true",
        "voice_enabled": "false",
        "color": "#1d4ed8",
        "position": "left",
        "title": "",
        "greeting": "Good morning.",
        "language": "",
        "max_spend_per_day": "2.50",
        "max_concurrent_sessions": "3",
    }
    assert (await member.post(page, fields)).status == 303
    widget = (await caller.get(f"/v1/widgets/{page.rpartition('/')[2]}")).json
    assert widget["allowed_origins"] == ["https://www.example.com", "https://*.example.org"]
    assert (widget["name"], widget["voice_enabled"], widget["title"], widget["language"]) == ("Shop", False, None, None)
    assert (widget["max_spend_per_day"], widget["max_concurrent_sessions"]) == (2.5, 3)
    assert "/demo/pk_" in (await member.get(page)).html
    await member.post(page, {**fields, "allowed_origins[]": ""})
    assert (await caller.get(f"/v1/widgets/{page.rpartition('/')[2]}")).json["allowed_origins"] == []


async def test_a_wrong_site_is_shown_next_to_its_field(people: People, caller: Caller) -> None:
    member = await people.join(caller.organization_id, role="builder")
    _, page = await create_widget(caller)
    refused = await member.post(page, {"name": "Shop", "allowed_origins[]": "https://a.example\nb.example/shop"})
    assert refused.status == 422
    assert "must be an origin like https://www.example.com" in refused.html
    assert "b.example/shop" in refused.html


async def test_a_widget_is_turned_off_and_on_and_deleted(people: People, caller: Caller) -> None:
    owner = await people.join(caller.organization_id)
    listing, page = await create_widget(caller)
    api = f"/v1/widgets/{page.rpartition('/')[2]}"
    await owner.post(f"{page}/turn-off")
    assert (await caller.get(api)).json["enabled"] is False
    assert "Turn the widget on to see the preview" in (await owner.get(page)).html
    await owner.post(f"{page}/turn-on")
    assert (await caller.get(api)).json["enabled"] is True
    assert (await owner.post(f"{page}/delete")).location == listing
    assert (await owner.get(page)).status == 404


async def test_other_organizations_widgets_are_unknown(people: People, caller: Caller, stranger: Caller) -> None:
    outsider = await people.join(stranger.organization_id)
    listing, page = await create_widget(caller)
    for path in (listing, page):
        assert (await outsider.get(path)).status == 404
        assert (await outsider.post(path, {"name": "Mine"})).status == 404


@pytest.mark.parametrize("width", [390, 1440])
async def test_the_preview_follows_the_form(window: Window, live: LivePlatform, width: int) -> None:
    page = window.page
    await page.set_viewport_size({"width": width, "height": 900})
    widget = (await live.caller.post("/v1/widgets", {"name": "Website", "agent_id": live.agent_id})).json["id"]
    await window.open(f"/dashboard/widgets/{widget}")
    preview = page.frame_locator("[data-preview]")
    await preview.get_by_role("dialog", name="Agent").wait_for()
    await page.get_by_label("Title").fill("Our bakery")
    await page.get_by_label("Greeting of a chat").fill("Good morning.")
    await page.get_by_label("Color").fill("#ffd400")
    await preview.get_by_role("dialog", name="Our bakery").wait_for()
    await preview.get_by_text("Good morning.").wait_for()
    header = preview.locator("header")
    assert await header.evaluate("header => getComputedStyle(header).backgroundColor") == "rgb(255, 212, 0)"
    assert await header.evaluate("header => getComputedStyle(header).color") == "rgb(0, 0, 0)"
    await page.get_by_label("Language of the buttons").select_option("German")
    await preview.get_by_role("button", name="Senden").wait_for()
    assert await page.evaluate("document.documentElement.scrollWidth") <= width
    assert await find_violations_in_both_schemes(page) == []
    await page.get_by_role("button", name="Save").click()
    await page.get_by_text("Saved.").wait_for()
    await window.open(f"/dashboard/agents/{live.agent_id}/widgets")
    assert await find_violations(page) == []
