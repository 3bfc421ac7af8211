"""Regenerate the pictures of docs/screenshots: `make screenshots`. Runs a separate platform with the demo
organization and made-up calls, in Chromium.
"""

import asyncio
import random
import socket
import sys
import tempfile
from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import aiohttp
from playwright.async_api import BrowserContext
from switchboard.apps.cli.demo import EMAIL, NUMBER, Demo, seed
from switchboard.apps.embedded import DataDirectory, EmbeddedServers
from switchboard.apps.process_runtime import open_process_runtime
from switchboard.foundation.database import now
from switchboard.foundation.encryption.content import Content, seal_content
from switchboard.foundation.settings import Settings
from switchboard.migrations import upgrade
from switchboard.plugin_sdk import SimulatedCarrier, SpokenLine, TelephonyProvider
from switchboard.resources.calls.models import Call
from switchboard.resources.contacts import service as contacts
from switchboard.resources.contacts.schemas import ContactCreate
from switchboard.resources.phone_numbers import purchases
from switchboard.runtime import Runtime

from tests.fixtures.app import run_server
from tests.fixtures.dashboard import launch_browser, open_context

PEOPLE = (
    "Ada Lovelace",
    "Grace Hopper",
    "Alan Turing",
    "Hedy Lamarr",
    "Claude Shannon",
    "Edith Clarke",
    "Emile Berliner",
    "Almon Strowger",
)
ENDINGS = (
    ("completed", "agent_hung_up"),
    ("completed", "caller_hung_up"),
    ("completed", "transferred"),
    ("no-answer", None),
    ("busy", None),
)
PAGES = {
    "overview": "/dashboard",
    "agent": "/dashboard/agents",
    "knowledge": "/dashboard/knowledge/search?query=Which+cake+has+no+flour",
    "calls": "/dashboard/calls",
    "call": "/dashboard/calls?direction=inbound",
    "texts": "/dashboard/texts",
    "contacts": "/dashboard/contacts",
    "campaign": "/dashboard/campaigns",
    "numbers": "/dashboard/numbers",
    "automation": "/dashboard/automations",
    "webhooks": "/dashboard/webhooks",
    "providers": "/dashboard/providers",
    "usage": "/dashboard/usage",
}
OPENED = {"agent", "call", "campaign", "automation", "texts", "numbers"}
"""Whose first row is opened."""
LINES = ("What are your opening hours?", "How much is a loaf?", "Where are you?", "Goodbye")


async def main(folder: Path) -> None:
    """Save a picture of each page to a folder."""
    with tempfile.TemporaryDirectory() as place, socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
        directory = DataDirectory(Path(place) / "data")
        directory.claim()
        async with EmbeddedServers(directory):
            await upgrade(directory.database_url)
            settings = Settings(data_dir=Path(place) / "data", port=port, tenants_dir=Path("tenants"))
            async with open_process_runtime(
                settings, database_url=directory.database_url, redis_url=directory.redis_url
            ) as runtime:
                demo = await seed(runtime)
                async with run_server(runtime):
                    await _create_demo_data(runtime, demo)
                    async with launch_browser() as browser, open_context(browser, settings.base_url) as context:
                        await _take_screenshots(context, demo, folder)
        directory.release()


async def _create_demo_data(runtime: Runtime, demo: Demo) -> None:
    """Create a month of ended calls, a live call, a text message, and one of every other resource."""
    chance = random.Random(7)
    async with runtime.database.write(demo.organization_id) as session:
        for n, name in enumerate(PEOPLE):
            fields = {
                "phone_number": f"+155501000{n:02}",
                "name": name,
                "company": chance.choice(("Bell Labs", "Bletchley Park", "MGM", None)),
            }
            await contacts.create_contact(session, ContactCreate.model_validate(fields))
        for back in range(30):
            calls = [_create_call(chance, demo.organization_id, back) for _ in range(chance.randint(4, 18))]
            await seal_content(session, *calls)
            session.add_all(calls)
    async with aiohttp.ClientSession(
        runtime.settings.base_url, headers={"Authorization": f"Bearer {demo.api_key}"}
    ) as client:
        await _create_resources(client)
    async with runtime.providers.use(demo.organization_id, TelephonyProvider) as carrier:
        assert isinstance(carrier, SimulatedCarrier)
        callbacks = purchases.build_callback_urls(runtime.settings.base_url, demo.organization_id, "loopback")
        await carrier.simulate_text_message(
            from_number="+15550100003", to_number=NUMBER, body="What are your opening hours?", callbacks=callbacks
        )
        lines = [SpokenLine(text=line) for line in LINES]
        await carrier.simulate_call(from_number="+15550100001", to_number=NUMBER, lines=lines, callbacks=callbacks)


async def _create_resources(client: aiohttp.ClientSession) -> None:
    async def post(path: str, body: Mapping[str, object]) -> str:
        async with client.post(path, json=body) as response:
            assert response.status == 201, await response.text()
            return str((await response.json())["id"])

    async def first(path: str) -> str:
        async with client.get(path) as response:
            return str((await response.json())["items"][0]["id"])

    base = await post("/v1/knowledge-bases", {"name": "The bakery", "description": "What we bake, and what is in it."})
    text = "Rye bread is baked on Mondays and Thursdays. The sourdough is forty years old.\n\n"
    text += "The almond cake has nuts and no flour."
    await post(f"/v1/knowledge-bases/{base}/documents", {"filename": "breads.txt", "content": text})
    await post(
        "/v1/webhook-endpoints",
        {"url": "https://example.com/hooks/switchboard", "events": ["call.completed", "sms.received"]},
    )
    tag = {"type": "tag_contact", "params": {"phone_number": "{{ data.from_number }}", "tag": "called us"}}
    automation = {
        "name": "Remember who called",
        "trigger_type": "call.completed",
        "trigger_filters": {"data.direction": "inbound"},
        "actions": [tag],
    }
    await post("/v1/automations", automation)
    people = [{"phone_number": f"+155501000{n:02}"} for n in (1, 2, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14)]
    agent, number = await first("/v1/agents"), await first("/v1/phone-numbers")
    campaign = {
        "name": "Ready for collection",
        "agent_id": agent,
        "phone_number_id": number,
        "contacts": people,
        "max_concurrent": 2,
    }
    async with client.post(f"/v1/campaigns/{await post('/v1/campaigns', campaign)}/start") as response:
        assert response.ok, await response.text()


def _create_call(chance: random.Random, organization_id: UUID, days_ago: int) -> Call:
    moment = now() - timedelta(days=days_ago, seconds=chance.randint(0, 30_000) + 3600)
    status, reason = chance.choices(ENDINGS, (9, 6, 2, 2, 1))[0]
    seconds = chance.randint(20, 240) if status == "completed" else 0
    first = chance.randint(380, 620)
    latency = {
        "turn": 1,
        "endpoint_ms": 210,
        "transcript_ms": 240,
        "first_token_ms": first - 120,
        "first_audio_ms": first - 10,
        "first_frame_ms": first,
    }
    inbound = chance.random() < 0.6
    contact_number = f"+155501000{chance.randint(0, 7):02}"
    return Call(
        organization_id=organization_id,
        created_at=moment,
        started_at=moment,
        ended_at=moment + timedelta(seconds=seconds),
        status=status,
        ended_reason=reason,
        direction="inbound" if inbound else "outbound",
        from_number=contact_number if inbound else NUMBER,
        to_number=NUMBER if inbound else contact_number,
        duration_seconds=seconds,
        cost_total=Decimal(seconds) * Decimal("0.0011"),
        carrier="loopback",
        call_successful=chance.random() < 0.85,
        user_sentiment=chance.choices(("positive", "neutral", "negative"), (5, 4, 1))[0] if seconds else "unknown",
        latencies=[latency] if seconds else [],
        call_summary=Content(
            "The caller asked for the opening hours and ordered a loaf of rye bread for tomorrow." if seconds else None
        ),
    )


async def _take_screenshots(context: BrowserContext, demo: Demo, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    page = await context.new_page()
    await page.goto("/dashboard/sign-in")
    await page.screenshot(path=folder / "sign-in.png")
    await page.get_by_label("E-mail address").fill(EMAIL)
    await page.get_by_label("Password").fill(demo.password)
    await page.get_by_role("button", name="Sign in", exact=True).click()
    await page.wait_for_url("**/dashboard")
    for name, path in PAGES.items():
        await page.goto(path)
        if name in OPENED:
            await page.locator("main a[href*='/dashboard/']:not(.button, .back, [href$='/new'])").first.click()
            await page.wait_for_load_state()
        await page.screenshot(path=folder / f"{name}.png")
    await page.set_viewport_size({"width": 390, "height": 844})
    await page.emulate_media(color_scheme="dark")
    await page.goto("/dashboard")
    await page.screenshot(path=folder / "phone.png")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
