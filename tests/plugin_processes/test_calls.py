"""Calls whose plugin goes wrong in a process of its own: other providers take over, and nobody else notices."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from switchboard.apps.tenant_files.defaults import list_embedded_providers
from switchboard.engine.providers.configuration import ProviderSpec, configure_providers
from switchboard.foundation.observability import metrics
from switchboard.plugin_sdk.registry import Capability, Registry
from switchboard.runtime import Runtime

from tests.fixtures.app import LivePlatform, Organizations, create_bakery, fresh_number, run_server
from tests.fixtures.eventually import eventually
from tests.fixtures.json_access import Json, at, objects_at
from tests.fixtures.lateness import LATE_SECONDS, measure_lateness
from tests.plugin_processes import faulty_plugin

pytestmark = pytest.mark.system

FIELDS = {
    Capability.LLM: "llm_provider",
    Capability.TEXT_TO_SPEECH: "tts_provider",
    Capability.SPEECH_TO_TEXT: "stt_provider",
}
FAULTS = ("exit", "block", "leak")
"""Faults that a plugin in the platform's process would share with every call."""


@pytest.fixture(scope="session")
def registry() -> Registry:
    """The installed plugins, and the faulty one."""
    found = Registry.discover()
    assert found.add("faulty", faulty_plugin).faults == []
    return found


@pytest.fixture
async def live(runtime: Runtime, organizations: Organizations) -> AsyncIterator[LivePlatform]:
    async with run_server(runtime):
        yield await create_bakery(runtime, await organizations.create(), fresh_number())


async def configure(live: LivePlatform, capability: Capability, fault: str) -> None:
    """Let the agent use the faulty provider, in a process of its own, before the organization's working one."""
    runtime = live.runtime
    faulty = ProviderSpec(capability, "faulty", {"fault": fault, "place": "call"}, "own")
    async with runtime.database.write(live.caller.organization_id) as session:
        await configure_providers(
            session, runtime.registry, runtime.keyring, [faulty, *list_embedded_providers(runtime.registry)]
        )
    changed = await live.caller.send("PUT", f"/v1/agents/{live.agent_id}", {FIELDS[capability]: "faulty"})
    assert changed.status == 200, changed.body


async def find_last_call(live: LivePlatform) -> Json:
    async def look() -> Json:
        (call, *_) = objects_at((await live.caller.get("/v1/calls")).json, "items")
        return await live.wait_for_end(call["id"])

    return await eventually(look, lambda call: call["served_by"])


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("capability", FIELDS)
async def test_another_provider_takes_over_and_other_calls_are_on_time(
    live: LivePlatform, organizations: Organizations, capability: Capability, fault: str
) -> None:
    other = await create_bakery(live.runtime, await organizations.create(), fresh_number())
    await configure(live, capability, fault)
    measuring = asyncio.create_task(measure_lateness())
    simulated, others = await asyncio.gather(
        live.simulate_call("What are your opening hours?", "Goodbye"),
        other.simulate_call("What are your opening hours?", "Goodbye"),
    )
    measuring.cancel()
    assert simulated.first_reply_ms is not None
    assert others.first_reply_ms is not None
    assert await measuring < LATE_SECONDS
    call = await find_last_call(live)
    assert call["status"] == "completed", call
    assert at(call, "served_by", capability.value) != "faulty"
    assert (await find_last_call(other))["provider_failures"] == []


async def test_a_lost_process_is_counted(live: LivePlatform) -> None:
    def count() -> float:
        labels = {"plugin": "-", "provider": "faulty"}
        return metrics.registry.get_sample_value("switchboard_plugin_process_losses_total", labels) or 0.0

    before = count()
    await configure(live, Capability.LLM, "exit")
    await live.simulate_call("What are your opening hours?", "Goodbye")
    (failure,) = objects_at(await find_last_call(live), "provider_failures")
    assert "the process of - - ended with exit status 7" in str(failure["error"])
    assert count() > before
