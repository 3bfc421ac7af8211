"""The pages of live calls: supervision in Chromium, whose microphone plays speech, with a connected caller."""

import asyncio
import json
import wave
from pathlib import Path

import aiohttp
import numpy as np
import numpy.typing as npt
import pytest
from playwright.async_api import Browser, expect
from sqlmodel import col, select
from switchboard.foundation.database import now
from switchboard.foundation.events.models import Event
from switchboard.resources.calls.models import Call
from switchboard.runtime import Runtime

from tests.fixtures.app import UNKNOWN_ID, Caller, LivePlatform
from tests.fixtures.caller_voice import speak_as_caller
from tests.fixtures.calls import add_call
from tests.fixtures.dashboard import People, launch_browser, open_owner_window
from tests.fixtures.monitors import Samples, Telephone, connect_telephone, synthesize_samples

PERSON = "Good afternoon. How are you?"
FAREWELL = "Goodbye"
RATE = 48_000
PAUSE_SECONDS = 1.5
PIECE = 400
ALIKE = 0.7


def write_microphone_file(path: Path, text: str) -> Path:
    """Write a microphone file: a text and a pause, which Chromium repeats."""
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(speak_as_caller(text, sample_rate=RATE) + bytes(int(2 * RATE * PAUSE_SECONDS)))
    return path


def compute_envelope(samples: Samples) -> npt.NDArray[np.float64]:
    """Return the loudness of each 50 ms; the root evens out a browser's automatic gain."""
    pieces = samples[: len(samples) // PIECE * PIECE].astype(np.float64).reshape(-1, PIECE)
    return np.asarray(np.mean(np.square(pieces), axis=1) ** 0.25)


def compare_rhythm(expected: Samples, received: Samples) -> float:
    """Return the similarity of the best-matching part to a voice, 0 to 1: browsers change samples, not the rhythm."""
    pattern, envelope = compute_envelope(expected), compute_envelope(received)
    if len(envelope) < len(pattern):
        return 0.0
    parts = np.lib.stride_tricks.sliding_window_view(envelope, len(pattern))
    parts = parts[parts.any(axis=1)]
    return max((float(np.corrcoef(pattern, part)[0, 1]) for part in parts), default=0.0)


async def wait_until_heard(caller: Telephone, text: str, *, since: int) -> None:
    """Wait until the caller has heard the text since that position. On a busy machine the browser's audio has gaps, and
    the microphone repeats the text.
    """
    expected = synthesize_samples(text)

    def compare() -> float:
        # The latest only: to compare minutes again and again takes the processor that the browser needs.
        return compare_rhythm(expected, caller.get_received_audio()[since:][-3 * len(expected) :])

    async with asyncio.timeout(120):
        while await asyncio.to_thread(compare) < ALIKE:
            await caller.phone.wait(0.3)


@pytest.mark.real_time
async def test_a_viewer_listens_and_is_offered_nothing_else(browser: Browser, live: LivePlatform) -> None:
    async with open_owner_window(browser, live, role="viewer") as window, connect_telephone(live):
        page = window.page
        await window.open("/dashboard/live")
        await page.get_by_role("link", name="Listen to").click()
        await page.get_by_role("button", name="Listen").click()
        await expect(page.get_by_role("button", name="Stop listening")).to_be_visible()
        await expect(page.locator("[data-state]")).to_have_text("The agent is listening.")
        for name in ("Take over", "Whisper", "Hang up"):
            await expect(page.get_by_role("button", name=name)).to_be_hidden()


@pytest.mark.real_time
async def test_a_supervisor_listens_takes_over_speaks_and_hands_back(live: LivePlatform, tmp_path: Path) -> None:
    async with (
        launch_browser(microphone=write_microphone_file(tmp_path / "person.wav", PERSON)) as browser,
        open_owner_window(browser, live) as window,
        connect_telephone(live) as caller,
    ):
        page = window.page
        await window.open("/dashboard/live")
        await page.get_by_role("link", name="Listen to").wait_for()
        await window.check_accessibility()
        await page.get_by_role("link", name="Listen to").click()
        await page.get_by_role("button", name="Listen").click()
        await expect(page.locator("[data-state]")).to_have_text("The agent is listening.")
        await page.get_by_label("Whisper to the agent").fill("Be brief.")
        await page.get_by_role("button", name="Whisper").click()
        await page.locator(".said.system").filter(has_text="Be brief.").filter(has_text="@").wait_for()
        await window.check_accessibility()
        await page.get_by_role("button", name="Take over").click()
        await expect(page.locator("[data-state]")).to_have_text("You have the call.")
        await expect(page.get_by_role("button", name="Hand back")).to_be_focused()
        taken_over_at = len(caller.get_received_audio())
        await wait_until_heard(caller, PERSON, since=taken_over_at)
        await page.locator(".said.agent").filter(has_text="@").filter(has_text="how are you").first.wait_for()
        await window.check_accessibility()
        await page.get_by_role("button", name="Hand back").click()
        await expect(page.locator("[data-state]")).to_contain_text("The agent")
        handed_back_at = len(caller.get_received_audio())
        await caller.say(FAREWELL)
        await page.wait_for_url(f"**/dashboard/calls/{caller.call_id}")
        await page.locator(".said.user").filter(has_text=FAREWELL.lower()).wait_for()
        await page.locator(".said.agent").filter(has_text="Goodbye.").wait_for()
        await page.get_by_text("The agent hung up").wait_for()
        await page.get_by_role("slider", name="Position in the recording").wait_for()
        assert compare_rhythm(synthesize_samples(PERSON), caller.get_received_audio()[handed_back_at:]) < ALIKE
    async with live.runtime.database.write(live.caller.organization_id) as session:
        assert (await session.exec(select(Event).where(col(Event.name) == "call.takeover"))).one()


@pytest.mark.real_time
async def test_a_supervisor_keeps_the_call_over_a_reconnect_and_hangs_up(live: LivePlatform, tmp_path: Path) -> None:
    async with (
        launch_browser(microphone=write_microphone_file(tmp_path / "person.wav", PERSON)) as browser,
        open_owner_window(browser, live) as window,
        connect_telephone(live) as caller,
    ):
        page = window.page
        await page.add_init_script(
            "window.sockets = []; window.WebSocket = class extends WebSocket {"
            " constructor(url) { super(url); window.sockets.push(this); } }"
        )
        await window.open(f"/dashboard/live/{caller.call_id}")
        await page.get_by_role("button", name="Listen").click()
        await page.get_by_role("button", name="Take over").click()
        await expect(page.locator("[data-state]")).to_have_text("You have the call.")
        await page.evaluate("window.sockets[0].close()")
        await page.get_by_text("The connection was lost.").wait_for()
        await page.get_by_text("The connection was lost.").wait_for(state="hidden")
        await expect(page.locator("[data-state]")).to_have_text("You have the call.")
        await window.press("Hang up")
        await page.wait_for_url(f"**/dashboard/calls/{caller.call_id}")
        await page.get_by_text("A person took over the call").wait_for()
        assert await page.get_by_text("A person took the call over.").count() == 1


async def test_an_ended_call_is_shown_like_any_other(people: People, caller: Caller, runtime: Runtime) -> None:
    call = await _create_ended_call(runtime, caller)
    owner = await people.join(caller.organization_id)
    assert (await owner.get(f"/dashboard/live/{call.id}")).location == f"/dashboard/calls/{call.id}"
    refused = await owner.post(f"/dashboard/live/{call.id}/ticket")
    assert refused.status == 409
    assert json.loads(refused.html)["fault"].startswith("The call is not live")
    assert "No live calls" in (await owner.get("/dashboard/live")).html


async def test_other_organizations_calls_cannot_be_followed(
    people: People, caller: Caller, stranger: Caller, runtime: Runtime
) -> None:
    foreign_call = await _create_ended_call(runtime, stranger)
    owner = await people.join(caller.organization_id)
    for call_id in (foreign_call.id, UNKNOWN_ID):
        assert (await owner.get(f"/dashboard/live/{call_id}")).status == 404
        assert (await owner.get(f"/dashboard/live/{call_id}/said")).status == 404
        assert (await owner.post(f"/dashboard/live/{call_id}/ticket")).status == 404


async def test_signing_out_or_leaving_the_organization_ends_monitoring(live: LivePlatform, people: People) -> None:
    colleague, former_member = (
        await people.join(live.caller.organization_id),
        await people.join(live.caller.organization_id, role="builder"),
    )
    async with connect_telephone(live) as caller, aiohttp.ClientSession() as http:
        for person in (colleague, former_member):
            url = json.loads((await person.post(f"/dashboard/live/{caller.call_id}/ticket")).html)["url"]
            async with http.ws_connect(url, origin=live.runtime.settings.base_url) as socket:
                assert (await socket.receive_json())["type"] == "state"
                if person is former_member:
                    await colleague.sign_in()
                    assert (await colleague.post(f"/dashboard/team/{former_member.user_id}/remove")).status == 303
                else:
                    assert (await person.post("/dashboard/sign-out")).status == 303
                async with asyncio.timeout(60):
                    while (await socket.receive()).type != aiohttp.WSMsgType.CLOSE:
                        await socket.send_json({"type": "ping"})


async def _create_ended_call(runtime: Runtime, caller: Caller) -> Call:
    return await add_call(runtime, caller, now())
