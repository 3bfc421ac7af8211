"""Every page that links lead to, in Chromium: without a violation of axe-core of any impact at the width of a phone and
of a desktop, in light and dark, not wider than the window, and within a budget of bytes.
"""

import re
from collections import deque
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import pytest
from playwright.async_api import Browser
from pydantic import JsonValue

from tests.dashboard.test_calls import create_spoken_call
from tests.fixtures.app import LivePlatform
from tests.fixtures.dashboard import Window, open_owner_window
from tests.fixtures.json_access import Json, text_at

WIDTHS = (390, 1440)
MOST_BYTES = 100_000
"""A page with its styles and scripts, as they are sent to a browser without a cache."""
ID = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}")
SKIPPED = ("/dashboard/exports", "/dashboard/static", "/dashboard/client-sdks")
FILES = ("/recording", "/text", "/export")
FIND_LINKS = "links => links.map(link => new URL(link.getAttribute('href'), location).href)"
FEWEST = 58
"""Pages that the links of the overview lead to; a link that is lost makes fewer."""

pytestmark = pytest.mark.system


async def create_rows(live: LivePlatform) -> None:
    """Create a row of each kind that a page shows."""
    caller = live.caller
    agent, number = live.agent_id, live.number_id

    async def create(path: str, body: Json) -> str:
        answer = await caller.post(path, body)
        assert answer.status in (200, 201), answer
        return str(answer.json.get("id"))

    await create("/v1/contacts", {"phone_number": "+15550100001", "name": "Ada", "tags": "vip", "notes": "Likes cake"})
    await create("/v1/do-not-call", {"phone_number": "+15550100099", "note": "Asked us"})
    endpoint = await create("/v1/webhook-endpoints", {"url": "https://example.com/hook", "description": "CRM"})
    await create(f"/v1/webhook-endpoints/{endpoint}/test", {})
    tag: Json = {"type": "tag_contact", "params": {"phone_number": "{{ data.to_number }}", "tag": "written"}}
    await create("/v1/automations", {"name": "Tag", "trigger_type": "sms.sent", "actions": [tag]})
    await create("/v1/sms", {"from_number_id": number, "to_number": "+15550100001", "body": "Hello"})
    people: list[JsonValue] = [{"phone_number": "+15550100001", "name": "Ada"}]
    await create("/v1/campaigns", {"name": "Spring", "agent_id": agent, "phone_number_id": number, "contacts": people})
    simulation: Json = {"name": "Greets", "lines": ["Hello"], "assertions": [{"type": "said", "text": "hello"}]}
    await create(f"/v1/agents/{agent}/simulations", simulation)
    base = await create("/v1/knowledge-bases", {"name": "House rules"})
    await create(f"/v1/knowledge-bases/{base}/documents", {"filename": "hours.txt", "content": "Open from 7 to 18."})
    calendar = await create("/v1/calendars", {"provider": "local", "name": "Front desk"})
    hours: Json = {
        "slots": [{"days": ["mon", "tue", "wed", "thu", "fri", "sat", "sun"], "start": "00:00", "end": "23:59"}],
        "holidays": ["2026-12-25"],
        "special_days": [{"date": "2026-12-24", "hours": [{"start": "09:00", "end": "12:00"}]}],
    }
    question: Json = {"name": "born_on", "description": "When were you born?", "required": True}
    kind: Json = {"name": "Visit", "calendar_ids": [calendar], "hours": hours, "fields": [question]}
    type_id = await create("/v1/appointment-types", {**kind, "check_fields": ["born_on"]})
    assert (await caller.send("PUT", f"/v1/agents/{agent}", {"appointment_type_ids": [type_id]})).status == 200
    free = await caller.get(f"/v1/appointment-types/{type_id}/availability?limit=1")
    person: Json = {"phone_number": "+15550100001", "name": "Ada", "fields": {"born_on": "1815-12-10"}}
    await create("/v1/appointments", {"slot_token": text_at(free.json, "items", 0, "slot_token"), **person})
    await create_spoken_call(live.runtime, live.caller)


@dataclass(eq=False)
class Traffic:
    """Bytes of responses as they were sent, from the last `reset()` on, without a cache and without audio."""

    received: int = 0
    audio: set[str] = field(default_factory=set)

    @classmethod
    async def watch(cls, window: Window) -> "Traffic":
        traffic = cls()
        session = await window.page.context.new_cdp_session(window.page)
        await session.send("Network.enable")
        await session.send("Network.setCacheDisabled", {"cacheDisabled": True})
        session.on("Network.responseReceived", traffic.note_audio)
        session.on("Network.loadingFinished", traffic.count)
        return traffic

    def note_audio(self, event: dict[str, str]) -> None:
        if event["type"] == "Media":
            self.audio.add(event["requestId"])

    def count(self, event: dict[str, str]) -> None:
        if event["requestId"] not in self.audio:
            self.received += round(float(event["encodedDataLength"]))

    def reset(self) -> None:
        self.received = 0


@pytest.mark.timeout(1800)
async def test_every_page_is_accessible_fits_and_stays_within_its_budget(browser: Browser, live: LivePlatform) -> None:
    await create_rows(live)
    async with open_owner_window(browser, live, superadmin=True) as window:
        traffic = await Traffic.watch(window)
        seen, due = {"/dashboard"}, deque(["/dashboard"])
        faults: list[str] = []
        while due:
            path = due.popleft()
            for width in WIDTHS:
                await window.page.set_viewport_size({"width": width, "height": 900})
                traffic.reset()
                await window.open(path)
                faults += await find_faults(window, width, traffic)
            for link in await window.page.eval_on_selector_all("a[href]", FIND_LINKS):
                address = urlsplit(link)
                place = address.path + (f"?{address.query}" if address.query else "")
                kind = ID.sub("ID", address.path)
                if is_page(address.path) and kind not in seen:
                    seen.add(kind)
                    due.append(place)
        assert not faults, "\n".join(faults)
        assert len(seen) >= FEWEST, sorted(seen)


def is_page(path: str) -> bool:
    return path.startswith("/dashboard") and not path.startswith(SKIPPED) and not path.endswith(FILES)


async def find_faults(window: Window, width: int, traffic: Traffic) -> list[str]:
    """Return what is wrong with the open page at a width."""
    page = window.page
    place = f"{page.url} at {width} px"
    faults = []
    await page.wait_for_load_state("load")
    if traffic.received > MOST_BYTES:
        faults.append(f"{place}: {traffic.received} bytes")
    wide = await page.evaluate("document.documentElement.scrollWidth")
    if wide > width:
        faults.append(f"{place}: {wide} px wide")
    try:
        await window.check_accessibility()
    except AssertionError as error:
        faults.append(f"{width} px: {error}")
    return faults
