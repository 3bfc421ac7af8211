"""Calls of other organizations are on time while the extensions of one hang, and its `event_published` blocks."""

import asyncio

import pytest
from switchboard.plugin_sdk.registry import Registry

from tests.fixtures.app import LivePlatform, Organizations, create_bakery, fresh_number
from tests.fixtures.automations import create_automation
from tests.fixtures.json_access import objects_at
from tests.fixtures.lateness import BLOCK_SECONDS, LATE_SECONDS, measure_lateness
from tests.plugins import faulty_extensions
from tests.plugins.faulty_extensions import Fault, FaultyTool

PROMPT = 'When the caller says "opening hours": say "One moment." and call faulty_tool()'
TOOL_SECONDS = 2.0


@pytest.fixture
def registry() -> Registry:
    """The installed plugins, and the faulty one."""
    found = Registry.discover()
    assert found.add("faulty", faulty_extensions).faults == []
    return found


async def test_other_calls_are_on_time(
    live: LivePlatform, organizations: Organizations, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Fault, "current", "waits forever")
    monkeypatch.setattr(faulty_extensions, "BLOCK_SECONDS", BLOCK_SECONDS)
    monkeypatch.setattr(FaultyTool, "time_limit_seconds", TOOL_SECONDS)
    other = await create_bakery(live.runtime, await organizations.create(), fresh_number())
    await create_automation(live.caller, {"type": "faulty_action", "params": {}}, trigger_type="call.started")
    changed = await live.caller.send("PUT", f"/v1/agents/{live.agent_id}", {"system_prompt": PROMPT})
    assert changed.status == 200, changed.body
    measuring = asyncio.create_task(measure_lateness())
    _, others = await asyncio.gather(
        live.simulate_call("What are your opening hours?", "Goodbye"),
        other.simulate_call("What are your opening hours?", "Goodbye"),
    )
    measuring.cancel()
    assert await measuring < LATE_SECONDS
    assert others.first_reply_ms is not None
    assert others.first_reply_ms < BLOCK_SECONDS * 1000
    (call, *_) = objects_at((await live.caller.get("/v1/calls")).json, "items")
    transcript = (await live.caller.get(f"/v1/calls/{call['id']}/transcript")).json
    assert "faulty_tool took too long" in str(transcript)
