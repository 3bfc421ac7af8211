"""Turn detectors of plugins in calls: they are asked, named, and done without."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import suppress
from types import SimpleNamespace
from typing import ClassVar

import pytest
from switchboard.apps.tenant_files.defaults import list_embedded_providers
from switchboard.engine.providers.configuration import ProviderSpec, configure_providers
from switchboard.plugin_sdk import PossibleTurn, ProviderSettings, TurnDetector, TurnPrediction, hookimpl
from switchboard.plugin_sdk.registry import Capability, Registry
from switchboard.runtime import Runtime
from switchboard_turn_smart.worker_process import SHARED

from tests.fixtures.app import LivePlatform, Organizations, create_bakery, fresh_number, run_server
from tests.fixtures.eventually import eventually
from tests.fixtures.json_access import Json, at, objects_at


class Listening(TurnDetector[ProviderSettings]):
    """Takes every turn for complete."""

    name = "listening"
    title = "Listening"
    asked: ClassVar[list[PossibleTurn]] = []

    async def check(self) -> None:
        """Succeed always."""

    async def predict(self, turn: PossibleTurn) -> TurnPrediction:
        self.asked.append(turn)
        return TurnPrediction(0.9)


class Stuck(Listening):
    """Never answers."""

    name = "stuck"
    title = "Stuck"

    async def predict(self, turn: PossibleTurn) -> TurnPrediction:
        await asyncio.Event().wait()
        return TurnPrediction(0.0)


class Unopenable(Listening):
    """Cannot be opened."""

    name = "unopenable"
    title = "Unopenable"

    async def open(self) -> None:
        raise KeyError("model")


@pytest.fixture(scope="session")
def registry() -> Registry:
    """The installed plugins, and one with these detectors."""
    found = Registry.discover()
    detectors = hookimpl(lambda: [Listening, Stuck, Unopenable], specname="turn_detectors")
    found.add("listening", SimpleNamespace(turn_detectors=detectors))
    return found


@pytest.fixture
async def live(runtime: Runtime, organizations: Organizations) -> AsyncIterator[LivePlatform]:
    async with run_server(runtime):
        yield await create_bakery(runtime, await organizations.create(), fresh_number())


async def talk(live: LivePlatform, detector: str) -> Json:
    """Let a caller speak with an agent of an organization with this detector; return the call."""
    runtime, spec = live.runtime, ProviderSpec(Capability.TURN_DETECTOR, detector, {})
    async with runtime.database.tenant(live.caller.organization_id) as session:
        await configure_providers(
            session, runtime.registry, runtime.keyring, [*list_embedded_providers(runtime.registry), spec]
        )
    simulated = await live.simulate_call("What are your opening hours?", "Goodbye")
    assert simulated.first_reply_ms is not None

    async def look() -> Json:
        (call, *_) = objects_at((await live.caller.get("/v1/calls")).json, "items")
        return await live.wait_for_end(call["id"])

    return await eventually(look, lambda call: call["served_by"])


async def test_a_detector_is_asked_and_named(live: LivePlatform) -> None:
    Listening.asked.clear()
    call = await talk(live, "listening")
    assert call["status"] == "completed"
    assert at(call, "served_by", "turn_detector") == "listening"
    asked = Listening.asked[0]
    assert asked.transcript
    assert len(asked.audio) > 8000


@pytest.mark.parametrize("detector", ["stuck", "unopenable"])
async def test_calls_go_on_without_a_detector_that_fails(live: LivePlatform, detector: str) -> None:
    call = await talk(live, detector)
    assert call["status"] == "completed"
    assert "turn_detector" not in str(call["served_by"])
    assert [failure["provider"] for failure in objects_at(call, "provider_failures")] == [detector]


async def kill_models() -> None:
    """Kill the process of Smart Turn whenever there is one."""
    while True:
        if (process_id := SHARED.process_id) is not None:
            with suppress(ProcessLookupError):
                os.kill(process_id, signal.SIGKILL)
        await asyncio.sleep(0.01)


async def test_calls_go_on_by_text_while_the_processes_of_the_model_are_killed(live: LivePlatform) -> None:
    killing = asyncio.create_task(kill_models())
    call = await talk(live, "smart_turn")
    killing.cancel()
    assert call["status"] == "completed"
    assert "turn_detector" not in str(call["served_by"])
    assert "smart_turn" in [failure["provider"] for failure in objects_at(call, "provider_failures")]
    entries = objects_at((await live.caller.get(f"/v1/calls/{call['id']}/transcript")).json, "items")
    pauses = [pause for entry in entries for pause in objects_at(entry, "pauses")]
    assert any(pause["ended_turn"] for pause in pauses)
    assert {pause["detector"] for pause in pauses} <= {"words", None}


async def test_a_detector_is_not_asked_by_silence_alone(live: LivePlatform) -> None:
    Listening.asked.clear()
    changed = await live.caller.send("PUT", f"/v1/agents/{live.agent_id}", {"turn_detection": {"mode": "silence"}})
    assert changed.status == 200
    await talk(live, "listening")
    assert not Listening.asked
