"""Talking to an agent, and being rung, over a carrier's client SDK. The SDKs' files are stand-ins with the interface
that the vendors document.
"""

import asyncio
import shutil
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser
from pydantic import JsonValue
from switchboard.apps.tenant_files.defaults import list_embedded_providers
from switchboard.engine.providers.configuration import ProviderSpec, configure_providers
from switchboard.foundation.settings import Settings
from switchboard.plugin_sdk import SimulatedCall
from switchboard.plugin_sdk.registry import Capability
from switchboard.runtime import Runtime

from tests.api.test_browser_calls import TWILIO, prefer_twilio
from tests.carriers.lines import open_telnyx_line, open_twilio_line
from tests.dashboard.test_talking import MOVES
from tests.fixtures.app import Caller, LivePlatform, Organizations
from tests.fixtures.dashboard import People, Window, open_owner_window
from tests.fixtures.eventually import eventually

FILES = Path(__file__).parent / "sdks"
APPLICATION: dict[str, JsonValue] = {name: TWILIO[name] for name in ("api_sid", "api_secret", "application_sid")}
Ring = Callable[[dict[str, Any]], Coroutine[None, None, SimulatedCall]]


@pytest.fixture
def sdks(tmp_path: Path) -> Path:
    """The operator's folder of SDK files."""
    return shutil.copytree(FILES, tmp_path / "sdks")


@pytest.fixture
def settings(settings: Settings, sdks: Path) -> Settings:
    return settings.model_copy(update={"browser_sdks_dir": sdks})


async def wait_for_answered_call(live: LivePlatform) -> None:
    """Wait until the only call has been answered."""

    async def list_statuses() -> list[str]:
        items: Any = (await live.caller.get("/v1/calls")).json["items"]
        return [item["status"] for item in items]

    await eventually(list_statuses, lambda statuses: statuses == ["in-progress"])


async def talk(window: Window, live: LivePlatform, calls: dict[str, Any], ring: Ring) -> list[object]:
    """Talk from the page, whose SDK has the carrier call the platform, and hang up. Returns the actions of the SDK."""
    actions: list[object] = []
    page = window.page

    async def dialed(params: dict[str, Any]) -> str:
        ringing = asyncio.create_task(ring(params))
        actions.append(ringing)
        await wait_for_answered_call(live)
        return next(iter(calls))

    await page.expose_function("dialed", dialed)
    await page.expose_function("muted", lambda muted: actions.append(f"muted: {muted}"))
    await page.expose_function("hungUp", lambda: actions.append("hung up"))
    await window.open(f"/dashboard/agents/{live.agent_id}/talk")
    await page.get_by_role("button", name="Talk", exact=True).click()
    moves = [asyncio.create_task(page.locator(meter).evaluate(MOVES)) for meter in ("[data-you]", "[data-agent]")]
    await page.get_by_text("Connected, 0:").wait_for()
    await page.get_by_role("log").get_by_text("Hello").first.wait_for()
    await asyncio.gather(*moves)
    await page.get_by_role("button", name="Mute").click()
    await window.check_accessibility()
    await page.get_by_role("button", name="Hang up").click()
    await page.get_by_text("Call ended.").wait_for()
    address = await page.get_by_role("link", name="Open the call and its recording").get_attribute("href")
    assert address
    await page.evaluate("globalThis.fault = 'The token has expired.'")
    await page.get_by_role("button", name="Talk again").click()
    await page.get_by_text(": The token has expired.").wait_for()
    await page.get_by_role("button", name="Talk again").wait_for()
    assert (await live.wait_for_end(address.rsplit("/", 1)[1]))["agent_id"] == live.agent_id
    ringing, *rest = actions
    assert isinstance(ringing, asyncio.Task)
    assert (await ringing).answered
    return rest


async def test_the_page_calls_over_twilios_sdk(
    browser: Browser, runtime: Runtime, organizations: Organizations
) -> None:
    async with (
        open_twilio_line(runtime, organizations, **APPLICATION) as (line, twilio),
        open_owner_window(browser, line.live) as window,
    ):
        application = f"{runtime.settings.base_url}/carriers/twilio/{line.live.caller.organization_id}/events/browser"

        async def ring(params: dict[str, Any]) -> SimulatedCall:
            assert params == {"To": f"agent:{line.live.agent_id}"}
            return await twilio.call_from_browser("user_1", params["To"], application, ["Goodbye"])

        assert await talk(window, line.live, twilio.legs, ring) == ["muted: True", "hung up"]
        await window.page.get_by_text("The call goes through Twilio").wait_for()


async def test_the_page_calls_over_telnyxs_sdk(
    browser: Browser, runtime: Runtime, organizations: Organizations
) -> None:
    async with (
        open_telnyx_line(runtime, organizations) as (line, telnyx),
        open_owner_window(browser, line.live) as window,
    ):

        async def ring(params: dict[str, Any]) -> SimulatedCall:
            assert params["headers"] == {"X-Switchboard-To": f"agent:{line.live.agent_id}"}
            return await telnyx.call_from_browser(
                "gencred", params["destinationNumber"], ["Goodbye"], headers=params["headers"]
            )

        assert await talk(window, line.live, telnyx.legs, ring) == ["muted: True", "hung up"]
        await window.page.get_by_text("The call goes through Telnyx").wait_for()


@pytest.mark.parametrize("carrier", ["twilio", "telnyx"])
async def test_the_page_is_rung_over_a_carriers_sdk(
    browser: Browser, runtime: Runtime, organizations: Organizations, carrier: str
) -> None:
    opening = (
        open_twilio_line(runtime, organizations, **APPLICATION)
        if carrier == "twilio"
        else open_telnyx_line(runtime, organizations)
    )
    async with opening as (line, _), open_owner_window(browser, line.live) as window:
        page = window.page
        actions: list[str] = []
        await page.expose_function("muted", lambda muted: actions.append(f"muted: {muted}"))
        await page.expose_function("hungUp", lambda: actions.append("hung up"))
        await window.open("/dashboard/live/answer")
        await page.get_by_role("textbox", name="Name").fill("reception")
        await page.get_by_role("button", name="Answer calls here").click()
        waiting = page.get_by_text("Waiting for calls to client:reception.")
        await waiting.wait_for()
        await page.evaluate("ring('+15550100001')")
        await page.get_by_text("Call from +15550100001").wait_for()
        await page.get_by_role("button", name="Decline").click()
        await waiting.wait_for()
        await page.evaluate("ring('+15550100002')")
        await page.get_by_role("button", name="Answer", exact=True).click()
        await page.get_by_text("Connected, 0:").wait_for()
        meters = ("[data-you]", "[data-caller-level]")
        await asyncio.gather(*(page.locator(meter).evaluate(MOVES) for meter in meters))
        await page.get_by_role("button", name="Mute").click()
        await page.get_by_role("button", name="Hang up").click()
        await waiting.wait_for()
        assert actions == ["muted: True", "hung up"]


async def test_only_the_talk_page_may_connect_to_the_carrier_and_only_with_the_sdk_installed(
    runtime: Runtime, people: People, caller: Caller, sdks: Path
) -> None:
    await prefer_twilio(runtime, caller)
    member = await people.join(caller.organization_id, role="builder")
    page = f"/dashboard/agents/{(await caller.post('/v1/agents', {'name': 'Front desk'})).json['id']}/talk"
    talk_page, other_page = await member.get(page), await member.get("/dashboard")
    policy = talk_page.headers["Content-Security-Policy"]
    assert "connect-src 'self' https://eventgw.twilio.com wss://voice-js.roaming.twilio.com;" in policy
    assert "script-src 'self';" in policy
    assert "twilio" not in other_page.headers["Content-Security-Policy"]
    assert 'data-sdk="/dashboard/client-sdks/twilio.min.js"' in talk_page.html
    assert '"sdk":"twilio-voice"' in (await member.post(page)).html.replace(" ", "")
    (sdks / "twilio.min.js").unlink()
    without = await member.get(page)
    assert "data-sdk" not in without.html
    assert "directly to this server" in without.html
    assert without.headers["Content-Security-Policy"] == other_page.headers["Content-Security-Policy"]
    assert '"sdk":"switchboard-loopback"' in (await member.post(page)).html.replace(" ", "")


async def test_a_carrier_without_browser_settings_is_not_used(runtime: Runtime, people: People, caller: Caller) -> None:
    account = {name: TWILIO[name] for name in ("account_sid", "auth_token")}
    async with runtime.database.write(caller.organization_id) as session:
        providers = [ProviderSpec(Capability.TELEPHONY, "twilio", account), *list_embedded_providers(runtime.registry)]
        await configure_providers(session, runtime.registry, runtime.keyring, providers)
    member = await people.join(caller.organization_id, role="builder")
    page = f"/dashboard/agents/{(await caller.post('/v1/agents', {'name': 'Front desk'})).json['id']}/talk"
    assert "directly to this server" in (await member.get(page)).html
    assert (await member.post(page)).status == 200


async def test_sdk_files_are_served_to_members_and_other_files_are_not(
    people: People, caller: Caller, sdks: Path
) -> None:
    member = await people.join(caller.organization_id, role="builder")
    response = await member.get("/dashboard/client-sdks/telnyx.bundle.mjs")
    assert (response.status, response.html) == (200, (FILES / "telnyx.bundle.mjs").read_text())
    assert (response.headers["Content-Type"].partition(";")[0], response.headers["Cache-Control"]) == (
        "text/javascript",
        "no-cache",
    )
    (sdks / "other.js").write_text("// none of ours")
    (sdks / "twilio.min.js").unlink()
    for name in ("other.js", "twilio.min.js", "..%2Fsdks%2Ftelnyx.bundle.mjs", "."):
        assert (await member.get(f"/dashboard/client-sdks/{name}")).status == 404, name
