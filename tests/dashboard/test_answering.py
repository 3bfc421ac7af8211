"""Answering calls in the browser."""

import asyncio
import json
from functools import partial
from pathlib import Path

import pytest
from playwright.async_api import Page
from pydantic import JsonValue
from switchboard.engine.providers.configuration import configure_providers
from switchboard.runtime import Runtime

from tests.api.test_browser_calls import prefer_twilio
from tests.api.test_client_calls import CLIENT, call, transfer_to_client
from tests.carriers.test_scenarios import INTRODUCTION
from tests.dashboard.test_talking import MOVES, write_microphone_file
from tests.fixtures.app import Caller, LivePlatform
from tests.fixtures.dashboard import People, launch_browser, open_owner_window
from tests.fixtures.eventually import eventually
from tests.fixtures.json_access import objects_at

PAGE = "/dashboard/live/answer"


async def wait_for_calls(page: Page) -> None:
    await page.get_by_role("textbox", name="Name").fill("reception")
    await page.get_by_role("button", name="Answer calls here").click()
    await page.get_by_text("Waiting for calls to client:reception.").wait_for()


async def find_target(live: LivePlatform) -> JsonValue:
    """Return where the only call was transferred to."""
    (only,) = objects_at((await live.caller.get("/v1/calls")).json, "items")
    return only["transferred_to"]


@pytest.mark.real_time
async def test_a_user_declines_and_answers_calls(live: LivePlatform, tmp_path: Path) -> None:
    await transfer_to_client(live, INTRODUCTION)
    microphone = write_microphone_file(tmp_path / "said.wav", "Hello, this is the reception")
    async with launch_browser(microphone=microphone) as browser, open_owner_window(browser, live) as window:
        page = window.page
        await window.open("/dashboard/live")
        await page.get_by_role("link", name="Answer calls here").click()
        await wait_for_calls(page)
        await window.check_accessibility()
        calling = asyncio.create_task(call(live, stays=True))
        await page.get_by_role("button", name="Decline").click(timeout=40_000)
        await page.get_by_text("Waiting for calls to client:reception.").wait_for()
        # The caller stays with the agent, who tries again at the caller's next words.
        answer = page.get_by_role("button", name="Answer", exact=True)
        await answer.wait_for(timeout=40_000)
        await page.get_by_text(f"Call from {live.number}").wait_for()
        await window.check_accessibility()
        await answer.click()
        await page.get_by_text("Connected, 0:").wait_for()
        await asyncio.gather(*(page.locator(meter).evaluate(MOVES) for meter in ("[data-you]", "[data-caller-level]")))
        await window.check_accessibility()
        await page.get_by_role("button", name="1", exact=True).click()
        await eventually(partial(find_target, live), lambda target: target == CLIENT)
        await page.get_by_role("button", name="Hang up").click()
        await page.get_by_text("Waiting for calls to client:reception.").wait_for()
        assert (await calling)["ended_reason"] == "transferred"
        await page.get_by_role("button", name="Stop answering calls").click()
        await page.get_by_text("Calls do not ring here.").wait_for()


async def test_the_page_explains_what_is_missing(people: People, caller: Caller, runtime: Runtime) -> None:
    member = await people.join(caller.organization_id, role="builder")
    assert "without a carrier" in (await member.get(PAGE)).html
    started = json.loads((await member.post(PAGE, {"name": "reception"})).html)
    assert (started["carrier"], started["connection"]["sdk"]) == ("loopback", "switchboard-loopback")
    assert (await member.post(PAGE, {"name": "front desk"})).status == 422, "nobody is rung there"
    await prefer_twilio(runtime, caller)
    assert "needs the client SDK of Twilio" in (await member.get(PAGE)).html
    async with runtime.database.write(caller.organization_id) as session:
        await configure_providers(session, runtime.registry, runtime.keyring, [])
    refused = await member.post(PAGE, {"name": "reception"})
    assert (refused.status, json.loads(refused.html)["fault"]) == (
        409,
        "None of the organization's carriers can ring browsers.",
    )
    assert "None of the organization&#39;s carriers can ring browsers." in (await member.get(PAGE)).html
