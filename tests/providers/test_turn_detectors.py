"""Turn detectors of plugins in calls: they are asked, named, done without, and chosen by default."""

import asyncio
import json
import os
import re
import signal
from collections.abc import AsyncIterator
from contextlib import suppress
from types import SimpleNamespace
from typing import ClassVar

import pytest
from pydantic import JsonValue
from switchboard.apps.tenant_files.defaults import list_embedded_providers
from switchboard.engine.providers import health
from switchboard.engine.providers.configuration import ProviderSpec, configure_providers
from switchboard.plugin_sdk import PossibleTurn, ProviderSettings, TurnDetector, TurnPrediction, hookimpl
from switchboard.plugin_sdk.registry import Capability, Registry
from switchboard.runtime import Runtime
from switchboard_offline.pocketsphinx import PocketsphinxSpeechToText
from switchboard_turn_smart.worker_process import SHARED

from tests.carriers.lines import open_twilio_line, wait_for_only_call
from tests.fixtures.app import Caller, LivePlatform, Organizations, create_bakery, fresh_number, run_server
from tests.fixtures.command_line import Operator
from tests.fixtures.eventually import eventually
from tests.fixtures.free_ports import find_free_port
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


class Hearing(PocketsphinxSpeechToText):
    """Hears as a vendor that transcribes people."""

    name = "hearing"
    title = "Hearing"
    for_demonstrations = False


@pytest.fixture(scope="session")
def registry() -> Registry:
    """The installed plugins, and one with these detectors and this transcriber."""
    found = Registry.discover()
    detectors = hookimpl(lambda: [Listening, Stuck, Unopenable], specname="turn_detectors")
    transcribers = hookimpl(lambda: [Hearing], specname="speech_to_text_providers")
    found.add("listening", SimpleNamespace(turn_detectors=detectors, speech_to_text_providers=transcribers))
    return found


@pytest.fixture
async def live(runtime: Runtime, organizations: Organizations) -> AsyncIterator[LivePlatform]:
    async with run_server(runtime):
        yield await create_bakery(runtime, await organizations.create(), fresh_number())


async def talk(live: LivePlatform, detector: str) -> Json:
    """Let a caller speak with an agent of an organization with this detector; return the call."""
    runtime, spec = live.runtime, ProviderSpec(Capability.TURN_DETECTOR, detector, {})
    async with runtime.database.write(live.caller.organization_id) as session:
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


async def test_a_late_detector_is_left_alone_until_it_is_in_time(runtime: Runtime, caller: Caller) -> None:
    async with runtime.database.write(caller.organization_id) as session:
        spec = ProviderSpec(Capability.TURN_DETECTOR, "stuck", {})
        await configure_providers(session, runtime.registry, runtime.keyring, [spec])
    (row,) = await runtime.providers.read_configurations(caller.organization_id, Capability.TURN_DETECTOR)
    late = runtime.providers.find_health(caller.organization_id, TurnDetector, "stuck", row.updated_at)
    for _ in range(health.FAILURES_UNTIL_DEGRADED):
        late.record_failure()
    runtime.providers.find_health(caller.organization_id, TurnDetector, "stuck", row.updated_at)  # starts a probe

    async def is_probe_over() -> bool:
        return late.claim_probe() or not late.degraded

    await eventually(is_probe_over, bool)
    assert late.degraded, "its check succeeds, but its predictions are late"


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


async def test_calls_with_people_have_a_detector_that_nobody_chose(
    runtime: Runtime, organizations: Organizations
) -> None:
    """Calls over the loopback carrier, and with a transcriber for demonstrations, have none (`test_inbound_calls`)."""
    hearing = ProviderSpec(Capability.SPEECH_TO_TEXT, "hearing", {})
    async with open_twilio_line(runtime, organizations, hearing) as (line, _):
        await line.simulate_call("What are your opening hours?", "Goodbye")
        call = await wait_for_only_call(line.live)
    assert call["status"] == "completed"
    # A busy machine may predict too late, and the call then goes by the words.
    failed = [failure["provider"] for failure in call["provider_failures"]]
    assert "smart_turn" in (call["served_by"].get("turn_detector"), *failed)


async def test_doctor_measures_the_detector_that_nobody_chose(
    runtime: Runtime, caller: Caller, operator: Operator
) -> None:
    async def examine(mode: str) -> list[tuple[str, str]]:
        changed = await caller.send("PUT", f"/v1/agents/{agent}", {"turn_detection": {"mode": mode}})
        assert changed.status == 200, changed.body
        printed = (await asyncio.to_thread(operator.run, "doctor", "--json")).stdout
        findings = json.loads(printed)["findings"]
        return [(each["what"], each["advice"]) for each in findings if "turn_detector" in each["what"]]

    agent = at((await caller.post("/v1/agents", {"name": "Front desk"})).json, "id")
    nowhere = f"http://127.0.0.1:{find_free_port()}"
    account: dict[str, JsonValue] = {"account_sid": f"AC{'0' * 32}", "auth_token": "0" * 32, "base_url": nowhere}
    people = [
        ProviderSpec(Capability.TELEPHONY, "twilio", account),
        ProviderSpec(Capability.SPEECH_TO_TEXT, "deepgram", {"api_key": "0" * 32, "base_url": nowhere}),
    ]
    async with runtime.database.write(caller.organization_id) as session:
        await configure_providers(session, runtime.registry, runtime.keyring, people)
    ((subject, advice),) = await examine("auto")
    assert "turn_detector smart_turn (default)" in subject
    # A busy machine may have too little time for it.
    assert re.match("A prediction takes .* ms, of the 150 ms that calls wait for it.|too many", advice), advice
    assert not await examine("text")
