"""Talking to an agent in the browser."""

import asyncio
import json
import wave
from pathlib import Path

import numpy as np
import pytest
from switchboard.engine.providers.configuration import configure_providers
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller, LivePlatform
from tests.fixtures.dashboard import People, launch_browser, open_owner_window
from tests.fixtures.monitors import synthesize_samples

RATE = 8000
MOVES = "meter => new Promise((done) => setInterval(() => meter.value > 0.3 && done(), 20))"
"""Until a meter shows that somebody speaks."""


def write_microphone_file(path: Path, text: str) -> Path:
    """Write a microphone file: silence for the length of a greeting, then a text."""
    samples = np.concatenate([np.zeros(4 * RATE, np.int16), synthesize_samples(text), np.zeros(6 * RATE, np.int16)])
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(samples.tobytes())
    return path


@pytest.mark.real_time
async def test_a_user_talks_to_an_agent_by_microphone(live: LivePlatform, tmp_path: Path) -> None:
    async with (
        launch_browser(
            microphone=write_microphone_file(tmp_path / "said.wav", "What are your opening hours?")
        ) as browser,
        open_owner_window(browser, live) as window,
    ):
        page = window.page
        await window.open(f"/dashboard/agents/{live.agent_id}/talk")
        await page.get_by_role("button", name="Talk", exact=True).click()
        moves = [asyncio.create_task(page.locator(meter).evaluate(MOVES)) for meter in ("[data-you]", "[data-agent]")]
        talk = page.get_by_role("log")
        await page.get_by_text("Connected, 0:").wait_for()
        # On a busy machine the question may interrupt the greeting, so it is repeated.
        await talk.get_by_text("We are open from seven").first.wait_for(timeout=120_000)
        await talk.get_by_text("Hello").first.wait_for()
        assert await talk.locator(".said.user").count()
        assert await asyncio.gather(*moves) == [None, None]
        await window.check_accessibility()
        await page.get_by_role("button", name="Hang up").click()
        await page.get_by_text("Call ended.").wait_for()
        assert await page.locator("meter").evaluate_all("meters => meters.map((meter) => meter.value)") == [0, 0]
        address = await page.get_by_role("link", name="Open the call and its recording").get_attribute("href")
    assert address
    call = await live.wait_for_end(address.rsplit("/", 1)[1])
    assert (call["status"], call["agent_id"], call["to_number"], call["ended_reason"]) == (
        "completed",
        live.agent_id,
        live.number,
        "caller_hung_up",
    )


async def test_the_page_explains_a_missing_carrier(people: People, caller: Caller, runtime: Runtime) -> None:
    member = await people.join(caller.organization_id, role="builder")
    page = f"/dashboard/agents/{(await caller.post('/v1/agents', {'name': 'Front desk'})).json['id']}/talk"
    assert (await member.post(page)).status == 200
    async with runtime.database.write(caller.organization_id) as session:
        await configure_providers(session, runtime.registry, runtime.keyring, [])
    refused = await member.post(page)
    assert (refused.status, "needs the loopback carrier" in json.loads(refused.html)["fault"]) == (409, True)


async def test_a_paused_agent_cannot_be_called(people: People, live: LivePlatform) -> None:
    member = await people.join(live.caller.organization_id, role="builder")
    started = json.loads((await member.post(f"/dashboard/agents/{live.agent_id}/talk")).html)
    assert (started["to_number"], "url" in started["connection"]) == (f"agent:{live.agent_id}", True)
    await member.post(f"/dashboard/agents/{live.agent_id}/pause")
    assert (await member.post(f"/dashboard/agents/{live.agent_id}/talk")).status == 409


async def test_other_organizations_agents_can_be_neither_called_nor_followed(
    people: People, live: LivePlatform, stranger: Caller
) -> None:
    outsider = await people.join(stranger.organization_id)
    insider = await people.join(live.caller.organization_id)
    page = f"/dashboard/agents/{live.agent_id}/talk"
    assert (await outsider.get(page)).status == 404
    assert (await outsider.post(page)).status == 404
    call = await live.simulate_call()
    fields: dict[str, str | list[str]] = {"carrier": "loopback", "carrier_call_id": call.carrier_call_id}
    assert (await outsider.post(f"{page}/transcript", fields)).status == 404
    assert (await insider.post(f"{page}/transcript", fields)).status == 409
    other = (await live.caller.post("/v1/agents", {"name": "Other"})).json["id"]
    assert (await insider.post(f"/dashboard/agents/{other}/talk/transcript", fields)).status == 404
    assert (
        await insider.post(f"{page}/transcript", {"carrier": "loopback", "carrier_call_id": "unknown"})
    ).status == 404
